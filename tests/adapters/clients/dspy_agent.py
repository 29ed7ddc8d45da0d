"""DSPy over the LiteLLM provider in this process: `dspy.ReAct` with two tools, and a typed signature."""

from __future__ import annotations

import json
from typing import Any

import dspy

from toolgrammar.adapters.litellm import register
from toolgrammar.core.testing import ScriptedModel

from . import shop
from .shop import ANSWER, MODEL, OFFER, TASK, WANTED, Done

STREAMS = False  # DSPy streams the fields of an answer as a whole


class Question(dspy.Signature):  # type: ignore[misc,unused-ignore]
    """Answer with the tools."""

    question: str = dspy.InputField()
    answer: str = dspy.OutputField()
    offer: shop.Offer = dspy.OutputField()


def work(url: str, stream: bool) -> Done:
    """Run the agent in this process; the server is not asked. Each step of DSPy is an answer under a schema."""
    steps: list[dict[str, Any]] = [
        {"next_thought": "", "next_tool_name": name, "next_tool_args": arguments} for name, arguments in WANTED
    ]
    steps += [{"next_thought": "", "next_tool_name": "finish", "next_tool_args": {}}]
    steps += [{"reasoning": "", "answer": ANSWER, "offer": OFFER}]
    provider = register({MODEL: ScriptedModel([json.dumps(step) for step in steps])})
    try:
        with dspy.context(lm=dspy.LM(f"toolgrammar/{MODEL}", cache=False), adapter=dspy.JSONAdapter()):
            done = dspy.ReAct(Question, tools=[shop.count_stock, shop.price_of])(question=TASK)
    finally:
        provider.close()
    return Done(done.answer, done.offer)
