"""Tools without parameters: for a request that only chooses among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from toolgrammar.core.conversation import ToolCall
from toolgrammar.core.dependent.live import LiveValues

from .calling import as_call
from .tool import Tool
from .toolset import ToolSet


class NamedTools(ToolSet):
    """The names of tools, and one line of the description of each. The arguments of a call are dropped.

    Args:
        tools: the tools.
        max_calls: most calls in a turn.
    """

    def __init__(self, tools: Iterable[Tool], max_calls: int | None) -> None:
        nothing = {"type": "object", "properties": {}}
        made = [Tool(tool.name, tool.summary, nothing) for tool in tools]
        super().__init__(made, max_calls=max_calls)

    def validate(self, call: ToolCall | Mapping[str, Any], *, values: LiveValues | None = None) -> ToolCall:
        """Return a call of one of the tools, without arguments; errors as for `ToolSet.validate`."""
        return super().validate(replace(as_call(call), arguments={}, raw="{}", error=None), values=values)
