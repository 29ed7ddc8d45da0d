"""Normal form: a goal as a union of typed conjunctions, with negation pushed inwards.

``$ref`` and ``allOf`` are merged, ``anyOf`` forks, ``oneOf``, ``if`` and ``dependencies`` become and/or/not, and a
negated schema becomes one alternative per keyword. Only keywords about the value itself are expanded: subschemas of
members and items stay formulas, and are normalised when a text reaches them, so that recursion costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import prod
from typing import Union
from weakref import proxy

from ...basics.pauses import pause
from ...errors import InvalidSchemaError, LimitError, Place
from ...json.values import type_of
from ..keywords.any_value import allowed_types
from ..keywords.objects import names_required
from ..keywords.row import Join
from ..read.keywords import KEYWORDS, TYPES, Role
from ..read.located import Located, SignedSchema
from ..read.resolve import Document
from .assertions import Assertions, asserted
from .clauses import clauses, exactly_one, names_only, simplified
from .conjunction import (
    EVERY,
    AllOf,
    AnyOf,
    Arrays,
    Conjunction,
    Formula,
    Goal,
    IfThenElse,
    Objects,
    OnlyKeywordFails,
    fact,
    negated,
)
from .disjoint import ANY, Bound, Overlap, are_disjoint, common, meet, suspects
from .negation import negation
from .passed import Passed
from .prune import Contradictions
from .unevaluated import Scope, Seen, reported, settled, subsets
from .unions import MAX_PRODUCT, together

#: Maximum number of alternatives of one goal.
MAX_BRANCHES = 3_000

#: Maximum number of alternatives of one goal that allow arrays or objects: their texts begin with the same byte, so the
#: automaton follows all of them at once (see its ``MAX_THREADS``).
MAX_COMPOUNDS = 2_048

#: Maximum number of steps of the expansion of one goal.
MAX_STEPS = 40_000

#: Maximum number of steps of all expansions for one grammar: alternatives may multiply from level to level.
MAX_TOTAL = 80_000

#: Minimum number of options that an optional member tells apart.
_FEW = 4

#: Maximum number of references in a row that are followed to find the negation of a schema.
_MAX_LINKS = 8

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


#: A formula to be expanded, the references that led to it, and the scopes that it reports to.
_Step = tuple[Formula, Passed, tuple[Scope, ...]]

_UNSEEN = Seen()
_NO_REFERENCES = Passed()

#: The rest of the steps, as a linked list: alternatives share it.
_Steps = Union[tuple[_Step, "_Steps"], None]

#: An alternative under expansion: its facts so far, the steps that are left, and the reports to scopes.
_Alternative = tuple[Conjunction, _Steps, Seen]


class Normaliser(Assertions):
    """Normaliser of the goals of one document. For one thread at a time.

    Args:
        open_objects: objects take undeclared members unless ``additionalProperties`` forbids it. (If False, an option
            that adds no constraint may still declare a member.)

    Attributes:
        steps: number of steps of all expansions so far.
        one_of_as_union: above zero while ``oneOf`` is taken for a plain union.
        compared: number of pairs of options whose disjointness was examined.
        pairs: number of pairs of their alternatives that were compared for that.
        contradictions: finder of contradictions between facts.
        expanded: the alternatives of goals, a memo for the check and the lowering.
        excluded: by two goals for one part and the depth of the search (see `common`): True if no value satisfies both.
        strings: by formula, a term of strings among which are all that satisfy it.
    """

    def __init__(
        self,
        document: Document,
        unenforced: Collection[tuple[object, str]] = (),
        formats: bool = True,
        *,
        open_objects: bool = True,
    ) -> None:
        Assertions.__init__(self, document, unenforced, formats)
        self._open_objects = open_objects
        self.steps = 0
        self.one_of_as_union = 0
        self.compared = 0
        self.pairs = 0
        self.expanded: dict[Goal, list[Conjunction]] = {}
        self.excluded: dict[tuple[Goal, Goal, int], bool] = {}
        self.strings: dict[Formula, int] = {}
        # In the keys of these memos, True says that ``oneOf`` was taken for a union.
        self._overlaps: dict[Located, list[dict[int, Overlap]]] = {}
        self._negations: dict[tuple[Located, bool], Formula] = {}
        self._applicators: dict[tuple[Located, bool], list[Formula]] = {}
        self._alternatives: dict[tuple[Formula, bool], list[Conjunction] | None] = {}  # None: being computed
        self._demands: dict[tuple[Formula, frozenset[str]], Formula] = {}
        self._of_parts: dict[Goal, list[Conjunction]] = {}
        self._gathered_ones: dict[int, tuple[list[Conjunction], Formula]] = {}  # by the identity of the alternatives
        # A weak reference: without a cycle, a dropped grammar is freed at once, not by the garbage collector.
        self.contradictions = Contradictions(proxy(self))

    # -- the expansion -----------------------------------------------------------------------------------------

    def branches(self, goal: Goal) -> list[Conjunction]:
        """Return the alternatives of a goal, empty when it can never hold.

        Raises:
            InvalidSchemaError: a schema refers to itself without describing anything.
            LimitError: the alternatives are too many.
        """
        if len(goal) == 1:
            only = self._alone(goal[0])
            if only is not None:
                return only
        before = self.steps
        found = self._expanded(goal, is_tracked=False)
        if found is None:
            self.steps = before + (self.steps - before) // 2  # the way that is given up is the shorter one
            found = self._expanded(goal, is_tracked=True)
            assert found is not None
        return found

    def _expanded(self, goal: Goal, *, is_tracked: bool, may_exceed: bool = False) -> list[Conjunction] | None:
        """Return the alternatives of a goal; None if there are more than `MAX_PRODUCT` of them.

        Args:
            goal: the goal.
            is_tracked: conditions on members become demands, where they can, instead of alternatives; then the result
                is never None.
            may_exceed: there may be more alternatives that speak of the names of members only.
        """
        done: list[Conjunction] = []
        steps: _Steps = None
        for formula in reversed(goal):
            steps = ((formula, _NO_REFERENCES, ()), steps)
        todo: list[_Alternative] = [(EVERY, steps, _UNSEEN)]
        taken = 0
        compounds = 0
        contradictions = self.contradictions
        while todo:
            conjunction, steps, seen = todo.pop()
            while steps is not None:
                step, steps = steps
                formula, above, scopes = step
                work = 1 + len(scopes) if len(scopes) > 1 else 1  # each of nested scopes is reported to
                taken += work
                self.steps += work
                if self.steps & 255 < work:
                    pause()
                if taken > MAX_STEPS or self.steps > MAX_TOTAL:
                    raise self._too_many(goal)
                # An implied formula may be skipped, unless it may declare members. Facts report nothing to scopes.
                may_skip = (self._open_objects or "object" not in conjunction.types) and (
                    not scopes or _is_of_facts(formula)
                )
                if is_tracked and not scopes and isinstance(formula, (AnyOf, IfThenElse)):
                    formula = self._tracked(formula, conjunction.types)
                if isinstance(formula, SignedSchema) or isinstance(formula, OnlyKeywordFails):
                    entered = self._entered(conjunction, steps, seen, formula, above, scopes)
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
                    above = above.of_sign(True) if above.joined else above
                    for part in reversed(formula.parts):
                        steps = ((part, above, scopes), steps)
                elif isinstance(formula, AnyOf):
                    if may_skip and self._holds_one(conjunction, formula):
                        continue
                    above = above.of_sign(False) if above.joined else above
                    for part in reversed(formula.parts):
                        if isinstance(part, Conjunction):
                            taken += 1
                            self.steps += 1
                            merged = meet(self, conjunction, part)
                            if merged is not None:
                                todo.append((merged, steps, seen))
                        else:
                            todo.append((conjunction, ((part, above, scopes), steps), seen))
                    break
                else:
                    assert isinstance(formula, IfThenElse)
                    above = Passed(above.keys) if above.joined else above
                    known = self._decided(conjunction, formula.condition) if may_skip else None
                    if known is None:
                        denied = AllOf((negated(formula.condition), formula.otherwise))
                        todo.append((conjunction, ((denied, above, scopes), steps), seen))
                        steps = ((formula.condition, above, scopes), ((formula.then, above, scopes), steps))
                    else:
                        steps = ((formula.then if known else formula.otherwise, above, scopes), steps)
            else:
                open_ones = [each for each in seen.denied if not self._lacks(conjunction, seen, each[0])]
                if open_ones:
                    joined = self._joined([located for located, _ in open_ones])
                    for (located, above), fact in reversed(list(zip(open_ones, joined, strict=True))):
                        steps = ((fact or self._negation(located), above, ()), steps)
                    kept = tuple([each for each in seen.denied if each not in open_ones])
                    todo.append((conjunction, steps, seen._replace(denied=kept)))
                    continue
                if len(seen.opened) > 1:
                    work = len(seen.opened) * (1 + (len(seen.objects) + len(seen.arrays) + len(seen.contains)) // 16)
                    taken += work
                    self.steps += work
                finished = settled(conjunction, seen, self) if seen.opened else conjunction
                if finished is not None and finished.objects.any_exists:
                    finished = simplified(finished, contradictions, self._open_objects)
                if finished is not None:
                    done.append(finished)
                    compounds += finished.values is None and not _COMPOUND.isdisjoint(finished.types)
                if not is_tracked and len(done) > MAX_PRODUCT and not (may_exceed and names_only(done[-1])):
                    return None
                if len(done) > MAX_BRANCHES or compounds > MAX_COMPOUNDS:
                    raise self._too_many(goal)
        return done

    def _tracked(self, formula: AnyOf | IfThenElse, types: frozenset[str]) -> Formula:
        """Return a formula that is the same for values of some types: a fact, if it is a condition on the members of
        objects that becomes demands, or a condition on types; else the formula itself. Computed once."""
        key = formula, types
        found = self._demands.get(key)
        if found is None:
            alternatives = self._expanded((_of_types(types), formula), is_tracked=False, may_exceed=True)
            found = self._demands[key] = self._as_fact(alternatives) or formula
        return found

    def _as_fact(self, alternatives: list[Conjunction] | None) -> Conjunction | None:
        """Return the union of some alternatives as one fact; None: it is not one."""
        if alternatives is None:
            return None
        if len(alternatives) == 1:
            return alternatives[0]
        allowed: set[str] = set()
        constrained: set[str] = set()
        for each in alternatives:
            if each.values is not None:
                return None
            for kind in each.types:
                (allowed if _is_free(each, kind) else constrained).add(kind)
        if not constrained.difference(allowed) <= _OBJECT:
            return None
        types = frozenset(allowed)
        if constrained.isdisjoint(_OBJECT) or not allowed.isdisjoint(_OBJECT):
            return Conjunction(types)
        of_objects = [each for each in alternatives if "object" in each.types]
        objects = exactly_one(of_objects)
        if objects is None:
            demands = clauses(tuple(of_objects), self._open_objects)
            if demands is None:
                return None
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
        above: Passed,
        scopes: tuple[Scope, ...],
    ) -> _Alternative | None:
        """Return the alternative (see `_Alternative`) after a signed subschema; None if it contradicts the facts so
        far."""
        if not isinstance(formula, SignedSchema):
            located = formula.located
            scope = Scope(len(seen.opened), located, formula.keyword)
            seen = seen._replace(opened=(*seen.opened, scope))
            return self._held(conjunction, rest, seen, located, above, (scope,))
        positive = formula.positive
        located = formula.located
        schema = located.schema
        if isinstance(schema, bool):
            return (conjunction, rest, seen) if schema == positive else None
        located = self.document.enter(located)
        if above.joined:
            above = above.of_sign(positive)
        if "$ref" in schema or not _REFERENCES.isdisjoint(schema):  # a loop passes through the same reference again
            key = (located.key, positive)
            joined = (*key, len(scopes) if positive else 0)
            if key in above.keys:
                # A schema that is a conjunction of itself and others is that of the others: validators that follow
                # such a loop only once find the same. Its negation is the union of theirs.
                if joined in above.joined and self._describes(located):
                    return (conjunction, rest, seen) if positive else None
                raise InvalidSchemaError(
                    "a circular $ref: the schema refers to itself without describing anything",
                    hint="remove a $ref of the cycle, or describe a value in it",
                    place=Place(pointer=located.pointer, keyword="$ref"),
                )
            above = Passed(above.keys | {key}, above.joined | {joined})
        if not positive:
            if self._is_decided_late(located):
                return conjunction, rest, seen._replace(denied=(*seen.denied, (located, above)))
            return conjunction, ((self._negation(located), above, ()), rest), seen
        if not _REMAINDERS.isdisjoint(schema) and any(self.asserts(located, keyword) for keyword in _REMAINDERS):
            scope = Scope(len(seen.opened), located)
            seen = seen._replace(opened=(*seen.opened, scope))
            scopes = (*scopes, scope)
        return self._held(conjunction, rest, seen, located, above, scopes)

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
        parts = known.objects.parts
        closed = any(part.names_properties for part in parts) and not known.objects.unevaluated
        if any(self.asserts(scope.located, keyword) for scope in seen.opened for keyword in _OBJECT_REMAINDERS):
            return False
        if known.types != _OBJECT or not closed or any(part.patterns or part.additional is not None for part in parts):
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
        above: Passed,
        scopes: tuple[Scope, ...],
    ) -> _Alternative | None:
        """Return the alternative (see `_Alternative`) after a schema that holds; None if it contradicts the facts so
        far."""
        own = self.assertions(located)
        if own is None:
            return None
        merged = meet(self, conjunction, own)
        if merged is None:
            return None
        if not KEYWORDS.applicators.isdisjoint(located.schema):
            for part in reversed(self._applied(located, scopes)):
                rest = ((part, above, scopes), rest)
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
            place=_place(goal),
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

    def of_part(self, goal: Goal) -> list[Conjunction]:
        """Return alternatives of the goal of a part among which are all of its own: every ``oneOf`` is a union for the
        proofs. Computed once."""
        found = self._of_parts.get(goal)
        if found is None:
            found = self._of_parts[goal] = self.branches(goal)
        return found

    def overlaps(self, located: Located, options: Sequence[SignedSchema]) -> list[frozenset[int]]:
        """Return, for each option of a schema's ``oneOf``, the others that are not provably disjoint from it."""
        return [frozenset(others) for others in self._overlapping(located, options)]

    def _overlapping(self, located: Located, options: Sequence[SignedSchema]) -> list[dict[int, Overlap]]:
        """Return, for each option of a schema's ``oneOf``, the other options that some of its values may satisfy, each
        with a bound of these values, among the types that the schema itself allows."""
        found = self._overlaps.get(located)
        if found is None:
            found = [{} for _ in options]
            if len(options) == 1:
                return found
            kinds = _of_types(allowed_types(self, located))
            # Meanwhile, every oneOf (this one may be inside itself) is taken for a union, of which it is a subset:
            # what is disjoint from the union is disjoint from it.
            self.one_of_as_union += 1
            try:
                branches = [self.branches((kinds, option)) for option in options]
                for one, two in suspects([self.contradictions.labels(each) for each in branches]):
                    self.compared += 1
                    both = common(self, branches[one], branches[two])
                    if both:
                        found[one][two] = found[two][one] = both
            finally:
                self.one_of_as_union -= 1
            self._overlaps[located] = found
        return found

    def one_of(self, located: Located, options: Sequence[SignedSchema]) -> Formula:
        """Return the formula of a schema's ``oneOf``: one option holds, and the options that overlap it do not."""
        if self.one_of_as_union:
            return AnyOf(tuple(options))
        overlapping = self._overlapping(located, options)
        every = len(options) > 1 and all(len(others) == len(options) - 1 for others in overlapping)
        denied = self._all_denied(options) if every else None
        parts: list[Formula] = []
        for index, others in enumerate(overlapping):
            for region, those in _regions(others):
                both: tuple[Formula, ...] = (options[index],) if region is EVERY else (region, options[index])
                if denied is not None and len(those) == len(options) - 1:
                    rest = denied[index]
                    if rest is not None:
                        parts.append(AllOf((*both, rest)))
                else:
                    parts.append(AllOf((*both, *self.denied([options[other] for other in those]))))
        return AnyOf(tuple(parts))

    def denied(self, options: Sequence[SignedSchema]) -> list[Formula]:
        """Return formulas whose conjunction is: none of the options holds.

        The negation of an option may have several alternatives. If these would multiply, they are joined to demands.
        """
        entered = [self.document.enter(option.located) for option in options]
        at_once = [located for located in entered if not self._is_decided_late(located)]
        facts = dict(zip(at_once, self._joined(at_once), strict=True))
        return [facts.get(located) or negated(option) for located, option in zip(entered, options, strict=True)]

    def _is_decided_late(self, located: Located) -> bool:
        """Return True if the negation of a schema is expanded at the end of an alternative, where it may already be
        implied (see `_lacks`)."""
        return not self._open_objects and not isinstance(located.schema, bool) and "required" in located.schema

    def _joined(self, failing: Sequence[Located]) -> list[Formula | None]:
        """Return a formula for the negation of each schema, all of which must fail; None: the plain negation serves.

        The alternatives of the negations multiply. If their product exceeds `MAX_PRODUCT`, those of each negation are
        united to one formula with few alternatives (`unions.together`). Items are None up to this product, and for a
        negation whose alternatives depend on themselves.
        """
        none: list[Formula | None] = [None] * len(failing)
        if len(failing) < 2:
            return none
        alternatives = [self._alternatives_of(SignedSchema(located, False)) for located in failing]
        if prod(1 if each is None else len(each) for each in alternatives) <= MAX_PRODUCT:
            return none
        return [None if each is None else self._gathered(each) for each in alternatives]

    def _gathered(self, alternatives: list[Conjunction]) -> Formula:
        """Return the union of alternatives (of `_alternatives_of`) as one formula; computed once, as each option of a
        ``oneOf`` may need the negations of all others."""
        found = self._gathered_ones.get(id(alternatives))
        if found is None:
            found = self._gathered_ones[id(alternatives)] = (
                alternatives,
                together(alternatives),
            )  # they are kept, so that the id stays their own
        return found[1]

    def _alternatives_of(self, formula: Formula) -> list[Conjunction] | None:
        """Return the alternatives of a formula, computed once; None to a call made while they are computed (they
        depend on themselves)."""
        key = formula, self.one_of_as_union > 0
        if key not in self._alternatives:
            self._alternatives[key] = None
            try:
                self._alternatives[key] = self.branches((formula,))
            except RecursionError:
                del self._alternatives[key]
                raise too_deep((formula,)) from None
            except BaseException:
                del self._alternatives[key]
                raise
        return self._alternatives[key]

    def _all_denied(self, options: Sequence[SignedSchema]) -> list[Conjunction | None] | None:
        """Return, for each option, the fact that no other option holds (None: no value is left); None if a negation is
        not a fact.

        Each is the meet of a prefix and of a suffix of the negations, so that the number of steps is linear.
        """
        facts = [self._denied(option.located) for option in options]
        if None in facts and self._open_objects:
            joined = self._joined([self.document.enter(option.located) for option in options])
            gathered = [each if isinstance(each, Conjunction) else None for each in joined]
            facts = [known or other for known, other in zip(facts, gathered, strict=True)]
        before: list[Conjunction | None] = [EVERY]
        after: list[Conjunction | None] = [EVERY]
        for one, other in zip(facts, reversed(facts), strict=True):
            if one is None or other is None:
                return None
            before.append(None if before[-1] is None else meet(self, before[-1], one))
            after.append(None if after[-1] is None else meet(self, other, after[-1]))
        found: list[Conjunction | None] = []
        for left, right in zip(before[:-1], reversed(after[:-1]), strict=True):
            found.append(None if left is None or right is None else meet(self, left, right))
        return found

    def _denied(self, located: Located) -> Conjunction | None:
        """Return the negation of a schema if it is a fact; None: it is not."""
        for _ in range(_MAX_LINKS):
            located = self.document.enter(located)
            if isinstance(located.schema, bool):
                return None
            formula = self._negation(located)
            if not isinstance(formula, SignedSchema) or formula.positive:
                return formula if isinstance(formula, Conjunction) else None
            located = formula.located
        return None


