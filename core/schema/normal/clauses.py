"""Clauses: what members of an object must meet, as demands that hold together instead of alternatives that multiply.

A condition on members by their names in disjunctive form, such as "no ``a``, or ``b`` and ``c``", becomes one in
conjunctive form: "no ``a``, or ``b``", and "no ``a``, or ``c``". Each such clause is one demand (`AnyExists`), which an
object meets while it is written, so that many conditions take bits of its state instead of alternatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Union

from ..read.located import SignedSchema
from .conjunction import TRUE, AnyExists, Conjunction, Exists, Formula, ObjectPart, Objects
from .prune import Contradictions

#: Maximum number of clauses that one condition may become.
MAX_CLAUSES = 16


def clauses(ways: Iterable[Conjunction], open_objects: bool) -> list[AnyExists] | None:
    """Return demands that an object meets iff it satisfies one of some alternatives; None: these ask for more than
    members by name, or the demands are too many.

    Args:
        ways: the alternatives.
        open_objects: objects take members that nothing declares, unless they say otherwise.
    """
    product = [AnyExists(())]
    for way in ways:
        demands = _demands(way, open_objects)
        if demands is None or len(product) * len(demands) > MAX_CLAUSES:
            return None
        product = [_either(one, other) for one in product for other in demands]
    return list(dict.fromkeys(some for some in product if not _is_met(some)))


def _demands(way: Conjunction, open_objects: bool) -> list[AnyExists] | None:
    """Return the demands that together are an alternative's condition on objects; None: it asks for more."""
    if "object" not in way.types:
        return [AnyExists(())]
    objects = way.objects
    if way.values is not None or objects != Objects(
        parts=objects.parts,
        exists=objects.exists,
        required=objects.required,
        absent=objects.absent,
        any_exists=objects.any_exists,
    ):
        return None
    demands = [*objects.any_exists, *(AnyExists((exists,)) for exists in objects.exists)]
    demands += [AnyExists((Exists(TRUE, name),)) for name in objects.required]
    demands += [AnyExists((), frozenset((name,))) for name in sorted(objects.absent)]
    for part in objects.parts:
        if part.patterns or part.additional is not None or (part.names_properties and not open_objects):
            return None
        demands += [AnyExists((Exists(value, name),), frozenset((name,))) for name, value in part.properties.items()]
    return demands


def _either(one: AnyExists, other: AnyExists) -> AnyExists:
    return AnyExists(tuple(dict.fromkeys(one.options + other.options)), one.absent | other.absent)


def _is_met(some: AnyExists) -> bool:
    """Return True if every object meets a demand: it has a member, or has it not."""
    return any(exists.formula == TRUE and exists.name in some.absent for exists in some.options)


#: One way to meet a demand, by what is compared: the name of a member and the meaning of its value (None: any value),
#: or a name and True: there is no such member, or another condition as meaning of a member that is not named.
_Option = tuple[Union[str, None], object, bool]


def simplified(known: Conjunction, contradictions: Contradictions) -> Conjunction | None:
    """Return an alternative with the demands that it does not meet anyway, each without what its other conditions
    exclude; None: it is seen to have no value."""
    while known.objects.any_exists and "object" in known.types:
        objects = _simpler(known.objects, contradictions)
        if objects is None:
            types = known.types - {"object"}
            return known.replace(types=types, objects=Objects()) if types else None
        if objects is known.objects:
            break
        known = known.replace(objects=objects)
    return known


