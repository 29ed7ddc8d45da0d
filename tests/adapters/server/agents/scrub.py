"""Recorded requests without what belongs to a machine, a user or an agent's maker: ids, paths, times and long texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

#: Maximum number of characters of a text that is kept whole; of others the beginning is kept.
_LONGEST, _BEGINNING = 90, 24
#: Fields whose texts are kept whole: they are what the server reads.
_WHOLE = frozenset({"definition", "pattern", "arguments", "input"})
#: Of headers only these are kept.
_HEADERS = ("x-toolgrammar-unused",)

_RULES: Sequence[tuple[re.Pattern[str], str]] = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "id"),
    (re.compile(r"((?:call|msg|rs|fc|ws|ses|prj|toolu|chatcmpl|resp|wall_time)[_-])[0-9A-Za-z]{8,}"), r"\1id"),
    (re.compile(r"\b[0-9a-f]{16,}\b"), "id"),
    (re.compile(r"(?:/root|/tmp|/opt|/work|/home)/[^\s\"',<>)`]*"), "/path"),
    (re.compile(r"\d{4}-\d\d-\d\d(?:T[0-9:.]+Z?)?"), "2026-01-01"),
    (re.compile(r"\b1[6-9]\d{8,11}\b"), "1"),
]


def scrubbed(requests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return requests in the form of a fixture: each list of tools once, and the bodies."""
    tools: list[Any] = []
    made = []
    ids: dict[str, str] = {}
    for one in requests:
        if one["method"] != "POST":
            continue
        body = _value(one["body"], "", ids)
        if "tools" in body:
            if body["tools"] not in tools:
                tools.append(body["tools"])
            body["tools"] = tools.index(body["tools"])
        unused = {name: value for name, value in one.get("headers", {}).items() if name in _HEADERS}
        made.append({"path": one["path"], **unused, "body": body})
    return {"tools": tools, "requests": made}


def _value(value: Any, name: str, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {_text(key, ids): _value(item, key, ids) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item, name, ids) for item in value]
    if not isinstance(value, str):
        return value
    if name in ("call_id", "tool_call_id", "tool_use_id", "id"):
        return ids.setdefault(value, f"id_{len(ids)}")
    text = _text(value, ids)
    if len(text) > _LONGEST and name not in _WHOLE:
        return f"{text[:_BEGINNING]}... ({len(text)} characters)"
    return text


def _text(text: str, ids: dict[str, str]) -> str:
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return text
