# cython: language_level=3
"""Pruning of contradictory and subsumed alternatives while a normal form is expanded.

Where a constant member distinguishes alternatives (``if`` this kind ``then`` that, for each kind; ``oneOf`` of
objects, each of a kind), almost all combinations require two kinds at once. Dropped as they arise, there are as many
of them as kinds; multiplied out first, there would be as many as sets of kinds. And where an alternative already
implies one option of several, the others add nothing, so the alternative is not forked.

Compiled where that is possible (Cython in pure-Python mode), as each step of an expansion asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..read.keywords import Role, keywords
from ..read.located import Located, SignedSchema
from ..read.schema_key import schema_key
from .assertions import Assertions, asserted, lists_strings
from .conjunction import EVERY, type_of

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ...compiled import standin as cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.toolgrammar.core.schema.normal.conjunction import (
        AllOf,
        Arrays,
        Conjunction,
        Findings,
        ObjectPart,
        Objects,
        Strings,
        meet,
    )
else:
    from .conjunction import AllOf, Arrays, Conjunction, Findings, ObjectPart, Objects, Strings, meet

#: True if this module was compiled when it was installed.
COMPILED: bool = bool(cython.compiled)

_CONST = frozenset({"const"})
_ENUM = frozenset({"enum"})
_COMPOUND = frozenset({"array", "object"})
_OBJECT = frozenset({"object"})
_REF = frozenset({"$ref"})
_TYPE_ENUM = frozenset({"type", "enum"})

#: Subschemas of more parts than this are only compared by where they are.
_SMALL = 100

#: Keywords whose meaning does not depend on their place in the document.
_OF_SCALARS = frozenset(keywords(types=(None, "string", "number"), roles=(Role.ASSERTION, Role.FORMAT)))


_EMPTY: frozenset = frozenset()


@cython.no_gc
@cython.cclass
class MemberFacts:
    """Facts about the value of a member, if the member is there.

    Attributes:
        held: meanings of subschemas that hold (see `Contradictions.meaning`).
        denied: meanings of subschemas that do not hold.
        allowed: the value is one of these scalars; None: no list was given.
        excluded: the value is none of these scalars.
    """

    def __init__(
        self,
        held: frozenset = _EMPTY,
        denied: frozenset = _EMPTY,
        allowed: object = None,
        excluded: frozenset = _EMPTY,
    ) -> None:
        self.held = held
        self.denied = denied
        self.allowed = allowed
        self.excluded = excluded

    @cython.cfunc
    def meet(self, other: MemberFacts) -> MemberFacts:
        """Return the facts of both."""
        if other is _NOTHING or self is other:
            return self
        if self is _NOTHING:
            return other
        allowed: frozenset = self.allowed
        if other.allowed is not None:
            allowed = other.allowed if allowed is None else allowed & other.allowed
        excluded: frozenset = self.excluded | other.excluded
        if allowed is not None:
            allowed = allowed - excluded
        return MemberFacts(self.held | other.held, self.denied | other.denied, allowed, excluded)

    @cython.cfunc
    def is_false(self) -> cython.bint:
        """Return True if no value is left: every listed value is excluded, or a subschema both holds and does not."""
        return (self.allowed is not None and not self.allowed) or not self.held.isdisjoint(self.denied)


_NOTHING: MemberFacts = MemberFacts()
_ANY_NUMBER = EVERY.numbers
_ANY_STRING: Strings = EVERY.strings
_ANY_ARRAY: Arrays = EVERY.arrays
_ANY_OBJECT: Objects = EVERY.objects

#: Marks a set of values that was not computed yet.
_NEVER: frozenset = frozenset({"never"})


@cython.cclass
class Contradictions:
    """Finder of contradictions and implications between the facts of one document.

    Attributes:
        meets: number of times that facts about one member were combined: a count of work.
    """

    def __init__(self, assertions: Assertions) -> None:
        self._assertions = assertions
        self._allowed = {}
        self._excluded = {}
        self._meanings = {}
        self._facts = {}
        self.meets = 0

    @cython.ccall
    def exclude(self, left: Conjunction, right: Conjunction) -> cython.bint:
        """Return True if no value satisfies both, as types and facts about members show; False: it is not known."""
        types: frozenset = left.types & right.types
        return not types or (types == _OBJECT and self.between(left.objects, right.objects))

    @cython.ccall
    def meet(self, left: Conjunction, right: Conjunction) -> object:
        """Return the conjunction of two; None if they are found to exclude each other."""
        if left is EVERY:
            return meet(left, right)
        if "object" in left.types and "object" in right.types and self.between(left.objects, right.objects):
            types: frozenset = left.types - _OBJECT
            if types.isdisjoint(right.types):
                return None
            left = left.of_types(types)
        both: Conjunction = meet(left, right)
        if both is not None:
            self.inherit(both.objects, left.objects, right.objects)
        return both

    @cython.ccall
    def between(self, left: Objects, right: Objects) -> cython.bint:
        """Return True if no object satisfies both, as facts about a required member show; False: it is not known."""
        if left is _ANY_OBJECT or right is _ANY_OBJECT:
            return False
        ours: frozenset = left.names_needed()
        theirs: frozenset = right.names_needed()
        if (left.absent and not left.absent.isdisjoint(theirs)) or (right.absent and not right.absent.isdisjoint(ours)):
            return True
        if self._is_void(right):
            return True
        # A member that one side does not mention is unconstrained there.
        here: frozenset = left.names_asked()
        there: frozenset = right.names_asked()
        for name in ours:
            if name in there and name in here and self._differ(left, right, name):
                return True
        for name in theirs:
            if name in here and name in there and name not in ours and self._differ(left, right, name):
                return True
        return False

    @cython.cfunc
    def _differ(self, left: Objects, right: Objects, name: object) -> cython.bint:
        """Return True if no value of a member satisfies what is facts of it here and there."""
        here: frozenset = self._values_of(left, name)
        if here is not None:
            there: frozenset = self._values_of(right, name)
            if there is not None and here.isdisjoint(there):  # as usual where a constant distinguishes
                return True
        return self._of(left, name).meet(self._of(right, name)).is_false()

    @cython.cfunc
    def _values_of(self, objects: Objects, name: object) -> frozenset:
        """Return the values that the facts about a member list; None: they list none."""
        known: dict = objects.notes().members
        facts: MemberFacts = known.get(name)
        if facts is not None:
            return facts.allowed
        found: frozenset = None
        for formula in _formulas(objects, name):
            if not isinstance(formula, SignedSchema) or not formula.positive:
                return self._of(objects, name).allowed
            listed: frozenset = self._listed(formula.located, True)
            if listed is not None:
                found = listed if found is None else found & listed
        return found

    @cython.cfunc
    def _is_void(self, objects: Objects) -> cython.bint:
        """Return True if a required member has no value by the facts of these objects alone; computed once."""
        findings: Findings = objects.notes()
        if findings.is_void is None:
            findings.is_void = False
            for name in objects.names_needed():
                if self._of(objects, name).is_false():
                    findings.is_void = True
                    break
        return findings.is_void

    def labels(self, branches: Sequence[Conjunction]) -> dict[str, frozenset[object]]:
        """Return the listed values of each member that every one of some alternatives requires and lists values of;
        empty if an alternative allows another type than objects."""
        found: object = None
        for item in branches:
            branch: Conjunction = item
            if branch.types != _OBJECT:
                return {}
            here: dict = {}
            for name in branch.objects.names_needed():
                values = self._values_of(branch.objects, name)
                if values is not None:
                    here[name] = values
            found = here if found is None else {name: found[name] | here[name] for name in found if name in here}
        return found or {}

    @cython.ccall
    def inherit(self, both: Objects, left: Objects, right: Objects) -> object:
        """Copy the facts about members from the left part of a conjunction, extended by those of the right part."""
        known: dict = left.notes().members
        if known and both is not left and both is not right:
            known = dict(known)
            both.notes().members = known
            for name in right.names_asked():
                facts = known.get(name)
                if facts is not None:
                    known[name] = cython.cast(MemberFacts, facts).meet(self._of(right, name))
        return None

    @cython.ccall
    def holds(self, known: Conjunction, formula: object) -> cython.bint:
        """Return True if every value of an alternative satisfies a formula, as the facts of both show; False: it is not
        known. Only for schemas whose objects take undeclared members."""
        if not isinstance(formula, Conjunction):
            if not isinstance(formula, AllOf):
                return False
            for part in cython.cast(AllOf, formula).parts:
                if not self.holds(known, part):
                    return False
            return True
        asked_of: Conjunction = formula
        if asked_of.values is not None or asked_of.not_values or not known.types <= asked_of.types:
            return False
        if asked_of.numbers is not _ANY_NUMBER or asked_of.strings is not _ANY_STRING:
            return False
        if "array" in known.types and not _implied_arrays(known.arrays, asked_of.arrays):
            return False
        have: Objects = known.objects
        asked: Objects = asked_of.objects
        if asked is _ANY_OBJECT or "object" not in known.types:
            return True
        if asked.absent and not have.absent >= asked.absent:
            return False
        if have.least < asked.least or not have.names_needed() >= asked.names_needed():
            return False
        if asked.unevaluated or (asked.most is not None and (have.most is None or have.most > asked.most)):
            return False
        if asked.any_exists and not set(asked.any_exists) <= set(have.any_exists):
            return False
        for part in asked.parts:
            if part not in have.parts and not self._implies_part(have, part):
                return False
        for exists in asked.exists:
            if exists not in have.exists and (
                exists.name is None or not self._implied(have, exists.name, exists.formula)
            ):
                return False
        for name in asked.names:
            if name not in have.names:
                return False
        return True

    @cython.cfunc
    def _implies_part(self, objects: Objects, part: object) -> cython.bint:
        if part.patterns or part.additional is not None:
            return False
        for name, formula in part.properties.items():
            if not self._implied(objects, name, formula):
                return False
        return True

    @cython.cfunc
    def _implied(self, objects: Objects, name: object, formula: object) -> cython.bint:
        """Return True if a member's value satisfies a formula, if it is there."""
        if isinstance(formula, AllOf):
            for part in cython.cast(AllOf, formula).parts:
                if not self._implied(objects, name, part):
                    return False
            return True
        if not isinstance(formula, SignedSchema):
            return formula in _formulas(objects, name)
        signed: SignedSchema = formula
        facts: MemberFacts = self._of(objects, name)
        if facts is _NOTHING:
            return False
        if self._meaning(signed.located) in (facts.held if signed.positive else facts.denied):
            return True
        if facts.allowed is None and (signed.positive or not facts.excluded):
            return False
        listed: frozenset = self._listed(signed.located, False)  # None if it has other constraints
        if listed is None:
            return False
        if signed.positive:
            return facts.allowed is not None and facts.allowed <= listed
        return listed <= facts.excluded or (facts.allowed is not None and facts.allowed.isdisjoint(listed))

    @cython.ccall
    def implies(self, objects: Objects, name: object, formula: object) -> cython.bint:
        """Return True if every value of a member satisfies a formula (False: perhaps)."""
        return self._implied(objects, name, formula)

    @cython.ccall
    def denies(self, objects: Objects, name: object, formula: object) -> cython.bint:
        """Return True if no value of a member satisfies a formula (False: perhaps some does)."""
        return self._of(objects, name).meet(self._fact(formula)).is_false()

    def matches(self, pattern: str, name: str) -> bool:
        """Return True if a pattern matches some part of a name."""
        return bool(self._assertions.matches(pattern, name))

    @cython.cfunc
    def _of(self, objects: Objects, name: object) -> MemberFacts:
        """Return the facts about a member's value; computed once."""
        if not objects.parts and not objects.exists:
            return _NOTHING
        known: dict = objects.notes().members
        found: MemberFacts = known.get(name)
        if found is None:
            found = _NOTHING
            for formula in _formulas(objects, name):
                self.meets += 1
                found = found.meet(self._fact(formula))
            known[name] = found
        return found

    @cython.cfunc
    def _fact(self, formula: object) -> MemberFacts:
        """Return the facts about a value that satisfies a formula."""
        found: MemberFacts = self._facts.get(formula)
        if found is None:
            found = self._read_fact(formula)
            self._facts[formula] = found
        return found

    @cython.cfunc
    def _read_fact(self, formula: object) -> MemberFacts:
        if isinstance(formula, AllOf):
            found: MemberFacts = _NOTHING
            for part in cython.cast(AllOf, formula).parts:
                found = found.meet(self._fact(part))
            return found
        if not isinstance(formula, SignedSchema):
            return _NOTHING
        signed: SignedSchema = formula
        meaning: frozenset = frozenset((self._meaning(signed.located),))
        listed: frozenset = self._listed(signed.located, signed.positive)
        if signed.positive:
            return MemberFacts(meaning, _EMPTY, listed)
        return MemberFacts(_EMPTY, meaning, None, _EMPTY if listed is None else listed)

    @cython.ccall
    def meaning(self, formula: object) -> object:
        """Return a key that is equal for formulas that are known to be equivalent."""
        if isinstance(formula, SignedSchema):
            return formula.positive, self._meaning(formula.located)
        return formula

    @cython.cfunc
    def _meaning(self, located: Located) -> object:
        """Return a key that is equal for subschemas that are known to be equivalent."""
        found = self._meanings.get(located)
        if found is None:
            found = self._meanings[located] = self._read_meaning(located)
        return found

    @cython.cfunc
    def _read_meaning(self, located: Located) -> object:
        document = self._assertions.document
        if isinstance(located.schema, bool):
            return located.schema
        located = document.enter(located)
        schema = located.schema
        words = asserted(schema)
        if words == _REF and self._assertions.asserts(located, "$ref"):
            return document.resolve(located)
        if words <= _OF_SCALARS:
            return repr([(word, schema[word]) for word in sorted(words)])  # 1, 1.0 and true differ
        if self._assertions.unenforced or not _is_small(schema):
            return located
        try:
            text = schema_key(schema)
        except (ValueError, TypeError):
            return located
        scope = located.scope
        return None if scope is None else scope.key, text  # references mean the same

    @cython.cfunc
    def _listed(self, located: Located, positive: cython.bint) -> frozenset:
        """Return the values that a subschema lists, each with its type; None if it lists none, or an array or object.

        Args:
            located: the subschema.
            positive: False: None also if the subschema has other constraints than the list.
        """
        known: dict = self._allowed if positive else self._excluded
        found = known.get(located, _NEVER)
        if found is _NEVER:
            values = self._read(located, positive)
            found = None if values is None else frozenset([(type_of(value), value) for value in values])
            known[located] = found
        return found

    @cython.cfunc
    def _read(self, located: Located, positive: cython.bint) -> object:
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
        if not values:
            return None
        for value in values:
            if type_of(value) in _COMPOUND:
                return None
        return values


def _is_small(schema: object) -> bool:
    """Return True if a schema has at most `_SMALL` parts."""
    stack: list = [schema]
    count = 0
    while stack and count <= _SMALL:
        part = stack.pop()
        count += 1
        if isinstance(part, Mapping):
            stack.extend(part.values())
        elif isinstance(part, (list, tuple)):
            stack.extend(part)
    return count <= _SMALL


@cython.cfunc
def _implied_arrays(have: Arrays, asked: Arrays) -> cython.bint:
    """Return True if the constraints on arrays are among those that they have."""
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


@cython.cfunc
def _formulas(objects: Objects, name: object) -> list:
    """Return the formulas of a member's value that are given by its name."""
    found: list = []
    for item in objects.parts:
        part: ObjectPart = item
        if name in part.properties:
            found.append(part.properties[name])
    for exists in objects.exists:
        if exists.name == name:
            found.append(exists.formula)
    return found
