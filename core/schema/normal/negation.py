"""Negation of schemas: one of the keywords does not hold.

Single assertions are closed under negation: the negation of a minimum is an exclusive maximum, that of a required
member is a fact that forbids it. The negation of a subschema stays a sign (`SignedSchema`) until it is expanded. Each
row of the keyword table has the negation of its keyword.
"""

from __future__ import annotations

from ..keywords.row import Schemas
from ..read.keywords import KEYWORDS
from ..read.located import Located
from .conjunction import REPEATED_ITEM, TRUE, Arrays, Contains, Formula, fact
from .unions import either

#: By keyword, in the order of the table: its negation.
_NEGATIONS = {row.name: row.negation for row in KEYWORDS.values() if row.negation is not None}

#: By keyword: what is known of a value that fails it, even if the keyword is not enforced.
_FAILS: dict[str, Formula] = {"uniqueItems": fact("array", arrays=Arrays(contains=(Contains(REPEATED_ITEM, least=2),)))}


def negation(schemas: Schemas, located: Located) -> Formula:
    """Return the negation of a schema: one of its keywords does not hold."""
    schema = located.schema
    if "$ref" in schema and schemas.document.ref_hides_siblings:
        return either([*_NEGATIONS["$ref"](schemas, located)])
    options: list[Formula] = []
    # A keyword that is not enforced may be the one that fails: for all that is known, for any value of its type.
    for keyword in sorted(keyword for key, keyword in schemas.unenforced if key == located.key):
        kind = KEYWORDS[keyword].type
        any_value = TRUE if kind is None else fact(kind)
        options.append(_FAILS.get(keyword, any_value))
    for keyword, negated in _NEGATIONS.items():
        if keyword in schema and schemas.asserts(located, keyword):
            options.extend(negated(schemas, located))
    return either(options)
