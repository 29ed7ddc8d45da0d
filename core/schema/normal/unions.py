"""Unions of formulas with few alternatives, and facts that other facts are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import cast

from .conjunction import AnyExists, AnyOf, Conjunction, Exists, Formula, ObjectPart, Objects, fact

#: Maximum product of the numbers of alternatives of several negations. Above it, the alternatives of objects become
#: demands of one alternative.
MAX_PRODUCT = 64


def has(*names: str) -> Conjunction:
    """Return the fact that an object has members of these names."""
    return fact("object", objects=Objects(required=names))


def either(options: Sequence[Formula]) -> Formula:
    """Return the union of some formulas, with related alternatives merged.

    "No member ``n``, or one that satisfies ``f``" is merged to one fact, and so are facts about different types.
    """
    merged: list[Formula] = []
    by_types: dict[frozenset[str], list[int]] = {}  # heaps of the indices of facts that others may join
    for option in _with_merged_members(options):
        if not isinstance(option, Conjunction) or option.values is not None or option.not_values:
            merged.append(option)  # a list of values is not about one type apart from the others
            continue
        types = option.types
        disjoint = [kinds for kinds in by_types if types.isdisjoint(kinds)]
        partner = min(disjoint, key=lambda kinds: by_types[kinds], default=None)  # the earliest fact
        index = len(merged)
        if partner is None:
            merged.append(option)
        else:
            index = heappop(by_types[partner])
            merged[index] = _joined(cast("Conjunction", merged[index]), option)
            types |= partner
            if not by_types[partner]:
                del by_types[partner]
        heappush(by_types.setdefault(types, []), index)
    return merged[0] if len(merged) == 1 else AnyOf(tuple(merged))


def _with_merged_members(options: Sequence[Formula]) -> list[Formula]:
    """Return alternatives with the same union, in which those about one member of objects are one."""
    absent: dict[str, Formula] = {}  # by the name of a member that is missing
    present: dict[str, list[Formula]] = {}  # by the name of a member: formulas of which its value satisfies one
    merged: list[Formula] = []
    for option in options:
        is_of_objects = isinstance(option, Conjunction) and option.types == {"object"}
        exists, missing = _of_one_member(cast("Conjunction", option)) if is_of_objects else (None, None)
        if exists is None and missing is not None:
            absent[missing] = option
        elif exists is not None and exists.name is not None and missing is None:
            present.setdefault(exists.name, []).append(exists.formula)
        else:
            merged.append(option)
    for name, formulas in present.items():
        formula = formulas[0] if len(formulas) == 1 else AnyOf(tuple(formulas))
        if absent.pop(name, None) is not None:
            merged.append(fact("object", objects=Objects(parts=(ObjectPart({name: formula}),))))
        else:
            merged.append(fact("object", objects=Objects(exists=(Exists(formula, name),))))
    if len(absent) == 2:  # one of two members is missing: one fact, as there may be one for each pair of many names
        return [*merged, fact("object", objects=Objects(exclusive=(frozenset(absent),)))]
    return [*merged, *absent.values()]


def together(failures: Iterable[Conjunction]) -> Formula:
    """Return the union of alternatives. Those that constrain one member of objects become one fact, an `AnyExists`: "a
    is there" or "b is missing" or "c is a number, if it is there"."""
    members: dict[Exists, None] = {}
    absent: set[str] = set()
    options: list[Formula] = []
    for failure in failures:
        exists, missing = _of_one_member(failure)
        if exists is None and missing is None:
            options.append(failure)
            continue
        if exists is not None:
            members[exists] = None
        if missing is not None:
            absent.add(missing)
        others = failure.types - {"object"}
        if others:  # values of other types, of which it says nothing else
            options.append(replace(failure, types=others, objects=Objects()))
    if members or absent:
        some = AnyExists(tuple(members), frozenset(absent))
        options.insert(0, fact("object", objects=Objects(any_exists=(some,))))
    return either(options)


def _of_one_member(failure: Conjunction) -> tuple[Exists | None, str | None]:
    """Return what an alternative says of objects, if it speaks of one member only: the member that must exist, or the
    name that must be absent. Both: one of the two (``properties``: the member is absent, or has a value of a schema).
    Neither: it says more, or nothing."""
    objects = failure.objects
    if "object" not in failure.types or failure.values is not None:
        return None, None
    if len(objects.exists) == 1 and objects == Objects(exists=objects.exists):
        return objects.exists[0], None
    if len(objects.absent) == 1 and objects == Objects(absent=objects.absent):
        return None, next(iter(objects.absent))
    if len(objects.parts) == 1 and objects == Objects(parts=objects.parts):
        (part,) = objects.parts
        if len(part.properties) == 1 and not part.patterns and part.additional is None and not part.names_properties:
            ((name, formula),) = part.properties.items()
            return Exists(formula, name), name
    return None, None


def _joined(left: Conjunction, right: Conjunction) -> Conjunction:
    """Return two facts about different types as one fact. Neither lists values (``values``, ``not_values``): `either`
    keeps such facts apart."""

    def of(kind: str) -> Conjunction:
        return left if kind in left.types else right

    return Conjunction(
        left.types | right.types,
        numbers=of("number").numbers,
        strings=of("string").strings,
        arrays=of("array").arrays,
        objects=of("object").objects,
    )