def too_deep(goal: Goal) -> LimitError:
    """Return the error for alternatives whose subschemas need more nested calls than the interpreter allows."""
    return LimitError(
        "anyOf, oneOf, not and their like are nested too deeply",
        hint="flatten the schema",
        place=_place(goal),
    )


def _place(goal: Goal) -> Place:
    """Return the place of the first subschema of a goal."""
    return Place(pointer=next((part.located.pointer for part in goal if isinstance(part, SignedSchema)), ""))


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


def _regions(overlaps: Mapping[int, Overlap]) -> Iterator[tuple[Conjunction, tuple[int, ...]]]:
    """Yield facts that divide all values, each with the options of a ``oneOf`` that may hold there, too.

    Args:
        overlaps: of one option: by the index of each other option, the values that may satisfy both. Most options
            exclude each other in all but a few types, or but for short arrays, so there are few facts.
    """
    groups: dict[tuple[int, ...], dict[str, Conjunction]] = {}
    for kind in TYPES:
        bounds = {other: overlaps[other][kind] for other in sorted(overlaps) if kind in overlaps[other]}
        inside, outside = _divided(kind, [bound for bound in bounds.values() if bound != ANY])
        if inside is None:
            groups.setdefault(tuple(bounds), {})[kind] = EVERY
            continue
        yield inside[1], tuple(bounds)
        left = tuple([other for other, bound in bounds.items() if bound == ANY or not inside[0](bound)])
        groups.setdefault(left, {})[kind] = outside
    for others, kinds in groups.items():
        if any(each is not EVERY for each in kinds.values()):
            arrays, objects = kinds.get("array", EVERY).arrays, kinds.get("object", EVERY).objects
            yield fact(kinds, arrays=arrays, objects=objects), others
        else:
            yield _of_types(kinds), others


