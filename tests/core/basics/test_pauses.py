"""Long work pauses: other threads run, and a request that is over ends within it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from toolgrammar.core import CancelledError, GenerationTimeoutError, Grammar, LimitError, load_model
from toolgrammar.core.automaton import lazy_dfa
from toolgrammar.core.basics import pauses
from toolgrammar.core.basics.pauses import LONG_SECONDS, STEP_SECONDS, Account, ended_by, is_long, pause
from toolgrammar.core.compiled.gil import HAS_GIL
from toolgrammar.core.language import node_store, term_store
from toolgrammar.core.schema.check import problems
from toolgrammar.core.schema.normal import disjoint, normalise

from ...vocabularies import BYTES

#: Each character takes long: of three languages with thousands of states each, any combination may be the present one.
COMBINED = {
    "type": "string",
    "pattern": "^(?=[a-z]*a[a-z]{30}b)(?=[a-z]*c[a-z]{30}d)(?=[a-z]*e[a-z]{25}f)[a-z]*$",
}


class OverError(Exception):
    """The work is wanted no more."""


def test_a_check_ends_the_work_of_its_block_alone() -> None:
    """A check is called at each pause of its block, in its thread, and nowhere else."""
    calls = []
    with ended_by(lambda: calls.append(1)):
        pause()
        other = threading.Thread(target=pause)
        other.start()
        other.join()
    pause()
    assert calls == [1]


def test_a_store_goes_on_serving_after_work_in_it_was_ended() -> None:
    """Work that is ended in its midst leaves the grammar as good as it was."""
    grammar = Grammar.from_json_schema(COMBINED)
    text = '"' + "ab" * 20
    pauses = 0

    def check() -> None:
        nonlocal pauses
        pauses += 1
        if pauses % 2 == 0:
            raise OverError

    ended = 0
    matcher = grammar.bind(BYTES).matcher()
    for byte in text.encode():
        while True:
            try:
                with ended_by(check):
                    assert matcher.accept(byte)
                break
            except OverError:
                ended += 1
    assert ended
    assert grammar.begins(text) and not grammar.begins('"A')
    assert matcher.accept_bytes(b"c") and not matcher.accept_bytes(b"1")


@pytest.mark.parametrize("way", ["timeout", "cancel"])
def test_an_answer_ends_in_the_midst_of_a_step(way: str) -> None:
    """The deadline of an answer, and its cancellation, are met within work between two tokens."""
    model = load_model("embedded")
    begun = time.monotonic()
    options = {"timeout": 1.0} if way == "timeout" else {"cancel": lambda: time.monotonic() > begun + 1}
    error = GenerationTimeoutError if way == "timeout" else CancelledError
    with pytest.raises(error):
        model.generate_json("x", COMBINED, max_tokens=200, **options)
    assert model.generate_json("x", {"type": "boolean"}) in (True, False)


def _one_of(count: int) -> dict[str, Any]:
    """Alternatives of which any two are compared."""
    objects = [
        {"type": "object", "required": [f"p{i}"], "properties": {f"p{i}": {"type": "integer"}, "x": {"const": i}}}
        for i in range(count)
    ]
    return {"oneOf": objects}


def _distinct_items(count: int) -> dict[str, Any]:
    """An array whose completion is planned anew after each item."""
    return {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": count}


def _members(count: int) -> dict[str, Any]:
    """An object of members with listed values: nodes for each of them."""
    properties = {f"p{i}": {"enum": [f"v{i}-{j}" for j in range(8)]} for i in range(count)}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _of_members(count: int) -> str:
    """A text of `_members`."""
    return "{" + ", ".join(f'"p{i}": "v{i}-1"' for i in range(count)) + "}"


#: A text of many different states of a counter over its last characters.
WORDS = "".join(f"{number:012b}" for number in range(1000)).replace("0", "a").replace("1", "b")

#: Long work: the module that pauses in it, and the minimum number of pauses there.
WORK: dict[str, tuple[Any, int, Callable[[], object]]] = {
    "terms are derived": (term_store, 3, lambda: Grammar.from_regex("(a|b)*a(a|b){12}").matches(WORDS)),
    "nodes are made": (node_store, 3, lambda: Grammar.from_json_schema(_members(400)).matches(_of_members(400))),
    "a schema is checked": (
        problems,
        10,  # 2,561 subschemas
        lambda: Grammar.from_json_schema(
            {"type": "object", "properties": {f"p{i}": {"type": "integer", "minimum": i} for i in range(2560)}}
        ),
    ),
    "alternatives are compared": (disjoint, 3, lambda: Grammar.from_json_schema(_one_of(40)).begins("{")),  # 780 pairs
    "a formula is brought into normal form": (
        normalise,
        10,
        lambda: Grammar.from_json_schema(
            {"allOf": [{"anyOf": [{"minimum": i * j} for j in range(6)]} for i in range(5)]}
        ).begins("3"),
    ),
    "a completion is planned": (
        lazy_dfa,
        20,
        lambda: Grammar.from_json_schema(_distinct_items(20)).bind(BYTES).matcher().shortest_completion(),
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_long_work_pauses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of long work pauses as often as it should, whatever else pauses in it."""
    module, least, work = WORK[name]
    pauses = 0

    def count() -> None:
        nonlocal pauses
        pauses += 1

    monkeypatch.setattr(module, "pause", count)
    with contextlib.suppress(LimitError):
        work()
    assert pauses >= least


