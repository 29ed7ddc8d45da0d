"""Proofs that two alternatives are disjoint, for values of each type: one function for each type, to a depth.

While a normal form is expanded, alternatives are compared to depth 0, by facts alone: contradictory ones are dropped as
they arise. The options of a ``oneOf`` are compared to a greater depth, by the normal forms of their parts: a ``oneOf``
of disjoint options is a plain union.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Union

from ...basics.pauses import pause
from ...errors import LimitError
from ...json.values import in_both, is_among, type_of
from ...regex.compile import regex_term
from .conjunction import EVERY, Conjunction, Formula, Goal, Objects, Strings, is_false
from .conjunction import (
    meet as meet_facts,
)
from .context import NormalForms
from .parts import fixed_positions, item_goal, member_goal
from .strings import irregular, string_term

#: Which values of a type may satisfy both of two unions: arrays of at most so many items, objects without a member of
#: this name, or (`NONE`, `ANY`) no values, or any.
Bound = Union[int, str]

#: By type, the values that may satisfy both of two unions.
Overlap = dict[str, Bound]

NONE, ANY = -1, 2**62

#: Maximum number of positions of items that are compared.
MAX_POSITIONS = 64

#: Maximum number of pairs of alternatives that are compared for one grammar; after that, only types are compared.
MAX_PAIRS = 200_000

#: Maximum nesting of required members and items that are compared.
_DEPTH = 3

_NOTHING: Mapping[str, Bound] = {}


def are_disjoint(normaliser: NormalForms, left: Conjunction, right: Conjunction) -> bool:
    """Return True if types, or facts about parts that must be there, show that no value satisfies both (False:
    perhaps)."""
    return (left.types & right.types).issubset(_disjoint_types(normaliser, left, right))


def meet(normaliser: NormalForms, left: Conjunction, right: Conjunction) -> Conjunction | None:
    """Return the conjunction of two alternatives; None if they are found to be disjoint, to depth 0."""
    if left is EVERY:
        return meet_facts(left, right)
    disjoint = _disjoint_types(normaliser, left, right)
    if disjoint:
        types = left.types.difference(disjoint)
        if types.isdisjoint(right.types):
            return None
        left = left.of_types(types)
    both = meet_facts(left, right)
    if both is not None:
        normaliser.contradictions.inherit(both.objects, left.objects, right.objects)
    return both


def _disjoint_types(normaliser: NormalForms, left: Conjunction, right: Conjunction) -> list[str]:
    """Return the compound types of which facts show that no value satisfies both alternatives."""
    return [
        kind
        for kind, compare in _COMPOUND
        if kind in left.types and kind in right.types and compare(normaliser, left, right, 0) == NONE
    ]


def common(normaliser: NormalForms, lefts: Sequence[Conjunction], rights: Sequence[Conjunction]) -> Overlap:
    """Return an upper bound of the values that satisfy both unions of alternatives.

    Compares types, listed values, bounds, lengths, counts, names that one side requires and the other forbids, the
    values of required members, and items by position. After `MAX_PAIRS` comparisons, all values of the types that both
    sides allow are returned.
    """
    possible = frozenset().union(*(left.types for left in lefts)) & frozenset().union(
        *(right.types for right in rights)
    )
    found: Overlap = {}
    for left in lefts:
        for right in rights:
            if normaliser.pairs > MAX_PAIRS or (len(found) == len(possible) and set(found.values()) == {ANY}):
                return dict.fromkeys(possible, ANY)
            for kind, bound in _common(normaliser, left, right, _DEPTH, found).items():
                found[kind] = _wider(bound, found.get(kind, NONE))
    return found


def _wider(one: Bound, two: Bound) -> Bound:
    """Return a bound of the values that are within one of two bounds."""
    if one == two or two == NONE:
        return one
    return max(one, two) if isinstance(one, int) and isinstance(two, int) else ANY


def suspects(labels: Sequence[Mapping[str, frozenset[Any]]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of options that no constant member distinguishes, in order.

    Compares one required member: the one of which most options list the values. Yields a pair if both options list a
    common value, or one lists none.

    Args:
        labels: for each option, the listed values of its required members (see `Contradictions.labels`).
    """
    count = Counter(name for label in labels for name in label)
    name = max(count, key=lambda each: count[each]) if count else ""
    holders: dict[object, list[int]] = {}
    others: list[int] = []
    pairs: set[tuple[int, int]] = set()
    for index, label in enumerate(labels):
        if name in label:
            for value in label[name]:
                holders.setdefault(value, []).append(index)
        else:
            pairs.update((other, index) for other in others)
            others.append(index)
    for index, label in enumerate(labels):
        if name in label:
            pairs.update((min(index, other), max(index, other)) for other in others)
    for held in holders.values():
        pairs.update(combinations(held, 2))
    yield from sorted(pairs)


