"""What is kept stays small: counted deterministically, on unions of tools and on many schemas."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import Constraint, ConstraintCache, Grammar, Vocabulary
from toolgrammar.core.automaton.lazy_dfa import Workspace
from toolgrammar.core.basics.resident import LEAST_BYTES
from toolgrammar.core.language.terms import COMPILED
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.call_grammars import CallGrammars

MB = 2**20
WORDS = [b'{"', b'": ', b'": "', b'", "', b'"}}', b"true", b"null", b"12", b"ab", b"abc", b"the ", "é".encode()]
TOKENS: list[bytes | None] = [*(bytes([each]) for each in range(256)), *WORDS, None]
KINDS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 1, "maxLength": 30},
    {"type": "string", "enum": ["celsius", "fahrenheit", "kelvin"]},
    {"type": "string", "format": "date"},
    {"type": "string", "pattern": "^[A-Z]{3}-[0-9]+$"},
    {"type": "integer", "minimum": 1, "maximum": 1_000},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string"}, "maxItems": 5, "uniqueItems": True},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "number"}}]},
]


def properties(draw: random.Random, prefix: str) -> dict[str, Any]:
    """Some properties with names of their own."""
    return {f"{prefix}_{at}": draw.choice(KINDS) for at in range(draw.randint(1, 8))}


def tool(number: int) -> Tool:
    """A tool of its own for each number."""
    chosen = properties(random.Random(number), f"argument_{number}")
    return Tool(f"tool_{number}", "", {"type": "object", "properties": chosen, "required": list(chosen)[:2]})


def write(constraint: Constraint, draw: random.Random) -> None:
    """One text: random tokens from the mask, then the shortest way to end it."""
    matcher = constraint.matcher()
    out = np.zeros(constraint.words, dtype=np.uint32)
    for _ in range(25):
        matcher.fill_mask(out)
        allowed = np.flatnonzero(np.unpackbits(out.view(np.uint8), bitorder="little"))
        if not len(allowed) or not matcher.accept(int(allowed[draw.randrange(len(allowed))])) or matcher.is_finished:
            return
    assert matcher.accept_bytes(matcher.shortest_completion())


def union(count: int) -> Grammar:
    """The grammar of a call of one of so many tools, in a workspace of their own."""
    grammars = CallGrammars(Workspace())
    return ToolSet([tool(each) for each in range(count)], grammars=grammars).grammar(tool_choice="required")


@pytest.mark.parametrize(("count", "calls", "bound"), [(10, 1_000, 20 * MB), (100, 300, 100 * MB)])
def test_unions_stay_small(count: int, calls: int, bound: int) -> None:
    """A union of tools takes no more than its bound after many random calls, as counted, beside the vocabulary."""
    vocabulary = Vocabulary(TOKENS, eos=[len(TOKENS) - 1])
    constraint = union(count).bind(vocabulary)
    draw = random.Random(0)
    for _ in range(calls):
        write(constraint, draw)
    assert 0 < constraint.byte_count() <= bound


def test_texts_that_are_alike_cost_nothing_more() -> None:
    """The same calls a second time derive nothing: no state, no row, no token set, no byte."""
    vocabulary = Vocabulary(TOKENS, eos=[len(TOKENS) - 1])
    constraint = union(5).bind(vocabulary)
    found = []
    for _ in range(2):
        draw = random.Random(7)
        for _ in range(60):
            write(constraint, draw)
        counters = constraint.counters()
        found.append(
            (constraint.byte_count(), [counters[key] for key in ("states", "rows", "faults", "mask_token_sets")])
        )
    assert found[0] == found[1]


def test_what_is_counted_is_what_is_allocated() -> None:
    """The bytes that a cache counts for many schemas are those that Python allocated, within a third."""
    vocabulary = Vocabulary(TOKENS, eos=[len(TOKENS) - 1])
    cache = ConstraintCache()
    draw = random.Random(0)

    def add(number: int) -> None:
        chosen = properties(draw, f"field_{number}")
        schema = {"type": "object", "properties": chosen, "required": list(chosen)[:1]}
        write(cache.from_json_schema(schema, vocabulary, additional_properties=False), draw)

    for number in range(8):  # what is made once for all
        add(number)
    counted = cache.statistics.bytes
    tracemalloc.start()
    try:
        for number in range(8, 30):
            add(number)
        allocated = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    counted = cache.statistics.bytes - counted
    assert 0.67 < counted / allocated < 1.5


def distinct(items: Callable[[int], str], schema: dict[str, Any]) -> Callable[[int], tuple[dict[str, Any], str]]:
    """Arrays of so many distinct items."""
    whole = {"type": "array", "items": schema, "uniqueItems": True}
    return lambda size: (whole, "[" + ", ".join(map(items, range(size))))


def of_objects(size: int) -> dict[str, Any]:
    """A schema of so many properties with schemas of their own."""
    return {"type": "object", "properties": {f"p{each}": {"minimum": each} for each in range(size)}}


def look_aheads(size: int) -> tuple[dict[str, Any], str]:
    """Three joined look-aheads, and a text of so many characters."""
    pattern = "^(?=[a-z]*a[a-z]{30}b)(?=[a-z]*c[a-z]{30}d)(?=[a-z]*e[a-z]{25}f)[a-z]*$"
    text = ("abcdefghijklmnopqrstuvwxyz" * 3 + "ace" * 9) * 8
    return {"type": "string", "pattern": pattern}, '"' + text[:size]


#: What takes much memory: by a size, the schema, and the text.
LARGE: dict[str, tuple[Callable[[int], tuple[dict[str, Any], str]], int]] = {
    "distinct integers": (distinct(lambda each: f"{100_000 + each}", {"type": "integer"}), 1_200),
    "many distinct integers": (distinct(lambda each: f"{100_000 + each}", {"type": "integer"}), 1_800),
    "distinct objects": (
        distinct(
            lambda each: f'{{"a": {100_000 + each}}}',
            {"properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
        ),
        300,
    ),
    "distinct values of any kind": (distinct(lambda each: f'[{each}, "a{each}"]', {}), 100),
    "joined look-aheads": (look_aheads, 1_000),
    "an enum of strings": (
        lambda size: ({"enum": [f"{each:05d}-{'x' * (each % 17)}" for each in range(size)]}, '"00'),
        60_000,
    ),
    "an enum of long strings": (lambda size: ({"enum": [f"{each:05d}" * 40 for each in range(size)]}, '"00'), 20_000),
    "an enum of integers": (lambda size: ({"enum": list(range(size))}, "1"), 100_000),
    "many properties": (lambda size: (of_objects(size), '{"p1": 5'), 10_000),
}

#: The program of a process: it prints the counted bytes, the resident bytes beside them, and those after the end.
RESIDENT = """
import ctypes, gc, sys
import numpy as np
from tests.core.masks.test_memory import LARGE
from toolgrammar.core import Grammar
from toolgrammar.core.grammar.sampling import single_bytes