def test_another_thread_runs_at_a_pause() -> None:
    """At a pause within a derivation, another thread does its work and is waited for."""
    turns: list[int] = []

    def check() -> None:
        other = threading.Thread(target=turns.append, args=(len(turns),))
        other.start()
        other.join()

    with ended_by(check), contextlib.suppress(LimitError):
        Grammar.from_json_schema(COMBINED).matches('"' + "ab" * 30)
    assert len(turns) > 3


def spin(seconds: float) -> None:
    """Use processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_work_becomes_long_over_several_steps() -> None:
    """Expensive steps of one request add up, in whatever thread; many cheap ones, and other requests, do not."""
    account, found = Account(), []

    def step(seconds: float) -> None:
        with ended_by(lambda: None, account):
            spin(seconds)
            pause()
            found.append(is_long())

    for _ in range(3):
        thread = threading.Thread(target=step, args=(LONG_SECONDS / 2,))
        thread.start()
        thread.join()
    assert not found[0] and found[-1] and not is_long()
    account = Account()
    for _ in range(50):
        step(STEP_SECONDS / 4)
    assert not found[-1]


def _rest(monkeypatch: pytest.MonkeyPatch, *, is_expected: bool, check: Callable[[], object] = lambda: None) -> float:
    """Do long work, and return the seconds for which it rests."""
    monkeypatch.setattr(pauses._rests, "last_short", float("inf") if is_expected else float("-inf"))
    slept: list[float] = []
    monkeypatch.setattr(pauses.time, "sleep", slept.append)
    monkeypatch.setattr(pauses, "REST", 0.01)
    with ended_by(check):
        spin(2 * LONG_SECONDS)
        pause()
    return sum(slept)


@pytest.mark.skipif(not HAS_GIL, reason="threads run at the same time")
def test_long_work_rests_while_others_do_short_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sleeps if there was short work, and does not otherwise; an error of its check ends the rest for others too."""
    assert _rest(monkeypatch, is_expected=True) > 0
    assert _rest(monkeypatch, is_expected=False) == 0
    checks = []

    def check() -> None:
        checks.append(1)
        if len(checks) > 1:
            raise OverError

    with pytest.raises(OverError):
        _rest(monkeypatch, is_expected=True, check=check)
    assert not pauses._rests._lock.locked()


@pytest.mark.skipif(not HAS_GIL, reason="threads run at the same time")
def test_only_short_work_makes_others_rest() -> None:
    """The end of a short block is what long work rests for; that of a long one, or of a block around it, is not."""
    with ended_by(lambda: None):
        pass
    before = pauses._rests.last_short
    assert before > float("-inf")
    with ended_by(lambda: None), ended_by(lambda: None):
        spin(2 * LONG_SECONDS)
        pause()
    assert pauses._rests.last_short == before
