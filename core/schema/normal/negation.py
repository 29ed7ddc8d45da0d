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

#: By keyword: what is known of a value that fails it, although the keyword is left out.
_FAILS = {"uniqueItems": fact("array", arrays=Arrays(contains=(Contains(REPEATED_ITEM, least=2),)))}


def negation(schemas: Schemas, located: Located) -> Formula:
    """Return the negation of a schema: one of its keywords does not hold."""
    schema = located.schema
    left_out = {word for key, word in schemas.unenforced if key == located.key} if schemas.unenforced else ()
    if "$ref" in schema and schemas.document.ref_hides_siblings:
        return either([*_NEGATIONS["$ref"](schemas, located)])
    # A keyword that is left out may be the one that fails: for any value of its type.
    options: list[Formula] = []
    for word in sorted(left_out):
        kind = KEYWORDS[word].type
        options.append(_FAILS.get(word) or (TRUE if kind is None else fact(kind)))
    for keyword, negated in _NEGATIONS.items():
        if keyword in schema and schemas.asserts(located, keyword):
            options.extend(negated(schemas, located))
    return either(options)
