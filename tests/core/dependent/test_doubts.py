"""Doubts: which tokens of a mask a text forbids, asked of a mask that knows the answer."""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from toolgrammar.core.dependent.doubts import MAX_BY_NAME, Doubts, NameTokens
from toolgrammar.core.dependent.written import Endings, Written

TOKENS = [b'"', b'a"', b'b"', b'"a"', b'"b": 1, "', b'u0061"', b'\\u0061"', b'"}, "a"', b'"b": 1, "c": 2, "', b"x"]
NAMES = NameTokens(TOKENS, np.array([token for token, data in enumerate(TOKENS) if b'"' in data], dtype=np.int64))


class Mask:
    """The mask of all tokens, in an object whose names are JSON strings, after a text.

    Args:
        text: the text.
        is_name: an ending that repeats a name leads nowhere else.
    """

    def __init__(self, text: bytes, is_name: bool = True) -> None:
        self.text = text
        self.is_name = is_name
        self.tried: list[bytes] = []

    def below(self, endings: Sequence[Endings]) -> list[tuple[bytes, list[int]]]:
        """The tokens that begin with an ending."""
        beginnings = [name[size:] for names, low, high, size in endings for name in names[low:high]]
        found = [(each, [n for n, data in enumerate(TOKENS) if data.startswith(each)]) for each in beginnings]
        return [each for each in found if each[1]]

    def within(self, ids: npt.NDArray[np.int64]) -> list[int]:
        """All of them."""
        return list(ids.tolist())

    def ends_a_name(self, data: bytes) -> bool:
        """As the maker says."""
        return self.is_name

    def refuses(self, data: bytes) -> bool:
        """True if a name is written twice: the whole text is read, closed with what an object may end with."""
        self.tried.append(data)
        for ending in (b"", b"}", b'": 1}', b": 1}", b'"}'):
            pairs: list[tuple[str, object]] = []
            try:
                json.loads(self.text + data + ending, object_pairs_hook=pairs.extend)
            except ValueError:
                continue
            names = [name for name, _ in pairs]
            return len(set(names)) < len(names)
        return False


def forbidden(doubts: Doubts, mask: Mask) -> list[bytes]:
    """The bytes of the tokens that are forbidden, each once."""
    return [TOKENS[token] for token in sorted(set(doubts.forbidden(Written(mask.text), mask, NAMES)))]


def test_a_name_that_was_begun_is_not_ended_as_another() -> None:
    """Tokens that begin with the ending of a repeated name are taken out, and none of them is tried but for escapes."""
    mask = Mask(b'{"a": 1, "')
    assert forbidden(Doubts((), (), True), mask) == [b'a"', b'\\u0061"']
    assert mask.tried == [b'\\u0061"']


def test_an_ending_that_may_lead_elsewhere_is_tried() -> None:
    """Where the same bytes could be more than a name, each token is tried by itself if the bytes alone are allowed."""
    mask = Mask(b'{"a": 1, "', is_name=False)
    assert forbidden(Doubts((), (), True), mask) == [b'a"', b'\\u0061"']
    assert b'a"' in mask.tried


def test_in_the_midst_of_an_escape_whatever_closes_the_name_is_tried() -> None:
    """Tokens that finish the escape are no endings as `json.dumps` writes them."""
    mask = Mask(b'{"a": 1, "\\')
    assert forbidden(Doubts((), (), True), mask) == [b'u0061"']


def test_whole_names_are_compared_with_those_of_the_text() -> None:
    """A token with one name is tried if the object has that name; one that may hold more names always."""
    named = (3, 4, 7, 8)
    mask = Mask(b'{"b": 1, ')
    assert forbidden(Doubts((), named, False), mask) == [b'"b": 1, "', b'"b": 1, "c": 2, "']
    assert b'"a"' not in mask.tried


def test_a_vocabulary_without_closers_asks_no_mask_for_them() -> None:
    """Where no token ends a name after an escape, a name that was begun leads to no selection among the mask's."""
    mask = Mask(b'{"a": 1, "')
    mask.within = mask.tried.append  # type: ignore[assignment, method-assign]
    names = NameTokens([b'a"', b'b"', b'"'], np.arange(3))
    Doubts((), (), True).forbidden(Written(mask.text), mask, names)
    assert mask.tried == []


def test_what_is_unsure_is_tried() -> None:
    """Each of these tokens takes an exact step."""
    mask = Mask(b'{"b": 1, ')
    forbidden(Doubts((9, 3), (), False), mask)
    assert mask.tried == [b"x", b'"a"']


@pytest.mark.parametrize("text", [b"", b"{", b"[1, ", b'{"a": "'])
def test_without_names_nothing_is_asked(text: bytes) -> None:
    """Where no name was written, or none may begin, the mask is left alone."""
    mask = Mask(text)
    assert Doubts((), (), True).forbidden(Written(text), mask, NAMES) == [] and mask.tried == []


def test_the_memo_of_names_is_bounded_and_shared_by_threads() -> None:
    """Threads that ask for more sets of tokens than are memoised get what a fresh object returns."""
    shared = NameTokens(TOKENS, NAMES.quoted)
    asked = [(ids, most) for size in (3, 4) for ids in itertools.combinations(range(9), size) for most in (2, 3)]
    assert len(asked) > MAX_BY_NAME
    expected = {each: NameTokens(TOKENS, NAMES.quoted).by_name(*each) for each in asked}
    wrong: list[object] = []

    def ask(seed: int) -> None:
        try:
            for each in random.Random(seed).sample(asked, len(asked)):
                if shared.by_name(*each) != expected[each]:
                    wrong.append(each)
        except Exception as error:  # a thread would hide it
            wrong.append(error)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(shared._by_name.items()) == MAX_BY_NAME
