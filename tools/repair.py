"""Repair of calls written without a grammar: broken JSON, and values written as strings where the schema has none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from toolgrammar.core.conversation import ToolCall
from toolgrammar.core.errors import MissingDependencyError, ParseError
from toolgrammar.core.json import read_json
from toolgrammar.core.repair import extract_json

_WORDS: dict[str, Any] = {"True": True, "False": False, "None": None}


def repair_call(call: ToolCall, names: Collection[str], kinds: Callable[[str, str], frozenset[str]]) -> ToolCall:
    """Return a call as it was probably meant; the result may still be invalid.

    Args:
        call: a call with an error.
        names: of the tools.
        kinds: the JSON types that an argument may have, by tool and argument name.
    """
    if call.fault is not None:
        call = _read(call, names)
        if call.error is not None:
            return call
    given = _unwrapped(call.arguments)
    arguments = {name: _value(value, kinds(call.name, name)) for name, value in given.items()}
    return replace(call, arguments=arguments)


#: Names under which models put all arguments once more.
_WRAPPERS = ("arguments", "parameters", "input", "properties")


def _unwrapped(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments in a single argument that holds all of them, as an object or as its JSON."""
    if len(arguments) != 1 or (name := next(iter(arguments))) not in _WRAPPERS:
        return arguments
    value = arguments[name]
    if isinstance(value, str):
        try:
            value = read_json(value)
        except ValueError:
            return arguments
    return value if isinstance(value, Mapping) else arguments


def _read(call: ToolCall, names: Collection[str]) -> ToolCall:
    """Return a malformed call, read from the JSON that its text contains."""
    try:
        value = extract_json(call.raw or "", repair=True, whole=True)
    except (ParseError, MissingDependencyError):
        return call
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping):
        return call
    inner = next((value[key] for key in ("arguments", "parameters") if isinstance(value.get(key), Mapping)), None)
    if value.get("name") in names and inner is not None:
        return replace(call, name=value["name"], arguments=dict(inner), error=None)
    return replace(call, arguments=dict(value), error=None) if call.name in names else call


def _value(value: Any, kinds: frozenset[str]) -> Any:
    """Return the value that a string spells, where the schema allows that kind of value and no string."""
    if not isinstance(value, str) or "string" in kinds:
        return value
    text = value.strip()
    try:
        meant = _WORDS[text] if text in _WORDS else read_json(text)
    except ValueError:
        return value
    kind = {bool: "boolean", int: "number", float: "number", type(None): "null", list: "array", dict: "object"}
    return meant if kind.get(type(meant)) in kinds else value
