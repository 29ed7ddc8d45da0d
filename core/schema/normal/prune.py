"""Pruning of contradictory and subsumed alternatives while a normal form is expanded.

Where a constant member distinguishes alternatives (``if`` this kind ``then`` that, for each kind; ``oneOf`` of
objects, each of a kind), almost all combinations require two kinds at once. Dropped as they arise, there are as many
of them as kinds; multiplied out first, there would be as many as sets of kinds. And where an alternative already
implies one option of several, the others add nothing, so the alternative is not forked.
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

#: Keywords whose meaning does not depend on their place in the document.
_OF_SCALARS = frozenset(keywords(types=(None, "string", "number"), roles=(Role.ASSERTION, Role.FORMAT)))


class Said(NamedTuple):
    """Facts about the value of a member, if the member is there.

    Attributes:
        held: meanings of subschemas that hold (see `Contradictions.meaning`).
        denied: meanings of subschemas that do not hold.
        allowed: the value is one of these scalars; None: no list was given.
        excluded: the value is none of these scalars.
    """

    held: frozenset[object] = frozenset()
    denied: frozenset[object] = frozenset()
    allowed: frozenset[object] | None = None
    excluded: frozenset[object] = frozenset()

    def meet(self, other: Said) -> Said:
        """Return the facts of both."""
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
        """True if no value is left: every listed value is excluded, or a subschema both holds and does not."""
        return (self.allowed is not None and not self.allowed) or not self.held.isdisjoint(self.denied)


_NOTHING = Said()

#: Marks a set of values that was not computed yet.
_NEVER: frozenset[object] = frozenset({"never"})


class Contradictions:
    """Finder of contradictions and implications between the facts of one document.

    Attributes:
        meets: number of times that facts about one member were combined: a count of work.
    """

    def __init__(self, assertions: Assertions) -> None:
        self._assertions = assertions
        self._known: tuple[dict[Located, frozenset[object] | None], ...] = ({}, {})
        self._meanings: dict[Located, object] = {}
        self._facts: dict[Formula, Said] = {}
        self.meets = 0

    def exclude(self, left: Conjunction, right: Conjunction) -> bool:
        """Return True if no value satisfies both, as types and facts about members show; False: it is not known."""
        types = left.types & right.types
        return not types or (types == _OBJECT and self.between(left.objects, right.objects))

    def between(self, left: Objects, right: Objects) -> bool:
        """Return True if no object satisfies both, as facts about a required member show; False: it is not known."""
        if left is EVERY.objects or right is EVERY.objects:
            return False
        ours, theirs = left.needed, right.needed
        if not left.absent.isdisjoint(theirs) or not right.absent.isdisjoint(ours) or self._is_void(right):
            return True
        here, there = left.named, right.named  # a member that one side does not mention is unconstrained there
        if theirs.isdisjoint(here) and ours.isdisjoint(there):
            return False
        for name in here & there:
            if (name in ours or name in theirs) and self._of(left, name).meet(self._of(right, name)).is_false:
                return True
        return False

    def _is_void(self, objects: Objects) -> bool:
        """Return True if a required member has no value by the facts of these objects alone; computed once."""
        findings = objects.findings
        if findings.is_void is None:
            findings.is_void = any(self._of(objects, name).is_false for name in objects.needed)
        return findings.is_void

    def labels(self, branches: Sequence[Conjunction]) -> dict[str, frozenset[object]]:
        """Return the listed values of each member that every one of some alternatives requires and lists values of;
        empty if an alternative allows another type than objects."""
        found: dict[str, frozenset[object]] | None = None
        for branch in branches:
            if branch.types != _OBJECT:
                return {}
            listed = {name: self._of(branch.objects, name).allowed for name in branch.objects.needed}
            here = {name: values for name, values in listed.items() if values is not None}
            found = here if found is None else {name: found[name] | here[name] for name in found if name in here}
        return found or {}

    def inherit(self, both: Objects, left: Objects, right: Objects) -> None:
        """Copy the facts about members from the left part of a conjunction, extended by those of the right part."""
        known: dict[str, Said] = left.findings.said
        if known and both is not left and both is not right:
            known = both.findings.said = dict(known)
            for name in right.named:
                if name in known:
                    known[name] = known[name].meet(self._of(right, name))

    def holds(self, known: Conjunction, formula: Formula) -> bool:
        """Return True if every value of an alternative satisfies a formula, as the facts of both show; False: it is not
        known. Only for schemas whose objects take undeclared members."""
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
        listed = self._listed(formula.located, False)  # None if it has other constraints
        if listed is None:
            return False
        if formula.positive:
            return said.allowed is not None and said.allowed <= listed
        return listed <= said.excluded or (said.allowed is not None and said.allowed.isdisjoint(listed))

    def _of(self, objects: Objects, name: str) -> Said:
        """Return the facts about a member's value; computed once."""
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
        """Return the facts about a value that satisfies a formula."""
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
        """Return a key that is equal for formulas that are known to be equivalent."""
        if isinstance(formula, SignedSchema):
            return formula.positive, self._meaning(formula.located)
        return formula

    def _meaning(self, located: Located) -> object:
        """Return a key that is equal for subschemas that are known to be equivalent."""
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
        """Return the values that a subschema lists, each with its type; None if it lists none, or an array or object.

        Args:
            located: the subschema.
            positive: False: None also if the subschema has other constraints than the list.
        """
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
    """Return the formulas of a member's value that are given by its name."""
    found = [part.properties[name] for part in objects.parts if name in part.properties]
    found += [exists.formula for exists in objects.exists if exists.name == name]
    return found
