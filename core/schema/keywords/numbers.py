"""Keywords that constrain numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from ..normal.conjunction import Formula, fact
from ..read.located import Located
from ..scalars.numbers import NumberRange, exact
from .row import Facts, Keyword, Role, Schemas, Shape

#: By keyword: True if it is a lower bound, and the flag that excludes the bound itself (draft 4).
_BOUNDS = {
    "minimum": (True, "exclusiveMinimum"),
    "exclusiveMinimum": (True, None),
    "maximum": (False, "exclusiveMaximum"),
    "exclusiveMaximum": (False, None),
}

#: Bounds up to this one, of integers, are looked at by `number_witness`.
_SMALL = 10**15


def bounds_of(schema: Mapping[str, Any]) -> Iterator[tuple[bool, Decimal, bool]]:
    """Yield the bounds of numbers: True for a lower one, its value, and True if that value is excluded."""
    for keyword in _BOUNDS:
        if keyword in schema:
            yield from _bound(schema, keyword)


def _bound(schema: Mapping[str, Any], keyword: str) -> Iterator[tuple[bool, Decimal, bool]]:
    """Yield the bound of a keyword; nothing if it is a flag."""
    value = schema[keyword]
    is_lower, flag = _BOUNDS[keyword]
    if flag is not None:
        yield is_lower, exact(value), schema.get(flag) is True
    elif not isinstance(value, bool):
        yield is_lower, exact(value), True


def _at(numbers: NumberRange, is_lower: bool, value: Decimal, is_excluded: bool) -> NumberRange:
    """Return the numbers of a range that are within a bound."""
    return numbers.at_least(value, is_excluded) if is_lower else numbers.at_most(value, is_excluded)


def _bound_row(name: str) -> Keyword:
    """Return the row of a bound."""

    def facts(found: Facts, value: Any) -> None:
        for bound in _bound(found.located.schema, name):
            found.numbers = _at(found.numbers, *bound)

    def negation(schemas: Schemas, located: Located) -> Iterator[Formula]:
        for is_lower, value, is_excluded in _bound(located.schema, name):
            yield fact("number", numbers=_at(NumberRange(), not is_lower, value, not is_excluded))

    return Keyword(name, Shape.BOUND, Role.ASSERTION, "number", facts=facts, negation=negation)


def _multiple(facts: Facts, step: Any) -> None:
    facts.numbers = replace(facts.numbers, multiples=(*facts.numbers.multiples, exact(step)))


def _not_multiple(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield fact("number", numbers=NumberRange(not_multiples=(exact(located.schema["multipleOf"]),)))


def number_witness(schema: Mapping[str, Any], witness: Callable[[Any], list[Any] | None]) -> list[Any] | None:
    """Return the integer within the bounds (`READ_FOR_NUMBER`) that is nearest to zero, in a list; None if there may be
    none."""
    low, high = schema.get("minimum", -_SMALL), schema.get("maximum", _SMALL)
    if type(low) is int and type(high) is int and -_SMALL <= low <= high <= _SMALL:
        return [min(max(low, 0), high)]
    return None


#: The keywords that `number_witness` reads.
READ_FOR_NUMBER = frozenset({"minimum", "maximum"})

ROWS = (
    *map(_bound_row, _BOUNDS),
    Keyword("multipleOf", Shape.STEP, Role.ASSERTION, "number", facts=_multiple, negation=_not_multiple),
)
