"""Tools as text in a prompt, for models whose own template does not describe them: one short line each.

Every token of this is read before the first call, so what tells a model nothing is left out: titles that repeat a
name, and the keywords by which a schema says what is taken for granted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolgrammar.core.schema.read.keywords import ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_MAPS

from ..tool import Tool

#: Keywords whose value is a schema.
_SCHEMAS = ONE_SCHEMA | {"items"}


def described(tool: Tool) -> str:
    """Return a tool as one line of JSON: its name, its description, its parameters."""
    parts = {"name": tool.name, "description": tool.description, "parameters": _terse(tool.parameters, tool.name)}
    told = {key: value for key, value in parts.items() if value != ""}
    return json.dumps(told, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _terse(schema: Any, name: str = "") -> Any:
    """Return a schema without what goes without saying.

    Args:
        schema: of the value.
        name: under which it stands.
    """
    if not isinstance(schema, Mapping):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if _is_idle(key, value, name):
            continue
        if key in SCHEMA_MAPS and isinstance(value, Mapping):
            found[key] = {each: _terse(schema, each) for each, schema in value.items()}
        elif key in SCHEMA_LISTS and isinstance(value, list):
            found[key] = [_terse(each) for each in value]
        else:
            found[key] = _terse(value) if key in _SCHEMAS else value
    return found


def _is_idle(keyword: str, value: Any, name: str) -> bool:
    """Return whether a keyword tells nothing to who reads a tool's description."""
    if keyword == "title" and isinstance(value, str):
        return _letters(value).removesuffix("arguments").removesuffix("args") in ("", _letters(name))
    if keyword == "additionalProperties":
        return value is False  # names that are not listed are not expected
    return keyword == "$schema" or (keyword == "default" and value is None) or (keyword, value) == ("required", [])


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()
