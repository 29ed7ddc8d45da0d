"""Enumeration of the values of a goal, where they are few.

Items that must not repeat can run out. Whether an array can be finished then depends on how many different values its
items may have: values, not texts (``1.0`` and ``1`` are one value).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from json.encoder import encode_basestring_ascii
from math import ceil, floor
from typing import NamedTuple

from ...json import value_key
from ...json.values import is_among
from ...language.queries import is_cofinite, listing
from ..normal.conjunction import Arrays, Conjunction, Goal, Objects
from ..normal.parts import fixed_positions, item_goal
from ..scalars.numbers import least_common, listed_multiples
from .array_items import ways_to_count
from .context import GoalNodes, Supply
from .merged_objects import MergedObjects
from .object_shape import Meets, ObjectShape

#: Maximum number of steps when the arrays or objects of one alternative are enumerated.
MAX_STEPS = 4_000

#: Maximum number of decimals of a range that are tried one by one.
MAX_DECIMALS = 2_000

#: Significant digits of the two grids on which the numbers of a range are enumerated: the second has every number that
#: is written where different decimals must be different doubles.
_COARSE, _FINE = 12, 15


_AMPLE, _UNKNOWN = Supply((), False, True), Supply((), False, False)
_NONE = Supply((), True, False)


class GoalValues:
    """Values of the goals of one document."""

    def __init__(self, lowering: GoalNodes, merged: MergedObjects) -> None:
        self._lowering = lowering
        self._merged = merged
        self._known: dict[tuple[Goal, int], Supply] = {}
        # Of one search: the results of this round and of the round before, the goals in progress with the numbers that
        # they are asked about, and True if a goal came back to one in progress.
        self._found: dict[tuple[Goal, int], Supply] = {}
        self._before: dict[tuple[Goal, int], Supply] = {}
        self._open: dict[Goal, int] = {}
        self._is_circular = False

    def of(self, goal: Goal, most: int) -> Supply:
        """Return the values of a goal, if they are fewer than ``most``; else an ample supply.

        The values of recursive goals are the least fixpoint: each round begins with the values of the round before, and
        the last round adds none. If a goal has new values after more rounds than there are goals, a goal occurs twice
        inside such a value. It may then occur any number of times, so the goal has infinitely many values.
        """
        key = goal, most
        result = self._known.get(key)
        rounds = 0
        self._before = {}
        while result is None:
            rounds += 1
            self._found, self._is_circular = {}, False
            self._open.clear()
            latest = self._look_up(goal, most)
            if latest.is_ample or not self._is_circular or self._found == self._before:
                result = latest
            elif rounds > len(self._found) + 1:
                for each, supply in self._found.items():
                    if supply != self._before.get(each, _NONE):  # it has new values: infinitely many
                        self._known[each] = _AMPLE if supply.is_complete else supply
                rounds = 0  # the others are judged by what is known now
            self._before = self._found
        self._known[key] = result
        return result

    def _look_up(self, goal: Goal, most: int) -> Supply:
        """Return the values of a goal; inside of its own search (a recursive schema), those of the round before.

        Inside, the number that the search is about counts, as arrays ask about more with each level. The values of the
        round before are then listed: a supply that a round finds ample is so for good, and is not searched again.
        """
        key = goal, most
        supply = self._known.get(key) or self._found.get(key)
        if supply is None:
            if goal in self._open:
                self._is_circular = True
                return self._before.get((goal, self._open[goal]), _NONE)
            self._open[goal] = most
            supply = self._find(goal, most)
            del self._open[goal]
            self._found[key] = supply
            if supply.is_ample:
                self._known[key] = supply
        return supply

    def _find(self, goal: Goal, most: int) -> Supply:
        if self._lowering.is_false(goal):
            return _NONE
        return _union((self._branch(branch, most) for branch in self._lowering.branches(goal)), most)

    def _branch(self, branch: Conjunction, most: int) -> Supply:
        """Return the values of one alternative."""
        if branch.values is not None:
            return _supply({value_key(value) for value in self._lowering.allowed(branch)}, most)
        return _union((self._of_type(branch, kind, most) for kind in sorted(branch.types, key=_COST.index)), most)

    def _of_type(self, branch: Conjunction, kind: str, most: int) -> Supply:
        """Return the values of one type of an alternative."""
        if kind == "array":
            return self._arrays(branch.arrays, most)
        if kind == "object":
            return self._objects(branch.objects, most)
        if kind == "number":
            return self._numbers(branch, most)
        if kind == "string":
            terms = self._lowering.nodes.terms
            term = self._lowering.scalar_term(branch, kind)
            strings = None if is_cofinite(terms, term) else listing(terms, term, most - 1)
            return _AMPLE if strings is None else _supply({value_key(text) for text in strings}, most)
        values = (True, False) if kind == "boolean" else (None,)
        kept = [value for value in values if not is_among(value, branch.not_values)]
        return _supply({value_key(value) for value in kept}, most)

    # -- numbers -----------------------------------------------------------------------------------------------

    def _numbers(self, branch: Conjunction, most: int) -> Supply:
        """Return the numbers of an alternative: listed multiples, or those on a grid between the bounds."""
        asked = branch.numbers
        terms = self._lowering.nodes.terms
        term = self._lowering.scalar_term(branch, "number")
        if asked.is_empty or terms.is_empty(term):
            return _NONE
        listed = listed_multiples(asked)
        if listed is not None:
            texts = [_plain(number) for number in listed]
            return _supply({value_key(json.loads(text)) for text in texts if terms.matches(term, text)}, most)
        if asked.least is None or asked.most is None:
            return _AMPLE
        if asked.multiples:
            return self._on_grid(branch, term, Fraction(least_common(asked.multiples)), most)
        if asked.integer:
            return self._on_grid(branch, term, Fraction(1), most)
        if asked.least == asked.most:  # one number, a multiple of itself
            return self._on_grid(branch, term, Fraction(asked.least) or Fraction(1), most)
        digits = max(asked.least.copy_abs(), asked.most.copy_abs()).adjusted() + 1  # before the decimal point
        supply = self._on_grid(branch, term, Fraction(10) ** (digits - _COARSE), most)
        return supply if supply.is_ample else self._on_grid(branch, term, Fraction(10) ** (digits - _FINE), most)

    def _on_grid(self, branch: Conjunction, term: int, step: Fraction, most: int) -> Supply:
        """Return the numbers of a range that are multiples of a step and that ``term`` can write.

        Some of the first multiples may be excluded: `MAX_DECIMALS` are tried beyond those that are asked for.
        """
        asked = branch.numbers
        assert asked.least is not None and asked.most is not None
        first, last = ceil(Fraction(asked.least) / step), floor(Fraction(asked.most) / step)
        tries = MAX_DECIMALS + 2 * most
        terms = self._lowering.nodes.terms
        keys: set[str] = set()
        for factor in range(first, min(last, first + tries) + 1):
            number = step * factor
            with localcontext() as context:
                context.prec = 400  # by default a long decimal would be rounded to 28 digits
                decimal = Decimal(number.numerator) / Decimal(number.denominator)
            text = next((text for text in _spelled(decimal) if terms.matches(term, text)), None)
            if text is not None:
                keys.add(value_key(json.loads(text)))
                if len(keys) >= most:
                    return _AMPLE
        return _supply(keys, most) if last - first <= tries else _UNKNOWN

    # -- arrays ------------------------------------------------------------------------------------------------

    def _arrays(self, arrays: Arrays, most: int) -> Supply:
        """Enumerate arrays, depth first; one item of an ample supply stands for all of them."""
        if arrays.most is not None and arrays.least > arrays.most:
            return _NONE
        needed = arrays.least + sum(part.least for part in arrays.contains) + fixed_positions(arrays)
        # Items that must not repeat take values from each other: ``most`` values of an ample supply must be left beside
        # the other items.
        others = 2 * needed + 4 if arrays.unique else 0
        keys: set[str] = set()
        steps = 0
        stack = [_BegunArray((), (0,) * len(arrays.contains), False)]
        # Longer arrays tell nothing new: beyond what is needed, ``most`` further items are ``most`` values.
        longest = needed + most
        is_known = True
        while stack:
            begun = stack.pop()
            count = len(begun.items)
            steps += 1
            if steps > MAX_STEPS:
                return _UNKNOWN
            if begun.satisfies(arrays):
                if begun.is_ample:
                    if not arrays.unique or count <= others + 1:
                        return _AMPLE
                    is_known = False
                    continue
                keys.add("[" + ", ".join(item or "" for item in begun.items) + "]")
                if len(keys) >= most:
                    return _AMPLE
            if count > longest or (arrays.most is not None and count >= arrays.most):
                continue
            goal = item_goal(arrays, count)
            ways = ways_to_count(self._merged, arrays, count, begun.counted)
            for way in reversed(ways):
                supply = self._look_up((*goal, *way.asked), most + others)
                if supply.is_ample:
                    continue
                is_known = is_known and supply.is_complete
                for value in reversed(supply.values):
                    if not (arrays.unique and value in begun.items):
                        stack.append(_BegunArray((*begun.items, value), way.counted, begun.is_ample))
            for way in reversed(ways):  # taken first from the stack, and of these the ways that count
                if self._look_up((*goal, *way.asked), most + others).is_ample:
                    stack.append(_BegunArray((*begun.items, None), way.counted, True))
        return _supply(keys, most) if is_known else _UNKNOWN

    # -- objects -----------------------------------------------------------------------------------------------

    def _objects(self, objects: Objects, most: int) -> Supply:
        """Enumerate objects, as `_arrays` does arrays."""
        shape = self._merged.of(objects)
        terms = self._lowering.nodes.terms
        members = [_Asked(member.name, member.goal, member.required, member.meets) for member in shape.members]
        others: list[_Asked] = []
        for region in shape.others:
            names = None if is_cofinite(terms, region.names) else listing(terms, region.names, most)
            if names is None:
                others.append(_Asked(None, region.goal, False, region.meets))
            else:
                members += [_Asked(name, region.goal, False, region.meets) for name in names]
        # From this member on, all may be left out: where the values are ample, no more of them are looked at.
        optional_from = max([number for number, member in enumerate(members, 1) if member.required], default=0)
        limit = len(members) + len(shape.demands) + shape.least + 1  # longer objects have nothing new
        limit = limit if shape.most is None else min(limit, shape.most)
        keys: set[str] = set()
        steps = 0
        is_known = True
        stack = [_Begun((1 << len(shape.demands)) - 1)]
        while stack:
            begun = stack.pop()
            steps += 1
            if steps > MAX_STEPS:
                return _UNKNOWN
            is_past = begun.at == len(members)
            if (is_past or (begun.is_ample and begun.at >= optional_from)) and begun.satisfies(shape):
                if begun.is_ample:
                    return _AMPLE
                keys.add(begun.key())
                if len(keys) >= most:
                    return _AMPLE
            if not is_past and not members[begun.at].required:
                stack.append(begun.without(members[begun.at].name, shape))
            if begun.size < limit:
                for asked in others if is_past else members[begun.at : begun.at + 1]:
                    for following in self._with_member(begun, asked, shape, most):
                        if following is None:
                            is_known = False
                        else:
                            stack.append(following)
        return _supply(keys, most) if is_known else _UNKNOWN

    def _with_member(self, begun: _Begun, asked: _Asked, shape: ObjectShape, most: int) -> Iterator[_Begun | None]:
        """Yield an object with one more member, for each of its values; None where not all of these are known."""
        name = asked.name
        if name is not None and name in begun.barred:
            return
        for met, goal in self._merged.meeting(asked.goal, asked.meets, begun.demands):
            supply = self._look_up((*asked.goal, *goal), most)
            if not (supply.is_complete or supply.is_ample):
                yield None
            demands, size = begun.demands & ~met, begun.size + 1
            if name is None:
                if supply.values or supply.is_ample:  # some name that is not listed: there are many
                    yield begun._replace(demands=demands, size=size, is_ample=True)
                continue
            after = begun._replace(
                at=begun.at + 1,
                demands=demands,
                size=size,
                barred=begun.barred.union(*(names for names in shape.exclusive if name in names)),
            )
            for value in supply.values:
                yield after._replace(written=(*begun.written, (name, value)))
            if supply.is_ample:
                yield after._replace(is_ample=True)


class _BegunArray(NamedTuple):
    """An array as far as it is enumerated.

    Attributes:
        items: the keys of the items; None: one of an ample supply.
        counted: for each `Contains`, the number of items that were counted.
        is_ample: an item is of an ample supply.
    """

    items: tuple[str | None, ...]
    counted: tuple[int, ...]
    is_ample: bool

    def satisfies(self, arrays: Arrays) -> bool:
        """Return True if the array may end here."""
        if len(self.items) < arrays.least:
            return False
        return all(number >= part.least for number, part in zip(self.counted, arrays.contains, strict=True))


class _Asked(NamedTuple):
    """A member that an object may have, or must; without a name, one of infinitely many.

    Attributes:
        name: of the member, or None.
        goal: of its value.
        required: no object is without it.
        meets: the demands that its value can satisfy.
    """

    name: str | None
    goal: Goal
    required: bool
    meets: Meets


class _Begun(NamedTuple):
    """An object as far as it is enumerated.

    Attributes:
        demands: the demands that are still open, as bits.
        at: index of the next member.
        written: names and values, without those of an ample supply.
        size: number of members.
        is_ample: a member has a value of an ample supply.
        barred: names that exclude one that is there.
    """

    demands: int
    at: int = 0
    written: tuple[tuple[str, str], ...] = ()
    size: int = 0
    is_ample: bool = False
    barred: frozenset[str] = frozenset()

    def without(self, name: str | None, shape: ObjectShape) -> _Begun:
        """Return the object without the next member, whose absence may satisfy demands."""
        met = sum(1 << index for index, absent in enumerate(shape.demands) if name in absent)
        return self._replace(at=self.at + 1, demands=self.demands & ~met)

    def satisfies(self, shape: ObjectShape) -> bool:
        """Return True if nothing is demanded any more, and there are enough members and not too many."""
        return not self.demands and self.size >= shape.least and (shape.most is None or self.size <= shape.most)

    def key(self) -> str:
        """Return the key of the object (`value_key`): its members are in the order of their names."""
        members = (f"{encode_basestring_ascii(name)}: {value}" for name, value in sorted(self.written))
        return "{" + ", ".join(members) + "}"


def _plain(number: Decimal) -> str:
    """Return a number without an exponent, and without zeros at the end of its fraction."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _spelled(number: Decimal) -> tuple[str, ...]:
    """Return a number without an exponent, and with one, and the shortest spelling of the double near it."""
    scientific = f"{_plain(number.scaleb(-number.adjusted()))}e{number.adjusted()}"
    return _plain(number), scientific, repr(float(number))


#: Order in which the types of an alternative are enumerated: the cheap ones first.
_COST = ("null", "boolean", "string", "number", "array", "object")


def _supply(values: set[str], most: int) -> Supply:
    """Return the supply of a goal that has these values, given by their keys."""
    return _AMPLE if len(values) >= most else Supply(tuple(sorted(values)), True, False)


def _union(parts: Iterator[Supply], most: int) -> Supply:
    """Return the union of supplies, which are computed one by one until they are ample."""
    values: set[str] = set()
    is_complete = True
    for part in parts:
        if part.is_ample:
            return _AMPLE
        is_complete = is_complete and part.is_complete
        values.update(part.values)
        if len(values) >= most:
            return _AMPLE
    return Supply(tuple(sorted(values)), is_complete, False)
