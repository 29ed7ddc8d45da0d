"""Keywords that apply schemas to the same value: references and combinations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..normal.conjunction import TRUE, AllOf, Formula, IfThenElse, negated
from ..read.located import Located, SignedSchema
from .row import Document, Draft, Join, Keyword, Role, Schemas, Shape, Steps, Witness

# -- combinations ----------------------------------------------------------------------------------------------


def _needed_in(keyword: str, join: Join) -> Callable[[Mapping[str, Any], Document], Iterator[Sequence[Steps]]]:
    """Return `Keyword.needed` of a keyword that joins schemas of the same value."""

    def needed(schema: Mapping[str, Any], document: Document) -> Iterator[Sequence[Steps]]:
        steps: list[Steps] = [(index,) for index in range(len(schema[keyword]))]
        if join is Join.EVERY:
            yield from ([each] for each in steps)
        else:
            yield steps

    return needed


def first_witness(witnesses: Iterable[list[Any] | None]) -> list[Any] | None:
    """Return the first known value of some witnesses (see `Witness`); an empty list if one only exists; else None."""
    best: list[Any] | None = None
    for found in witnesses:
        if found:
            return found
        best = found if best is None else best
    return best


def _option_witness(keyword: str) -> Callable[[Mapping[str, Any], Document | None, Witness], list[Any] | None]:
    """Return `Keyword.witness` of ``anyOf`` or ``oneOf``."""

    def witness(schema: Mapping[str, Any], document: Document | None, inner: Witness) -> list[Any] | None:
        if document is None or "type" in schema:
            return None
        if keyword == "oneOf" and id(schema) not in document.disjoint:  # another option may hold of the value too
            return None
        return first_witness(map(inner, schema[keyword]))

    return witness


def _signed(located: Located, keyword: str) -> list[SignedSchema]:
    """Return the schemas that a keyword lists, as ones that must hold."""
    return [SignedSchema(inner) for inner in located.items(keyword)]


def _all_of(schemas: Schemas, located: Located, scopes: tuple[Any, ...]) -> list[SignedSchema]:
    return _signed(located, "allOf")


def _not_all_of(schemas: Schemas, located: Located) -> Iterator[Formula]:
    for part in located.items("allOf"):
        yield SignedSchema(part, False)


def _any_of(schemas: Schemas, located: Located, scopes: tuple[Any, ...]) -> list[Formula]:
    return [schemas.any_of(located, tuple(_signed(located, "anyOf")), scopes)]


def _not_any_of(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield AllOf(tuple(schemas.denied(_signed(located, "anyOf"))))


def _one_of(schemas: Schemas, located: Located, scopes: tuple[Any, ...]) -> list[Formula]:
    return [schemas.one_of(located, _signed(located, "oneOf"))]


def _not_one_of(schemas: Schemas, located: Located) -> Iterator[Formula]:
    """Yield the ways in which ``oneOf`` fails: no option holds, or two that overlap hold."""
    if schemas.one_of_as_union:
        yield TRUE
        return
    options = _signed(located, "oneOf")
    overlaps = schemas.overlaps(located, options)
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
    """Yield the formula of a condition. Without ``then`` and ``else``, it only matters to ``scopes``: what the
    condition evaluates."""
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


def _target_witness(schema: Mapping[str, Any], document: Document | None, inner: Witness) -> list[Any] | None:
    """Return the witness of the schema that ``$ref`` leads to, in the same document."""
    if document is None or ("type" in schema and not document.ref_hides_siblings):
        return None
    if schema["$ref"] != "#" and not schema["$ref"].startswith("#/"):
        return None
    target = document.resolve(Located(schema))
    return inner(target.schema) if target.scope is None else None


def _reference(name: str, **data: Any) -> Keyword:
    """Return the row of a reference."""

    def applied(schemas: Schemas, located: Located, scopes: tuple[Any, ...]) -> list[Formula]:
        return [SignedSchema(schemas.document.resolve(located, name))]

    def negation(schemas: Schemas, located: Located) -> list[Formula]:
        return [SignedSchema(schemas.document.resolve(located, name), False)]

    return Keyword(name, Shape.REFERENCE, Role.REFERENCE, applied=applied, negation=negation, **data)


ROWS = (
    _reference("$ref", forks=True, witness=_target_witness),
    _reference("$dynamicRef", since=Draft.DRAFT_2020_12),
    _reference("$recursiveRef", since=Draft.DRAFT_2019_09, until=Draft.DRAFT_2020_12),
    Keyword(
        "allOf",
        Shape.ALTERNATIVES,
        Role.SAME_VALUE,
        forks=True,
        join=Join.EVERY,
        needed=_needed_in("allOf", Join.EVERY),
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
        companions=("then", "else"),
        signs=lambda schema, holds: (True, False) if "then" in schema or "else" in schema else (True,),
        applied=_if,
        negation=_not_if,
    ),
    Keyword("then", Shape.SCHEMA, Role.SAME_VALUE, since=Draft.DRAFT_7, companions=("if",), signs=_branch_signs),
    Keyword("else", Shape.SCHEMA, Role.SAME_VALUE, since=Draft.DRAFT_7, companions=("if",), signs=_branch_signs),
    Keyword(
        "oneOf",
        Shape.ALTERNATIVES,
        Role.SAME_VALUE,
        forks=True,
        join=Join.ONE,
        needed=_needed_in("oneOf", Join.ONE),
        witness=_option_witness("oneOf"),
        applied=_one_of,
        negation=_not_one_of,
    ),
    Keyword(
        "anyOf",
        Shape.ALTERNATIVES,
        Role.SAME_VALUE,
        forks=True,
        join=Join.SOME,
        needed=_needed_in("anyOf", Join.SOME),
        witness=_option_witness("anyOf"),
        applied=_any_of,
        negation=_not_any_of,
    ),
)
