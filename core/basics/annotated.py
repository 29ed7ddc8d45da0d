"""Keywords that the annotations of a type add to its JSON Schema."""

from __future__ import annotations

from typing import Any


def with_keyword(schema: dict[str, Any], keyword: str, value: Any) -> dict[str, Any]:
    """Return a schema with a keyword too; in its ``allOf`` if it has the keyword already, because both hold.

    Args:
        schema: the schema of the type with the annotations before. It is not changed.
        keyword: the keyword.
        value: its value.
    """
    if keyword not in schema:
        return {**schema, keyword: value}
    return {**schema, "allOf": [*schema.get("allOf", ()), {keyword: value}]}
