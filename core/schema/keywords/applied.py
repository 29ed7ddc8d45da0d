"""Keywords that apply schemas to the same value: references and combinations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..normal.conjunction import TRUE, AllOf, Formula, IfThenElse, negated
from ..read.located import Located, SignedSchema
from .row import Draft, Keyword, Role, Schemas, Shape

# -- combinations ----------------------------------------------------------------------------------------------


def _all_of(schemas: Schemas, located: Located, scopes: tuple[Any, ...]) -> list[Formula]:
    return [SignedSchema(part) for part in located.items("allOf")]


def _not_all_of(schemas: Schemas, located: Located) -> Iterator[Formula]:
    for part in located.items("allOf"):
        yield SignedSchema(part, False)


def _any_of(schemas: Schemas, located: Located, scopes: tuple[Any, ...]) -> list[Formula]:
    return [schemas.any_of(located, scopes)]


def _not_any_of(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield AllOf(tuple(schemas.denied([SignedSchema(option) for option in located.items("anyOf")])))


def _one_of(schemas: Schemas, located: Located, scopes: tuple[Any, ...]) -> list[Formula]:
    return [schemas.one_of(located)]


def _not_one_of(schemas: Schemas, located: Located) -> Iterator[Formula]:
    if schemas.one_of_as_union:
        yield TRUE
        return
    overlaps = schemas.overlaps(located)
    options = [SignedSchema(option) for option in located.items("oneOf")]
    yield AllOf(tuple(schemas.denied(options)))
    for one, others in enumerate(overlaps):
        for two in sorted(others):
            if one < two:
                yield AllOf((options[one], options[two]))


def _not(schemas: Schemas, located: Located, scopes: tuple[Any, ...]) -> list[Formula]:
    return [SignedSchema(located.under("not"), False)]


def _not_not(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield SignedSchema(located.under("not"))


def _if(schemas: Schemas, located: Located, scopes: tuple[Any, ...]) -> Iterable[Formula]:
    schema = located.schema
    if scopes or "then" in schema or "else" in schema:
        then = SignedSchema(located.under("then")) if "then" in schema else TRUE
        otherwise = SignedSchema(located.under("else")) if "else" in schema else TRUE
        yield IfThenElse(SignedSchema(located.under("if")), then, otherwise)


def _not_if(schemas: Schemas, located: Located) -> Iterator[Formula]:
    condition = SignedSchema(located.under("if"))
    if "then" in located.schema:
        yield AllOf((condition, SignedSchema(located.under("then"), False)))
    if "else" in located.schema:
        yield AllOf((negated(condition), SignedSchema(located.under("else"), False)))


def _branch_signs(schema: Mapping[str, Any], holds: bool) -> tuple[bool, ...]:
    """Return the signs of ``then`` and ``else``, which mean nothing without ``if``."""
    return (holds,) if "if" in schema else ()


# -- references ------------------------------------------------------------------------------------------------


def _reference(name: str, **data: Any) -> Keyword:
    """Return the row of a reference."""

    def applied(schemas: Schemas, located: Located, scopes: tuple[Any, ...]) -> list[Formula]:
        return [SignedSchema(schemas.document.resolve(located, name))]

    def negation(schemas: Schemas, located: Located) -> list[Formula]:
        return [SignedSchema(schemas.document.resolve(located, name), False)]

    return Keyword(name, Shape.REFERENCE, Role.REFERENCE, applied=applied, negation=negation, **data)


ROWS = (
    _reference("$ref", forks=True),
    _reference("$dynamicRef", since=Draft.DRAFT_2020_12),
    _reference("$recursiveRef", since=Draft.DRAFT_2019_09, until=Draft.DRAFT_2020_12),
    Keyword(
        "allOf",
        Shape.ALTERNATIVES,
        Role.SAME_VALUE,
        forks=True,
        applied=_all_of,
        negation=_not_all_of,
    ),
    Keyword(
        "not",
        Shape.SCHEMA,
        Role.SAME_VALUE,
        forks=True,
        negates=True,
        signs=lambda schema, holds: (not holds,),
        applied=_not,
        negation=_not_not,
    ),
    Keyword(
        "if",
        Shape.SCHEMA,
        Role.SAME_VALUE,
        since=Draft.DRAFT_7,
        forks=True,
        negates=True,
        signs=lambda schema, holds: (True, False) if "then" in schema or "else" in schema else (True,),
        applied=_if,
        negation=_not_if,
    ),
    Keyword("then", Shape.SCHEMA, Role.SAME_VALUE, since=Draft.DRAFT_7, signs=_branch_signs),
    Keyword("else", Shape.SCHEMA, Role.SAME_VALUE, since=Draft.DRAFT_7, signs=_branch_signs),
    Keyword("oneOf", Shape.ALTERNATIVES, Role.SAME_VALUE, forks=True, applied=_one_of, negation=_not_one_of),
    Keyword("anyOf", Shape.ALTERNATIVES, Role.SAME_VALUE, forks=True, applied=_any_of, negation=_not_any_of),
)
