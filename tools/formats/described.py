"""Tools as text in a prompt, for models whose own template does not describe them: one short line each.

Every token counts, so keywords that tell a model nothing are left out: titles that repeat a name, and defaults spelled
out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolgrammar.core.schema import KEYWORDS

from ..tool import Tool

#: Keywords whose value is a schema.
_SCHEMAS = KEYWORDS.one_schema | {"items"}


def described(tool: Tool, *, brief: bool = False) -> str:
    """Return a tool as one line of JSON: its name, its description, its parameters; with ``brief``, as its name and the
    first sentence of its description."""
    if brief:
        return f"{tool.name}: {tool.summary}" if tool.summary else tool.name
    parts = {"name": tool.name, "description": tool.description, "parameters": _terse(tool.parameters, tool.name)}
    stated = {key: value for key, value in parts.items() if value != ""}
    return json.dumps(stated, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _terse(schema: Any, name: str = "") -> Any:
    """Return a schema without the keywords that tell a model nothing.

    Args:
        schema: the schema.
        name: the property or tool that it belongs to.
    """
    if not isinstance(schema, Mapping):
        return schema
    terse: dict[str, Any] = {}
    for key, value in schema.items():
        if _is_idle(key, value, name):
            continue
        if key in KEYWORDS.schema_maps and isinstance(value, Mapping):
            terse[key] = {inner: _terse(sub, inner) for inner, sub in value.items()}
        elif key in KEYWORDS.schema_lists and isinstance(value, list):
            terse[key] = [_terse(inner) for inner in value]
        else:
            terse[key] = _terse(value) if key in _SCHEMAS else value
    return terse


def _is_idle(keyword: str, value: Any, name: str) -> bool:
    """Return True if a keyword tells nothing to a model that reads the description."""
    if keyword == "title" and isinstance(value, str):
        return _letters(value).removesuffix("arguments").removesuffix("args") in ("", _letters(name))
    if keyword == "additionalProperties":
        return value is False  # names that are not listed are not expected
    return keyword == "$schema" or (keyword == "default" and value is None) or (keyword, value) == ("required", [])


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()
