"""Pauses in long work, at which other threads run, long work rests, and work for a cancelled request ends.

A compiled function does not let other threads run until it returns or calls an interpreted one. So long work calls
`pause` every few thousand steps: the stores of terms and nodes when they grow, and loops that add to neither. An error
raised in a pause leaves the stores in a consistent state, as a `LimitError` at the same point does.

Such an error belongs to the request, and says nothing of what is made for it: a schema, say, that others use too. So
until it is back at the block of its request it is an `Ended`, which is no `Exception`: no ``except`` between the two
takes it for a fault of the schema, wraps it, keeps it, or leaves something out because of it.

Threads share the interpreter equally, so that a few expensive grammars would slow down many cheap ones. So the work of
one request (`Account`) becomes *long* after `LONG_SECONDS` of processor time in expensive steps. Then it rests after
each `TURN_SECONDS`, for `REST` times as long, while other threads do short work. Rests follow each other: all long work
together gets a twentieth of the interpreter, however many threads do it. Without short work nothing rests, and without
a GIL neither. A resting thread may hold the lock of a store; it never waits for another thread but those that rest, so
that no two wait for each other.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..compiled.gil import HAS_GIL

#: Processor time in seconds after which the work of a request is long.
LONG_SECONDS = 0.03

#: Processor time in seconds of one step of a request that does not count: many of them are a long text, not long work.
STEP_SECONDS = 0.002

#: Processor time in seconds of long work between two rests.
TURN_SECONDS = 0.01

#: Length of a rest, in multiples of the processor time before it.
REST = 19.0

#: Time in seconds after short work in which more of it is expected.
_RECENT_SECONDS = 0.1

#: Maximum time in seconds between two checks in a rest.
_CHECK_SECONDS = 0.02


class Ended(BaseException):
    """The request of a block of `ended_by` is over: on its way from a pause to that block, which raises the error.

    Args:
        work: the work of the block.
        error: what its check raised.
    """

    def __init__(self, work: _Work, error: Exception) -> None:
        super().__init__(work, error)
        self.work = work
        self.error = error

    def release(self) -> Exception:
        """Return the error, and refer to it no longer: its traceback has frames that refer to this."""
        error = self.error
        del self.error
        self.args = ()
        self.__context__ = None
        return error


class Account:
    """Processor time of the work of one request, which different threads may do one after the other.

    Attributes:
        used: its seconds in the blocks of `ended_by` that are over, without `STEP_SECONDS` of each.
    """

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0.0


class _Work:
    """The work of a block of `ended_by`, in one thread."""

    __slots__ = ("account", "begin", "check", "is_long", "outer", "rested")

    def __init__(self, check: Callable[[], object], account: Account, outer: _Work | None) -> None:
        self.check = check
        self.account = account
        self.outer = outer
        self.begin = self.rested = time.thread_time()
        self.is_long = account.used > LONG_SECONDS

    def pause(self) -> None:
        """Check whether the requests of this block and of those around it are over; rest if the work is long."""
        now = time.thread_time()
        self.is_long = self.is_long or self.account.used + now - self.begin > LONG_SECONDS
        work: _Work | None = self
        while work is not None:
            work.end_if_over()
            work = work.outer
        if HAS_GIL and self.is_long and now - self.rested > TURN_SECONDS:
            _rests.rest(REST * (now - self.rested), self.end_if_over)
            self.rested = time.thread_time()

    def end_if_over(self) -> None:
        try:
            self.check()
        except Exception as error:
            raise Ended(self, error) from None

    def end(self) -> None:
        self.account.used += max(time.thread_time() - self.begin - STEP_SECONDS, 0.0)
        if not self.is_long:
            _rests.last_short = time.monotonic()
        elif self.outer is not None:
            self.outer.is_long = True


class _Rests:
    """Rests of all threads of this process, one after the other.

    Attributes:
        last_short: time of the last short work, on the monotonic clock.
    """

    def __init__(self) -> None:
        self.last_short = float("-inf")
        self._lock = threading.Lock()

    def rest(self, seconds: float, check: Callable[[], object]) -> None:
        """Rest while other threads do short work. Errors of ``check`` end the rest."""
        while self._is_expected():
            if self._lock.acquire(timeout=_CHECK_SECONDS):
                try:
                    self._sleep(seconds, check)
                finally:
                    self._lock.release()
                return
            check()

    def _sleep(self, seconds: float, check: Callable[[], object]) -> None:
        end = time.monotonic() + seconds
        while self._is_expected() and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _CHECK_SECONDS))
            check()

    def _is_expected(self) -> bool:
        return time.monotonic() < self.last_short + _RECENT_SECONDS


_rests = _Rests()
_work: ContextVar[_Work | None] = ContextVar("work", default=None)


def _forget_threads() -> None:
    """Begin anew in a forked process, which does not have the threads that rest."""
    global _rests
    _rests = _Rests()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def pause() -> None:
    """Let other threads run; long work rests.

    Raises:
        Ended: the request of the work is over; the block of `ended_by` raises its error.
    """
    work = _work.get()
    if work is not None:
        work.pause()


def is_long() -> bool:
    """Return True if the work of this thread is long."""
    work = _work.get()
    return work is not None and work.is_long


@contextmanager
def ended_by(check: Callable[[], object], account: Account | None = None) -> Iterator[None]:
    """Call a function at each pause of this thread in the block, and those of the blocks around it; their errors end
    the work.

    Args:
        check: raises a `CancelledError` after the request was cancelled; may be called thousands of times a second.
        account: the processor time of the request, which its other blocks share; None: it has no other block.
    """
    work = _Work(check, account or Account(), _work.get())
    token = _work.set(work)
    error = None
    try:
        yield
    except Ended as ended:
        if ended.work is not work:  # of a block around it
            raise
        error = ended.release()  # of this block: the error of ``check`` itself
    finally:
        _work.reset(token)
        work.end()
    if error is not None:
        try:
            raise error from None
        finally:
            del error  # a cycle: its traceback has this frame
