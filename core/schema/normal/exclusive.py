"""Options that exclude each other: ``oneOf`` as a union, with negations only where options overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import prod
from weakref import proxy

from ...errors import LimitError, Place
from ...json.values import TYPES
from ..keywords.any_value import allowed_types
from ..read.located import Located, SignedSchema
from ..read.resolve import Document
from .assertions import Assertions
from .conjunction import EVERY, AllOf, AnyOf, Arrays, Conjunction, Formula, Goal, Objects, fact, negated
from .disjoint import ANY, Bound, Overlap, common, meet, suspects
from .prune import Contradictions
from .unions import MAX_PRODUCT, together

#: Minimum number of options that an optional member tells apart.
_FEW = 4

#: Maximum number of references in a row that are followed to find the negation of a schema.
_MAX_LINKS = 8


class ExclusiveOptions(Assertions):
    """The part of a `Normaliser` that compares the options of ``oneOf``, and denies several schemas at once.

    Attributes:
        one_of_as_union: above zero while ``oneOf`` is taken for a plain union.
        compared: number of pairs of options whose disjointness was examined.
        pairs: number of pairs of their alternatives that were compared for that.
        contradictions: finder of contradictions between facts.
        excluded: by two goals for one part and the depth of the search (see `common`): True if no value satisfies both.
        strings: by formula, a term of strings among which are all that satisfy it.
    """

    def __init__(
        self, document: Document, unenforced: Collection[tuple[object, str]], formats: bool, *, open_objects: bool
    ) -> None:
        Assertions.__init__(self, document, unenforced, formats)
        self._open_objects = open_objects
        self.one_of_as_union = 0
        self.compared = 0
        self.pairs = 0
        self.excluded: dict[tuple[Goal, Goal, int], bool] = {}
        self.strings: dict[Formula, int] = {}
        self._overlaps: dict[Located, list[dict[int, Overlap]]] = {}
        # In the keys of this memo, True says that ``oneOf`` was taken for a union.
        self._alternatives: dict[tuple[Formula, bool], list[Conjunction] | None] = {}  # None: being computed
        self._of_parts: dict[Goal, list[Conjunction]] = {}
        self._gathered_ones: dict[int, tuple[list[Conjunction], Formula]] = {}  # by the identity of the alternatives
        # A weak reference: without a cycle, a dropped grammar is freed at once, not by the garbage collector.
        self.contradictions = Contradictions(proxy(self))

    def branches(self, goal: Goal) -> list[Conjunction]:
        """Return the alternatives of a goal; by the normaliser."""
        raise NotImplementedError

    def _negation(self, located: Located) -> Formula:
        """Return the negation of a schema; by the normaliser."""
        raise NotImplementedError

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
            kinds = of_types(allowed_types(self, located))
            # Meanwhile, every oneOf (this one may be inside itself) is taken for a union, of which it is a subset:
            # what is disjoint from the union is disjoint from it.
            self.one_of_as_union += 1
            try:
                branches = [self.branches((kinds, option)) for option in options]
                for one, two in suspects([self.contradictions.labels(each) for each in branches]):
                    self.compared += 1
                    overlap = common(self, branches[one], branches[two])
                    if overlap:
                        found[one][two] = found[two][one] = overlap
            finally:
                self.one_of_as_union -= 1
            self._overlaps[located] = found
        return found

    def one_of(self, located: Located, options: Sequence[SignedSchema]) -> Formula:
        """Return the formula of a schema's ``oneOf``: one option holds, and the options that overlap it do not."""
        if self.one_of_as_union:
            return AnyOf(tuple(options))
        overlapping = self._overlapping(located, options)
        others = len(options) - 1
        all_overlap = others > 0 and all(len(overlaps) == others for overlaps in overlapping)
        no_other = self._all_denied(options) if all_overlap else None  # by option: the fact that no other one holds
        parts: list[Formula] = []
        for index, overlaps in enumerate(overlapping):
            for region, rivals in _regions(overlaps):
                holds: tuple[Formula, ...] = (options[index],) if region is EVERY else (region, options[index])
                if no_other is not None and len(rivals) == others:
                    fails = no_other[index]
                    if fails is not None:
                        parts.append(AllOf((*holds, fails)))
                else:
                    parts.append(AllOf((*holds, *self.denied([options[rival] for rival in rivals]))))
        return AnyOf(tuple(parts))

    def denied(self, options: Sequence[SignedSchema]) -> list[Formula]:
        """Return formulas whose conjunction is: none of the options holds.

        The negation of an option may have several alternatives. If these would multiply, they are united.
        """
        entered = [self.document.enter(option.located) for option in options]
        at_once = [located for located in entered if not self._is_decided_late(located)]
        united = dict(zip(at_once, self._united_negations(at_once), strict=True))
        return [united.get(located) or negated(option) for located, option in zip(entered, options, strict=True)]

    def _is_decided_late(self, located: Located) -> bool:
        """Return True if the negation of a schema is expanded at the end of an alternative, where it may already be
        implied (see `_lacks`)."""
        return not self._open_objects and not isinstance(located.schema, bool) and "required" in located.schema

    def _united_negations(self, failing: Sequence[Located]) -> list[Formula | None]:
        """Return, for each of some schemas that must all fail, its negation as one formula with few alternatives
        (`unions.together`); None: take the plain negation.

        In a conjunction, the alternatives of the negations multiply. All are None if the product is at most
        `MAX_PRODUCT`; one is None if its alternatives depend on themselves.
        """
        if len(failing) > 1:
            alternatives = [self._alternatives_of(SignedSchema(located, False)) for located in failing]
            if prod(1 if each is None else len(each) for each in alternatives) > MAX_PRODUCT:
                return [None if each is None else self._gathered(each) for each in alternatives]
        return [None] * len(failing)

    def _gathered(self, alternatives: list[Conjunction]) -> Formula:
        """Return the union of alternatives (of `_alternatives_of`) as one formula; computed once, as each option of a
        ``oneOf`` may need the negations of all others."""
        found = self._gathered_ones.get(id(alternatives))
        if found is None:
            # The alternatives are kept, so that the id stays their own.
            found = self._gathered_ones[id(alternatives)] = alternatives, together(alternatives)
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
        facts = [self._negation_as_fact(option.located) for option in options]
        if None in facts and self._open_objects:
            united = self._united_negations([self.document.enter(option.located) for option in options])
            for index, formula in enumerate(united):
                if facts[index] is None and isinstance(formula, Conjunction):
                    facts[index] = formula
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

    def _negation_as_fact(self, located: Located) -> Conjunction | None:
        """Return the negation of a schema if it is a fact; None: it is not."""
        for _ in range(_MAX_LINKS):
            located = self.document.enter(located)
            if isinstance(located.schema, bool):
                return None
            formula = self._negation(located)
            if not isinstance(formula, SignedSchema) or formula.positive:
                return formula if isinstance(formula, Conjunction) else None
            located = formula.located  # the negation of a reference is that of the schema to which it leads
        return None


