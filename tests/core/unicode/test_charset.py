"""Sets of characters against Python's own sets of code points."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core.unicode.charset import MAX_CODE_POINT, CharSet

#: Where ranges begin and end: few places, so that they touch and overlap, on both sides of the surrogates too.
EDGES = st.sampled_from(
    [0, 1, 2, 3, 0x61, 0x62, 0x7F, 0xD7FE, 0xD7FF, 0xD800, 0xDABC, 0xDFFF, 0xE000, 0xE001, 0x10FFFF]
)
RANGES = st.lists(st.tuples(EDGES, EDGES).map(sorted).map(tuple), max_size=4)
#: All code points next to an edge: two sets with those edges are equal iff they agree here.
PROBES = [0, 1, 2, 3, 4, 0x60, 0x61, 0x62, 0x63, 0x7E, 0x7F, 0x80, 0xD7FD, 0xD7FE, 0xD7FF, 0xD800, 0xD801, 0xDABC]
PROBES += [0xDFFE, 0xDFFF, 0xE000, 0xE001, 0xE002, 0x10FFFE, 0x10FFFF]


def members(charset: CharSet) -> set[int]:
    """The probes that are in a set."""
    return {code for code in PROBES if code in charset}


def expected(ranges: list[tuple[int, int]]) -> set[int]:
    """The probes that should be in it: those of its ranges, without surrogates."""
    return {code for code in PROBES if any(low <= code <= high for low, high in ranges)} - set(range(0xD800, 0xE000))


@given(RANGES, RANGES)
def test_sets_are_a_boolean_algebra(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    """Union, intersection, differences, complement and comparisons are those of the sets of code points."""
    left, right = CharSet(one), CharSet(two)
    mine, theirs = expected(one), expected(two)
    assert members(left) == mine and members(right) == theirs
    assert members(left | right) == mine | theirs
    assert members(left & right) == mine & theirs
    assert members(left - right) == mine - theirs
    assert members(left ^ right) == mine ^ theirs
    assert members(~left) == expected([(0, MAX_CODE_POINT)]) - mine and ~~left == left
    assert (left <= right) == (left - right == CharSet.empty()) == (not mine - theirs)
    assert left.isdisjoint(right) == (not mine & theirs) == (not left & right)
    assert (left == right) == (mine == theirs) and (left != right or hash(left) == hash(right))
    assert bool(left) == bool(mine) == (left.size > 0)


@given(RANGES)
def test_ranges_are_canonical(ranges: list[tuple[int, int]]) -> None:
    """Ranges are sorted, do not touch, hold no surrogate, and say the same as `flips` and `size`."""
    charset = CharSet(ranges)
    ordered = list(charset)
    assert all(high + 1 < low for (_, high), (low, _) in pairwise(ordered))
    assert not any(low <= 0xDFFF and high >= 0xD800 for low, high in ordered)
    assert charset.flips == tuple(bound for low, high in ordered for bound in (low, high + 1))
    assert charset.size == sum(high - low + 1 for low, high in ordered)
    assert CharSet(ordered) == charset == pickle.loads(pickle.dumps(charset))
    if ordered:
        assert charset.first == ordered[0][0]


@pytest.mark.parametrize("bounds", [(-1, 0), (3, 2), (0, 0x110000)])
def test_what_is_no_range_is_refused(bounds: tuple[int, int]) -> None:
    """Bounds outside Unicode, or in the wrong order, are an error."""
    with pytest.raises(ValueError, match="not a range of code points"):
        CharSet([bounds])


def test_makers() -> None:
    """A string, a range of characters, nothing and everything."""
    assert CharSet.of("bca").ranges == ((0x61, 0x63),) == CharSet.range("a", 0x63).ranges
    assert CharSet.empty().size == 0 and CharSet.full().size == 0x110000 - 0x800
    assert "a" in CharSet.of("a") and "b" not in CharSet.of("a") and 0xD800 not in CharSet.full()
