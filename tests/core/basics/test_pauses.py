"""Long work pauses: other threads run, and a request that is over ends within it."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from toolgrammar.core import CancelledError, GenerationTimeoutError, Grammar, LimitError, load_model
from toolgrammar.core.basics.pauses import ended_by, pause

from ...bombs import PATTERNS
from ...vocabularies import BYTES

#: Each character takes longer than the one before: there are ever more ways to count it.
COUNTED = {"type": "string", "pattern": PATTERNS[0]}


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
    grammar = Grammar.from_json_schema(COUNTED)
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
        model.generate_json("x", COUNTED, max_tokens=200, **options)
    assert model.generate_json("x", {"type": "boolean"}) in (True, False)


def test_other_threads_run_while_a_grammar_is_derived() -> None:
    """While one thread derives, another runs again and again."""
    turns = 0
    over = threading.Event()

    def other() -> None:
        nonlocal turns
        while not over.wait(0.001):
            turns += 1

    seen: list[int] = []

    def check() -> None:
        seen.append(turns)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        with ended_by(check), contextlib.suppress(LimitError):
            Grammar.from_json_schema(COUNTED).matches('"' + "ab" * 30)
    finally:
        over.set()
        thread.join()
    assert len(seen) > 3 and len(set(seen)) > 1
