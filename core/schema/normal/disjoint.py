"""Proofs that two schemas are disjoint: a ``oneOf`` of disjoint options is a plain union."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from ...basics.pauses import pause
from ...regex.compile import regex_term
from ..read.located import SignedSchema
from .conjunction import Conjunction, Formula, Goal, Objects, Strings, in_both, type_of
from .context import NormalForms
from .strings import irregular, string_term

#: Maximum number of pairs of alternatives that are compared for one grammar; after that, only types are compared.
MAX_PAIRS = 200_000

#: Maximum nesting of required properties inspected when proving two alternatives disjoint.
_DEPTH = 3


def common(normaliser: NormalForms, lefts: Sequence[Conjunction], rights: Sequence[Conjunction]) -> frozenset[str]:
    """Return an upper bound of the types of the values that satisfy both unions of alternatives.

    Compares types, listed values, bounds, lengths, names that one side requires and the other forbids, and the values
    of required properties. After `MAX_PAIRS` comparisons, all types that both sides allow are returned.
    """
    possible = frozenset().union(*(left.types for left in lefts)) & frozenset().union(
        *(right.types for right in rights)
    )
    types: set[str] = set()
    for left in lefts:
        for right in rights:
            if len(types) == len(possible) or normaliser.pairs > MAX_PAIRS:
                return possible
            types |= _common(normaliser, left, right, _DEPTH, types)
    return frozenset(types)


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
    normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int, known: Collection[str] = ()
) -> set[str]:
    """Return an upper bound of the types of the values that satisfy both alternatives, without the known types."""
    normaliser.pairs += 1
    if not normaliser.pairs & 255:
        pause()
    types = left.types & right.types
    values = right.values if left.values is None else left.values
    if values is not None:
        if left.values is not None and right.values is not None:
            values = in_both(left.values, right.values)
        return {
            kind
            for kind, value in ((type_of(value), value) for value in values)
            if kind in types and _may_be(normaliser, left, value) and _may_be(normaliser, right, value)
        }
    return {kind for kind in types if kind not in known and not _KINDS[kind](normaliser, left, right, depth)}


def _may_be(normaliser: NormalForms, branch: Conjunction, value: object) -> bool:
    """Return True if a value may satisfy the constraints of an alternative other than its list of values."""
    if isinstance(value, str):
        return normaliser.terms.matches(string_term(normaliser.terms, branch.strings, outer=True), value)
    return type_of(value) != "number" or branch.numbers.contains(value)  # type: ignore[arg-type]


def _same(normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int) -> bool:
    return False


def _numbers(normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int) -> bool:
    one, two = left.numbers, right.numbers
    return one.is_below(two) or two.is_below(one) or one.meet(two).is_empty


def _strings(normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int) -> bool:
    one, two = left.strings, right.strings
    if one == Strings() or two == Strings():
        return False
    terms = normaliser.terms
    if irregular(terms, one) or irregular(terms, two):
        return False
    return terms.is_empty(terms.and_([string_term(terms, one, outer=True), string_term(terms, two, outer=True)]))


def _arrays(normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int) -> bool:
    one, two = left.arrays, right.arrays
    return (one.most is not None and one.most < two.least) or (two.most is not None and two.most < one.least)


def _objects(normaliser: NormalForms, left: Conjunction, right: Conjunction, depth: int) -> bool:
    """Return True if no object satisfies both: by required and absent members, by the values of shared members (to a
    ``depth``), or because no name is left for a member that must be there."""
    one, two = left.objects, right.objects
    if normaliser.contradictions.between(one, two):
        return True
    required = dict.fromkeys(one.required + two.required)
    if not (one.absent.isdisjoint(required) and two.absent.isdisjoint(required)):
        return True
    if depth == 0:
        return False
    if _bars(one, two.required) or _bars(two, one.required):
        return True
    ours, theirs = one.only_named, two.only_named
    shared: list[str] = []
    for name in required:  # members that one side names are decided once for all pairs
        here, there = ours is None or name in ours, theirs is None or name in theirs
        if here and there:
            shared.append(name)
        elif (here or there) and _is_void(normaliser, one if here else two, name, depth - 1):
            return True
    for name in shared:
        if _exclude(normaliser, _member(normaliser, one, name), _member(normaliser, two, name), depth - 1):
            return True
    if max(one.least, two.least) == 0:
        return False
    terms = normaliser.terms
    return terms.is_empty(terms.and_([_names(normaliser, one), _names(normaliser, two)]))


def _bars(objects: Objects, names: Collection[str]) -> bool:
    """Return True if closed objects do not declare some of these names."""
    for part in objects.parts:
        others = part.additional
        is_closed = isinstance(others, SignedSchema) and others.positive and others.located.schema is False
        if is_closed and not part.patterns and not part.properties.keys() >= set(names):
            return True
    return False


def _exclude(normaliser: NormalForms, lefts: Goal, rights: Goal, depth: int) -> bool:
    """Return True if no value satisfies both goals of a member; computed once."""
    if not lefts and not rights:
        return False
    key = lefts, rights, depth
    exclusive = normaliser.excluded.get(key)
    if exclusive is None:
        ones, others = normaliser.branches(lefts), normaliser.branches(rights)
        exclusive = not any(
            normaliser.pairs > MAX_PAIRS or _common(normaliser, one, other, depth) for one in ones for other in others
        )
        normaliser.excluded[key] = exclusive
    return exclusive


def _is_void(normaliser: NormalForms, objects: Objects, name: str, depth: int) -> bool:
    """Return True if no value satisfies the goal of one member. Computed once, as it is the same beside every
    alternative that does not constrain the member."""
    remembered = objects.findings.excluded
    is_void = remembered.get((name, depth))
    if is_void is None:
        is_void = remembered[name, depth] = _exclude(normaliser, _member(normaliser, objects, name), (), depth)
    return is_void


def _member(normaliser: NormalForms, objects: Objects, name: str) -> Goal:
    """Return the formulas that a member's value must satisfy."""
    goal: list[Formula] = []
    for part in objects.parts:
        named = [part.properties[name]] if name in part.properties else []
        named += [formula for pattern, formula in part.patterns.items() if normaliser.matches(pattern, name)]
        if not named and part.additional is not None:
            named = [part.additional]
        goal += named
    return tuple(goal)


def _names(normaliser: NormalForms, objects: Objects) -> int:
    """Return a term, in the normaliser's store, of names that includes every name that a member may have."""
    terms = normaliser.terms
    languages = [terms.ALL]
    for part in objects.parts:
        additional = part.additional
        if isinstance(additional, SignedSchema) and additional.located.schema is False:
            words = [terms.words(part.properties)] if part.properties else []
            patterns = [regex_term(terms, pattern, whole=False) for pattern in part.patterns]
            languages.append(terms.alt([*words, *patterns]))
    return terms.and_(languages)


_KINDS = {"null": _same, "boolean": _same, "number": _numbers, "string": _strings, "array": _arrays, "object": _objects}
