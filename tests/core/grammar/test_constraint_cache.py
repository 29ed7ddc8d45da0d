"""The cache of constraints: one compilation each, a bound in bytes, the least recently used first."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import (
    Constraint,
    ConstraintCache,
    Grammar,
    GrammarError,
    InvalidSchemaError,
    UnsatisfiableSchemaError,
    Vocabulary,
)
from toolgrammar.core.automaton import lazy_dfa as program_module
from toolgrammar.core.automaton.lazy_dfa import Workspace
from toolgrammar.core.masks.mask_engine import SharedEngine
from toolgrammar.core.models import Model
from toolgrammar.core.testing import ScriptedModel

from ...vocabularies import BYTES as VOCABULARY


def schema(number: int) -> dict[str, Any]:
    """A schema of its own for each number."""
    return {"type": "object", "properties": {f"name{number}": {"type": "string", "maxLength": 5}}, "maxProperties": 1}


def first_mask(constraint: Constraint) -> bytes:
    """What a text may begin with."""
    out = np.zeros(constraint.words, dtype=np.uint32)
    constraint.matcher().fill_mask(out)
    return out.tobytes()


def size_of_one() -> int:
    """What one of the schemas takes."""
    cache = ConstraintCache()
    cache.from_json_schema(schema(0), VOCABULARY)
    return cache.statistics.bytes


def test_equal_requests_are_one_constraint() -> None:
    """Annotations and the order of keywords do not tell requests apart; all else does."""
    cache = ConstraintCache()
    base = schema(1)
    one = cache.from_json_schema(base, VOCABULARY)
    reordered = dict(reversed({**base, "description": "d", "title": "t"}.items()))
    assert cache.from_json_schema(reordered, VOCABULARY) is one
    assert cache.bind(Grammar.from_json_schema(base), VOCABULARY) is one
    others = [
        cache.from_json_schema(base, VOCABULARY, whitespace="compact"),
        cache.from_json_schema(base, VOCABULARY, additional_properties=False),
        cache.from_json_schema(schema(2), VOCABULARY),
        cache.from_json_schema({**base, "properties": {"x": True, **base["properties"]}}, VOCABULARY),
        cache.from_json_schema({**base, "properties": {**base["properties"], "x": True}}, VOCABULARY),
        cache.from_json_schema(base, Vocabulary([b"{", b"}", None], eos=[2])),
        cache.from_json_schema(True, VOCABULARY),
    ]
    assert len({id(each) for each in (one, *others)}) == 8
    statistics = cache.statistics
    assert (statistics.hits, statistics.misses, statistics.evictions, statistics.entries) == (2, 8, 0, 8)
    assert len(cache) == 8 and "entries=8" in repr(cache)


def test_vocabularies_of_equal_content_are_one() -> None:
    """A vocabulary that was loaded twice is one vocabulary."""
    cache = ConstraintCache()
    again = Vocabulary(VOCABULARY.tokens, eos=VOCABULARY.eos)
    assert cache.bind(Grammar.json(), VOCABULARY) is cache.bind(Grammar.json(), again)


@pytest.mark.parametrize(
    "make",
    [
        Grammar.json,
        lambda: Grammar.from_regex("a|b"),
        lambda: Grammar.literal("x"),
        lambda: Grammar.literal(b"x"),
        lambda: Grammar.text(min_chars=1),
        lambda: Grammar.text(excluding=["1"]),
        lambda: Grammar.until("x", excluding=["y"]),
        lambda: Grammar.literal("x") + Grammar.json(),
        lambda: Grammar.literal("x") | Grammar.json(),
        lambda: Grammar.repeat(Grammar.literal("x"), 0, 2),
        lambda: Grammar.repeat(Grammar.literal("x"), 0, None),
    ],
)
def test_every_kind_of_grammar_has_its_key(make: Any) -> None:
    """Grammars that are made alike are one entry, and each kind is another one than JSON with a space before it."""
    cache = ConstraintCache()
    one = cache.bind(make(), VOCABULARY)
    assert cache.bind(make(), VOCABULARY) is one
    assert cache.bind(Grammar.literal(" ") + Grammar.json(), VOCABULARY) is not one
    assert cache.statistics.entries == 2


def test_what_has_no_text_is_kept_by_identity() -> None:
    """A schema too deep for JSON is an entry, too, and equal to itself."""
    deep: dict[str, Any] = {}
    for _ in range(3_000):
        deep = {"type": "array", "items": deep}
    cache = ConstraintCache()
    assert cache.from_json_schema(deep, VOCABULARY) is cache.from_json_schema(deep, VOCABULARY)
    assert cache.statistics.hits == 1


def test_least_recently_used_go_first() -> None:
    """Past the bound the entry that was asked for longest ago makes room."""
    cache = ConstraintCache(3 * size_of_one() + 1_000)
    first = first_mask(Grammar.from_json_schema(schema(1)).bind(VOCABULARY))
    for number in (0, 1, 2, 0):  # so that 1 is the oldest
        cache.from_json_schema(schema(number), VOCABULARY)
    cache.from_json_schema(schema(3), VOCABULARY)
    before = cache.statistics
    assert before.evictions == 1
    for number in (0, 2, 1):
        fresh = cache.from_json_schema(schema(number), VOCABULARY)
    after = cache.statistics
    assert (after.hits - before.hits, after.misses - before.misses) == (2, 1)
    assert after.bytes <= after.max_bytes and after.evictions == 2
    assert first_mask(fresh) == first


def test_what_comes_and_goes_leaves_nothing() -> None:
    """Constraints that take turns in a cache that is too small for both leave no trace of the dropped ones."""
    cache = ConstraintCache(size_of_one() + 1_000)
    for number in range(40):
        cache.from_json_schema(schema(number % 2), VOCABULARY)
    assert cache.statistics.misses == 40 and len(cache._round) == len(cache) == 1


def test_what_is_in_use_takes_from_the_bound() -> None:
    """Entries and dropped constraints that someone holds are within the bound together, until the entries have no more
    than a quarter of it; all of it is theirs again when the others are gone."""
    size = size_of_one()
    cache = ConstraintCache(8 * size)
    held = [cache.from_json_schema(schema(number), VOCABULARY) for number in range(30)]
    kept = [
        number for number, each in enumerate(held) if any(each is one.constraint for one in cache._entries.values())
    ]
    assert cache.statistics.bytes <= cache.statistics.max_bytes / 4 and 1 <= len(kept) <= 2
    held = held[-5:]
    for number in range(40, 60):
        cache.from_json_schema(schema(number), VOCABULARY)
        in_use = sum(each.byte_count() for each in held[: 5 - len(kept)])
        assert cache.statistics.bytes + in_use <= cache.statistics.max_bytes
    del held
    for number in range(60, 80):
        cache.from_json_schema(schema(number), VOCABULARY)
    assert cache.statistics.bytes > cache.statistics.max_bytes - 2 * size


def test_full_stores_go_first_and_none_is_kept_beside_another() -> None:
    """A constraint whose store is full keeps no earlier one, warmed or not, and is the first to be dropped."""
    joined = {"type": "string", "pattern": "^(?=[a-z]*a[a-z]{30}b)(?=[a-z]*c[a-z]{30}d)(?=[a-z]*e[a-z]{25}f)[a-z]*$"}
    cache = ConstraintCache()
    constraint = cache.from_json_schema(joined, VOCABULARY)
    constraint.warm(0.0)
    first = weakref.ref(constraint.program.store)
    matcher = constraint.matcher()
    text = b'"' + (b"abcdefghijklmnopqrstuvwxyz" * 3 + b"ace" * 9) * 2
    assert matcher.accept_bytes(text)
    assert first() is None  # it was full, and the text has moved on
    full = weakref.ref(constraint.program.store)
    assert constraint.program.is_full
    constraint.warm(0.0)  # begins in a fresh store
    taken = constraint.program.store.byte_count()
    store = full()
    assert store is not None and constraint.byte_count() > taken + store.byte_count()
    del store, matcher
    assert full() is None and constraint.byte_count() < 2 * taken
    assert constraint.matcher().accept_bytes(text)
    cache.from_json_schema(schema(0), VOCABULARY)
    cache.from_json_schema(joined, VOCABULARY)
    assert cache.statistics.entries == 2
    assert next(iter(cache._entries.values())).constraint is constraint


def test_growth_is_measured() -> None:
    """An entry that grows with the texts written under it makes others go, and at last itself."""
    big = {"type": "string", "pattern": "^(a|b)*a(a|b){12}$"}
    cache = ConstraintCache(6 * size_of_one())
    constraint = cache.from_json_schema(big, VOCABULARY)
    cache.from_json_schema(schema(0), VOCABULARY)
    before = cache.statistics
    draw = np.random.default_rng(0)
    for _ in range(20):
        assert constraint.matcher().accept_bytes(b'"' + bytes(draw.choice([97, 98], 60).tolist()))
    cache.from_json_schema(big, VOCABULARY)
    after = cache.statistics
    assert after.evictions > before.evictions == 0
    assert after.bytes <= after.max_bytes
    assert constraint.matcher().accept_bytes(b'"abab')  # whoever holds it goes on


def test_what_goes_is_freed() -> None:
    """An evicted constraint's store is freed at once, without the garbage collector's help."""
    cache = ConstraintCache()
    constraint = cache.from_json_schema(schema(0), VOCABULARY)
    first_mask(constraint)
    automaton = weakref.ref(constraint.program.store)
    gc.disable()
    try:
        del constraint
        cache.clear()
        assert automaton() is None
    finally:
        gc.enable()
    assert cache.statistics.bytes == cache.statistics.entries == 0


def test_a_grammar_that_is_kept_keeps_nothing_that_was_counted() -> None:
    """Who keeps the grammar of an evicted constraint does not keep its store, and can use the grammar as before."""
    cache = ConstraintCache()
    grammar = Grammar.from_json_schema(schema(0))
    store = weakref.ref(cache.bind(grammar, VOCABULARY).program.store)
    assert store() is not None
    cache.clear()
    assert store() is None
    assert grammar.matches("{}") and cache.bind(grammar, VOCABULARY).matcher().accept_bytes(b"{}")


def test_concurrent_equal_requests_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen threads that ask for one schema at once wait for one compilation; others are not held up."""
    compiled: list[int] = []
    begun, go = threading.Event(), threading.Event()
    bind = Grammar.bind

    def slow(self: Grammar, vocabulary: Vocabulary) -> Constraint:
        compiled.append(1)
        if self.schema == schema(1):
            begun.set()
            assert go.wait(60)
        return bind(self, vocabulary)

    monkeypatch.setattr(Grammar, "bind", slow)
    cache = ConstraintCache()
    found: list[Constraint] = []
    threads = [
        threading.Thread(target=lambda: found.append(cache.from_json_schema(schema(1), VOCABULARY))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    cache.from_json_schema(schema(2), VOCABULARY)  # meanwhile
    deadline = time.monotonic() + 60
    while cache.statistics.hits < 15 and time.monotonic() < deadline:
        time.sleep(0.001)
    go.set()
    for thread in threads:
        thread.join()
    assert len(found) == 16 and len({id(each) for each in found}) == 1
    assert len(compiled) == 2
    assert (cache.statistics.hits, cache.statistics.misses) == (15, 2)


def test_errors_are_told_to_all_and_not_kept() -> None:
    """A schema that cannot be compiled raises for each request, and leaves no entry."""
    cache = ConstraintCache()
    for _ in range(2):
        with pytest.raises(InvalidSchemaError):
            cache.from_json_schema({"type": "nothing"}, VOCABULARY)
        with pytest.raises(UnsatisfiableSchemaError):
            cache.from_json_schema(False, VOCABULARY)
        with pytest.raises(TypeError):
            cache.from_json_schema(True, VOCABULARY, no_such_option=1)
    assert cache.statistics.entries == 0
    with pytest.raises(GrammarError, match="max_bytes is 0"):
        ConstraintCache(0)


def test_an_interrupted_compilation_is_done_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the thread that compiles is interrupted, one that waits takes over."""
    begun, go = threading.Event(), threading.Event()
    bind = Grammar.bind
    turns: list[int] = []

    def interrupted(self: Grammar, vocabulary: Vocabulary) -> Constraint:
        turns.append(1)
        if len(turns) == 1:
            begun.set()
            assert go.wait(60)
            raise KeyboardInterrupt
        return bind(self, vocabulary)

    monkeypatch.setattr(Grammar, "bind", interrupted)
    cache = ConstraintCache()
    outcome: list[object] = []

    def ask() -> None:
        try:
            outcome.append(cache.from_json_schema(True, VOCABULARY))
        except BaseException as error:  # the interruption itself
            outcome.append(type(error))

    first = threading.Thread(target=ask)
    first.start()
    assert begun.wait(60)
    second = threading.Thread(target=ask)
    second.start()
    deadline = time.monotonic() + 60
    while cache.statistics.hits < 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    go.set()
    first.join()
    second.join()
    assert outcome[0] is KeyboardInterrupt and isinstance(outcome[1], Constraint)
    assert len(cache) == 1


def part(number: int, workspace: Workspace | None = None) -> Grammar:
    """A part of many grammars."""
    return (Grammar.literal(f"{number}:") + Grammar.from_json_schema(schema(number))).as_part(workspace)


def test_shared_stores_are_counted_once_and_go_with_the_last() -> None:
    """Grammars of shared parts weigh little each; when all are gone, so is their store."""
    workspace = Workspace()
    cache = ConstraintCache()
    known = Vocabulary(VOCABULARY.tokens, eos=VOCABULARY.eos)
    first = cache.bind(part(0, workspace) | part(1, workspace), known)
    one = cache.statistics.bytes
    for number in range(2, 12):
        first_mask(cache.bind(part(0, workspace) | part(number, workspace), known))
    statistics = cache.statistics
    assert statistics.entries == 11 and statistics.bytes < 3 * one
    store = weakref.ref(first.program.store)
    assert known.derived(SharedEngine).engine is not None
    cache.clear()
    del first
    assert known.derived(SharedEngine).engine is None and cache.statistics.bytes == 0
    gc.collect()
    assert store() is None


def test_entries_of_a_full_shared_store_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a shared store has given way to a new one, no entry keeps the old one alive."""
    cache, workspace = ConstraintCache(), Workspace()
    known = Vocabulary(VOCABULARY.tokens, eos=VOCABULARY.eos)
    stores = {
        id(cache.bind(part(0, workspace) | part(number, workspace), known).program.store) for number in range(1, 4)
    }
    assert len(stores) == 1 and len(cache) == 3
    old = weakref.ref(cache.bind(part(0, workspace) | part(1, workspace), known).program.store)
    with monkeypatch.context() as patch:
        patch.setattr(program_module, "PROGRAM_MEMORY", 1)
        new = cache.bind(part(0, workspace) | part(9, workspace), known)
    assert cache.statistics.entries == 1 and cache.statistics.evictions == 3
    gc.collect()
    assert old() is None and new.matcher().accept_bytes(b"9:{")


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=40))
def test_counts_add_up(requests: list[tuple[int, bool]]) -> None:
    """Whatever is asked for, hits and misses add up to the requests, and bytes stay under the bound."""
    cache = ConstraintCache(300_000)
    for number, write in requests:
        constraint = cache.from_json_schema(schema(number), VOCABULARY)
        if write:
            matcher = constraint.matcher()
            matcher.accept_bytes(matcher.shortest_completion())
    statistics = cache.statistics
    assert statistics.hits + statistics.misses == len(requests)
    assert statistics.misses - statistics.evictions == statistics.entries == len(cache)
    assert statistics.bytes <= statistics.max_bytes


def test_models_use_a_cache() -> None:
    """A model keeps its constraints in a cache of its own, or in one that models share."""
    model = ScriptedModel(["[1]", "[1]"])
    for _ in range(2):
        model.generate_json("list", {"type": "array", "items": {"type": "integer"}})
    assert (model.cache.statistics.hits, model.cache.statistics.misses) == (1, 1)
    shared = ConstraintCache()
    for _ in range(2):
        Model(model.backend, cache=shared).generate_json("list", {"const": 1})
    assert (shared.statistics.hits, shared.statistics.misses) == (1, 1)