def _common(
    normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int, known: Mapping[str, Bound] = _NOTHING
) -> Overlap:
    """Return an upper bound of the values that satisfy both alternatives, by type. Types for which ``known`` is already
    `ANY`, the greatest bound, are left out."""
    normaliser.pairs += 1
    if not normaliser.pairs & 255:
        pause()
    types = left.types & right.types
    values = right.values if left.values is None else left.values
    if values is not None:
        if left.values is not None and right.values is not None:
            values = in_both(left.values, right.values)
        return {
            kind: ANY
            for kind, value in ((type_of(value), value) for value in values)
            if kind in types and _may_be(normaliser, left, value) and _may_be(normaliser, right, value)
        }
    found: Overlap = {}
    for kind in types:
        if known.get(kind) != ANY:
            bound = _KINDS[kind](normaliser, left, right, depth)
            if bound != NONE:
                found[kind] = bound
    return found


def _may_be(normaliser: NormalForms, branch: Conjunction, value: object) -> bool:
    """Return True if a value may satisfy the constraints of an alternative other than its list of values."""
    if is_among(value, branch.not_values):
        return False
    if isinstance(value, str):
        return normaliser.terms.matches(string_term(normaliser.terms, branch.strings, outer=True), value)
    return type_of(value) != "number" or branch.numbers.contains(value)  # type: ignore[arg-type]


def _same(normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int) -> int:
    return ANY


def _numbers(normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int) -> int:
    one, two = left.numbers, right.numbers
    if one is EVERY.numbers or two is EVERY.numbers:
        return NONE if one.is_empty or two.is_empty else ANY
    return NONE if one.is_below(two) or two.is_below(one) or one.meet(two).is_empty else ANY


def _strings(normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int) -> int:
    one, two = left.strings, right.strings
    if one == Strings() or two == Strings():
        return ANY
    terms = normaliser.terms
    if irregular(terms, one) or irregular(terms, two):
        return ANY
    both = terms.and_([string_term(terms, one, outer=True), string_term(terms, two, outer=True)])
    return NONE if terms.is_empty(both) else ANY


def _arrays(normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int) -> int:
    """Return the maximum number of items of the arrays that satisfy both: less than the first position of which no item
    satisfies both. To depth 0, only items that must be there are compared."""
    one, two = left.arrays, right.arrays
    if (one is EVERY.arrays and two is EVERY.arrays) or (not depth and (one is EVERY.arrays or two is EVERY.arrays)):
        return ANY
    least = max(one.fewest, two.fewest)
    most = min(ANY if one.most is None else one.most, ANY if two.most is None else two.most)
    if least > most:
        return NONE
    # All positions after the fixed ones are alike: one of them is compared.
    size = min(most, MAX_POSITIONS, 1 + max(fixed_positions(one), fixed_positions(two)))
    for index in range(size if depth else min(size, least)):
        if _exclude(normaliser, item_goal(one, index), item_goal(two, index), depth - 1):
            return NONE if index < least else index
    return ANY


def _objects(normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int) -> Bound:
    """Return `NONE` if no object satisfies both: by required and forbidden members, by their number, by the values of
    required members (to a ``depth``), or because no name is left for a member that must be there. Else return the name
    of an optional member for which both list different values, if there is one."""
    one, two = left.objects, right.objects
    if not depth and (one is EVERY.objects or two is EVERY.objects):
        return ANY
    if not one.absent.isdisjoint(two.needed) or not two.absent.isdisjoint(one.needed):
        return NONE
    if normaliser.contradictions.member_differs(one, two) or _exceed(one, two) or _exceed(two, one):
        return NONE
    if depth == 0:
        return ANY
    least = max(one.least, two.least, len(one.needed | two.needed))
    if least > min(ANY if one.most is None else one.most, ANY if two.most is None else two.most):
        return NONE
    shared: list[tuple[Goal, Goal]] = []
    for name in dict.fromkeys([*one.all_required, *two.all_required]):
        ours, theirs = _member(normaliser, one, name), _member(normaliser, two, name)
        if ours is None or theirs is None:  # one of them cannot have it (an empty goal allows any value)
            return NONE
        if ours and theirs:
            shared.append((ours, theirs))
        elif (ours or theirs) and _exclude(normaliser, ours or theirs, (), depth - 1):
            return NONE
    for ours, theirs in shared:
        if _exclude(normaliser, ours, theirs, depth - 1):
            return NONE
    if least and (one.names_are_bounded or two.names_are_bounded):
        terms = normaliser.terms
        if terms.is_empty(terms.and_([_names(normaliser, one), _names(normaliser, two)])):
            return NONE
    return normaliser.contradictions.label(one, two) or ANY


