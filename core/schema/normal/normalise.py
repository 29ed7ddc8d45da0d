"""Normal form: a goal as a union of typed conjunctions, with negation pushed inwards.

``$ref`` and ``allOf`` are merged, ``anyOf`` forks, ``oneOf``, ``if`` and ``dependencies`` become and/or/not, and a
negated schema becomes one alternative per keyword. Only keywords about the value itself are expanded: subschemas of
members and items stay formulas, and are normalised when a text reaches them, so that recursion costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Union

from ...basics.pauses import pause
from ...errors import InvalidSchemaError, LimitError, Place
from ...json.values import type_of
from ..keywords.objects import names_required
from ..keywords.row import Join
from ..read.keywords import KEYWORDS, Role
from ..read.located import Located, SignedSchema
from ..read.resolve import Document
from .assertions import asserted
from .clauses import clauses, exactly_one, names_only, simplified
from .conjunction import (
    EVERY,
    AllOf,
    AnyOf,
    Conjunction,
    Formula,
    Goal,
    IfThenElse,
    Objects,
    OnlyKeywordFails,
    negated,
)
from .disjoint import are_disjoint, meet
from .exclusive import ExclusiveOptions, of_types, place_of
from .negation import negation
from .passed import Passed
from .unevaluated import Scope, Seen, reported, settled, subsets
from .unions import MAX_PRODUCT

#: Maximum number of alternatives of one goal.
MAX_BRANCHES = 3_000

#: Maximum number of alternatives of one goal that allow arrays or objects: their texts begin with the same byte, so the
#: automaton follows all of them at once (see its ``MAX_THREADS``).
MAX_COMPOUNDS = 2_048

#: Maximum number of steps of the expansion of one goal.
MAX_STEPS = 40_000

#: Maximum number of steps of all expansions for one grammar: alternatives may multiply from level to level.
MAX_TOTAL = 80_000

_OBJECT = frozenset({"object"})
_COMPOUND = frozenset({"array", "object"})
_REFERENCES = frozenset(KEYWORDS.references)
#: Keywords of schemas that are conjunctions of other schemas.
_JOINING = _REFERENCES | {row.name for row in KEYWORDS.values() if row.join is Join.EVERY}

#: The keywords ``unevaluated...``, and that of objects.
_REMAINDERS = frozenset(KEYWORDS.named(roles=(Role.REMAINDER,)))
_OBJECT_REMAINDERS = KEYWORDS.named(roles=(Role.REMAINDER,), types=("object",))

#: By keyword, in the order of the table: the formulas of the schemas that it applies to the same value.
_APPLIED = {row.name: row.applied for row in KEYWORDS.values() if row.applied is not None}


#: A formula to be expanded, the references passed on the way to it, and the scopes that it reports to. (Plain tuples: a
#: large schema takes tens of thousands of steps.)
_Step = tuple[Formula, Passed, tuple[Scope, ...]]

_UNSEEN = Seen()
_NO_REFERENCES = Passed()

#: The rest of the steps, as a linked list: alternatives share it.
_Steps = Union[tuple[_Step, "_Steps"], None]

#: An alternative under expansion: its facts so far, the steps that are left, and the reports to scopes.
_Alternative = tuple[Conjunction, _Steps, Seen]


class Normaliser(ExclusiveOptions):
    """Normaliser of the goals of one document. For one thread at a time.

    Args:
        open_objects: objects take undeclared members unless ``additionalProperties`` forbids it. (If False, an option
            that adds no constraint may still declare a member.)

    Attributes:
        steps: number of steps of all expansions so far.
        expanded: the alternatives of goals, a memo for the check and the lowering.
    """

    def __init__(
        self,
        document: Document,
        unenforced: Collection[tuple[object, str]] = (),
        formats: bool = True,
        *,
        open_objects: bool = True,
    ) -> None:
        ExclusiveOptions.__init__(self, document, unenforced, formats, open_objects=open_objects)
        self.steps = 0
        self.expanded: dict[Goal, list[Conjunction]] = {}
        # In the keys of these memos, True says that ``oneOf`` was taken for a union.
        self._negations: dict[tuple[Located, bool], Formula] = {}
        self._applicators: dict[tuple[Located, bool], list[Formula]] = {}
        self._demands: dict[tuple[Formula, frozenset[str]], Formula] = {}

    # -- the expansion -----------------------------------------------------------------------------------------

    def branches(self, goal: Goal) -> list[Conjunction]:
        """Return the alternatives of a goal, empty when it can never hold.

        If they are more than `MAX_PRODUCT`, they are expanded again, with demands in place of alternatives where that
        is possible.

        Raises:
            InvalidSchemaError: a schema refers to itself without describing anything.
            LimitError: the alternatives are too many.
        """
        if len(goal) == 1:
            only = self._alone(goal[0])
            if only is not None:
                return only
        before = self.steps
        found = self._expanded(goal, with_demands=False)
        if found is None:
            self.steps = before + (self.steps - before) // 2  # in the limits, half of the steps in vain count
            found = self._expanded(goal, with_demands=True)
            assert found is not None
        return found

    def _expanded(self, goal: Goal, *, with_demands: bool, may_exceed: bool = False) -> list[Conjunction] | None:
        """Return the alternatives of a goal; None if there are more than `MAX_PRODUCT` of them.

        The expansion is depth first: an alternative takes its steps one after the other, until it contradicts itself or
        has none left. A union, or a condition that is not decided, adds an alternative for each option.

        Args:
            goal: the goal.
            with_demands: conditions on members become demands, where they can, instead of alternatives; then the result
                is never None.
            may_exceed: there may be more alternatives that speak of the names of members only.
        """
        done: list[Conjunction] = []
        steps: _Steps = None
        for formula in reversed(goal):
            steps = ((formula, _NO_REFERENCES, ()), steps)
        todo: list[_Alternative] = [(EVERY, steps, _UNSEEN)]
        taken = 0  # steps, of this expansion alone
        compounds = 0  # finished alternatives of arrays or objects
        contradictions = self.contradictions
        while todo:
            conjunction, steps, seen = todo.pop()
            while steps is not None:
                step, steps = steps
                formula, passed, scopes = step
                work = 1 + len(scopes) if len(scopes) > 1 else 1  # each of nested scopes is reported to
                taken += work
                self.steps += work
                if self.steps & 255 < work:  # every 256 steps
                    pause()
                if taken > MAX_STEPS or self.steps > MAX_TOTAL:
                    raise self._too_many(goal)
                # An implied formula may be skipped, unless it may declare members. Facts report nothing to scopes.
                may_skip = (self._open_objects or "object" not in conjunction.types) and (
                    not scopes or _is_of_facts(formula)
                )
                if with_demands and not scopes and isinstance(formula, (AnyOf, IfThenElse)):
                    formula = self._as_demands(formula, conjunction.types)
                if isinstance(formula, (SignedSchema, OnlyKeywordFails)):
                    entered = self._entered(conjunction, steps, seen, formula, passed, scopes)
                    if entered is None:
                        break
                    conjunction, steps, seen = entered
                elif isinstance(formula, Conjunction):
                    if may_skip and contradictions.holds(conjunction, formula):
                        continue
                    merged = meet(self, conjunction, formula)
                    if merged is None:
                        break
                    conjunction = merged
                elif isinstance(formula, AllOf):
                    passed = passed.of_sign(True) if passed.joined else passed
                    for part in reversed(formula.parts):
                        steps = ((part, passed, scopes), steps)
                elif isinstance(formula, AnyOf):
                    if may_skip and self._holds_one(conjunction, formula):
                        continue
                    passed = passed.of_sign(False) if passed.joined else passed
                    for part in reversed(formula.parts):
                        if isinstance(part, Conjunction):
                            taken += 1
                            self.steps += 1
                            merged = meet(self, conjunction, part)
                            if merged is not None:
                                todo.append((merged, steps, seen))
                        else:
                            todo.append((conjunction, ((part, passed, scopes), steps), seen))
                    break
                else:
                    assert isinstance(formula, IfThenElse)
                    passed = Passed(passed.keys) if passed.joined else passed
                    known = self._decided(conjunction, formula.condition) if may_skip else None
                    if known is not None:
                        steps = ((formula.then if known else formula.otherwise, passed, scopes), steps)
                    else:  # one alternative for each outcome; this one goes on with the condition
                        denied = AllOf((negated(formula.condition), formula.otherwise))
                        todo.append((conjunction, ((denied, passed, scopes), steps), seen))
                        steps = ((formula.condition, passed, scopes), ((formula.then, passed, scopes), steps))
            else:  # no step is left
                reopened = self._with_negations(conjunction, seen) if seen.denied else None
                if reopened is not None:
                    todo.append(reopened)
                    continue
                if len(seen.opened) > 1:  # each scope reads all reports
                    work = len(seen.opened) * (1 + (len(seen.objects) + len(seen.arrays) + len(seen.contains)) // 16)
                    taken += work
                    self.steps += work
                finished = settled(conjunction, seen, self) if seen.opened else conjunction
                if finished is not None and finished.objects.any_exists:
                    finished = simplified(finished, contradictions, self._open_objects)
                if finished is not None:
                    done.append(finished)
                    compounds += finished.values is None and not _COMPOUND.isdisjoint(finished.types)
                if not with_demands and len(done) > MAX_PRODUCT and not (may_exceed and names_only(done[-1])):
                    return None
                if len(done) > MAX_BRANCHES or compounds > MAX_COMPOUNDS:
                    raise self._too_many(goal)
        return done

    def _with_negations(self, conjunction: Conjunction, seen: Seen) -> _Alternative | None:
        """Return an alternative whose steps are the negations that were left to the end (``seen.denied``) and that it
        does not imply; None: it implies all of them. The implied ones stay in ``denied``, since a step may declare the
        member that they lack."""
        open_ones = [each for each in seen.denied if not self._lacks(conjunction, seen, each[0])]
        if not open_ones:
            return None
        steps: _Steps = None
        united = self._united_negations([located for located, _ in open_ones])
        for (located, passed), formula in reversed(list(zip(open_ones, united, strict=True))):
            steps = ((formula or self._negation(located), passed, ()), steps)
        implied = tuple([each for each in seen.denied if each not in open_ones])
        return conjunction, steps, seen._replace(denied=implied)

    def _as_demands(self, formula: AnyOf | IfThenElse, types: frozenset[str]) -> Formula:
        """Return a formula for values of some types as a fact, if it is a condition on the members of objects that
        becomes demands, or a condition on types; else the formula itself. Computed once."""
        key = formula, types
        found = self._demands.get(key)
        if found is None:
            alternatives = self._expanded((of_types(types), formula), with_demands=False, may_exceed=True)
            found = self._demands[key] = self._as_fact(alternatives) or formula
        return found

    def _as_fact(self, alternatives: list[Conjunction] | None) -> Conjunction | None:
        """Return the union of some alternatives as one fact; None: it is not one."""
        if alternatives is None:
            return None
        if len(alternatives) == 1:
            return alternatives[0]
        free: set[str] = set()  # types of which some alternative allows every value
        constrained: set[str] = set()
        for each in alternatives:
            if each.values is not None:
                return None
            for kind in each.types:
                (free if _is_free(each, kind) else constrained).add(kind)
        constrained -= free
        types = frozenset(free)
        if not constrained:
            return Conjunction(types)
        if constrained != _OBJECT:  # only conditions on objects become demands
            return None
        of_objects = [each for each in alternatives if "object" in each.types]
        objects = exactly_one(of_objects)
        if objects is None:
            demands = clauses(tuple(of_objects), self._open_objects)
            if demands is None:
                return None
            # "One of these two is missing" is the same as `exclusive`.
            pairs = [each.absent for each in demands if not each.options and len(each.absent) == 2]
            others = [each for each in demands if each.options or len(each.absent) != 2]
            objects = Objects(any_exists=tuple(others), exclusive=tuple(pairs))
        return Conjunction(types | _OBJECT, objects=objects)

    def _holds_one(self, known: Conjunction, formula: AnyOf) -> bool:
        """Return True if `Contradictions.holds` shows that every value of an alternative satisfies one of the
        options."""
        for part in formula.parts:
            if self.contradictions.holds(known, part):
                return True
        return False

    def _alone(self, formula: Formula) -> list[Conjunction] | None:
        """Return the alternatives of a goal that is one subschema without applicators; None for other goals."""
        if not isinstance(formula, SignedSchema):
            return None
        if not formula.positive or isinstance(formula.located.schema, bool):
            return None
        located = self.document.enter(formula.located)
        if not KEYWORDS.applicators.isdisjoint(located.schema):
            return None
        own = self.assertions(located)
        return [] if own is None else [own]

    def _entered(
        self,
        conjunction: Conjunction,
        rest: _Steps,
        seen: Seen,
        formula: SignedSchema | OnlyKeywordFails,
        passed: Passed,
        scopes: tuple[Scope, ...],
    ) -> _Alternative | None:
        """Return the alternative after a step that is a signed subschema (or `OnlyKeywordFails`); None if it
        contradicts the facts so far.

        Args:
            conjunction, rest, seen: the alternative (see `_Alternative`).
            formula, passed, scopes: the step (see `_Step`).
        """
        if not isinstance(formula, SignedSchema):
            located = formula.located
            scope = Scope(len(seen.opened), located, formula.keyword)
            seen = seen._replace(opened=(*seen.opened, scope))
            return self._held(conjunction, rest, seen, located, passed, (scope,))
        positive = formula.positive
        located = formula.located
        schema = located.schema
        if isinstance(schema, bool):
            return (conjunction, rest, seen) if schema == positive else None
        located = self.document.enter(located)
        if passed.joined:
            passed = passed.of_sign(positive)
        if "$ref" in schema or not _REFERENCES.isdisjoint(schema):  # a loop passes through the same reference again
            key = (located.key, positive)
            # In more scopes than before, the same schema would report to more of them. (A negation reports to none.)
            joined = (*key, len(scopes) if positive else 0)
            if key in passed.keys:
                # A schema that is a conjunction of itself and others is that of the others: validators that follow
                # such a loop only once find the same. Its negation is the union of theirs.
                if joined in passed.joined and self._describes(located):
                    return (conjunction, rest, seen) if positive else None
                raise InvalidSchemaError(
                    "a circular $ref: the schema refers to itself without describing anything",
                    hint="remove a $ref of the cycle, or describe a value in it",
                    place=Place(pointer=located.pointer, keyword="$ref"),
                )
            passed = Passed(passed.keys | {key}, passed.joined | {joined})
        if not positive:
            if self._is_decided_late(located):
                return conjunction, rest, seen._replace(denied=(*seen.denied, (located, passed)))
            return conjunction, ((self._negation(located), passed, ()), rest), seen
        if not _REMAINDERS.isdisjoint(schema) and any(self.asserts(located, keyword) for keyword in _REMAINDERS):
            scope = Scope(len(seen.opened), located)
            seen = seen._replace(opened=(*seen.opened, scope))
            scopes = (*scopes, scope)
        return self._held(conjunction, rest, seen, located, passed, scopes)

    def _describes(self, located: Located) -> bool:
        """Return True if a schema, or one of those that it is a conjunction of, asserts more than references and
        ``allOf``."""
        known: set[object] = set()
        waiting = [located]
        while waiting:
            each = self.document.enter(waiting.pop())
            schema = each.schema
            if schema is False:
                return True
            if schema is True or each.key in known:
                continue
            known.add(each.key)
            alone = "$ref" in schema and self.document.ref_hides_siblings
            for keyword in ("$ref",) if alone else asserted(schema):
                if self.asserts(each, keyword):
                    if keyword not in _JOINING:
                        return True
                    parts = _APPLIED[keyword](self, each, ())
                    waiting += [part.located for part in parts if isinstance(part, SignedSchema)]
        return False

    def _lacks(self, known: Conjunction, seen: Seen, located: Located) -> bool:
        """Return True if no value of an alternative satisfies a schema, since the schema requires a member that the
        alternative's closed objects do not declare.

        Called only without ``open_objects``: then ``properties`` closes an object, unless it has patterns or
        ``additionalProperties``, or ``unevaluatedProperties`` decides.
        """
        if known.types != _OBJECT or known.objects.unevaluated:
            return False
        if any(self.asserts(scope.located, keyword) for scope in seen.opened for keyword in _OBJECT_REMAINDERS):
            return False
        parts = known.objects.parts
        if any(part.patterns or part.additional is not None for part in parts):
            return False
        if not any(part.names_properties for part in parts):
            return False
        names = names_required(located.schema) if self.asserts(located, "required") else ()
        return any(all(name not in part.properties for part in parts) for name in names)

    def _decided(self, known: Conjunction, condition: Formula) -> bool | None:
        """Return True if a condition holds for all values of an alternative, False if for none; None: not known.

        A decided condition does not fork the alternative.
        """
        if isinstance(condition, SignedSchema):
            located = self.document.enter(condition.located)
            schema = located.schema
            if (
                isinstance(schema, bool)
                or not condition.positive
                or not asserted(schema).isdisjoint(KEYWORDS.applicators)
            ):
                return None
            own = self.assertions(located)
        else:
            own = condition if isinstance(condition, Conjunction) else None
        if own is None:
            return None
        if are_disjoint(self, known, own):
            return False
        return True if self.contradictions.holds(known, own) else None

    def _held(
        self,
        conjunction: Conjunction,
        rest: _Steps,
        seen: Seen,
        located: Located,
        passed: Passed,
        scopes: tuple[Scope, ...],
    ) -> _Alternative | None:
        """Return the alternative after a schema that holds: its assertions join the facts, its applicators the steps.
        None if it contradicts the facts so far."""
        own = self.assertions(located)
        if own is None:
            return None
        merged = meet(self, conjunction, own)
        if merged is None:
            return None
        if not KEYWORDS.applicators.isdisjoint(located.schema):
            for part in reversed(self._applied(located, scopes)):
                rest = ((part, passed, scopes), rest)
        return merged, rest, reported(self, located, seen, scopes) if scopes else seen

    def _negation(self, located: Located) -> Formula:
        """Return the negation of a schema; computed once."""
        key = located, self.one_of_as_union > 0
        found = self._negations.get(key)
        if found is None:
            found = self._negations[key] = negation(self, located)
        return found

    def _too_many(self, goal: Goal) -> LimitError:
        return LimitError(
            f"more than {MAX_BRANCHES:,} alternatives for one value, or {MAX_COMPOUNDS:,} of arrays and objects",
            hint="simplify nested anyOf, oneOf and not; give each alternative a property with its own const; or close "
            "objects (additionalProperties: false)",
            place=place_of(goal),
        )

    # -- a schema that must hold -------------------------------------------------------------------------------

    def _applied(self, located: Located, scopes: tuple[Scope, ...]) -> list[Formula]:
        """Return the formulas of a schema's applicators on the same value; computed once if there is no scope."""
        if scopes:
            return self._read_applied(located, scopes)
        key = located, self.one_of_as_union > 0
        found = self._applicators.get(key)
        if found is None:
            found = self._applicators[key] = self._read_applied(located, ())
        return found

    def _read_applied(self, located: Located, scopes: tuple[Scope, ...]) -> list[Formula]:
        """Return what the applicators of a subschema demand as formulas, those without alternatives first."""
        schema = located.schema
        if "$ref" in schema and self.document.ref_hides_siblings:
            return [*_APPLIED["$ref"](self, located, scopes)]
        found: list[Formula] = []
        for keyword, applied in _APPLIED.items():
            if keyword in schema and self.asserts(located, keyword):
                found += applied(self, located, scopes)
        found.sort(key=_forks)
        return found

    def any_of(self, located: Located, options: tuple[SignedSchema, ...], scopes: tuple[Scope, ...]) -> Formula:
        """Return the formula of a schema's ``anyOf``, given its options and the scopes that ask what each evaluates."""
        if not scopes:
            return AnyOf(options)
        return subsets(options, located, any(scope.broken for scope in scopes))


def _forks(formula: Formula) -> int:
    """Return the rank of a formula in the order of expansion: formulas that make alternatives come last."""
    return 2 if isinstance(formula, AnyOf) else 1 if isinstance(formula, IfThenElse) else 0


def _is_of_facts(formula: Formula) -> bool:
    """Return True if a formula is a fact or a union of facts."""
    if not isinstance(formula, AnyOf):
        return isinstance(formula, Conjunction)
    for part in formula.parts:
        if not isinstance(part, Conjunction):
            return False
    return True


def _is_free(known: Conjunction, kind: str) -> bool:
    """Return True if an alternative allows every value of a type that it allows."""
    if any(type_of(value) == kind for value in known.not_values):
        return False
    parts = {"number": "numbers", "string": "strings", "array": "arrays", "object": "objects"}
    return kind not in parts or getattr(known, parts[kind]) == getattr(EVERY, parts[kind])