def too_deep(goal: Goal) -> LimitError:
    """Return the error for alternatives whose subschemas need more nested calls than the interpreter allows."""
    return LimitError(
        "anyOf, oneOf, not and their like are nested too deeply",
        hint="flatten the schema",
        place=place_of(goal),
    )


def place_of(goal: Goal) -> Place:
    """Return the place of the first subschema of a goal."""
    return Place(pointer=next((part.located.pointer for part in goal if isinstance(part, SignedSchema)), ""))


def _regions(overlaps: Mapping[int, Overlap]) -> Iterator[tuple[Conjunction, tuple[int, ...]]]:
    """Yield facts that divide all values, each with the options of a ``oneOf`` that may hold there, too.

    For example, an option that shares arrays of at most 3 items with option 1, and strings with option 2: arrays of at
    most 3 items -> (1,), strings -> (2,), and all other values -> ().

    Args:
        overlaps: of one option: by the index of each other option, the values that may satisfy both. Most options
            exclude each other in all but a few types, or but for short arrays, so there are few facts.
    """
    groups: dict[tuple[int, ...], dict[str, Conjunction]] = {}
    for kind in TYPES:
        bounds = {other: overlaps[other][kind] for other in sorted(overlaps) if kind in overlaps[other]}
        is_within, inside, outside = _divided(kind, [bound for bound in bounds.values() if bound != ANY])
        if inside is not None:
            yield inside, tuple(bounds)
        others = tuple([other for other, bound in bounds.items() if bound == ANY or not is_within(bound)])
        groups.setdefault(others, {})[kind] = outside
    for others, facts in groups.items():
        if any(each is not EVERY for each in facts.values()):
            arrays, objects = facts.get("array", EVERY).arrays, facts.get("object", EVERY).objects
            yield fact(facts, arrays=arrays, objects=objects), others
        else:
            yield of_types(facts), others


def _divided(kind: str, bounds: Sequence[Bound]) -> tuple[Callable[[Bound], bool], Conjunction | None, Conjunction]:
    """Divide the values of a type into an inside, which has all values of some bounds, and an outside.

    Arrays are divided by the greatest number of items of a bound, objects by the member that most bounds exclude.
    Return a test for the bounds whose values are all inside; the inside as a fact, None if it would be of too few
    bounds; and the outside as a fact.
    """
    longest = max([bound for bound in bounds if isinstance(bound, int)], default=None)
    if longest is not None:
        inside = fact(kind, arrays=Arrays(most=longest))
        return (lambda bound: isinstance(bound, int)), inside, fact(kind, arrays=Arrays(least=longest + 1))
    (name, count), *_ = Counter(bound for bound in bounds if isinstance(bound, str)).most_common(1) or [("", 0)]
    if count < _FEW:
        return (lambda bound: False), None, EVERY
    inside = fact(kind, objects=Objects(absent=frozenset((name,))))
    return (lambda bound: bound == name), inside, fact(kind, objects=Objects(required=(name,)))


def of_types(types: Collection[str]) -> Conjunction:
    """Return the conjunction of all values of these types."""
    return EVERY if len(types) == len(TYPES) else Conjunction(frozenset(types))
