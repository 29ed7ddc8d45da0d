"""When two schema documents are one: what of a document decides which values are valid, as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_SCHEMAS = frozenset(
    {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "additionalProperties"}
    | {"unevaluatedProperties", "propertyNames", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
)

#: Keywords that constrain nothing (Draft 2020-12 validation, section 9, and core, section 8.3), where their value is
#: what the specification asks for.
_ANNOTATIONS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("title", "description", "$comment"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), lambda value: isinstance(value, bool)),
    "examples": lambda value: isinstance(value, list),
    "default": lambda value: True,
}
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})


def canonical(schema: Any) -> str:
    """A schema document as text that is equal for documents which say the same in the same order.

    Titles, descriptions, defaults and other annotations do not count, nor does the order of keywords. The order of
    ``properties`` does (members are written in it), as does that of everything else.

    Raises:
        RecursionError, ValueError, TypeError: it has no text: too deep, cyclic, or not JSON.
    """
    reader = _Reader()
    text = _dumped(reader.read(schema))
    # A reference may lead into what was left out: then all of it counts.
    return _dumped(schema) if reader.is_referred_to else text


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Reader:
    """Reads one document.

    Attributes:
        is_referred_to: some reference may lead into an annotation.
    """

    def __init__(self) -> None:
        self.is_referred_to = False

    def read(self, schema: Any) -> Any:
        """The schema without annotations, its keywords in order."""
        if not isinstance(schema, dict):
            return schema
        result: dict[str, Any] = {}
        for keyword in sorted(schema):
            value = schema[keyword]
            is_annotation = _ANNOTATIONS.get(keyword)
            if is_annotation is not None and is_annotation(value):
                continue
            if keyword in _REFERENCES and not _ANNOTATIONS.keys().isdisjoint(str(value).split("/")):
                self.is_referred_to = True
            if keyword in _MAPS and isinstance(value, dict):
                value = {name: self.read(each) for name, each in value.items()}
            elif keyword in _SCHEMAS:
                value = [self.read(each) for each in value] if isinstance(value, list) else self.read(value)
            result[keyword] = value
        return result
