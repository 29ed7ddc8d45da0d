"""Argument types and helpers that the tests of LangChain share."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage


class Unit(str, Enum):
    """A unit."""

    celsius = "celsius"
    fahrenheit = "fahrenheit"


def joined(chunks: Sequence[BaseMessage]) -> AIMessageChunk:
    """Return the chunks of a stream as one message."""
    total: Any = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    assert isinstance(total, AIMessageChunk)
    return total
