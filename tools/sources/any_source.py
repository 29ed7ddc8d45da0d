"""Anything that describes a tool, as tools: one recogniser for each kind of source, asked in turn.

A recogniser takes a source and returns its tools, or None if the source is not of its kind. Strings are TypeScript;
dicts are of providers, JSON Schemas or OpenAPI documents; classes, tool objects of frameworks and callables have a
recogniser each; what is left and can be iterated holds tools.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolgrammar.core.errors import SchemaError

from ..tool import Tool
from ..typescript.reader import tools_from_typescript
from . import tool_objects
from .classes import parameters_of, tool_from_class
from .openapi import tools_from_openapi
from .python import tool_from_function
from .tool_dicts import list_in, tools_from_dict


def tools_from_any(source: Any) -> list[Tool]:
    """Return every tool in a list, a mapping with a list in it, a document, or anything else that describes a tool.

    Raises:
        SchemaError: something is no tool; names the tool, the parameter and the reason.
    """
    for recogniser in _RECOGNISERS:
        tools = recogniser(source)
        if tools is not None:
            return tools
    raise SchemaError(
        f"cannot make a tool of a {type(source).__name__}",
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


def _nothing(source: Any) -> list[Tool] | None:
    return [] if source is None else None


def _tool(source: Any) -> list[Tool] | None:
    return [source] if isinstance(source, Tool) else None


def _typescript(source: Any) -> list[Tool] | None:
    return list(tools_from_typescript(source)) if isinstance(source, str) else None


def _class(source: Any) -> list[Tool] | None:
    return [tool_from_class(source)] if inspect.isclass(source) else None


def _openapi(source: Any) -> list[Tool] | None:
    if isinstance(source, Mapping) and any(isinstance(source.get(key), str) for key in ("openapi", "swagger")):
        return list(tools_from_openapi(source))
    return None


def _dict(source: Any) -> list[Tool] | None:
    if not isinstance(source, Mapping):
        return None
    listed = list_in(source)
    if listed is not None:
        return _iterable(listed)
    return tools_from_dict(source, parameters_of)


def _routine(source: Any) -> list[Tool] | None:
    # Not inspect.isroutine: to it any object that can be bound is one, and tool objects are.
    plain = inspect.isfunction(source) or inspect.ismethod(source) or inspect.isbuiltin(source)
    return [tool_from_function(source)] if plain else None


def _callable(source: Any) -> list[Tool] | None:
    return [tool_from_function(source)] if callable(source) else None


def _iterable(source: Any) -> list[Tool] | None:
    if not isinstance(source, Iterable) or isinstance(source, bytes):
        return None
    different = {id(each): each for each in list(source)}  # one object is one tool, however often it is there
    return [tool for each in different.values() for tool in tools_from_any(each)]


#: In this order: functions may have any attributes, and tool objects may be callable and iterable.
_RECOGNISERS: tuple[Callable[[Any], list[Tool] | None], ...] = (
    _nothing,
    _tool,
    _typescript,
    _class,
    _openapi,
    _dict,
    _routine,
    tool_objects.recognise,
    _callable,
    _iterable,
)
