"""Recorded requests without what belongs to a machine, a user or an agent's maker: ids, paths, times and long texts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

#: Maximum number of characters of a text that is kept whole; of others the beginning is kept.
LONGEST, _BEGINNING = 90, 24
#: Fields whose texts are kept whole: they are what the server reads.
WHOLE = frozenset({"definition", "pattern", "arguments", "input"})
#: Fields that have the conversation.
_LISTS = frozenset({"messages", "input"})
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


def scrubbed(requests: Sequence[dict[str, Any]], tools: list[Any]) -> list[dict[str, Any]]:
    """Return the requests of one run in the form of a fixture: each has its difference from the one before it.

    Args:
        requests: in order.
        tools: of all runs of an agent; a request has indices in this list, which is extended by new tools.
    """
    ids: dict[str, str] = {}
    bodies, made = [], []
    for one in requests:
        if one["method"] != "POST" or not isinstance(one.get("body"), dict):
            continue
        body = _value(one["body"], "", ids)
        if "tools" in body:
            body["tools"] = [_index(tool, tools) for tool in body["tools"]]
        bodies.append(body)
        unused = {name: value for name, value in one.get("headers", {}).items() if name in _HEADERS}
        made.append({"path": one["path"], **unused})
    return [{**head, **difference} for head, difference in zip(made, differences(bodies), strict=True)]


def differences(bodies: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return of each body what differs from the body before it.

    ``set`` has the changed fields, ``gone`` the names of absent ones, and ``kept`` says of a list of messages how
    many of its first items are those of the body before.
    """
    made = []
    before: dict[str, Any] = {}
    for body in bodies:
        changed = {name: value for name, value in body.items() if name not in before or before[name] != value}
        kept = {}
        for name in _LISTS & changed.keys() & before.keys():
            pairs = zip(body[name], before[name], strict=False)
            kept[name] = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
            changed[name] = body[name][kept[name] :]
        gone = [name for name in before if name not in body]
        made.append({"set": changed, **({"kept": kept} if kept else {}), **({"gone": gone} if gone else {})})
        before = body
    return made


def bodies_of(requests: Sequence[dict[str, Any]], tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the bodies of the requests of one run in a fixture."""
    made = []
    body: dict[str, Any] = {}
    for one in requests:
        kept = {name: [*body[name][:count], *one["set"][name]] for name, count in one.get("kept", {}).items()}
        body = {name: value for name, value in body.items() if name not in one.get("gone", ())} | one["set"] | kept
        made.append({**body, "tools": [tools[n] for n in body["tools"]]} if "tools" in body else body)
    return made


def _index(tool: Any, tools: list[Any]) -> int:
    if tool not in tools:
        tools.append(tool)
    return tools.index(tool)


def _value(value: Any, name: str, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {scrubbed_text(key): _value(item, key, ids) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item, name, ids) for item in value]
    if not isinstance(value, str):
        return value
    if name in ("call_id", "tool_call_id", "tool_use_id", "id"):
        return ids.setdefault(value, f"id_{len(ids)}")
    text = scrubbed_text(value)
    if len(text) > LONGEST and name not in WHOLE:
        return f"{text[:_BEGINNING]}... ({len(text)} characters)"
    return text


def scrubbed_text(text: str) -> str:
    """Return a text without ids, paths and times."""
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return text
