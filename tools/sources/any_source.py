"""Tools of anything that describes tools: one recogniser for each kind of source, asked in turn.

A recogniser takes a source and returns its tools, or None if the source is not of its kind. To read one more kind,
write a module with a `recognise` and add it to `RECOGNISERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolgrammar.core.errors import SchemaError

from ..tool import Tool
from ..typescript import reader as typescript
from . import classes, openapi, python, tool_dicts, tool_objects


def tools_from_any(source: Any) -> list[Tool]:
    """Return every tool in a list, a mapping with a list in it, a document, or anything else that describes a tool.

    Raises:
        SchemaError: something is not a tool; names the tool, the parameter and the reason.
    """
    for recognise in RECOGNISERS:
        tools = recognise(source)
        if tools is not None:
            return tools
    raise SchemaError(
        f"cannot make a tool of a value of the type {type(source).__name__}",
        hint="pass a Tool, a Pydantic model, a function, a tool dict or a JSON Schema with a title",
    )


def tool_from_any(source: Any) -> Tool:
    """Return the one tool that a source describes.

    Raises:
        SchemaError: it describes none, or several; names the tool, the parameter and the reason.
    """
    tools = tools_from_any(source)
    if len(tools) != 1:
        raise SchemaError(f"expected one tool, found {len(tools)}", hint="use ToolSet.from_any")
    return tools[0]


def _tool(source: Any) -> list[Tool] | None:
    """Return a tool itself, and no tools for None."""
    if source is None:
        return []
    return [source] if isinstance(source, Tool) else None


def _list(source: Any) -> list[Tool] | None:
    """Return the tools of a plain list, which is of no other kind."""
    return _iterable(source) if type(source) in (list, tuple) else None


def _dict_with_list(source: Any) -> list[Tool] | None:
    """Return the tools of a provider's dict that holds a list of them."""
    listed = tool_dicts.list_in(source) if isinstance(source, Mapping) else None
    return None if listed is None else _iterable(listed)


def _iterable(source: Any) -> list[Tool] | None:
    """Return the tools of an iterable of sources; an object that occurs several times counts once."""
    if not isinstance(source, Iterable) or isinstance(source, bytes):
        return None
    distinct = {id(item): item for item in list(source)}
    return [tool for item in distinct.values() for tool in tools_from_any(item)]


#: The order matters where a source is of several kinds: tool objects may be callable and iterable.
RECOGNISERS: tuple[Callable[[Any], list[Tool] | None], ...] = (
    _tool,
    _list,
    typescript.recognise,
    classes.recognise,
    openapi.recognise,
    _dict_with_list,
    tool_dicts.recognise,
    tool_objects.recognise,
    python.recognise,
    _iterable,
)
