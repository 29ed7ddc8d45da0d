"""The memo of recent values: bounded, the least recently used value goes first, also among threads."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Callable

import pytest

from toolgrammar.core.basics.recent_memo import RecentMemo
from toolgrammar.core.json.keys import value_of_key
from toolgrammar.core.regex.foreign import to_ecma
from toolgrammar.core.schema.read.unread import nearest_format, nearest_keyword
from toolgrammar.tools.formats.base import dump_name


def test_the_least_recently_used_value_goes_first() -> None:
    """A look-up counts as a use, and so does another value of the same key."""
    memo: RecentMemo[int] = RecentMemo(3)
    for number in range(3):
        memo.put(number, number)
    assert memo.get(0) == 0 and memo.get(7) is None
    memo.put(3, 3)
    assert memo.items() == [(2, 2), (0, 0), (3, 3)]
    memo.put(2, 5)  # known: nothing has to go
    assert memo.get(2) == 5 and len(memo.items()) == 3


def test_large_values_make_room() -> None:
    """Past the bound in bytes the least recently used values go, but never the newest one; a new size replaces one."""
    memo: RecentMemo[int] = RecentMemo(10, 100)
    for number in range(4):
        memo.put(number, number, 40)
    assert memo.items() == [(2, 2), (3, 3)]
    memo.put(3, 5, 90)
    assert memo.items() == [(3, 5)]
    memo.put(7, 7, 1_000)
    assert memo.items() == [(7, 7)]
    memo.put(8, 8, 1)
    assert memo.items() == [(8, 8)]


def test_threads_share_a_memo() -> None:
    """Many threads fill and read a small memo: no error, no foreign value, and the bound holds."""
    memo: RecentMemo[int] = RecentMemo(8)
    wrong: list[object] = []

    def use(offset: int) -> None:
        try:
            for turn in range(3_000):
                key = (offset + turn) % 20
                if (value := memo.get(key)) not in (None, key * key):
                    wrong.append(value)
                memo.put(key, key * key)
        except Exception as error:  # a thread would hide it
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(memo.items()) == 8


#: Calls that memoise what a request has, with arguments of so many characters that are new for each number.
LONG: dict[str, Callable[[str], object]] = {
    "value of a constant": lambda text: value_of_key(f'"{text}"'),
    "unknown keyword": nearest_keyword,
    "unknown format": nearest_format,
    "Rust": lambda text: to_ecma(text, "rust"),
    "name of a tool": dump_name,
}


@pytest.mark.parametrize("name", LONG)
def test_what_is_memoised_of_long_texts_is_bounded_in_bytes(name: str) -> None:
    """Fifteen long texts, new ones each, leave no more in memory than a few of them."""
    size = 3_000
    for number in range(3):
        LONG[name](f"{number:09}".ljust(size, "x"))
    tracemalloc.start()
    try:
        for number in range(3, 18):
            LONG[name](f"{number:09}".ljust(size, "x"))
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 6 * size