def _simpler(objects: Objects, contradictions: Contradictions) -> Objects | None:
    """Return objects after one round: demands of one option become plain conditions, which may decide others."""
    facts = _Facts(objects, contradictions)
    demands: dict[AnyExists, frozenset[_Option]] = {}
    exists, required, absent = list(objects.exists), list(objects.required), objects.absent
    for some in objects.any_exists:
        options = facts.left(some)
        if options is None:
            continue
        if not options:
            return None
        if len(options) == 1:
            (((name, meaning, is_absent), way),) = options.items()
            if is_absent:
                assert name is not None
                absent |= {name}
            elif name is not None and meaning is None:
                required.append(name)
            else:
                assert way is not None
                exists.append(way)
            continue
        ways = tuple([way for way in options.values() if way is not None])
        gone = frozenset([name for name, _, is_absent in options if is_absent and name is not None])
        demands[AnyExists(ways, gone)] = frozenset(options)
    kept: dict[AnyExists, frozenset[_Option]] = {}
    for some, ways_to_meet in demands.items():
        if not any(_implies(other, ways_to_meet) for other in kept.values()):
            kept = {other: options for other, options in kept.items() if not _implies(ways_to_meet, options)}
            kept[some] = ways_to_meet
    any_exists = tuple(kept)
    if any_exists == objects.any_exists:
        return objects
    both = objects.replace(
        exists=tuple(dict.fromkeys(exists)),
        required=tuple(dict.fromkeys(required)),
        absent=absent,
        any_exists=any_exists,
    )
    return None if not absent.isdisjoint(both.needed) else both


def _implies(one: frozenset[_Option], other: frozenset[_Option]) -> bool:
    """Return True if whatever meets a demand meets another one."""
    return all(option in other or (option[0], None, option[2]) in other for option in one)


class _Facts:
    """What is known of the members of some objects."""

    def __init__(self, objects: Objects, contradictions: Contradictions) -> None:
        self._objects = objects
        self._needed = objects.needed
        self._contradictions = contradictions
        self._closed = [part for part in objects.parts if part.additional is not None and _is_false(part.additional)]
        #: The only names that members may have, by the parts without patterns; None: there may be others.
        self._names: frozenset[str] | None = None
        for part in self._closed:
            if not part.patterns:
                names = part.properties.keys()
                self._names = frozenset(names if self._names is None else self._names & names)
        self._sorted_names = sorted(self._names or ())
        self._patterned = [part for part in self._closed if part.patterns]

    def left(self, some: AnyExists) -> dict[_Option, Exists | None] | None:
        """Return the options of a demand that are left; None: every object meets it."""
        needed = self._needed
        ways: dict[_Option, Exists | None] = {}
        for gone in sorted(some.absent):
            if not self._may_have(gone):
                return None
            if gone not in needed:
                ways[gone, None, True] = None
        objects, contradictions = self._objects, self._contradictions
        for exists in self._named(some.options):
            name, formula = exists.name, exists.formula
            if name is None:
                ways[None, exists, False] = exists
                continue
            if not self._may_have(name) or contradictions.denies(objects, name, formula):
                continue
            if _is_true(formula) or contradictions.implies(objects, name, formula):
                if name in needed or (name, None, True) in ways:
                    return None
                ways[name, None, False] = Exists(TRUE, name)
            else:
                ways[name, contradictions.meaning(formula), False] = exists
        return {
            option: way
            for option, way in ways.items()
            if option[2] or option[1] is None or (option[0], None, False) not in ways
        }

    def _may_have(self, name: str) -> bool:
        """Return False if there is surely no member of a name."""
        if name in self._objects.absent or (self._names is not None and name not in self._names):
            return False
        return not self._patterned or all(self._covers(part, name) for part in self._patterned)

    def _named(self, options: Sequence[Exists]) -> Sequence[Exists]:
        """Return options by name, where only some names are possible."""
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
        """Return the possible names that an option is about."""
        names = self._sorted_names
        if exists.pattern is not None:
            return [name for name in names if self._contradictions.matches(exists.pattern, name)]
        for part in exists.beside or ():
            names = [name for name in names if not self._covers(part, name)]
        return names

    def _covers(self, part: ObjectPart, name: str) -> bool:
        if name in part.properties or not part.patterns:
            return name in part.properties
        return any(self._contradictions.matches(pattern, name) for pattern in part.patterns)


def _is_true(formula: Formula) -> bool:
    if isinstance(formula, SignedSchema):
        return formula.located.schema in ((True, {}) if formula.positive else (False,))
    return formula == TRUE


def _is_false(formula: Formula) -> bool:
    return isinstance(formula, SignedSchema) and formula.located.schema is (not formula.positive)
