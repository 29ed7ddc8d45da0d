"""Instructor over a model in this process: a class out of a text, right at the first attempt.

Run it: python examples/openai_instructor.py
"""

from __future__ import annotations

import instructor
from pydantic import BaseModel, Field

from toolgrammar.adapters.openai import client
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


class Ship(BaseModel):
    """A ship."""

    name: str
    masts: int = Field(ge=1, le=7)


# A scripted model, so that the output is reproducible. For a real model use "smollm2" or "hf:PATH".
# It prefers 9 masts, but the grammar enforces the bound.
script = ScriptedModel([Message("assistant", tool_calls=(ToolCall("", "Ship", {"name": "Preussen", "masts": 9}),))])

with client({"small": script}) as openai:
    ask = instructor.from_openai(openai)
    ship = ask.chat.completions.create(
        model="small", response_model=Ship, max_retries=0, messages=[{"role": "user", "content": "The Preussen."}]
    )
print(ship.name, 1 <= ship.masts <= 7)
