"""Properties that are computed once, without a lock."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, replace

import pytest

from toolgrammar.core.basics import cached_property


@dataclass(frozen=True)
class Text:
    """A frozen class with a property that is computed on first use."""

    words: tuple[str, ...]

    @cached_property
    def text(self) -> list[str]:
        """The text."""
        return [" ".join(self.words)]


def test_the_value_belongs_to_the_instance() -> None:
    """It is computed once for an instance, not copied by `replace`, and refers to itself in the class."""
    one = Text(("a", "b"))
    assert one.text is one.text and one.text == ["a b"]
    assert replace(one, words=("c",)).text == ["c"]
    assert isinstance(Text.text, cached_property) and Text.text.__doc__ == "The text."


def test_threads_get_one_value() -> None:
    """Threads that compute a value at the same time get the one that was kept first."""
    both = threading.Barrier(2, timeout=30)

    class Slow:
        @cached_property
        def value(self) -> object:
            both.wait()
            return object()

    slow, found = Slow(), []
    threads = [threading.Thread(target=lambda: found.append(slow.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 and found[0] is found[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_waits_for_no_thread() -> None:
    """A process that is forked while another thread computes the property of one instance reads that of another."""
    entered, done = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits: bool) -> None:
            self.waits = waits

        @cached_property
        def value(self) -> int:
            if self.waits:
                entered.set()
                done.wait(30)
            return 1

    thread = threading.Thread(target=lambda: Slow(True).value)
    thread.start()
    assert entered.wait(30)
    child = os.fork()
    if not child:
        os._exit(Slow(False).value)
    try:
        ended = 0
        until = time.monotonic() + 20
        while not ended and time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0.01)
        if not ended:
            os.kill(child, 9)
            os.waitpid(child, 0)
        assert ended == child and os.waitstatus_to_exitcode(status) == 1
    finally:
        done.set()
        thread.join()
