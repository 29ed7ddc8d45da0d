"""Conditions on the members of an object in conjunctive normal form: demands that add up, not alternatives that
multiply.

A condition in disjunctive form, such as ¬a ∨ (b ∧ c) (a, b, c: "has a member of this name"), becomes (¬a ∨ b) ∧ (¬a ∨
c). Each clause is one demand (`AnyExists`), which an object meets while it is written. A demand costs one bit of the
state; an alternative would double the states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from ..read.located import SignedSchema
from .conjunction import TRUE, AllOf, AnyExists, Conjunction, Exists, Formula, ObjectPart, Objects, is_false, negated
from .prune import Contradictions

#: Maximum number of clauses that one condition may become, and of those that speak of names only.
MAX_CLAUSES, MAX_NAMED = 16, 256

_OBJECT = frozenset({"object"})


class _Option(NamedTuple):
    """Key of an option of a demand: a member, the absence of one, or another condition.

    Attributes:
        name: the name of the member; None: ``meaning`` is another condition.
        meaning: what the value of the member satisfies (`Contradictions.meaning`); None: it may be any value.
        is_absent: there is no member of this name.
    """

    name: str | None
    meaning: object
    is_absent: bool = False


_Options = frozenset[_Option]


def clauses(alternatives: tuple[Conjunction, ...], open_objects: bool) -> list[AnyExists] | None:
    """Return the conjunctive normal form of a union: demands that an object meets iff it satisfies an alternative.

    None if an alternative constrains more than members by name, or there are too many demands.

    Args:
        alternatives: the union.
        open_objects: objects take undeclared members unless their schema forbids it.
    """
    product = [AnyExists(())]  # of an empty union: false, a demand without options
    for alternative in alternatives:
        demands = _demands(alternative, open_objects)
        if demands is None:
            return None
        most = MAX_CLAUSES if len(product) > 1 and len(demands) > 1 else MAX_NAMED  # do they multiply?
        if len(product) * len(demands) > most:
            return None
        product = [_either(one, other) for one in product for other in demands]
    return list(dict.fromkeys([demand for demand in product if not _is_met(demand)]))


def _demands(alternative: Conjunction, open_objects: bool) -> list[AnyExists] | None:
    """Return the demands whose conjunction is an alternative's condition on objects; None: it constrains more."""
    if "object" not in alternative.types:
        return [AnyExists(())]  # no object satisfies it
    objects = alternative.objects
    by_name = Objects(
        parts=objects.parts,
        exists=objects.exists,
        required=objects.required,
        absent=objects.absent,
        any_exists=objects.any_exists,
        exclusive=objects.exclusive,
    )
    if alternative.values is not None or objects != by_name:  # it has other constraints, too
        return None
    demands = [*objects.any_exists]
    demands += [AnyExists((exists,)) for exists in objects.exists]
    demands += [AnyExists((Exists(TRUE, name),)) for name in objects.required]
    demands += [AnyExists((), frozenset((name,))) for name in sorted(objects.absent)]
    for names in objects.exclusive:
        demands += [AnyExists((), frozenset(pair)) for pair in combinations(sorted(names), 2)]
    for part in objects.parts:
        if part.patterns or part.additional is not None or (part.names_properties and not open_objects):
            return None
        for name, value in part.properties.items():
            demands.append(AnyExists(() if is_false(value) else (Exists(value, name),), frozenset((name,))))
    return demands


def exactly_one(alternatives: Sequence[Conjunction]) -> Objects | None:
    """Return a union of alternatives as one fact about objects, if each requires one of some names and bars all others;
    else None."""
    names: dict[str, None] = {}
    for each in alternatives:
        if not names_only(each) or len(each.objects.required) != 1:
            return None
        names[each.objects.required[0]] = None
    every = frozenset(names)
    if any(each.objects.absent != every.difference(each.objects.required) for each in alternatives):
        return None
    some = AnyExists(tuple([Exists(TRUE, name) for name in names]))
    return Objects(any_exists=(some,), exclusive=(every,))


