"""Discriminated unions: the tag that tells the alternatives apart becomes a required property.

OpenAPI (3.1, section 4.8.25) says of ``discriminator`` that its property is a required one in every alternative.
Pydantic writes the keyword too, and refuses a value without the tag; but it leaves the tag out of ``required`` where
the alternative's class gives it a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...json import resolve_local
from ..read.keywords import KEYWORDS


def require_tags(schema: Any) -> Any:
    """Return a schema whose discriminated unions require their tag; the input is not changed.

    Args:
        schema: Draft 2020-12; references are followed only within it.

    Law: every instance of the result is one of ``schema``; a schema without ``discriminator`` is returned as it is.
    """
    if not _mentions(schema):
        return schema

    def required(inner: dict[str, Any]) -> dict[str, Any]:
        discriminator = inner.get("discriminator")
        name = discriminator.get("propertyName") if isinstance(discriminator, Mapping) else None
        if not isinstance(name, str):
            return inner
        unions = [word for word in ("oneOf", "anyOf") if isinstance(inner.get(word), list)]
        return {**inner, **{word: [_tagged(option, name, schema) for option in inner[word]] for word in unions}}

    return KEYWORDS.map_schemas(schema, required)


def _mentions(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        return "discriminator" in schema or any(map(_mentions, schema.values()))
    return isinstance(schema, list) and any(map(_mentions, schema))


def _tagged(schema: Any, name: str, root: Any) -> Any:
    """Return an alternative that requires the tag: as it is, where it does so already or is itself a tagged union."""
    if not isinstance(schema, Mapping):
        return schema
    target: Any = schema
    seen: set[int] = set()
    while isinstance(target, Mapping) and id(target) not in seen:
        seen.add(id(target))
        names = target.get("required")
        if isinstance(names, list) and name in names:
            return schema
        inner = target.get("discriminator")
        if isinstance(inner, Mapping) and inner.get("propertyName") == name:
            return schema
        target = _referred(target.get("$ref"), root)
    names = schema.get("required")
    return {**schema, "required": [*(names if isinstance(names, list) else ()), name]}


def _referred(reference: Any, root: Any) -> Any:
    """Return the subschema that a local reference names, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    try:
        return resolve_local(root, reference)
    except LookupError:
        return None
