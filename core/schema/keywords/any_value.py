"""Keywords that constrain values of every type: types and lists of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from ...errors import LimitError, Place
from ..normal.conjunction import (
    EVERY,
    TYPES,
    AllOf,
    Arrays,
    Conjunction,
    Contains,
    Exists,
    Formula,
    Objects,
    fact,
    negated,
    same_value,
    type_of,
)
from ..normal.unions import MAX_PRODUCT, either, together
from ..read.located import Located
from ..scalars.numbers import NumberRange
from .row import Assertions, Document, Draft, Facts, Holds, Keyword, Role, Schemas, Shape, Witness

#: Maximum number of arrays and objects of one ``enum`` that a value may have to differ from.
MAX_DIFFERENT = 500

#: All integers.
INTEGERS = NumberRange(integer=True)

#: By the name of a type: the types that it allows, and True if numbers must be integers.
_TYPES = {name: (frozenset((name,)), False) for name in TYPES}
_TYPES.update({"integer": (frozenset(("number",)), True), "any": (EVERY.types, False)})

#: Python types of listed values that `_listed_witness` does not compare with the schema's types.
_MIXED = (float, dict, list, tuple)

# -- types -----------------------------------------------------------------------------------------------------


def types_of(schema: Mapping[str, Any]) -> tuple[frozenset[str], bool]:
    """Return the types that ``type`` allows, and True if numbers must be integers."""
    if "nullable" not in schema and isinstance(schema["type"], str):
        return _TYPES[schema["type"]]
    names = schema["type"] if isinstance(schema["type"], (list, tuple)) else [schema["type"]]
    wanted = {"number" if name == "integer" else name for name in names}
    if "any" in wanted:
        wanted = set(TYPES)
    if schema.get("nullable") is True:
        wanted.add("null")
    return frozenset(wanted), "integer" in names and "number" not in names and "any" not in names


def are_of_different_types(options: Sequence[Located]) -> bool:
    """Return True if each schema names its types by itself, and no two schemas share a type."""
    seen: set[Any] = set()
    for option in options:
        schema = option.schema
        if type(schema) is not dict or "type" not in schema or "$ref" in schema or schema.get("nullable") is True:
            return False
        kinds = schema["type"]
        types = {kinds} if type(kinds) is str else set(kinds) if isinstance(kinds, (list, tuple)) else {"any"}
        if "integer" in types:
            types.add("number")
        if "any" in types or not seen.isdisjoint(types):
            return False
        seen |= types
    return True


def allowed_types(schemas: Assertions, located: Located) -> frozenset[str]:
    """Return the types that a schema allows by its ``type``, or all."""
    return types_of(located.schema)[0] if schemas.asserts(located, "type") else EVERY.types


def _type(facts: Facts, value: Any) -> None:
    facts.types, integer = types_of(facts.located.schema)
    if integer:
        facts.numbers = INTEGERS if facts.numbers is EVERY.numbers else replace(facts.numbers, integer=True)


def _not_type(schemas: Schemas, located: Located) -> Iterator[Formula]:
    """Yield the values that ``type`` forbids: those of the other types; of ``integer``, numbers with a fraction,
    too."""
    if schemas.values(located) is not None:
        return  # only listed values of these types are valid: see `_not_values`
    types, integer = types_of(located.schema)
    others = frozenset(TYPES) - types
    if others:
        yield fact(others)
    if integer and "number" in types:
        yield fact("number", numbers=NumberRange(fractional=True))


# -- values ----------------------------------------------------------------------------------------------------


def listed_values(schemas: Assertions, located: Located) -> tuple[Any, ...] | None:
    """Return the values that ``enum`` and ``const`` allow; None: the schema has neither."""
    schema = located.schema
    values: tuple[Any, ...] | None = None
    if "enum" in schema and schemas.asserts(located, "enum"):
        values = tuple(schema["enum"])
        if schema.get("nullable") is True and None not in values and "const" not in schema:
            values = (*values, None)
    if "const" in schema and schemas.asserts(located, "const"):
        const = schema["const"]
        return (const,) if values is None else tuple([value for value in values if same_value(value, const)])
    return values


def _values(facts: Facts, value: Any) -> None:
    facts.values = listed_values(facts.schemas, facts.located)


def _not_values(schemas: Schemas, located: Located) -> Iterator[Formula]:
    """Yield the formula of values that ``enum`` or ``const`` does not list: scalars are excluded by value, each array
    or object by one difference."""
    values = schemas.values(located) or ()
    if schemas.asserts(located, "type"):
        types, integer = types_of(located.schema)
        values = tuple(value for value in values if type_of(value) in types and not (integer and _is_fraction(value)))
    scalars = tuple(value for value in values if type_of(value) not in ("array", "object"))
    others = [value for value in values if type_of(value) in ("array", "object")]
    if len(others) > MAX_DIFFERENT:
        raise LimitError(
            f"{len(others):,} listed arrays and objects must be excluded, and at most {MAX_DIFFERENT} can be",
            hint="leave out not (or oneOf), or list fewer values",
            place=Place(pointer=located.pointer, keyword="enum"),
        )
    options = [_differences(schemas, value) for value in others]
    join: Callable[[list[Conjunction]], Formula] = either
    if prod(map(len, options)) > MAX_PRODUCT:
        join = together
    denied = Conjunction(not_values=scalars)
    yield AllOf((denied, *map(join, options))) if options else denied


def _not_constant(schemas: Schemas, located: Located) -> Iterator[Formula]:
    if not schemas.asserts(located, "enum"):  # else the values of both are told apart by `enum`
        yield from _not_values(schemas, located)


def _listed_witness(keyword: str) -> Callable[[Mapping[str, Any], Document | None, Witness], list[Any] | None]:
    """Return `Keyword.witness` of a keyword that lists values: the first one of the schema's types."""

    def witness(schema: Mapping[str, Any], document: Document | None, inner: Witness) -> list[Any] | None:
        values = schema[keyword] if keyword == "enum" else (schema[keyword],)
        if "type" in schema:
            types, _ = types_of(schema)
            # A fraction may not be the integer that is asked for.
            values = [value for value in values if not isinstance(value, _MIXED) and type_of(value) in types]
        return [values[0]] if values else None

    return witness


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float) and not value.is_integer()


