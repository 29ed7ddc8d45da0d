"""Sets of characters, as sorted ranges: the alphabet on which everything above this module is built."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

MAX_CODE_POINT: Final = 0x10FFFF
_FIRST_SURROGATE: Final = 0xD800
_LAST_SURROGATE: Final = 0xDFFF


class CharSet:
    """An immutable, hashable set of Unicode scalar values.

    A scalar value is a code point that UTF-8 can carry: 0..0x10FFFF without the surrogates U+D800..U+DFFF. Every
    constructor drops surrogates silently, so no set ever holds one, and :meth:`complement` is relative to
    :meth:`full`, which leaves them out. That makes the sets a Boolean algebra (``~~a == a``).

    Args:
        ranges: inclusive ranges ``(lo, hi)`` in any order, overlapping or not.

    Attributes:
        ranges: the same set as sorted, disjoint, inclusive ranges that do not touch one another.

    Raises:
        ValueError: a bound lies outside 0..0x10FFFF, or ``lo > hi``.
    """

    __slots__ = ("_bounds", "_hash", "ranges")

    ranges: tuple[tuple[int, int], ...]
    # The same set as the sorted code points at which membership flips: one bisection answers `in`,
    # and the complement is the symmetric difference with the bounds of the full set.
    _bounds: tuple[int, ...]
    _hash: int

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        pieces: list[tuple[int, int]] = []
        for lo, hi in ranges:
            if not 0 <= lo <= hi <= MAX_CODE_POINT:
                raise ValueError(f"not a range of code points: {lo:#x}..{hi:#x}")
            if hi < _FIRST_SURROGATE or lo > _LAST_SURROGATE:
                pieces.append((lo, hi))
                continue
            if lo < _FIRST_SURROGATE:
                pieces.append((lo, _FIRST_SURROGATE - 1))
            if hi > _LAST_SURROGATE:
                pieces.append((_LAST_SURROGATE + 1, hi))
        pieces.sort()
        bounds: list[int] = []
        for lo, hi in pieces:
            if bounds and lo <= bounds[-1]:
                bounds[-1] = max(bounds[-1], hi + 1)
            else:
                bounds += (lo, hi + 1)
        self._fill(tuple(bounds))

    def _fill(self, bounds: tuple[int, ...]) -> None:
        self._bounds = bounds
        self.ranges = tuple([(bounds[i], bounds[i + 1] - 1) for i in range(0, len(bounds), 2)])
        self._hash = hash(bounds)

    @classmethod
    def _from_bounds(cls, bounds: tuple[int, ...]) -> CharSet:
        made = cls.__new__(cls)
        made._fill(bounds)
        return made

    @classmethod
    def empty(cls) -> CharSet:
        """Return the set without members."""
        return _EMPTY

    @classmethod
    def full(cls) -> CharSet:
        """Return all 1,112,064 scalar values; the surrogates U+D800..U+DFFF are not among them."""
        return _FULL

    @classmethod
    def of(cls, characters: str) -> CharSet:
        """Return the set of the characters of a string."""
        return cls([(ord(character), ord(character)) for character in characters])

    @classmethod
    def range(cls, lo: int | str, hi: int | str) -> CharSet:
        """Return the characters from ``lo`` to ``hi``, both included, as code points or one-character strings."""
        return cls([(ord(lo) if isinstance(lo, str) else lo, ord(hi) if isinstance(hi, str) else hi)])

    @property
    def size(self) -> int:
        """Number of members."""
        return sum(self._bounds[1::2]) - sum(self._bounds[::2])

    @property
    def first(self) -> int:
        """The smallest member; IndexError when there is none."""
        return self._bounds[0]

    @property
    def flips(self) -> tuple[int, ...]:
        """The sorted code points at which membership flips, from outside to inside first."""
        return self._bounds

    def union(self, *others: CharSet) -> CharSet:
        """Return the characters in this set or in one of the others."""
        pieces = list(self.ranges)
        for other in others:
            pieces += other.ranges
        if len(pieces) == len(self.ranges):
            return self
        pieces.sort()
        bounds: list[int] = []
        for lo, hi in pieces:
            if bounds and lo <= bounds[-1]:
                if hi >= bounds[-1]:
                    bounds[-1] = hi + 1
            else:
                bounds += (lo, hi + 1)
        return CharSet._from_bounds(tuple(bounds))

    def intersection(self, other: CharSet) -> CharSet:
        """Return the characters in both sets."""
        if self._bounds == other._bounds or other is _FULL:
            return self
        if self is _FULL:
            return other
        bounds: list[int] = []
        mine, theirs = self._bounds, other._bounds
        i = j = 0
        while i < len(mine) and j < len(theirs):
            lo = max(mine[i], theirs[j])
            end = min(mine[i + 1], theirs[j + 1])
            if lo < end:
                bounds += (lo, end)
            if mine[i + 1] <= theirs[j + 1]:
                i += 2
            else:
                j += 2
        return CharSet._from_bounds(tuple(bounds)) if bounds else _EMPTY

    def complement(self) -> CharSet:
        """Return the scalar values that are not in this set."""
        return self.symmetric_difference(_FULL)

    def difference(self, other: CharSet) -> CharSet:
        """Return the characters in this set and not in the other."""
        return self.intersection(other.complement()) if other._bounds else self

    def symmetric_difference(self, other: CharSet) -> CharSet:
        """Return the characters in exactly one of the two sets."""
        # Membership flips where it flips in one set alone: two flips at the same place cancel.
        return CharSet._from_bounds(tuple(sorted(set(self._bounds).symmetric_difference(other._bounds))))

    def issubset(self, other: CharSet) -> bool:
        """Return True if every member is also a member of the other set."""
        return self.intersection(other)._bounds == self._bounds

    def isdisjoint(self, other: CharSet) -> bool:
        """Return True if the sets have no member in common."""
        return not self.intersection(other)._bounds

    __or__ = union
    __and__ = intersection
    __sub__ = difference
    __xor__ = symmetric_difference
    __invert__ = complement
    __le__ = issubset

    def __contains__(self, character: int | str) -> bool:
        code_point = ord(character) if isinstance(character, str) else character
        return bisect_right(self._bounds, code_point) & 1 == 1

    def __bool__(self) -> bool:
        return bool(self._bounds)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Iterate over the inclusive ranges, in order."""
        return iter(self.ranges)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CharSet):
            return NotImplemented
        return self is other or self._bounds == other._bounds

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[CharSet], tuple[tuple[tuple[int, int], ...]]]:
        return CharSet, (self.ranges,)

    def __repr__(self) -> str:
        if len(self.ranges) > 8:
            return f"CharSet(<{len(self.ranges)} ranges, {self.size} characters>)"
        shown = [f"{lo:#x}" if lo == hi else f"{lo:#x}-{hi:#x}" for lo, hi in self.ranges]
        return f"CharSet({', '.join(shown)})"


_EMPTY: Final = CharSet()
_FULL: Final = CharSet([(0, MAX_CODE_POINT)])
