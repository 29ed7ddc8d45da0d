"""Order of properties: explanations before answers, so that they can still change the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...json import escape
from .keywords import KEYWORDS

#: Words in the names of properties that explain, and of those that answer.
_EXPLAINS = frozenset(
    "reasoning reason reasons rationale explanation explanations justification thought thoughts thinking analysis "
    "scratchpad deliberation evidence why cot".split()
)
_ANSWERS = frozenset(
    "answer answers result results conclusion decision verdict label class classification category score rating "
    "choice grade prediction sentiment solution output final".split()
)


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def explains(name: str) -> bool:
    """Return True if a property of this name holds an explanation: ``reasoning``, ``chain_of_thought``, ``cot``."""
    words = _words(name)
    return bool(words & _EXPLAINS) and not words & _ANSWERS


def reasoning_first(schema: Any) -> Any:
    """Return a JSON Schema in which properties that explain come before the others, at every depth.

    A model writes properties in the order of the schema. An explanation after the answer can only justify it.
    The valid values do not change; ``propertyOrdering`` gets the same order.

    Args:
        schema: a JSON Schema; it is not changed.
    """

    def ordered(inner: dict[str, Any]) -> dict[str, Any]:
        properties, given = inner.get("properties"), inner.get("propertyOrdering")
        if isinstance(properties, dict):
            inner["properties"] = {name: properties[name] for name in sorted(properties, key=_comes_later)}
        if isinstance(given, list) and all(isinstance(name, str) for name in given):
            inner["propertyOrdering"] = sorted(given, key=_comes_later)
        return inner

    return KEYWORDS.map_schemas(schema, ordered)


def _comes_later(name: str) -> bool:
    return not explains(name)


def answers_before_reasons(schema: Any, pointer: str = "") -> Iterator[str]:
    """Yield the JSON pointers of properties that explain and come after a property that answers."""
    if isinstance(schema, list):
        for index, one in enumerate(schema):
            yield from answers_before_reasons(one, f"{pointer}/{index}")
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        has_answered = False
        for name in schema.get("propertyOrdering") or properties:
            if isinstance(name, str) and explains(name) and has_answered:
                yield f"{pointer}/properties/{escape(name)}"
            has_answered = has_answered or (isinstance(name, str) and bool(_words(name) & _ANSWERS))
    for key, value in schema.items():
        if key not in KEYWORDS.data:
            yield from answers_before_reasons(value, f"{pointer}/{escape(key)}")