def names_only(alternative: Conjunction) -> bool:
    """Return True if an alternative constrains nothing of objects but which of some names they have."""
    objects = alternative.objects
    return alternative.values is None and objects == Objects(required=objects.required, absent=objects.absent)


def _either(one: AnyExists, other: AnyExists) -> AnyExists:
    return AnyExists(tuple(dict.fromkeys(one.options + other.options)), one.absent | other.absent)


def _is_met(demand: AnyExists) -> bool:
    """Return True if a demand is a tautology: the object lacks a member, or has it with any value, or with one that
    satisfies a formula or does not. False: perhaps it is one."""
    # By name, for the names in ``absent``: the formulas of the options for that member.
    may_be_absent: dict[str, set[Formula]] = {}
    for exists in demand.options:
        if exists.name is not None and exists.name in demand.absent:
            if exists.formula == TRUE:
                return True
            may_be_absent.setdefault(exists.name, set()).add(exists.formula)
    return any(
        isinstance(each, SignedSchema) and negated(each) in formulas  # the negation of others may be a large formula
        for formulas in may_be_absent.values()
        for each in formulas
    )


def simplified(known: Conjunction, contradictions: Contradictions, open_objects: bool) -> Conjunction | None:
    """Drop the satisfied demands of an alternative, and the impossible options of the others (unit propagation); return
    None if it is found to be unsatisfiable.

    Args:
        known: the alternative.
        contradictions: decides options.
        open_objects: see `clauses`.
    """
    while known.objects.any_exists and "object" in known.types:
        objects = _simpler(known.objects, contradictions, open_objects)
        if objects is None:
            types = known.types - _OBJECT
            return replace(known, types=types, objects=Objects()) if types else None
        if objects is known.objects:
            break
        known = replace(known, objects=objects)
    return known


def _simpler(objects: Objects, contradictions: Contradictions, open_objects: bool) -> Objects | None:
    """Return objects after one round of unit propagation: demands of one option, or on one member, become plain
    conditions; None: these are found to be contradictory."""
    facts = _Facts(objects, contradictions)
    demands: dict[AnyExists, _Options] = {}  # by demand: the keys of its options
    exists = list(objects.exists)
    required = list(objects.required)
    absent = objects.absent
    members: dict[str, Formula] = {}
    for demand in objects.any_exists:
        options = facts.possible_options(demand)
        if options is None:
            continue
        if not options:
            return None
        if len(options) == 1:
            (((name, meaning, is_absent), only),) = options.items()  # a demand of one option is a plain condition
            if name is not None and is_absent:
                absent = absent | {name}
            elif name is not None and meaning is None:
                required.append(name)
            elif only is not None:
                exists.append(only)
            continue
        present = tuple([member for member in options.values() if member is not None])
        missing = frozenset([option.name for option in options if option.name is not None and option.is_absent])
        if open_objects and len(options) == 2 and len(present) == 1:
            name, formula = present[0].name, present[0].formula
            if name is not None and name in missing:  # no such member, or one with a value: what `properties` says
                members[name] = AllOf((members[name], formula)) if name in members else formula
                continue
        demands[AnyExists(present, missing)] = frozenset(options)
    any_exists = _strongest(demands)
    if any_exists == objects.any_exists:
        return objects
    both = replace(
        objects,
        parts=(*objects.parts, ObjectPart(members)) if members else objects.parts,
        exists=tuple(dict.fromkeys(exists)),
        required=tuple(dict.fromkeys(required)),
        absent=absent,
        any_exists=any_exists,
    )
    return both if absent.isdisjoint(both.needed) else None