def _differences(schemas: Schemas, value: Any) -> list[Conjunction]:
    """Return the alternatives of "another value than this array or object"."""
    kind = type_of(value)
    if kind == "array":
        options = [fact(set(TYPES) - {"array"}), fact("array", arrays=Arrays(least=len(value) + 1))]
        if value:
            options.append(fact("array", arrays=Arrays(most=len(value) - 1)))
        for index, item in enumerate(value):
            other = Contains(negated(schemas.constant(item)), index, index + 1)
            options.append(fact("array", arrays=Arrays(contains=(other,))))
        return options
    # An object with fewer members lacks one of these.
    options = [fact(set(TYPES) - {"object"}), fact("object", objects=Objects(least=len(value) + 1))]
    for name, item in value.items():
        options.append(fact("object", objects=Objects(absent=frozenset((name,)))))
        options.append(fact("object", objects=Objects(exists=(Exists(negated(schemas.constant(item)), name),))))
    return options


ROWS = (
    Keyword(
        "enum",
        Shape.VALUES,
        Role.ASSERTION,
        foreign=("choices", "values", "allowedvalues", "oneofvalues"),
        witness=_listed_witness("enum"),
        facts=_values,
        negation=_not_values,
    ),
    Keyword(
        "const",
        Shape.VALUE,
        Role.ASSERTION,
        since=Draft.DRAFT_6,
        witness=_listed_witness("const"),
        facts=_values,
        negation=_not_constant,
    ),
    Keyword("type", Shape.TYPE, Role.ASSERTION, facts=_type, negation=_not_type),
    Keyword("nullable", Shape.FLAG, Role.ASSERTION, holds=Holds.PARTS),  # OpenAPI 3.0: see `types_of`
)
