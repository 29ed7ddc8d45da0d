"""Negation of schemas: one of the keywords does not hold.

Single assertions are closed under negation: the negation of a minimum is an exclusive maximum, that of a required
member is a fact that forbids it. The negation of a subschema stays a sign (`SignedSchema`) until it is expanded. Each
row of the keyword table has the negation of its keyword.
"""

from __future__ import annotations

from ..keywords.row import Schemas
from ..read.keywords import KEYWORDS
from ..read.located import Located
from .conjunction import TRUE, Formula
from .unions import either

#: By keyword, in the order of the table: its negation.
_NEGATIONS = {row.name: row.negation for row in KEYWORDS.values() if row.negation is not None}


def negation(schemas: Schemas, located: Located) -> Formula:
    """Return the negation of a schema: one of its keywords does not hold."""
    if schemas.unenforced and any(key == located.key for key, _ in schemas.unenforced):
        return TRUE  # the keyword that is left out may be the one that fails
    schema = located.schema
    if "$ref" in schema and schemas.document.ref_hides_siblings:
        return either([*_NEGATIONS["$ref"](schemas, located)])
    options: list[Formula] = []
    for keyword, negated in _NEGATIONS.items():
        if keyword in schema and schemas.asserts(located, keyword):
            options.extend(negated(schemas, located))
    return either(options)
