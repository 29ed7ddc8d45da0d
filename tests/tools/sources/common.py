"""Tools of a single source, and their calls."""

from __future__ import annotations

from typing import Any

from toolgrammar.tools import Tool, ToolSet


def only(source: Any) -> Tool:
    """Return the one tool made of a source."""
    (tool,) = ToolSet.from_any([source])
    return tool


def run(source: Any, **arguments: Any) -> Any:
    """Return what a call of the one tool made of a source gives."""
    tool = only(source)
    return ToolSet([tool]).call({"name": tool.name, "arguments": arguments})
