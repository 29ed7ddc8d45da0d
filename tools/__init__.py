"""Tools: from signatures to one language of calls, and back from text to calls that run.

`ToolSet.from_any` takes Pydantic models, annotated functions, tool dicts of any provider and JSON Schemas; its
``grammar`` is the language of everything a model may write, its ``parse`` reads what a model wrote, and its ``call``
runs it::

    from toolgrammar.tools import ToolSet

    def add(a: int, b: int = 0) -> int:
        "Add two numbers."
        return a + b

    tools = ToolSet.from_any([add])
    text = '<tool_call>\\n{"name": "add", "arguments": {"a": 1, "b": 2}}\\n</tool_call>'
    assert tools.grammar(tool_choice="required").matches(text)
    assert tools.call(tools.parse(text).tool_calls[0]) == 3

Use it wherever a model must choose between functions; for one JSON answer, ``toolgrammar.core`` is enough. It does not
know any agent framework (``toolgrammar.adapters`` does) and runs functions without a sandbox.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolgrammar.core.faces import lazy

from .calling import ToolResult
from .closed_schema import close_objects
from .contracts import ToolChange, ToolChanges
from .dialects import to_json_schema
from .formats import TurnSpec, WireFormat, get_format
from .tool import Tool
from .toolset import ToolSet

if TYPE_CHECKING:
    from .policy import Origin, Policy
    from .programs.tool import program_tool
    from .sources.openapi import tools_from_openapi
    from .typescript.harmony import tools_to_harmony
    from .typescript.printer import schema_to_typescript, tools_to_typescript
    from .typescript.reader import schema_from_typescript, tools_from_typescript

#: The former name of `TurnSpec`.
Turn = TurnSpec

__all__ = [
    "Origin",
    "Policy",
    "Tool",
    "ToolChange",
    "ToolChanges",
    "ToolResult",
    "ToolSet",
    "Turn",
    "TurnSpec",
    "WireFormat",
    "close_objects",
    "get_format",
    "program_tool",
    "schema_from_typescript",
    "schema_to_typescript",
    "to_json_schema",
    "tools_from_openapi",
    "tools_from_typescript",
    "tools_to_harmony",
    "tools_to_typescript",
]

if not TYPE_CHECKING:
    __getattr__, __dir__, _lazy = lazy(
        __name__,
        {
            "policy": "Origin Policy",
            "programs.tool": "program_tool",
            "sources.openapi": "tools_from_openapi",
            "typescript.harmony": "tools_to_harmony",
            "typescript.printer": "schema_to_typescript tools_to_typescript",
            "typescript.reader": "schema_from_typescript tools_from_typescript",
        },
    )
