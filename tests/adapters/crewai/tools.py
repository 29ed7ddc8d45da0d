"""CrewAI tools that write down how they are called."""

from __future__ import annotations

from typing import Any

from crewai.tools import tool

#: The arguments of every call so far.
RAN: list[dict[str, Any]] = []


@tool("Word Count")
def word_count(words: dict[str, int], note: str = "none") -> str:
    """Count words."""
    RAN.append({"words": words, "note": note})
    return f"{sum(words.values())} words"


@tool("Turn")
def turn(angle: int, fast: bool) -> str:
    """Turn."""
    RAN.append({"angle": angle, "fast": fast})
    return "turned"