def resident(trimmed=True):
    gc.collect()
    if trimmed and hasattr(ctypes.CDLL(None), "malloc_trim"):  # arrays that grew leave free memory behind
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def write(size):
    schema, text = make(size)  # the schema belongs to the grammar, as that of a request does
    grammar = Grammar.from_json_schema(schema)
    constraint = grammar.bind(vocabulary)
    matcher = constraint.matcher()
    out = np.zeros(constraint.words, dtype=np.uint32)
    for byte in text.encode():
        matcher.fill_mask(out)
        assert matcher.accept(byte)
    return grammar, constraint

vocabulary = single_bytes()
make, size = LARGE[sys.argv[1]]
write(40)
before = resident()
grammar, constraint = write(size)
print(grammar.byte_count() + constraint.byte_count(), resident() - before)
del grammar, constraint
print(resident(trimmed=False) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not say what is resident")
@pytest.mark.skipif(not COMPILED, reason="the interpreted form has other arrays")
@pytest.mark.parametrize("name", LARGE)
def test_what_is_counted_is_resident_and_is_given_back(name: str) -> None:
    """The bytes that one long text, or one large schema, is counted for are those by which the process grew, within 30%;
    afterwards most of them are the system's again."""
    done = subprocess.run(
        [sys.executable, "-c", RESIDENT, name],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    counted, grown, left = map(int, done.stdout.split())
    assert 0.7 < grown / counted < 1.3
    assert left < 0.3 * grown + LEAST_BYTES


def test_a_cache_stays_under_its_bound() -> None:
    """Hundreds of distinct schemas through a small cache: what is counted stays bounded, and what went is freed."""
    vocabulary = Vocabulary(TOKENS, eos=[len(TOKENS) - 1])
    cache = ConstraintCache(4 * MB)
    draw = random.Random(1)
    stores = []
    for number in range(250):
        schema = {"type": "object", "properties": properties(draw, f"field_{number}")}
        constraint = cache.from_json_schema(schema, vocabulary, additional_properties=False)
        stores.append(weakref.ref(constraint.program.store))
        write(constraint, draw)
        if number % 25 == 24:
            statistics = cache.statistics
            assert statistics.bytes <= 4 * MB
            # The one in hand may have been evicted.
            assert sum(each() is not None for each in stores) <= statistics.entries + 1
    assert cache.statistics.evictions > 200


def test_a_token_set_counts_once() -> None:
    """Each character within a distant bound is a position of its own, and all of them share one token set."""
    words = ["".join(each).encode() for each in itertools.product("abcdefgh", repeat=4)]
    vocabulary = Vocabulary([*(bytes([each]) for each in range(256)), *words, None], eos=[256 + len(words)])
    schema = {"type": "string", "pattern": r"^(\S+\s+)*\S+$", "maxLength": 500}
    constraint = Grammar.from_json_schema(schema).bind(vocabulary)
    matcher = constraint.matcher()
    out = np.zeros(constraint.words, dtype=np.uint32)
    assert matcher.accept_bytes(b'"aa')
    counted = []
    for _ in range(20):
        matcher.fill_mask(out)
        counted.append(constraint.counters()["mask_bytes"])
        assert matcher.accept_bytes(b"a")
    assert constraint.counters()["mask_shared"] >= 20
    assert (counted[-1] - counted[0]) / 19 < 4 * constraint.words