def _divided(
    kind: str, bounds: Sequence[Bound]
) -> tuple[tuple[Callable[[Bound], bool], Conjunction] | None, Conjunction]:
    """Return a fact about the values of a type that are within some bounds, with a test for these bounds, and the
    opposite fact; None if there are too few of them."""
    longest = max([bound for bound in bounds if isinstance(bound, int)], default=None)
    if longest is not None:
        inside = fact(kind, arrays=Arrays(most=longest))
        return (lambda bound: isinstance(bound, int), inside), fact(kind, arrays=Arrays(least=longest + 1))
    (name, count), *_ = Counter(bound for bound in bounds if isinstance(bound, str)).most_common(1) or [("", 0)]
    if count < _FEW:
        return None, EVERY
    inside = fact(kind, objects=Objects(absent=frozenset((name,))))
    return (lambda bound: bound == name, inside), fact(kind, objects=Objects(required=(name,)))


def _is_free(known: Conjunction, kind: str) -> bool:
    """Return True if an alternative allows every value of a type that it allows."""
    if any(type_of(value) == kind for value in known.not_values):
        return False
    parts = {"number": "numbers", "string": "strings", "array": "arrays", "object": "objects"}
    return kind not in parts or getattr(known, parts[kind]) == getattr(EVERY, parts[kind])


def _of_types(types: Collection[str]) -> Conjunction:
    """Return the conjunction of all values of these types."""
    return EVERY if len(types) == len(TYPES) else Conjunction(frozenset(types))