def _exceed(one: Objects, two: Objects) -> bool:
    """Return True if objects of both must have two members of which those of the first have at most one."""
    if not one.exclusive or not two.needed:
        return False
    needed = one.needed | two.needed
    return any(len(names & needed) > 1 for names in one.exclusive)


def _exclude(normaliser: NormalForms, lefts: Goal, rights: Goal, depth: int) -> bool:
    """Return True if no value satisfies both goals of a part; computed once for goals that mean the same. To a depth
    below 0, only facts are compared."""
    if not lefts and not rights:
        return False
    contradictions = normaliser.contradictions
    is_apart = contradictions.are_apart(lefts, rights)
    if is_apart or depth < 0:
        return is_apart
    key = contradictions.representative(lefts), contradictions.representative(rights), depth
    exclusive = normaliser.excluded.get(key)
    if exclusive is None:
        try:
            ones, others = normaliser.of_part(lefts), normaliser.of_part(rights)
            exclusive = all(
                normaliser.pairs <= MAX_PAIRS and not _common(normaliser, one, other, depth)
                for one in ones
                for other in others
            )
        except LimitError:  # of a part that no text may reach
            exclusive = False
        normaliser.excluded[key] = exclusive
    return exclusive


def _member(normaliser: NormalForms, objects: Objects, name: str) -> Goal | None:
    """Return the formulas that the value of a required member must satisfy; None if the object cannot have it. Computed
    once."""
    known = objects.memo.goals
    if name not in known:
        matched = [pattern for part in objects.parts for pattern in part.patterns if normaliser.matches(pattern, name)]
        for rule in objects.unevaluated:
            matched += [
                pattern for part in rule.parts for pattern in part.patterns if normaliser.matches(pattern, name)
            ]
        goal, _ = member_goal(objects, matched, name)
        goal += [exists.formula for exists in objects.exists if exists.name == name]
        is_barred = (
            name in objects.absent
            or any(map(is_false, goal))
            or not all(normaliser.terms.matches(_strings_of(normaliser, each), name) for each in objects.names)
        )
        known[name] = None if is_barred else tuple(goal)
    return known[name]


def _names(normaliser: NormalForms, objects: Objects) -> int:
    """Return a term, in the normaliser's store, of names that includes every name that a member may have; computed
    once."""
    found = objects.memo.names
    if found is None:
        terms = normaliser.terms
        languages = [_strings_of(normaliser, each) for each in objects.names]
        closed = [rule.parts for rule in objects.unevaluated if is_false(rule.formula)]
        closed += [(part,) for part in objects.parts if part.additional is not None and is_false(part.additional)]
        for parts in closed:  # a name is one that some of these parts declare
            declared = [regex_term(terms, pattern, whole=False) for part in parts for pattern in part.patterns]
            words = [name for part in parts for name in part.properties]
            if words:
                declared.append(terms.words(words))
            languages.append(terms.alt(declared))
        found = objects.memo.names = terms.and_(languages) if languages else terms.ALL
    return found


def _strings_of(normaliser: NormalForms, formula: Formula) -> int:
    """Return a term, in the normaliser's store, of strings among which are all that satisfy a formula; computed
    once."""
    found = normaliser.strings.get(formula)
    if found is None:
        terms = normaliser.terms
        options: list[int] = []
        for branch in normaliser.branches((formula,)):
            if branch.values is not None:
                words = [value for value in branch.values if isinstance(value, str)]
                options += [terms.words(words)] if words else []
            elif "string" in branch.types:
                is_regular = irregular(terms, branch.strings) is None
                options.append(string_term(terms, branch.strings, outer=True) if is_regular else terms.ALL)
        found = normaliser.strings[formula] = terms.alt(options)
    return found


_KINDS = {"null": _same, "boolean": _same, "number": _numbers, "string": _strings, "array": _arrays, "object": _objects}
_COMPOUND = (("object", _objects), ("array", _arrays))
