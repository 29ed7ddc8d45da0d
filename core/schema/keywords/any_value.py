"""Keywords that constrain values of every type: types and lists of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...errors import LimitError, Place
from ...json import value_key
from ...json.values import TYPES, same_value, type_of
from ..normal.conjunction import EVERY, AllOf, Arrays, Conjunction, Contains, Exists, Formula, Objects, fact, negated
from ..normal.unions import MAX_PRODUCT, either, together
from ..read.located import Located
from ..scalars.numbers import NumberRange
from .row import Assertions, Document, Draft, Facts, Holds, Keyword, Role, Schemas, Shape, Witness

#: Maximum number of arrays and objects of one ``enum`` that a value may have to differ from.
MAX_DIFFERENT = 500

#: All integers.
INTEGERS = NumberRange(integer=True)


class Allowed(NamedTuple):
    """What ``type`` allows: JSON types, and True if numbers must be integers."""

    types: frozenset[str]
    integer: bool


#: By the name of a type.
_TYPES = {name: Allowed(frozenset((name,)), False) for name in TYPES}
_TYPES.update({"integer": Allowed(frozenset(("number",)), True), "any": Allowed(EVERY.types, False)})

#: Python types of listed values that `_listed_witness` does not compare with the schema's types.
_MIXED = (float, dict, list, tuple)

# -- types -----------------------------------------------------------------------------------------------------


def types_of(schema: Mapping[str, Any]) -> Allowed:
    """Return what the ``type`` of a schema allows, with OpenAPI's ``nullable``."""
    if "nullable" not in schema and isinstance(schema["type"], str):
        return _TYPES[schema["type"]]
    names = schema["type"] if isinstance(schema["type"], (list, tuple)) else [schema["type"]]
    wanted = {"number" if name == "integer" else name for name in names}
    if "any" in wanted:
        wanted = set(TYPES)
    if schema.get("nullable") is True:
        wanted.add("null")
    return Allowed(frozenset(wanted), "integer" in names and "number" not in names and "any" not in names)


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
    return types_of(located.schema).types if schemas.asserts(located, "type") else EVERY.types


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
    """Yield the formula of values that ``enum`` or ``const`` does not list: scalars are excluded by value, arrays and
    objects by what differs (`_others`)."""
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
    denied = Conjunction(not_values=scalars)
    if not others:
        yield denied
        return
    listed: dict[str, dict[str, Mapping[Any, Any]]] = {}
    for value in others:
        listed.setdefault(type_of(value), {})[value_key(value)] = _items(value)
    options: list[Formula] = [fact(set(TYPES) - listed.keys())]
    for kind, different in listed.items():
        options += _others(schemas, _COMPOUNDS[kind], list(different.values()))
    yield AllOf((denied, either(options)))


def _not_constant(schemas: Schemas, located: Located) -> Iterator[Formula]:
    if not schemas.asserts(located, "enum"):  # else the values of both are told apart by `enum`
        yield from _not_values(schemas, located)


def _listed_witness(keyword: str) -> Callable[[Mapping[str, Any], Document | None, Witness], list[Any] | None]:
    """Return `Keyword.witness` of a keyword that lists values: the first one of the schema's types."""

    def witness(schema: Mapping[str, Any], document: Document | None, inner: Witness) -> list[Any] | None:
        values = schema[keyword] if keyword == "enum" else (schema[keyword],)
        types = types_of(schema).types if "type" in schema else None
        for value in values:
            # A fraction may not be the integer that is asked for.
            if types is None or (not isinstance(value, _MIXED) and type_of(value) in types):
                return [value]
        return None

    return witness


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float) and not value.is_integer()


@dataclass(frozen=True)
class _Compound:
    """Facts of arrays (their keys are positions) or objects (names).

    Attributes:
        has: a key is there, and its value satisfies a formula.
        lacks: a key is not there.
        has_more: there are more keys than a number.
        lacking: of some keys, those of which one lacks if any of them does.
    """

    has: Callable[[Any, Formula], Conjunction]
    lacks: Callable[[Any], Conjunction]
    has_more: Callable[[int], Conjunction]
    lacking: Callable[[Iterable[Any]], Iterable[Any]]


_COMPOUNDS = {
    "array": _Compound(
        lambda at, formula: fact("array", arrays=Arrays(contains=(Contains(formula, at, at + 1),))),
        lambda at: fact("array", arrays=Arrays(most=at)),
        lambda count: fact("array", arrays=Arrays(least=count + 1)),
        lambda keys: [max(keys)] if keys else [],
    ),
    "object": _Compound(
        lambda name, formula: fact("object", objects=Objects(exists=(Exists(formula, name),))),
        lambda name: fact("object", objects=Objects(absent=frozenset((name,)))),
        lambda count: fact("object", objects=Objects(least=count + 1)),
        lambda keys: keys,
    ),
}


def _items(value: Any) -> dict[Any, Any]:
    """Return the values of an array by their positions, or the members of an object."""
    return value if isinstance(value, dict) else dict(enumerate(value))


def _others(schemas: Schemas, kind: _Compound, listed: Sequence[Mapping[Any, Any]], known: int = 0) -> list[Formula]:
    """Return the alternatives of "an array (or object) that is none of these".

    They are those of a decision tree: a node looks at one key, and its branches are the key's absence, each of its
    listed values, and any other value. Their number grows with the listed values; "differs from the first, and from
    the second, ..." would have the product of all sizes.

    Args:
        schemas: the schemas.
        kind: facts of arrays, or of objects.
        listed: at least one, all different, without the keys at which the tree has found the listed value.
        known: the number of these keys.
    """
    if len(listed) == 1:
        (one,) = listed
        differ = [kind.has_more(known + len(one)), *map(kind.lacks, kind.lacking(one))]
        differ += [kind.has(key, negated(schemas.constant(value))) for key, value in one.items()]
        return [*differ] if len(differ) <= MAX_PRODUCT else [together(differ)]
    # For each key, the keys of its values, one for each of the listed; "": it is not there.
    values = {key: [value_key(one[key]) if key in one else "" for one in listed] for one in listed for key in one}
    key = min(values, key=lambda key: max(Counter(values[key]).values()))  # its largest branch is small: a shallow tree
    groups: dict[str, list[Mapping[Any, Any]]] = {}
    for one, value in zip(listed, values[key], strict=True):
        groups.setdefault(value, []).append(one)
    lacking = groups.pop("", None)
    options: list[Formula] = [kind.has(key, negated(schemas.constant(*(group[0][key] for group in groups.values()))))]
    lacks = kind.lacks(key)
    options.append(lacks if lacking is None else AllOf((lacks, either(_others(schemas, kind, lacking, known)))))
    for group in groups.values():
        rest = [{other: value for other, value in one.items() if other != key} for one in group]
        same = kind.has(key, schemas.constant(group[0][key]))
        options.append(AllOf((same, either(_others(schemas, kind, rest, known + 1)))))
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