def _strongest(demands: dict[AnyExists, _Options]) -> tuple[AnyExists, ...]:
    """Return the demands that no other one implies."""
    strongest: dict[AnyExists, _Options] = {}
    for demand, options in demands.items():
        for other in strongest.values():
            if _implies(other, options):
                break
        else:
            strongest = {other: theirs for other, theirs in strongest.items() if not _implies(options, theirs)}
            strongest[demand] = options
    return tuple(strongest)


def _implies(one: _Options, other: _Options) -> bool:
    """Return True if a demand implies another one: each of its options is an option of the other, or a special case."""
    return all(option in other or option._replace(meaning=None) in other for option in one)


class _Facts:
    """Facts about the members of objects, to decide options of demands."""

    def __init__(self, objects: Objects, contradictions: Contradictions) -> None:
        self._objects = objects
        self._needed = objects.needed
        self._contradictions = contradictions
        #: The only names that members may have, by the parts without patterns; None: there may be others.
        self._names: frozenset[str] | None = None
        self._patterned: list[ObjectPart] = []
        for part in objects.parts:
            if part.additional is None or not is_false(part.additional):
                continue
            if part.patterns:
                self._patterned.append(part)
            elif self._names is None:
                self._names = frozenset(part.properties)
            else:
                self._names = self._names.intersection(part.properties)
        self._sorted_names = [] if self._names is None else sorted(self._names)

    def possible_options(self, demand: AnyExists) -> dict[_Option, Exists | None] | None:
        """Return the options of a demand that an object may have, each with the member that must exist (None: one must
        be absent). Return None if every object meets the demand."""
        needed = self._needed
        found: dict[_Option, Exists | None] = {}
        for missing in sorted(demand.absent):
            if not self._may_have(missing):
                return None
            if missing not in needed:
                found[_Option(missing, None, is_absent=True)] = None
        with_any_value: set[str] = set()  # names of members that may have any value: an option that takes all is one
        for exists in self._named(demand.options):
            name = exists.name
            if name is None:
                found[_Option(None, exists)] = exists
                continue
            if not self._may_have(name) or self._contradictions.denies(self._objects, name, exists.formula):
                continue
            if _is_true(exists.formula) or self._contradictions.implies(self._objects, name, exists.formula):
                if name in needed or _Option(name, None, is_absent=True) in found:
                    return None
                found[_Option(name, None)] = Exists(TRUE, name)
                with_any_value.add(name)
            else:
                found[_Option(name, self._contradictions.meaning(exists.formula))] = exists
        if not with_any_value:
            return found
        return {  # without the special cases of these options
            option: member
            for option, member in found.items()
            if option.is_absent or option.meaning is None or option.name not in with_any_value
        }

    def _may_have(self, name: str) -> bool:
        """Return False if no object has a member of this name."""
        if name in self._objects.absent or (self._names is not None and name not in self._names):
            return False
        for part in self._patterned:
            if not self._covers(part, name):
                return False
        return True

    def _named(self, options: tuple[Exists, ...]) -> Sequence[Exists]:
        """Return the options, each repeated for the possible names if these are finitely many."""
        if self._names is None:
            return options
        found: list[Exists] = []
        for exists in options:
            if exists.name is not None or exists.failing is not None:
                found.append(exists)
            else:
                found += [Exists(exists.formula, possible) for possible in self._fitting(exists)]
        return found

    def _fitting(self, exists: Exists) -> list[str]:
        """Return the possible names of the member of an option."""
        names = self._sorted_names
        if exists.pattern is not None:
            return [name for name in names if self._contradictions.matches(exists.pattern, name)]
        for part in exists.beside or ():
            names = [name for name in names if not self._covers(part, name)]
        return names

    def _covers(self, part: ObjectPart, name: str) -> bool:
        if name in part.properties:
            return True
        for pattern in part.patterns:
            if self._contradictions.matches(pattern, name):
                return True
        return False


def _is_true(formula: Formula) -> bool:
    if isinstance(formula, SignedSchema):
        schema = formula.located.schema
        if formula.positive:
            return schema is True or schema == {}
        return schema is False
    return formula == TRUE
