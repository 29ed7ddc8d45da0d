"""Facts about single members: contradictions and implications that are known without a normal form.

Where a constant member distinguishes n alternatives (``oneOf`` of objects, each of one kind), almost all combinations
of two unions require two kinds at once. With contradictions dropped as they arise (`disjoint.meet`), n alternatives
remain; multiplied out, there would be n². And an alternative that already implies one option of a union is not forked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...json.values import is_among, type_of
from ..read.keywords import KEYWORDS, Role
from ..read.located import Located, SignedSchema
from ..read.schema_key import schema_key
from .assertions import Assertions, asserted, lists_strings
from .conjunction import EVERY, AllOf, Arrays, Conjunction, Formula, Goal, ObjectPart, Objects

_CONST = frozenset({"const"})
_ENUM = frozenset({"enum"})
_COMPOUND = frozenset({"array", "object"})
_OBJECT = frozenset({"object"})
_REF = frozenset({"$ref"})
_TYPE_ENUM = frozenset({"type", "enum"})

#: Maximum number of pairs of excluded values that are compared.
_FEW = 1_000

#: Maximum number of parts of subschemas that are compared by content; larger ones are compared by identity.
_SMALL = 100

#: Keywords whose meaning does not depend on their location in the document.
_OF_SCALARS = frozenset(KEYWORDS.named(types=(None, "string", "number"), roles=(Role.ASSERTION, Role.FORMAT)))

#: Scalars, each with its type: 1 and true differ.
_Values = frozenset[tuple[str, Any]]

_EMPTY: frozenset[Any] = frozenset()


@dataclass(slots=True, eq=False)
class MemberFacts:
    """Facts about the value of a member, if the object has it.

    Attributes:
        held: meanings of subschemas that hold (see `Contradictions.meaning`).
        denied: meanings of subschemas that do not hold.
        allowed: the value is one of these scalars; None: no list was given.
        excluded: the value is none of these scalars.
    """

    held: frozenset[object] = _EMPTY
    denied: frozenset[object] = _EMPTY
    allowed: _Values | None = None
    excluded: _Values = _EMPTY

    def meet(self, other: MemberFacts) -> MemberFacts:
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
            allowed = allowed - excluded
        return MemberFacts(self.held | other.held, self.denied | other.denied, allowed, excluded)

    def is_false(self) -> bool:
        """Return True if no value is left: every listed value is excluded, or a subschema must both hold and fail."""
        return (self.allowed is not None and not self.allowed) or not self.held.isdisjoint(self.denied)


_NOTHING = MemberFacts()
_ANY_NUMBER = EVERY.numbers
_ANY_STRING = EVERY.strings
_ANY_ARRAY = EVERY.arrays
_ANY_OBJECT = EVERY.objects

#: Marks a set of values that was not computed yet.
_NEVER: _Values = frozenset({("never", None)})


class Contradictions:
    """Finder of contradictions and implications between the facts about single members, in one document."""

    def __init__(self, assertions: Assertions) -> None:
        self._assertions = assertions
        self._allowed: dict[Located, _Values | None] = {}  # the scalars that a subschema lists, if it holds
        self._excluded: dict[Located, _Values | None] = {}  # the same, if it does not hold
        self._meanings: dict[Located, object] = {}
        self._facts: dict[Formula, MemberFacts] = {}
        self._firsts: dict[object, Formula] = {}  # by meaning

    def member_differs(self, left: Objects, right: Objects) -> bool:
        """Return True if no value of some required member satisfies what is known of it in both (False: perhaps)."""
        here, there = left.named, right.named
        return any(
            name in here and name in there and self._differs(left, right, name) for name in left.needed | right.needed
        )

    def _differs(self, left: Objects, right: Objects, name: str) -> bool:
        """Return True if no value of one member satisfies what is known of it in both (False: perhaps)."""
        here, there = self._values_of(left, name), self._values_of(right, name)
        if here is not None and there is not None and here.isdisjoint(there):  # common, and cheaper than all facts
            return True
        return self._of(left, name).meet(self._of(right, name)).is_false()

    def _values_of(self, objects: Objects, name: str) -> _Values | None:
        """Return `MemberFacts.allowed` of a member. Where each formula is a schema that holds, it is read from their
        lists alone, without the other facts."""
        facts: MemberFacts | None = objects.memo.members.get(name)
        if facts is not None:
            return facts.allowed
        found: _Values | None = None
        for formula in _formulas(objects, name):
            if not isinstance(formula, SignedSchema) or not formula.positive:
                return self._of(objects, name).allowed
            listed = self._listed(formula.located, True)
            if listed is not None:
                found = listed if found is None else found & listed
        return found

    def labels(self, branches: Sequence[Conjunction]) -> dict[str, _Values]:
        """Return the members that may tell alternatives apart, each with all its listed values: those that every
        alternative requires and lists values of. Empty if an alternative allows another type than objects.

        For example, alternatives with ``kind: {const: "a"}`` and ``kind: {enum: ["b", "c"]}``: kind -> a, b, c.
        """
        found: dict[str, _Values] | None = None
        for branch in branches:
            if branch.types != _OBJECT:
                return {}
            here: dict[str, _Values] = {}
            for name in branch.objects.needed:
                values = self._values_of(branch.objects, name)
                if values is not None:
                    here[name] = values
            found = here if found is None else {name: found[name] | here[name] for name in found if name in here}
        return found or {}

    def label(self, left: Objects, right: Objects) -> str | None:
        """Return the first member for which both list values, and no common one; None: there is none."""
        here, there = self._all_listed(left), self._all_listed(right)
        for name, values in here.items():
            if name in there and values.isdisjoint(there[name]):
                return name
        return None

    def _all_listed(self, objects: Objects) -> dict[str, _Values]:
        """Return the listed values of each declared member that has a list; computed once."""
        memo = objects.memo
        if memo.listed is None:
            names = dict.fromkeys(name for part in objects.parts for name in part.properties)
            listed = {name: self._values_of(objects, name) for name in names}
            memo.listed = {name: values for name, values in listed.items() if values is not None}
        return memo.listed

    def inherit(self, both: Objects, left: Objects, right: Objects) -> None:
        """Set the memo of a conjunction (``both``) to the facts about members that its left part knows so far, with
        those of its right part. So they are not read again from all parts."""
        known = left.memo.members
        if known and both is not left and both is not right:
            known = dict(known)
            both.memo.members = known
            for name in right.named:
                facts = known.get(name)
                if facts is not None:
                    known[name] = facts.meet(self._of(right, name))

    def holds(self, known: Conjunction, formula: Formula) -> bool:
        """Return True if every value of an alternative satisfies a formula, as the facts of both show; False: it is not
        known. Only for schemas whose objects take undeclared members."""
        if isinstance(formula, AllOf):
            for part in formula.parts:
                if not self.holds(known, part):
                    return False
            return True
        types = known.types
        if not isinstance(formula, Conjunction) or formula.values is not None or not types <= formula.types:
            return False
        if formula.numbers is not _ANY_NUMBER and "number" in types:
            return False
        if formula.strings is not _ANY_STRING and "string" in types:
            return False
        if formula.not_values and not _excludes(known, formula.not_values):
            return False
        if "array" in types and not _implied_arrays(known.arrays, formula.arrays):
            return False
        return "object" not in types or self._implied_objects(known.objects, formula.objects)

    def _implied_objects(self, have: Objects, asked: Objects) -> bool:
        """Return True if objects that satisfy some constraints (``have``) satisfy others (``asked``), too; False: it is
        not known."""
        if asked is _ANY_OBJECT:
            return True
        if asked.absent and not have.absent >= asked.absent:
            return False
        if have.least < asked.least or not have.needed >= asked.needed:
            return False
        if asked.unevaluated or (asked.most is not None and (have.most is None or have.most > asked.most)):
            return False
        if any(len(names - have.absent) > 1 for names in asked.exclusive):  # at most one of them may exist
            return False
        if asked.any_exists and not set(asked.any_exists) <= set(have.any_exists):
            return False
        for part in asked.parts:
            if part not in have.parts and not self._implies_part(have, part):
                return False
        for exists in asked.exists:
            if exists not in have.exists and (
                exists.name is None or not self.implies(have, exists.name, exists.formula)
            ):
                return False
        return not asked.names or set(asked.names) <= set(have.names)

    def _implies_part(self, objects: Objects, part: ObjectPart) -> bool:
        """Return True if the members of objects satisfy the schemas of a part, by name (False: perhaps)."""
        if part.patterns or part.additional is not None:
            return False
        for name, formula in part.properties.items():
            if not self.implies(objects, name, formula):
                return False
        return True

    def implies(self, objects: Objects, name: str, formula: Formula) -> bool:
        """Return True if every value of a member satisfies a formula (False: perhaps)."""
        if isinstance(formula, AllOf):
            for part in formula.parts:
                if not self.implies(objects, name, part):
                    return False
            return True
        if not isinstance(formula, SignedSchema):
            return formula in _formulas(objects, name)
        facts = self._of(objects, name)
        if facts is _NOTHING:
            return False
        if self._meaning(formula.located) in (facts.held if formula.positive else facts.denied):
            return True
        if facts.allowed is None and (formula.positive or not facts.excluded):
            return False
        listed = self._listed(formula.located, False)  # None if it has other constraints
        if listed is None:
            return False
        if formula.positive:
            return facts.allowed is not None and facts.allowed <= listed
        return listed <= facts.excluded or (facts.allowed is not None and facts.allowed.isdisjoint(listed))

    def denies(self, objects: Objects, name: str, formula: Formula) -> bool:
        """Return True if no value of a member satisfies a formula (False: perhaps some does)."""
        return self._of(objects, name).meet(self._fact(formula)).is_false()

    def are_apart(self, lefts: Goal, rights: Goal) -> bool:
        """Return True if facts show that no value satisfies two goals (False: perhaps some does)."""
        return self._all_facts((*lefts, *rights)).is_false()

    def representative(self, goal: Goal) -> Goal:
        """Return the first goal that was asked for, of those that are known to mean the same."""
        return tuple([self._firsts.setdefault(self.meaning(formula), formula) for formula in goal])

    def matches(self, pattern: str, name: str) -> bool:
        """Return True if a pattern matches some part of a name."""
        return bool(self._assertions.matches(pattern, name))

    def _of(self, objects: Objects, name: str) -> MemberFacts:
        """Return the facts about a member's value; computed once."""
        if not objects.parts and not objects.exists:
            return _NOTHING
        known = objects.memo.members
        found = known.get(name)
        if found is None:
            found = known[name] = self._all_facts(_formulas(objects, name))
        return found

    def _all_facts(self, formulas: Iterable[Formula]) -> MemberFacts:
        """Return the facts about a value that satisfies all of some formulas."""
        found = _NOTHING
        for formula in formulas:
            found = found.meet(self._fact(formula))
        return found

    def _fact(self, formula: Formula) -> MemberFacts:
        """Return the facts about a value that satisfies a formula."""
        found = self._facts.get(formula)
        if found is None:
            found = self._read_fact(formula)
            self._facts[formula] = found
        return found

    def _read_fact(self, formula: Formula) -> MemberFacts:
        """Return what a formula says of the values of a member: meanings that hold and that do not, and lists of
        scalars."""
        if isinstance(formula, AllOf):
            return self._all_facts(formula.parts)
        if not isinstance(formula, SignedSchema):
            return _NOTHING
        meaning = frozenset((self._meaning(formula.located),))
        listed = self._listed(formula.located, formula.positive)
        if formula.positive:
            return MemberFacts(meaning, _EMPTY, listed)
        return MemberFacts(_EMPTY, meaning, None, _EMPTY if listed is None else listed)

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
        """Return a key of a subschema that is equal for those that are known to have the same values."""
        document = self._assertions.document
        if isinstance(located.schema, bool):
            return located.schema
        located = document.enter(located)
        schema = located.schema
        keywords = asserted(schema)
        if keywords == _REF and self._assertions.asserts(located, "$ref"):
            return document.resolve(located)
        if keywords <= _OF_SCALARS:
            return repr([(keyword, schema[keyword]) for keyword in sorted(keywords)])  # 1, 1.0 and true differ
        if self._assertions.unenforced or not _is_small(schema):
            return located
        try:
            text = schema_key(schema)
        except (ValueError, TypeError):
            return located
        scope = None if located.scope is None else located.scope.key
        return scope, text  # the same text in the same scope: references mean the same

    def _listed(self, located: Located, positive: bool) -> _Values | None:
        """Return the scalars that a subschema lists, each with its type; None if it has no list, or one with arrays or
        objects.

        Args:
            located: the subschema.
            positive: the subschema must hold. False: it must fail; then also None if it constrains more than the list,
                since a listed value could satisfy the negation.
        """
        known = self._allowed if positive else self._excluded
        found = known.get(located, _NEVER)
        if found is _NEVER:
            values = self._read_listed(located, positive)
            found = None if values is None else frozenset([(type_of(value), value) for value in values])
            known[located] = found
        return found

    def _read_listed(self, located: Located, positive: bool) -> tuple[Any, ...] | None:
        """Return the scalars that a subschema lists; None if it lists none, or objects and arrays too. If negated,
        only if the list is all that it says."""
        assertions = self._assertions
        if isinstance(located.schema, bool):
            return None
        located = assertions.document.enter(located)
        schema = located.schema
        if "$ref" in schema and assertions.document.ref_hides_siblings:
            return None
        keywords = asserted(schema)
        is_list_alone = keywords in (_CONST, _ENUM) or (keywords == _TYPE_ENUM and lists_strings(schema))
        values = assertions.values(located) if positive or is_list_alone else None
        if not values:
            return None
        for value in values:
            if type_of(value) in _COMPOUND:
                return None
        return values


