"""What an alternative says already decides much of what it comes to: such alternatives are never multiplied out.

Where alternatives are told apart by one constant member (``if`` this type ``then`` that, for each type; ``oneOf`` of
objects, each of a type), almost all combinations ask for two types at once. Dropped one by one as they arise, they are
as many as there are types; multiplied out first, they would be as many as there are sets of types. And where one
option of several holds already, the others add nothing: an alternative that is part of another is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..read.keywords import Role, keywords
from ..read.located import Located, SignedSchema
from .assertions import Assertions, asserted, lists_strings
from .conjunction import EVERY, AllOf, Conjunction, Formula, ObjectPart, Objects, type_of

_CONST = frozenset({"const"})
_ENUM = frozenset({"enum"})
_COMPOUND = frozenset({"array", "object"})
_OBJECT = frozenset({"object"})
_REF = frozenset({"$ref"})
_TYPE_ENUM = frozenset({"type", "enum"})

#: Keywords whose meaning does not depend on where they stand.
_OF_SCALARS = frozenset(keywords(types=(None, "string", "number"), roles=(Role.ASSERTION, Role.FORMAT)))


class Said(NamedTuple):
    """What is known of a member's value, if it is there.

    Attributes:
        held: meanings of subschemas that hold.
        denied: meanings of subschemas that do not.
        allowed: it is one of these scalars; None: no list was given.
        excluded: it is none of these.
    """

    held: frozenset[object] = frozenset()
    denied: frozenset[object] = frozenset()
    allowed: frozenset[object] | None = None
    excluded: frozenset[object] = frozenset()

    def meet(self, other: Said) -> Said:
        """Return what is known when both are."""
        if other is _NOTHING or self is other:
            return self
        if self is _NOTHING:
            return other
        allowed = self.allowed
        if other.allowed is not None:
            allowed = other.allowed if allowed is None else allowed & other.allowed
        excluded = self.excluded | other.excluded
        if allowed is not None:
            allowed -= excluded
        return Said(self.held | other.held, self.denied | other.denied, allowed, excluded)

    @property
    def is_false(self) -> bool:
        """True if no value is left: what holds is denied, or all that is listed."""
        return (self.allowed is not None and not self.allowed) or not self.held.isdisjoint(self.denied)


_NOTHING = Said()

#: Not a set of values: nobody asked yet.
_NEVER: frozenset[object] = frozenset({"never"})


class Contradictions:
    """Finds them, for one document.

    Attributes:
        meets: how often what is known of one member was met with more.
    """

    def __init__(self, assertions: Assertions) -> None:
        self._assertions = assertions
        self._known: tuple[dict[Located, frozenset[object] | None], ...] = ({}, {})
        self._meanings: dict[Located, object] = {}
        self._facts: dict[Formula, Said] = {}
        self.meets = 0

    def exclude(self, left: Conjunction, right: Conjunction) -> bool:
        """Return True if no value satisfies both, seen from types and from what is said of members (False: perhaps
        not)."""
        types = left.types & right.types
        return not types or (types == _OBJECT and self.between(left.objects, right.objects))

    def between(self, left: Objects, right: Objects) -> bool:
        """Return True if no object satisfies both, seen from what is said of a required member (False: perhaps not)."""
        if left is EVERY.objects or right is EVERY.objects:
            return False
        ours, theirs = left.needed, right.needed
        if not left.absent.isdisjoint(theirs) or not right.absent.isdisjoint(ours) or self._is_void(right):
            return True
        here, there = left.named, right.named  # of what only one side speaks, the other takes everything
        if theirs.isdisjoint(here) and ours.isdisjoint(there):
            return False
        for name in here & there:
            if (name in ours or name in theirs) and self._of(left, name).meet(self._of(right, name)).is_false:
                return True
        return False

    def _is_void(self, objects: Objects) -> bool:
        """Return True if a required member has no value, seen from what these objects say alone; found out once."""
        findings = objects.findings
        if findings.is_void is None:
            findings.is_void = any(self._of(objects, name).is_false for name in objects.needed)
        return findings.is_void

    def labels(self, branches: Sequence[Conjunction]) -> dict[str, frozenset[object]]:
        """Return the members that must be there in every alternative of some objects, and list their values: all of
        these values. Nothing, if other types are among the alternatives."""
        found: dict[str, frozenset[object]] | None = None
        for branch in branches:
            if branch.types != _OBJECT:
                return {}
            listed = {name: self._of(branch.objects, name).allowed for name in branch.objects.needed}
            here = {name: values for name, values in listed.items() if values is not None}
            found = here if found is None else {name: found[name] | here[name] for name in found if name in here}
        return found or {}

    def inherit(self, both: Objects, left: Objects, right: Objects) -> None:
        """Carry over to a conjunction what is known of the members of its left part, met with the right part."""
        known: dict[str, Said] = left.findings.said
        if known and both is not left and both is not right:
            known = both.findings.said = dict(known)
            for name in right.named:
                if name in known:
                    known[name] = known[name].meet(self._of(right, name))

    def holds(self, known: Conjunction, formula: Formula) -> bool:
        """Return True if every value of an alternative satisfies a formula, seen from facts that both state (False:
        perhaps), where objects take members that nothing declares."""
        if not isinstance(formula, Conjunction):
            return isinstance(formula, AllOf) and all(self.holds(known, part) for part in formula.parts)
        if not known.types <= formula.types or formula.values is not None or formula.not_values:
            return False
        if formula.numbers is not EVERY.numbers or formula.strings is not EVERY.strings:
            return False
        if formula.arrays is not EVERY.arrays:
            return False
        have, asked = known.objects, formula.objects
        if asked is EVERY.objects or "object" not in known.types:
            return True
        if not have.absent >= asked.absent or have.least < asked.least or not have.needed >= asked.needed:
            return False
        if asked.unevaluated or (asked.most is not None and (have.most is None or have.most > asked.most)):
            return False
        if not set(asked.any_exists) <= set(have.any_exists):
            return False
        for part in asked.parts:
            if part not in have.parts and not self._says(have, part):
                return False
        for exists in asked.exists:
            if exists not in have.exists and (
                exists.name is None or not self._implied(have, exists.name, exists.formula)
            ):
                return False
        return all(each in have.names for each in asked.names)

    def _says(self, objects: Objects, part: ObjectPart) -> bool:
        if part.patterns or part.additional is not None:
            return False
        return all(self._implied(objects, name, formula) for name, formula in part.properties.items())

    def _implied(self, objects: Objects, name: str, formula: Formula) -> bool:
        """Return True if a member's value satisfies a formula, if it is there."""
        if isinstance(formula, AllOf):
            return all(self._implied(objects, name, part) for part in formula.parts)
        if not isinstance(formula, SignedSchema):
            return formula in _formulas(objects, name)
        said = self._of(objects, name)
        if said is _NOTHING:
            return False
        if self._meaning(formula.located) in (said.held if formula.positive else said.denied):
            return True
        if said.allowed is None and (formula.positive or not said.excluded):
            return False
        listed = self._listed(formula.located, False)  # if it asks for nothing else
        if listed is None:
            return False
        if formula.positive:
            return said.allowed is not None and said.allowed <= listed
        return listed <= said.excluded or (said.allowed is not None and said.allowed.isdisjoint(listed))

    def _of(self, objects: Objects, name: str) -> Said:
        """Return what is known of a member's value; computed once."""
        if not objects.parts and not objects.exists:
            return _NOTHING
        known: dict[str, Said] = objects.findings.said
        found = known.get(name)
        if found is None:
            found = _NOTHING
            for formula in _formulas(objects, name):
                self.meets += 1
                found = found.meet(self._fact(formula))
            known[name] = found
        return found

    def _fact(self, formula: Formula) -> Said:
        """Return what a formula says of the value for which it holds."""
        found = self._facts.get(formula)
        if found is None:
            found = self._facts[formula] = self._read_fact(formula)
        return found

    def _read_fact(self, formula: Formula) -> Said:
        if isinstance(formula, AllOf):
            found = _NOTHING
            for part in formula.parts:
                found = found.meet(self._fact(part))
            return found
        if not isinstance(formula, SignedSchema):
            return _NOTHING
        meaning, listed = frozenset((self._meaning(formula.located),)), self._listed(formula.located, formula.positive)
        if formula.positive:
            return Said(held=meaning, allowed=listed)
        return Said(denied=meaning, excluded=listed or frozenset())

    def meaning(self, formula: Formula) -> object:
        """Return a key that is equal for formulas which are known to mean the same."""
        if isinstance(formula, SignedSchema):
            return formula.positive, self._meaning(formula.located)
        return formula

    def _meaning(self, located: Located) -> object:
        """Return a key that is equal for subschemas which are known to mean the same."""
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
            return repr([(word, located.schema[word]) for word in sorted(words)])  # 1, 1.0 and true differ
        return located

    def _listed(self, located: Located, positive: bool) -> frozenset[object] | None:
        """Return the scalars that a subschema lists, by type, if it lists nothing else; where it is negated, only if
        it asks for nothing else either."""
        known = self._known[positive]
        found = known.get(located, _NEVER)
        if found is _NEVER:
            values = self._read(located, positive)
            found = None if values is None else frozenset((type_of(value), value) for value in values)
            known[located] = found
        return found

    def _read(self, located: Located, positive: bool) -> tuple[Any, ...] | None:
        assertions = self._assertions
        if isinstance(located.schema, bool):
            return None
        located = assertions.document.enter(located)
        schema = located.schema
        if "$ref" in schema and assertions.document.ref_hides_siblings:
            return None
        words = asserted(schema)
        plain = words in (_CONST, _ENUM) or (words == _TYPE_ENUM and lists_strings(schema))
        values = assertions.values(located) if positive or plain else None
        return values if values and all(type_of(value) not in _COMPOUND for value in values) else None


def _formulas(objects: Objects, name: str) -> list[Formula]:
    """Return the formulas that a member's value must satisfy, as far as they are given by name."""
    found = [part.properties[name] for part in objects.parts if name in part.properties]
    found += [exists.formula for exists in objects.exists if exists.name == name]
    return found
