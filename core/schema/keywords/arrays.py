"""Keywords that constrain arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from ...json.values import is_among
from ..normal.conjunction import TRUE, ArrayPart, Arrays, Contains, Formula, OnlyKeywordFails, fact, negated
from ..read.located import Located, SignedSchema
from .counts import count_rows
from .row import Assertions, Document, Draft, Facts, Holds, Keyword, Role, Schemas, Shape, Steps, Witness
from .shapes import up_to

#: Values that an array may repeat where ``uniqueItems`` must fail, in addition to the values that ``items`` lists.
REPEATED: tuple[Any, ...] = (None, True, False, 0, 1, "", "a", [], {})

#: The arrays that are left out there.
NOT_UNIQUE = 'arrays that repeat no simple value: null, true, false, 0, 1, "", "a", [], {}, or one that items lists'

#: Maximum number of values listed by ``items`` that an array may repeat where ``uniqueItems`` must fail.
MAX_LISTED = 32

#: Maximum value of a lower bound on items: each item has states of its own.
MAX_LEAST_ITEMS = 10_000

# -- items by position -----------------------------------------------------------------------------------------


def array_part(schemas: Assertions, located: Located) -> ArrayPart:
    """Return the schemas of items by position."""
    schema = located.schema
    prefix: list[Located] = []
    items: Formula | None = None
    if isinstance(schema.get("items"), (list, tuple)):  # up to 2019-09
        prefix = located.items("items")
        if "additionalItems" in schema:
            items = SignedSchema(located.under("additionalItems"))
    else:
        if schemas.asserts(located, "prefixItems"):
            prefix = located.items("prefixItems")
        if "items" in schema:
            items = SignedSchema(located.under("items"))
    return ArrayPart(tuple([SignedSchema(item) for item in prefix]), items)


def _items(facts: Facts, value: Any) -> None:
    facts.arrays["parts"] = (facts.schemas.array_part(facts.located),)


def _not_items(schemas: Schemas, located: Located) -> Iterator[Formula]:
    part = schemas.array_part(located)
    if part.items is not None:
        yield _has_items(Contains(negated(part.items), len(part.prefix)))
    if isinstance(located.schema["items"], (list, tuple)):  # up to 2019-09
        yield from _not_prefix(schemas, located)


def _not_prefix(schemas: Schemas, located: Located) -> Iterator[Formula]:
    """Yield the arrays with a wrong item at a position, for each position that has a schema of its own."""
    for index, formula in enumerate(schemas.array_part(located).prefix):
        part = ArrayPart((*(TRUE,) * index, negated(formula)))
        yield fact("array", arrays=Arrays(parts=(part,), least=index + 1))


def _has_items(contains: Contains) -> Formula:
    return fact("array", arrays=Arrays(contains=(contains,)))


def _positions(schema: Mapping[str, Any], document: Document) -> tuple[str | None, str | None]:
    """Return the keyword that has the schemas of the first items, and the keyword that has the schema of the others;
    None: no keyword has."""
    if isinstance(schema.get("items"), (list, tuple)):
        return "items", "additionalItems" if "additionalItems" in schema else None
    prefix = "prefixItems" if "prefixItems" in schema and document.knows("prefixItems") else None
    return prefix, "items" if "items" in schema else None


def _needed_at(keyword: str) -> Callable[[Mapping[str, Any], Document], Iterator[Sequence[Steps]]]:
    """Return `Keyword.needed` of a keyword that has schemas of items: those of the items up to the minimum."""

    def needed(schema: Mapping[str, Any], document: Document) -> Iterator[Sequence[Steps]]:
        """Yield the steps to the schemas that some item of a shortest array has: positions below ``minItems``, and the
        schema of the other items if ``minItems`` goes beyond the positions."""
        first, others = _positions(schema, document)
        least = int(schema.get("minItems", 0))
        listed = len(schema[first]) if first else 0
        if keyword == first:
            for index in range(min(listed, least)):
                yield ((index,),)  # a group of one schema
        elif keyword == others and least > listed:
            yield ((),)

    return needed


# -- contains --------------------------------------------------------------------------------------------------


def _bounds(schemas: Assertions, located: Located) -> Contains:
    """Return the schema of ``contains``, with the bounds of the number of items that satisfy it."""
    least = int(located.schema["minContains"]) if schemas.asserts(located, "minContains") else 1
    most = int(located.schema["maxContains"]) if schemas.asserts(located, "maxContains") else None
    return Contains(SignedSchema(located.under("contains")), 0, None, least, most)


def _contains(facts: Facts, value: Any) -> None:
    contains = _bounds(facts.schemas, facts.located)
    if contains.least or contains.most is not None:
        facts.arrays["contains"] = (contains,)


def _needed_contained(schema: Mapping[str, Any], document: Document) -> Iterator[Sequence[Steps]]:
    if schema.get("minContains", 1) > 0 or not document.knows("minContains"):
        yield ((),)


def _not_contains(schemas: Schemas, located: Located) -> Iterator[Formula]:
    contains = _bounds(schemas, located)
    if contains.least > 0:
        yield _has_items(replace(contains, least=0, most=contains.least - 1))
    if contains.most is not None:
        yield _has_items(replace(contains, least=contains.most + 1, most=None))


# -- items that differ -----------------------------------------------------------------------------------------


def _unique(facts: Facts, value: Any) -> None:
    facts.arrays["unique"] = value is True


def _not_unique(schemas: Schemas, located: Located) -> Iterator[Formula]:
    """Yield arrays that repeat one of a few values; a repetition of any other value cannot be tracked."""
    if located.schema["uniqueItems"] is not True:
        return
    listed = list(islice(_listed_items(schemas, located), MAX_LISTED))
    for value in (*listed, *(value for value in REPEATED if not is_among(value, listed))):
        yield _has_items(Contains(schemas.constant(value), least=2))


def _listed_items(schemas: Schemas, located: Located) -> Iterator[Any]:
    """Yield the values that the items of a schema list."""
    if isinstance(located.schema.get("items"), Mapping):
        yield from schemas.values(schemas.document.enter(located.child("items"))) or ()


def _not_evaluated(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield OnlyKeywordFails(located, "unevaluatedItems")


# -- whether there is a value ----------------------------------------------------------------------------------


def array_witness(schema: Mapping[str, Any], witness: Witness) -> list[Any] | None:
    """Return the witness of an array schema (see `Witness`): the minimum number of equal items."""
    least = int(schema["minItems"])
    if least > schema.get("maxItems", least) or (least > 1 and schema.get("uniqueItems") is True):
        return None
    if least == 0:
        return [[]]
    item = witness(schema.get("items", True))
    return item and [item * least]


#: The keywords that `array_witness` reads.
READ_FOR_ARRAY = frozenset({"minItems", "maxItems", "uniqueItems"})

ROWS = (
    Keyword(
        "prefixItems",
        Shape.SCHEMAS,
        Role.PARTS,
        "array",
        Draft.DRAFT_2020_12,
        holds=Holds.EMPTY,
        needed=_needed_at("prefixItems"),
        facts=_items,
        negation=_not_prefix,
    ),
    Keyword(
        "items",
        Shape.ITEMS,
        Role.PARTS,
        "array",
        holds=Holds.PARTS,
        foreign=("elements",),
        needed=_needed_at("items"),
        facts=_items,
        negation=_not_items,
    ),
    Keyword(
        "additionalItems",
        Shape.SCHEMA,
        Role.PARTS,
        "array",
        holds=Holds.EMPTY,
        needed=_needed_at("additionalItems"),
        facts=_items,
    ),
    *count_rows("array", "Items", MAX_LEAST_ITEMS),
    Keyword(
        "contains",
        Shape.SCHEMA,
        Role.PARTS,
        "array",
        Draft.DRAFT_6,
        negates=True,
        signs=lambda schema, holds: (True,) if holds and "maxContains" not in schema else (True, False),
        needed=_needed_contained,
        facts=_contains,
        negation=_not_contains,
    ),
    Keyword(
        "minContains",
        Shape.LOWER_COUNT,
        Role.ASSERTION,
        "array",
        Draft.DRAFT_2019_09,
        companions=("contains",),
        check=up_to(MAX_LEAST_ITEMS),
    ),
    Keyword("maxContains", Shape.UPPER_COUNT, Role.ASSERTION, "array", Draft.DRAFT_2019_09, companions=("contains",)),
    Keyword(
        "uniqueItems",
        Shape.FLAG,
        Role.ASSERTION,
        "array",
        narrowed=NOT_UNIQUE,
        holds=Holds.EMPTY,
        foreign=("unique",),
        facts=_unique,
        negation=_not_unique,
    ),
    Keyword(
        "unevaluatedItems",
        Shape.SCHEMA,
        Role.REMAINDER,
        "array",
        Draft.DRAFT_2019_09,
        negates=True,
        signs=lambda schema, holds: (True,) if holds else (True, False),
        negation=_not_evaluated,
    ),
)
