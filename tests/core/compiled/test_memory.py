"""Memory for numbers, in its interpreted form, and tables of integers that live in it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from toolgrammar.core.compiled import memory

MAKERS = (memory.octets, memory.shorts, memory.ints, memory.longs, memory.ulongs)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_memory_begins_as_zeros_and_keeps_what_is_in_it(make) -> None:
    """More memory begins with the same numbers, and the rest of it is zero; a twin is not the same memory."""
    numbers = make(3)
    assert list(numbers) == [0, 0, 0]
    numbers[0], numbers[2] = 7, 100
    other = memory.twin(numbers, 2, 4)
    assert list(other) == [7, 0, 0, 0]
    numbers = memory.more(numbers, 3, 5)
    other[0] = 8
    assert list(numbers) == [7, 0, 100, 0, 0]


def test_numbers_are_read_back_from_their_bytes() -> None:
    """`read_bytes` undoes `as_bytes`, and leaves the numbers behind alone."""
    numbers = memory.ints(3)
    numbers[0], numbers[1] = -1, 2**31 - 1
    data = memory.as_bytes(numbers, 2)
    assert len(data) == 8
    others = memory.ints(4)
    others[2] = 5
    assert memory.read_bytes(others, data) == 2
    assert list(others) == [-1, 2**31 - 1, 5, 0]


#: Writes under a schema until every store has grown, and prints what was allowed.
GROWING = """
from toolgrammar.core import Grammar, Vocabulary
names = {f"name{number}": {"type": "string", "pattern": f"^[a-z]{{{number},}}$"} for number in range(40)}
schema = {"type": "object", "properties": names, "required": list(names), "additionalProperties": False}
vocabulary = Vocabulary([bytes((byte,)) for byte in range(256)] + [b'": ', None], eos=[257], cache_dir=False)
matcher = Grammar.from_json_schema(schema).bind(vocabulary).matcher()
total = 0
for byte in matcher.shortest_completion():
    total = total * 31 + sum(matcher.allowed_tokens()) & 0xFFFFFFFF
    assert matcher.accept(byte)
print(total)
"""


def test_what_grows_is_the_same_in_both_forms() -> None:
    """Stores that grow many times over allow the same tokens, compiled and interpreted."""
    found = {
        subprocess.run(
            [sys.executable, "-c", GROWING],
            env={"TOOLGRAMMAR_INTERPRETED": form},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for form in ("0", "1")
    }
    assert len(found) == 1