def _is_small(schema: object) -> bool:
    """Return True if a schema has at most `_SMALL` parts."""
    stack = [schema]
    count = 0
    while stack and count <= _SMALL:
        part = stack.pop()
        count += 1
        if isinstance(part, Mapping):
            stack.extend(part.values())
        elif isinstance(part, (list, tuple)):
            stack.extend(part)
    return count <= _SMALL


def _excludes(known: Conjunction, values: Sequence[Any]) -> bool:
    """Return True if an alternative excludes some scalars, by their types or by name."""
    if values is known.not_values:
        return True
    if len(values) * len(known.not_values) > _FEW:
        return False
    return all(type_of(value) not in known.types or is_among(value, known.not_values) for value in values)


def _implied_arrays(have: Arrays, asked: Arrays) -> bool:
    """Return True if constraints on arrays (``have``) include others (``asked``), or tighter ones."""
    if asked is _ANY_ARRAY or asked is have:
        return True
    if asked.least > have.least or (asked.unique and not have.unique):
        return False
    if asked.most is not None and (have.most is None or have.most > asked.most):
        return False
    return (
        set(asked.parts) <= set(have.parts)
        and set(asked.contains) <= set(have.contains)
        and set(asked.unevaluated) <= set(have.unevaluated)
    )


def _formulas(objects: Objects, name: str) -> list[Formula]:
    """Return the formulas that the value of a member must satisfy by its name: patterns and other members aside."""
    found = [part.properties[name] for part in objects.parts if name in part.properties]
    return found + [exists.formula for exists in objects.exists if exists.name == name]
