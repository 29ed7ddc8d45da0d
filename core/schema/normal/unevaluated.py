"""``unevaluatedProperties`` and ``unevaluatedItems`` (Draft 2020-12 core, section 11).

A schema with one of these keywords opens a *scope*. Each subschema that is applied to the same value and holds reports
its evaluated members and items to the scope. This module is the meaning of the two keywords, so it names them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from ..keywords.refusals import unsupported
from ..read.located import Located, SignedSchema
from .assertions import Assertions
from .conjunction import (
    AllOf,
    AnyOf,
    ArrayPart,
    Conjunction,
    Contains,
    Exists,
    Formula,
    ObjectPart,
    UnevaluatedItems,
    UnevaluatedProperties,
    negated,
)
from .passed import Passed

#: Maximum number of options of an ``anyOf`` in a scope: each subset of them is an alternative of its own.
MAX_OPTIONS = 10


class Scope(NamedTuple):
    """Scope of a schema with ``unevaluated...``.

    Attributes:
        number: the index of the scope among those opened.
        located: the schema.
        broken: the keyword that must not hold; None: the whole schema must hold.
    """

    number: int
    located: Located
    broken: str | None = None


class Seen(NamedTuple):
    """Reports to the scopes in one alternative under expansion.

    Attributes:
        objects: pairs of a scope's number and evaluated members.
        arrays: pairs of a scope's number and evaluated items.
        contains: pairs of a scope's number and a formula: items that satisfy it are evaluated.
        all_objects: numbers of the scopes in which all members are evaluated.
        all_arrays: numbers of the scopes in which all items are evaluated.
        opened: the scopes.
        denied: schemas that must not hold, left to the end since they may turn out to be impossible, each with the
            references that led to it.
    """

    objects: tuple[tuple[int, ObjectPart], ...] = ()
    arrays: tuple[tuple[int, ArrayPart], ...] = ()
    contains: tuple[tuple[int, Formula], ...] = ()
    all_objects: frozenset[int] = frozenset()
    all_arrays: frozenset[int] = frozenset()
    opened: tuple[Scope, ...] = ()
    denied: tuple[tuple[Located, Passed], ...] = ()


def reported(norm: Assertions, located: Located, seen: Seen, scopes: tuple[Scope, ...]) -> Seen:
    """Return the reports, with the members and items that a schema evaluates added for each of some scopes."""
    objects, arrays, contains = seen.objects, seen.arrays, seen.contains
    every_object, every_array = seen.all_objects, seen.all_arrays
    members, items = norm.object_part(located), norm.array_part(located)
    for scope in scopes:
        is_inner = scope.located is not located  # then its own unevaluated... has evaluated all that was left
        if members.properties or members.patterns:
            objects = (*objects, (scope.number, members))
        if members.additional is not None or (is_inner and norm.asserts(located, "unevaluatedProperties")):
            every_object |= {scope.number}
        if items.prefix or items.items is not None:
            arrays = (*arrays, (scope.number, items))
        if items.items is not None or (is_inner and norm.asserts(located, "unevaluatedItems")):
            every_array |= {scope.number}
        if norm.asserts(located, "contains") and norm.document.contains_evaluates:
            contains = (*contains, (scope.number, SignedSchema(located.child("contains"))))
    return seen._replace(
        objects=objects, arrays=arrays, contains=contains, all_objects=every_object, all_arrays=every_array
    )


def settled(conjunction: Conjunction, seen: Seen, norm: Assertions) -> Conjunction | None:
    """Return a finished conjunction with the constraints of its scopes on unevaluated parts; None if a scope requires
    an unevaluated part where every part is evaluated."""
    objects, arrays, types = conjunction.objects, conjunction.arrays, conjunction.types
    for number, located, broken in seen.opened:
        if norm.asserts(located, "unevaluatedProperties"):
            parts = tuple(part for scope, part in seen.objects if scope == number)
            formula: Formula = SignedSchema(located.child("unevaluatedProperties"))
            if broken == "unevaluatedProperties":
                types &= frozenset() if number in seen.all_objects else frozenset({"object"})
                objects = replace(objects, exists=(*objects.exists, Exists(negated(formula), beside=parts)))
            elif broken is None and number not in seen.all_objects:
                objects = replace(objects, unevaluated=(*objects.unevaluated, UnevaluatedProperties(parts, formula)))
        if norm.asserts(located, "unevaluatedItems"):
            lists = tuple(part for scope, part in seen.arrays if scope == number)
            contained = tuple(option for scope, option in seen.contains if scope == number)
            formula = SignedSchema(located.child("unevaluatedItems"))
            if broken == "unevaluatedItems":
                types &= frozenset() if number in seen.all_arrays else frozenset({"array"})
                first = max((len(part.prefix) for part in lists), default=0)
                left = AllOf((negated(formula), *map(negated, contained)))
                arrays = replace(arrays, contains=(*arrays.contains, Contains(left, first)))
            elif broken is None and number not in seen.all_arrays:
                arrays = replace(arrays, unevaluated=(*arrays.unevaluated, UnevaluatedItems(lists, contained, formula)))
    if not types:
        return None
    if objects is conjunction.objects and arrays is conjunction.arrays:
        return conjunction
    return replace(conjunction, types=types, objects=objects, arrays=arrays)


def subsets(options: tuple[Formula, ...], located: Located, exactly: bool) -> Formula:
    """Return the formula of an ``anyOf`` in a scope, where it matters which options hold: one alternative per subset.

    Args:
        options: the options.
        located: the schema that has the ``anyOf``.
        exactly: negate the options that are not in the subset. Needed if some part must be unevaluated; otherwise an
            option that holds besides only evaluates more.
    """
    if len(options) > MAX_OPTIONS:
        raise unsupported(located, "anyOf", f"with more than {MAX_OPTIONS} options under an unevaluated... keyword")
    found: list[Formula] = []
    for size in range(1, len(options) + 1):
        for subset in combinations(options, size):
            if exactly:
                found.append(AllOf(tuple(part if part in subset else negated(part) for part in options)))
            else:
                found.append(AllOf(subset))
    return AnyOf(tuple(found))
