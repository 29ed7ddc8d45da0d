"""What an alternative says already decides much of what it comes to: such alternatives are never multiplied out.

Where alternatives are told apart by one constant member (``if`` this type ``then`` that, for each type; ``oneOf`` of
objects, each of a type), almost all combinations ask for two types at once. Dropped one by one as they arise, they are
as many as there are types; multiplied out first, they would be as many as there are sets of types. And where one
option of several holds already, the others add nothing: an alternative that is part of another is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .assertions import Assertions
from .conjunction import EVERY, All, Conjunction, Formula, Literal, ObjectPart, Objects, type_of
from .plain import asserted, lists_strings
from .resolve import Located

_CONST = frozenset({"const"})
_ENUM = frozenset({"enum"})
_COMPOUND = frozenset({"array", "object"})
_REF = frozenset({"$ref"})
_TYPE_ENUM = frozenset({"type", "enum"})

#: Keywords whose meaning does not depend on where they stand.
_OF_SCALARS = frozenset(
    {"type", "enum", "const", "nullable", "minLength", "maxLength", "pattern", "format"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
)


class Contradictions:
    """Finds them, for one document."""

    def __init__(self, assertions: Assertions) -> None:
        self._assertions = assertions
        self._known: dict[Formula, frozenset[object] | None] = {}
        self._meanings: dict[Located, object] = {}

    def between(self, left: Objects, right: Objects) -> bool:
        """Whether no object satisfies both, seen from the values that they list for a required member (False:
        perhaps not)."""
        for name in dict.fromkeys((*_needed(left), *_needed(right))):
            ours = _said(left, name)
            if ours:
                theirs = _said(right, name)
                if theirs and self._exclude([*ours, *theirs]):
                    return True
        return False

    def _exclude(self, formulas: list[Formula]) -> bool:
        """Whether formulas exclude each other: one is the negation of another, or none of the values listed is left."""
        held: set[object] = set()
        denied: set[object] = set()
        for formula in formulas:
            if isinstance(formula, Literal):
                (held if formula.positive else denied).add(self._meaning(formula.located))
        if not held.isdisjoint(denied):
            return True
        allowed: frozenset[object] | None = None
        excluded: list[frozenset[object]] = []
        for formula in formulas:
            if not isinstance(formula, Literal):
                continue
            listed = self._listed(formula)
            if listed is None:
                continue
            if not formula.positive:
                excluded.append(listed)
            else:
                allowed = listed if allowed is None else allowed & listed
                if not allowed:
                    return True
        return allowed is not None and not allowed.difference(*excluded)

    def _meaning(self, located: Located) -> object:
        """The same for subschemas that are known to mean the same."""
        found = self._meanings.get(located)
        if found is None:
            found = self._meanings[located] = self._read_meaning(located)
        return found

    def _read_meaning(self, located: Located) -> object:
        document = self._assertions.document
        if isinstance(located.schema, bool):
            return located.schema
        located = document.enter(located)
        words = asserted(located.schema)
        if words == _REF and self._assertions.asserts(located, "$ref"):
            return document.resolve(located)
        if words <= _OF_SCALARS:
            return json.dumps({word: located.schema[word] for word in words}, sort_keys=True)
        return located

    def _listed(self, formula: Literal) -> frozenset[object] | None:
        """The scalars that a subschema lists, by type, if it lists nothing else; where it is negated, only if
        it asks for nothing else either."""
        if formula not in self._known:
            values = self._read(formula)
            known = None if values is None else frozenset((type_of(value), value) for value in values)
            self._known[formula] = known
        return self._known[formula]

    def _read(self, formula: Literal) -> tuple[Any, ...] | None:
        assertions, located = self._assertions, formula.located
        if isinstance(located.schema, bool):
            return None
        located = assertions.document.enter(located)
        schema = located.schema
        if "$ref" in schema and assertions.document.ref_hides_siblings:
            return None
        words = asserted(schema)
        plain = words in (_CONST, _ENUM) or (words == _TYPE_ENUM and lists_strings(schema))
        values = assertions.values(located) if formula.positive or plain else None
        return values if values and all(type_of(value) not in _COMPOUND for value in values) else None


def holds_already(known: Conjunction, formula: Formula) -> bool:
    """Whether every value of an alternative satisfies a formula, seen from facts that both state (False: perhaps)."""
    if isinstance(formula, All):
        return all(holds_already(known, part) for part in formula.parts)
    if not isinstance(formula, Conjunction) or not known.types <= formula.types:
        return False
    if formula.values is not None or formula.not_values or formula.numbers != EVERY.numbers:
        return False
    if formula.strings != EVERY.strings or formula.arrays != EVERY.arrays:
        return False
    have, asked = known.objects, formula.objects
    return "object" not in known.types or (
        have.absent >= asked.absent
        and have.least >= asked.least
        and (asked.most is None or (have.most is not None and have.most <= asked.most))
        and not asked.others
        and all(name in have.required for name in asked.required)
        and all(each in have.names for each in asked.names)
        and all(each in have.exists for each in asked.exists)
        and all(part in have.parts or _says(have, part) for part in asked.parts)
    )


def _says(objects: Objects, part: ObjectPart) -> bool:
    if part.patterns or part.additional is not None or part.names_properties:
        return False
    return all(formula in _said(objects, name) for name, formula in part.properties.items())


def _needed(objects: Objects) -> Iterator[str]:
    """Names of members that must be there."""
    yield from objects.required
    for exists in objects.exists:
        if exists.name is not None:
            yield exists.name


def _said(objects: Objects, name: str) -> list[Formula]:
    """What is asked of a member's value, as far as it is said by name."""
    found = [part.properties[name] for part in objects.parts if name in part.properties]
    found += [exists.formula for exists in objects.exists if exists.name == name]
    return found
