"""Keywords that constrain numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from math import inf
from typing import Any, NamedTuple

from ..normal.conjunction import Formula, fact
from ..read.located import Located
from ..scalars.common import BOUNDS
from ..scalars.numbers import MAX_LISTED, MAX_NEAR, NumberRange, as_read, exact, is_long, listed_multiples
from .refusals import unsupported
from .row import Check, Facts, Keyword, Role, Schemas, Shape, Witness
from .shapes import CHECKS, is_readable

#: By keyword: True if it is a lower bound, and the flag that excludes the bound itself (draft 4).
NUMBER_BOUNDS = {
    "minimum": (True, "exclusiveMinimum"),
    "exclusiveMinimum": (True, None),
    "maximum": (False, "exclusiveMaximum"),
    "exclusiveMaximum": (False, None),
}

#: By keyword: names that other libraries have for it.
_FOREIGN = {
    "minimum": ("min", "ge"),
    "maximum": ("max", "le"),
    "exclusiveMinimum": ("gt",),
    "exclusiveMaximum": ("lt",),
}

#: Bounds up to this one, of integers, are looked at by `number_witness`.
_SMALL = 10**15


class Bound(NamedTuple):
    """A bound of numbers, lower or upper."""

    is_lower: bool
    value: Decimal
    is_excluded: bool


def bounds_of(schema: Mapping[str, Any]) -> Iterator[Bound]:
    """Yield the bounds that a schema gives for numbers."""
    for keyword in NUMBER_BOUNDS:
        if keyword in schema:
            yield from _bound(schema, keyword)


def _bound(schema: Mapping[str, Any], keyword: str) -> Iterator[Bound]:
    """Yield the bound of a keyword; nothing if it is a flag (draft 4), which belongs to another keyword."""
    value = schema[keyword]
    is_lower, flag = NUMBER_BOUNDS[keyword]
    if flag is not None:
        yield Bound(is_lower, as_read(value), schema.get(flag) is True)
    elif not isinstance(value, bool):
        yield Bound(is_lower, as_read(value), True)


def _within(numbers: NumberRange, bound: Bound) -> NumberRange:
    """Return the numbers of a range that are within a bound."""
    keep = numbers.at_least if bound.is_lower else numbers.at_most
    return keep(bound.value, bound.is_excluded)


def _check_minimum(check: Check, located: Located, keyword: str, value: Any) -> None:
    CHECKS[Shape.BOUND](check, located, keyword, value)
    if isinstance(value, (int, float)) and value in BOUNDS:
        check.has_common = True


def _bound_row(name: str) -> Keyword:
    """Return the row of a bound."""

    def facts(found: Facts, value: Any) -> None:
        for bound in _bound(found.located.schema, name):
            found.numbers = _within(found.numbers, bound)

    def negation(schemas: Schemas, located: Located) -> Iterator[Formula]:
        for bound in _bound(located.schema, name):
            beyond = Bound(not bound.is_lower, bound.value, not bound.is_excluded)
            yield fact("number", numbers=_within(NumberRange(), beyond))

    return Keyword(
        name,
        Shape.BOUND,
        Role.ASSERTION,
        "number",
        foreign=_FOREIGN[name],
        check=_check_minimum if name == "minimum" else None,
        facts=facts,
        negation=negation,
    )


def _multiple(facts: Facts, step: Any) -> None:
    facts.numbers = replace(facts.numbers, multiples=(*facts.numbers.multiples, exact(step)))


def _check_multiple(check: Check, located: Located, keyword: str, value: Any) -> None:
    """Note a step that is malformed, or of which not all multiples can be written."""
    if not is_readable(check, located, keyword, value):
        return
    if type(value) is bool or not 0 < value < inf:
        check.invalid(located, keyword, f"{keyword} must be a finite number above zero")
        return
    step = exact(value)
    if not is_long(step):  # all multiples can be written
        return
    # Of a long step, only multiples between two bounds can, if they are few; excluded bounds are at most two more.
    numbers = NumberRange(multiples=(step,))
    for bound in bounds_of(located.schema):
        numbers = _within(numbers, bound._replace(is_excluded=False))
    listed = listed_multiples(numbers) if numbers.least is not None and numbers.most is not None else None
    if listed is None or len(listed) > MAX_LISTED:
        left_out = f"multiples more than {MAX_NEAR:,} steps from the one nearest to zero"
        check.refuse(located, unsupported(located, keyword, left_out=left_out))


def _not_multiple(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield fact("number", numbers=NumberRange(not_multiples=(exact(located.schema["multipleOf"]),)))


def number_witness(schema: Mapping[str, Any], witness: Witness) -> list[Any] | None:
    """Return the witness of a number schema (see `Witness`): the integer within the bounds that is nearest to zero."""
    low, high = schema.get("minimum", -_SMALL), schema.get("maximum", _SMALL)
    if type(low) is int and type(high) is int and -_SMALL <= low <= high <= _SMALL:
        return [min(max(low, 0), high)]
    return None


#: The keywords that `number_witness` reads.
READ_FOR_NUMBER = frozenset({"minimum", "maximum"})

ROWS = (
    *map(_bound_row, NUMBER_BOUNDS),
    Keyword(
        "multipleOf",
        Shape.STEP,
        Role.ASSERTION,
        "number",
        check=_check_multiple,
        facts=_multiple,
        negation=_not_multiple,
    ),
)
