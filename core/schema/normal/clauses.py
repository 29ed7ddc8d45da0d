"""Clauses: what members of an object must meet, as demands that hold together instead of alternatives that multiply.

A condition on members by their names in disjunctive form, such as "no ``a``, or ``b`` and ``c``", becomes one in
conjunctive form: "no ``a``, or ``b``", and "no ``a``, or ``c``". Each such clause is one demand (`AnyExists`), which an
object meets while it is written, so that many conditions take bits of its state instead of alternatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Union

from ..read.located import SignedSchema
from .conjunction import TRUE, AnyExists, Conjunction, Exists, Formula, ObjectPart, Objects
from .prune import Contradictions

#: Maximum number of clauses that one condition may become.
MAX_CLAUSES = 16

_OBJECT = frozenset({"object"})

#: An option of a demand as it is compared: a member's name, the meaning of its value (None: any value), and False; or a
#: name, None and True: there is no such member; or no name, and another condition in place of a meaning.
_Option = tuple[Union[str, None], object, bool]
_Options = frozenset[_Option]


def clauses(ways: tuple[Conjunction, ...], open_objects: bool) -> list[AnyExists] | None:
    """Return demands (`AnyExists`) that an object meets iff it satisfies one of some alternatives; None: these ask for
    more than members by name, or the demands are too many.

    Args:
        ways: the alternatives (`Conjunction`).
        open_objects: objects take members that nothing declares, unless they say otherwise.
    """
    product = [AnyExists(())]
    for way in ways:
        demands = _demands(way, open_objects)
        if demands is None or len(product) * len(demands) > MAX_CLAUSES:
            return None
        product = [_either(one, other) for one in product for other in demands]
    return list(dict.fromkeys([some for some in product if not _is_met(some)]))


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
    demands = [*objects.any_exists]
    demands += [AnyExists((exists,)) for exists in objects.exists]
    demands += [AnyExists((Exists(TRUE, name),)) for name in objects.required]
    demands += [AnyExists((), frozenset((name,))) for name in sorted(objects.absent)]
    for part in objects.parts:
        if part.patterns or part.additional is not None or (part.names_properties and not open_objects):
            return None
        for name, value in part.properties.items():
            demands.append(AnyExists((Exists(value, name),), frozenset((name,))))
    return demands


def _either(one: AnyExists, other: AnyExists) -> AnyExists:
    return AnyExists(tuple(dict.fromkeys(one.options + other.options)), one.absent | other.absent)


def _is_met(some: AnyExists) -> bool:
    """Return True if every object meets a demand: it has a member, or has it not."""
    for exists in some.options:
        if exists.name in some.absent and exists.formula == TRUE:
            return True
    return False


def simplified(known: Conjunction, contradictions: Contradictions) -> Conjunction | None:
    """Return an alternative with the demands that it does not meet anyway, each without what its other conditions
    exclude; None: it is seen to have no value."""
    while known.objects.any_exists and "object" in known.types:
        objects = _simpler(known.objects, contradictions)
        if objects is None:
            types = known.types - _OBJECT
            return replace(known, types=types, objects=Objects()) if types else None
        if objects is known.objects:
            break
        known = replace(known, objects=objects)
    return known


def _simpler(objects: Objects, contradictions: Contradictions) -> Objects | None:
    """Return objects after one round: demands of one option become plain conditions, which may decide others; None:
    they are seen to be contradictory."""
    facts = _Facts(objects, contradictions)
    demands: dict[AnyExists, _Options] = {}  # of each demand, its options as they are compared
    exists = list(objects.exists)
    required = list(objects.required)
    absent = objects.absent
    for some in objects.any_exists:
        options = facts.left(some)
        if options is None:
            continue
        if not options:
            return None
        if len(options) == 1:
            (((name, meaning, is_absent), way),) = options.items()
            if name is not None and is_absent:
                absent = absent | {name}
            elif name is not None and meaning is None:
                required.append(name)
            elif way is not None:
                exists.append(way)
            continue
        ways = tuple([way for way in options.values() if way is not None])
        gone = frozenset([name for name, _, is_absent in options if name is not None and is_absent])
        demands[AnyExists(ways, gone)] = frozenset(options)
    kept: dict[AnyExists, _Options] = {}
    for some, ways_to_meet in demands.items():
        if not _is_implied(ways_to_meet, kept):
            kept = {other: theirs for other, theirs in kept.items() if not _implies(ways_to_meet, theirs)}
            kept[some] = ways_to_meet
    any_exists = tuple(kept)
    if any_exists == objects.any_exists:
        return objects
    both = replace(
        objects,
        exists=tuple(dict.fromkeys(exists)),
        required=tuple(dict.fromkeys(required)),
        absent=absent,
        any_exists=any_exists,
    )
    return both if absent.isdisjoint(both.needed) else None


def _is_implied(options: _Options, kept: dict[AnyExists, _Options]) -> bool:
    """Return True if whatever meets one of some demands meets another one."""
    for other in kept.values():
        if _implies(other, options):
            return True
    return False


def _implies(one: _Options, other: _Options) -> bool:
    """Return True if whatever meets a demand meets another one."""
    for option in one:
        if option not in other and (option[0], None, option[2]) not in other:
            return False
    return True


class _Facts:
    """What is known of the members of some objects."""

    def __init__(self, objects: Objects, contradictions: Contradictions) -> None:
        self._objects = objects
        self._needed = objects.needed
        self._contradictions = contradictions
        #: The only names that members may have, by the parts without patterns; None: there may be others.
        self._names: frozenset[str] | None = None
        self._patterned: list[ObjectPart] = []
        for part in objects.parts:
            if part.additional is None or not _is_false(part.additional):
                continue
            if part.patterns:
                self._patterned.append(part)
            elif self._names is None:
                self._names = frozenset(part.properties)
            else:
                self._names = self._names.intersection(part.properties)
        self._sorted_names = [] if self._names is None else sorted(self._names)

    def left(self, some: AnyExists) -> dict[_Option, Exists | None] | None:
        """Return the options of a demand that are left (see `_implies`), each with what it asks of a member; None:
        every object meets it."""
        needed = self._needed
        ways: dict[_Option, Exists | None] = {}
        has_any = False
        for gone in sorted(some.absent):
            if not self._may_have(gone):
                return None
            if gone not in needed:
                ways[gone, None, True] = None
        for exists in self._named(some.options):
            name = exists.name
            if name is None:
                ways[None, exists, False] = exists
                continue
            if not self._may_have(name) or self._contradictions.denies(self._objects, name, exists.formula):
                continue
            if _is_true(exists.formula) or self._contradictions.implies(self._objects, name, exists.formula):
                if name in needed or (name, None, True) in ways:
                    return None
                ways[name, None, False] = Exists(TRUE, name)
                has_any = True
            else:
                ways[name, self._contradictions.meaning(exists.formula), False] = exists
        if not has_any:
            return ways
        return {
            option: way
            for option, way in ways.items()
            if option[2] or option[1] is None or (option[0], None, False) not in ways
        }

    def _may_have(self, name: str) -> bool:
        """Return False if there is surely no member of a name."""
        if name in self._objects.absent or (self._names is not None and name not in self._names):
            return False
        for part in self._patterned:
            if not self._covers(part, name):
                return False
        return True

    def _named(self, options: tuple[Exists, ...]) -> Sequence[Exists]:
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


def _is_false(formula: Formula) -> bool:
    return isinstance(formula, SignedSchema) and formula.located.schema is (not formula.positive)
