"""Schemas that say nothing but that other schemas hold of the same value: a reference, a conjunction of one, a union.

Their values are those of the other schemas, whose nodes are taken: no alternative is expanded.
"""

from __future__ import annotations

from ..keywords.row import Join
from ..normal.assertions import asserted, asserts_only
from ..normal.normalise import Normaliser
from ..read.keywords import KEYWORDS
from ..read.located import Located, SignedSchema
from ..read.resolve import Document

#: Rows of the keywords of which all schemas must hold of the same value, or some of them.
_CONJOINED = tuple(row for row in KEYWORDS.values() if row.join is Join.EVERY)
_UNIONS = tuple(row for row in KEYWORDS.values() if row.join in (Join.SOME, Join.ONE))


def followed(document: Document, located: Located) -> Located | None:
    """Return the schema at the end of a chain of synonyms (`{"$ref": "#/$defs/a"}` -> the schema of `a`); the schema
    itself if it is none; None if the chain is a circle."""
    seen: set[object] = set()
    while (target := _synonym(document, located)) is not None:
        if located.key in seen:
            return None
        seen.add(located.key)
        located = document.enter(target)
    return located


def _synonym(document: Document, located: Located) -> Located | None:
    """Return the one schema that a schema applies to the same value, if it constrains nothing else; else None."""
    schema = located.schema
    if isinstance(schema, bool):
        return None
    if "$ref" in schema:
        if document.ref_hides_siblings or asserts_only(schema, "$ref"):
            return document.resolve(located)
        return None
    for row in _CONJOINED:
        if asserts_only(schema, row.name):
            constraining = [
                each
                for each in located.items(row.name)
                if each.schema is False or (each.schema is not True and asserted(each.schema))
            ]
            return constraining[0] if len(constraining) == 1 else None
    return None


def options_of(normaliser: Normaliser, located: Located) -> list[Located] | None:
    """Return the options of a schema that is a plain union (``anyOf``, or ``oneOf`` of disjoint options) and constrains
    nothing else; else None."""
    schema = located.schema
    if isinstance(schema, bool):
        return None
    for row in _UNIONS:
        if asserts_only(schema, row.name):
            options = located.items(row.name)
            signed = [SignedSchema(option) for option in options]
            is_plain = row.join is Join.SOME or not any(normaliser.overlaps(located, signed))
            return options if is_plain else None
    return None
