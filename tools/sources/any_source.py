"""Tools of anything that describes tools: one recogniser for each kind of source, asked in turn.

A recogniser takes a source and returns its tools, or None if the source is not of its kind. To read one more kind,
write a module with a `recognise` and add it to `RECOGNISERS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from inspect import isclass, isfunction
from types import ModuleType
from typing import Any, get_origin

from toolgrammar.core.errors import GrammarError, InvalidSchemaError, LimitError, Place, SchemaError, ToolGrammarError

from ..tool import Tool, ToolList, warn_of_skipped
from . import tool_dicts


class _Parts(list[Any]):
    """Sources that are read one by one."""


def tools_from_any(source: Any, *, skip: bool = False) -> ToolList:
    """Return every tool in a list, in a mapping with a list of tools, in a document, or in another description of a
    tool.

    Args:
        source: the list, mapping, document or description.
        skip: list the errors of parts that cannot be tools in ``skipped`` of the result, with a warning, instead of
            raising them; and make the tools optional.

    Raises:
        SchemaError: something is not a tool; names the tool, the parameter and the reason.
    """
    tools: list[Tool] = []
    skipped: list[ToolGrammarError] = []
    waiting = [] if source is None else [source]
    opened: dict[int, Any] = {}  # by id; it keeps them alive, so that no other object gets their id
    while waiting:
        part = waiting.pop()
        try:
            found = _read(part)
        except (SchemaError, LimitError, GrammarError) as error:
            if not skip:
                raise
            skipped.append(error)
            continue
        if isinstance(found, _Parts):
            # An object that occurs several times counts once, and a list may hold itself.
            if id(part) not in opened:
                opened[id(part)] = part
                waiting += reversed({id(item): item for item in found}.values())
            continue
        tools += found
        skipped += found.skipped if isinstance(found, ToolList) else ()
    if skip:
        warn_of_skipped(skipped)
    return ToolList((tool.changed(optional=True) for tool in tools) if skip else tools, skipped)


def _read(source: Any) -> list[Tool] | _Parts:
    """Return the tools of a source, or the sources that it holds, by the first recogniser that knows its kind."""
    for recognise in RECOGNISERS:
        found = recognise(source)
        if found is not None:
            return found
    raise SchemaError(
        f"cannot make a tool of a value of the type {type(source).__name__}",
        hint="pass a function, a Pydantic model, a module, a tool dict, a JSON Schema with a title or a Tool",
    )


def _tool(source: Any) -> list[Tool] | None:
    """Return a tool itself."""
    return [source] if isinstance(source, Tool) else None


def _list(source: Any) -> _Parts | None:
    """Return the parts of a plain list, which is of no other kind."""
    return _iterable(source) if type(source) in (list, tuple) else None


def _module(source: Any) -> _Parts | None:
    """Return what the ``__all__`` of a module names, or else the public functions that it defines."""
    if not isinstance(source, ModuleType):
        return None
    names = getattr(source, "__all__", None) or [
        name
        for name, value in vars(source).items()
        if not name.startswith("_") and isfunction(value) and value.__module__ == source.__name__
    ]
    return _Parts(getattr(source, name) for name in names)


def _json_text(source: Any) -> _Parts | None:
    """Return what a JSON text of tools holds.

    Raises:
        InvalidSchemaError: it begins as JSON, and is none.
    """
    if not isinstance(source, str) or source.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return _Parts([json.loads(source)])
    except json.JSONDecodeError as error:
        raise InvalidSchemaError(
            f"the text begins as JSON, and is not: {error.msg}",
            hint="correct it; a Python dict or list of tools may be given as it is",
            place=Place(line=error.lineno, column=error.colno),
        ) from None
    except (ValueError, RecursionError):  # a number too long, brackets too deep
        return None


def _typescript(source: Any) -> list[Tool] | None:
    """Return the tools that a string declares in TypeScript."""
    if not isinstance(source, str):
        return None
    from ..typescript.reader import tools_from_typescript  # not all users need it

    return tools_from_typescript(source)


def _dict_with_list(source: Any) -> _Parts | None:
    """Return the parts of a provider's dict that holds a list of tools."""
    listed = tool_dicts.list_in(source) if isinstance(source, Mapping) else None
    return None if listed is None else _iterable(listed)


def _iterable(source: Any) -> _Parts | None:
    """Return the parts of an iterable of sources."""
    return None if not isinstance(source, Iterable) or isinstance(source, bytes) else _Parts(source)


def _imported(module: str, may_be: Callable[[Any], bool]) -> Callable[[Any], list[Tool] | None]:
    """Return the recogniser of a module that is imported for a source that may be of its kind: most need Pydantic."""

    def recognise(source: Any) -> list[Tool] | None:
        if not may_be(source):
            return None
        found: list[Tool] | None = import_module(f".{module}", __package__).recognise(source)
        return found

    return recognise


#: The order matters where a source is of several kinds: tool objects may be callable and iterable.
RECOGNISERS: tuple[Callable[[Any], list[Tool] | _Parts | None], ...] = (
    _tool,
    _list,
    _module,
    _json_text,
    _typescript,
    _imported("classes", isclass),
    _imported("openapi", lambda source: isinstance(source, Mapping) and ("openapi" in source or "swagger" in source)),
    _dict_with_list,
    tool_dicts.recognise,
    _imported("tool_objects", lambda source: True),
    _imported("python", lambda source: callable(source) or get_origin(source) is not None),
    _iterable,
)
