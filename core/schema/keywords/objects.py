"""Keywords that constrain objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..normal.conjunction import (
    TRUE,
    AllOf,
    Exists,
    Formula,
    IfThenElse,
    ObjectPart,
    Objects,
    OnlyKeywordFails,
    fact,
    negated,
)
from ..normal.unions import has
from ..read.located import Located, SignedSchema
from .counts import count_rows
from .row import (
    Assertions,
    Document,
    Draft,
    Facts,
    Holds,
    Keyword,
    Role,
    Schemas,
    Shape,
    Steps,
    Witness,
)

#: Maximum value of ``minProperties``: each member needs another name.
MAX_LEAST_PROPERTIES = 1_000

# -- members ---------------------------------------------------------------------------------------------------


def object_part(schemas: Assertions, located: Located) -> ObjectPart:
    """Return the schemas of members by name and by pattern."""
    schema = located.schema
    declared = located.members("properties") if "properties" in schema else {}
    patterned: dict[str, Located] = {}
    if "patternProperties" in schema and schemas.asserts(located, "patternProperties"):
        patterned = located.members("patternProperties")
    additional = SignedSchema(located.under("additionalProperties")) if "additionalProperties" in schema else None
    return ObjectPart(_signed(declared), _signed(patterned), additional, "properties" in schema)


def _signed(subschemas: Mapping[str, Located]) -> dict[str, Formula]:
    """Return subschemas as ones that must hold."""
    return {name: SignedSchema(located) for name, located in subschemas.items()}


def _members(facts: Facts, value: Any) -> None:
    facts.objects["parts"] = (facts.schemas.object_part(facts.located),)


def _not_properties(schemas: Schemas, located: Located) -> Iterator[Formula]:
    for name, formula in schemas.object_part(located).properties.items():
        yield _exists(Exists(negated(formula), name=name))


def _not_patterns(schemas: Schemas, located: Located) -> Iterator[Formula]:
    for pattern, formula in schemas.object_part(located).patterns.items():
        yield _exists(Exists(negated(formula), pattern=pattern))


def _not_additional(schemas: Schemas, located: Located) -> Iterator[Formula]:
    part = schemas.object_part(located)
    if part.additional is not None and part.additional != TRUE:
        yield _exists(Exists(negated(part.additional), beside=(part,)))


def _names(facts: Facts, value: Any) -> None:
    facts.objects["names"] = (SignedSchema(facts.located.under("propertyNames")),)


def _not_names(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield _exists(Exists(TRUE, failing=SignedSchema(located.child("propertyNames"))))


def names_required(schema: Mapping[str, Any]) -> Sequence[Any]:
    """Return the names that a schema requires; in Draft 3, ``required`` is a flag of a member instead."""
    names = schema.get("required")
    return names if isinstance(names, (list, tuple)) else ()


def _required_members(schema: Mapping[str, Any], document: Document) -> Iterator[Sequence[Steps]]:
    for name in names_required(schema):
        if name in schema["properties"]:
            yield ((name,),)


def undeclared(schemas: Assertions, schema: Mapping[str, Any], is_open: bool) -> list[str]:
    """Return the required names that a closed object does not declare.

    Args:
        schemas: reads the schema.
        schema: a schema of objects.
        is_open: an object with ``properties`` takes others too, unless ``additionalProperties`` forbids it.
    """
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    if schema.get("additionalProperties", is_open or "properties" not in schema) is not False:
        return []
    return [
        str(name)
        for name in names_required(schema)
        if name not in properties and not any(schemas.matches(pattern, name) for pattern in patterns)
    ]


def _required(facts: Facts, names: Any) -> None:
    if isinstance(names, (list, tuple)):
        facts.objects["required"] = tuple(names)


def _not_required(schemas: Schemas, located: Located) -> Iterator[Formula]:
    for name in names_required(located.schema):
        yield fact("object", objects=Objects(absent=frozenset((name,))))


def _exists(exists: Exists) -> Formula:
    return fact("object", objects=Objects(exists=(exists,)))


def _not_evaluated(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield OnlyKeywordFails(located, "unevaluatedProperties")


# -- conditions on members -------------------------------------------------------------------------------------

#: Yields conditions on an object, each with the formula that must hold if the condition does.
_Conditions = Callable[[Located], Iterator[tuple[Formula, Formula]]]


def _dependent_schemas(located: Located) -> Iterator[tuple[Formula, Formula]]:
    for name in located.schema["dependentSchemas"]:
        yield has(name), SignedSchema(located.child("dependentSchemas", name))


def _dependent_required(located: Located) -> Iterator[tuple[Formula, Formula]]:
    for name, names in located.schema["dependentRequired"].items():
        yield has(name), has(*names)


def _dependencies(located: Located) -> Iterator[tuple[Formula, Formula]]:
    for name, needed in located.schema["dependencies"].items():
        if isinstance(needed, (list, tuple)):
            yield has(name), has(*needed)
        elif isinstance(needed, str):  # draft 3, and still seen
            yield has(name), has(needed)
        else:
            yield has(name), SignedSchema(located.child("dependencies", name))


def _dependent(name: str, shape: Shape, conditions: _Conditions, **data: Any) -> Keyword:
    """Return the row of a keyword that is a number of conditions."""

    def applied(schemas: Schemas, located: Located, scopes: tuple[Any, ...]) -> list[Formula]:
        return [IfThenElse(condition, needed, TRUE) for condition, needed in conditions(located)]

    def negation(schemas: Schemas, located: Located) -> Iterator[Formula]:
        for condition, needed in conditions(located):
            yield AllOf((condition, negated(needed)))

    return Keyword(name, shape, Role.SAME_VALUE, "object", applied=applied, negation=negation, **data)


# -- whether there is a value ----------------------------------------------------------------------------------


def object_witness(schema: Mapping[str, Any], witness: Witness) -> list[Any] | None:
    """Return the witness of an object schema (see `Witness`): the required members with their witnesses."""
    declared = schema.get("properties", {})
    members: dict[str, list[Any]] = {}
    for name in schema["required"]:
        found = witness(declared[name]) if name in declared else None
        if found is None:
            return None
        members[name] = found
    return [{name: found[0] for name, found in members.items()}] if all(members.values()) else []


#: The keywords that `object_witness` reads.
READ_FOR_OBJECT = frozenset({"required"})

ROWS = (
    Keyword(
        "properties",
        Shape.BY_NAME,
        Role.PARTS,
        "object",
        holds=Holds.PARTS,
        foreign=("fields", "props"),
        needed=_required_members,
        facts=_members,
        negation=_not_properties,
    ),
    Keyword("required", Shape.NAMES, Role.ASSERTION, "object", facts=_required, negation=_not_required),
    Keyword(
        "patternProperties",
        Shape.BY_PATTERN,
        Role.PARTS,
        "object",
        holds=Holds.EMPTY,
        facts=_members,
        negation=_not_patterns,
    ),
    Keyword(
        "additionalProperties",
        Shape.SCHEMA,
        Role.PARTS,
        "object",
        holds=Holds.PARTS,
        foreign=("extra",),
        facts=_members,
        negation=_not_additional,
    ),
    Keyword(
        "propertyNames",
        Shape.SCHEMA,
        Role.PARTS,
        "object",
        Draft.DRAFT_6,
        holds=Holds.EMPTY,
        signs=lambda schema, holds: (True,),
        facts=_names,
        negation=_not_names,
    ),
    *count_rows("object", "Properties", MAX_LEAST_PROPERTIES),
    _dependent("dependentSchemas", Shape.BY_NAME, _dependent_schemas, since=Draft.DRAFT_2019_09, forks=True),
    _dependent("dependentRequired", Shape.REQUIREMENTS, _dependent_required, since=Draft.DRAFT_2019_09),
    _dependent("dependencies", Shape.DEPENDENCIES, _dependencies, forks=True),
    Keyword(
        "unevaluatedProperties",
        Shape.SCHEMA,
        Role.REMAINDER,
        "object",
        Draft.DRAFT_2019_09,
        negates=True,
        signs=lambda schema, holds: (True,) if holds else (True, False),
        negation=_not_evaluated,
    ),
)
