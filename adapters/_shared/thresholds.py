"""Below which probability the model was not sure of a call."""

from __future__ import annotations

from collections.abc import Mapping

from toolgrammar.core.errors import ToolGrammarError


class Thresholds:
    """The thresholds of tools.

    Args:
        below: the threshold of a tool without its own, a probability.
        tools: other thresholds for some tools, by name.

    Raises:
        ToolGrammarError: ``below`` is not between 0 and 1, or a threshold is negative.
    """

    def __init__(self, below: float, tools: Mapping[str, float] | None = None) -> None:
        if not 0 <= below <= 1:
            raise ToolGrammarError(f"below is {below!r}", hint="a probability: a number from 0 to 1")
        self._tools = dict(tools or {})
        for name, threshold in self._tools.items():
            if not threshold >= 0:
                raise ToolGrammarError(f"the threshold of {name!r} is {threshold!r}", hint="a number from 0")
        self._below = below

    def of(self, name: str) -> float:
        """Return the threshold of a tool."""
        return self._tools.get(name, self._below)
