"""Keywords that bound a count: of the characters of a string, the items of an array, the members of an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..normal.conjunction import Arrays, Formula, Objects, Strings, fact
from ..read.located import Located
from .row import Facts, Holds, Keyword, Role, Schemas, Shape
from .shapes import up_to

#: By JSON type: the constraints on its values, which have a field ``least`` and a field ``most``.
_CONSTRAINTS = {"string": Strings, "array": Arrays, "object": Objects}


def count_rows(kind: str, counted: str, limit: int) -> tuple[Keyword, Keyword]:
    """Return the rows of a minimum and of a maximum: ``"string", "Length"`` -> ``minLength``, ``maxLength``.

    Args:
        kind: the JSON type of the values.
        counted: the end of both names.
        limit: the maximum value of the minimum.
    """
    field, low, high = f"{kind}s", f"min{counted}", f"max{counted}"  # `Facts` and `Conjunction` name fields so

    def has(**bounds: int) -> Formula:
        return fact(kind, **{field: _CONSTRAINTS[kind](**bounds)})

    def at_least(facts: Facts, count: Any) -> None:
        getattr(facts, field)["least"] = int(count)

    def at_most(facts: Facts, count: Any) -> None:
        getattr(facts, field)["most"] = int(count)

    def too_few(schemas: Schemas, located: Located) -> Iterator[Formula]:
        least = int(located.schema[low])
        if least > 0:
            yield has(most=least - 1)

    def too_many(schemas: Schemas, located: Located) -> Iterator[Formula]:
        yield has(least=int(located.schema[high]) + 1)

    minimum = Keyword(
        low, Shape.LOWER_COUNT, Role.ASSERTION, kind, check=up_to(limit), facts=at_least, negation=too_few
    )
    maximum = Keyword(
        high, Shape.UPPER_COUNT, Role.ASSERTION, kind, holds=Holds.EMPTY, facts=at_most, negation=too_many
    )
    return minimum, maximum
