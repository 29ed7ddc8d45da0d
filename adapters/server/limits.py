"""Limits of a server, and the queue in front of each model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from toolgrammar.core.basics import held, is_long

from .failures import BusyError

#: Minimum time in seconds between two measurements of the grammars' memory, and between two requests that end for it.
_MEASURE_SECONDS = 0.5


@dataclass(frozen=True)
class Limits:
    """Bounds of one server.

    Attributes:
        max_body: maximum number of bytes of a request's body.
        max_schema: maximum number of bytes of all schemas of a request, as JSON.
        max_answers: maximum number of answers to one request (``n``).
        max_running: maximum number of requests that one model works on at a time.
        max_waiting: maximum number of requests that wait for one model; one more is refused (429).
        max_long: maximum number of requests of one model whose grammars take long, which run beside the others.
        max_grammars: maximum bytes of all grammars. Beyond it, those that are kept are dropped; if those in use take
            more alone, the request that has been long for the longest time is refused (429), then the next one.
        answer_seconds: maximum time for one answer; a request waits no longer than that for its turn.
        body_seconds: maximum time in which the body of a request arrives.
    """

    max_body: int = 4 << 20
    max_schema: int = 1 << 20
    max_answers: int = 16
    max_running: int = 4
    max_waiting: int = 256
    max_long: int = 32
    max_grammars: int = 512 << 20
    answer_seconds: float = 600.0
    body_seconds: float = 30.0


class Queue:
    """The requests of one model: some run, some wait, in the order in which they came, and more are refused.

    A request whose grammar takes long gives its place to the next one, and goes on beside it, so that a few of them do
    not keep all others waiting; together they get a twentieth of the interpreter (see `core/basics/pauses.py`).

    Args:
        limits: the bounds.
        relieve: drops the grammars that are kept for later requests.

    Attributes:
        running: number of requests that run, with the long ones.
        waiting: number of requests that wait.
    """

    def __init__(self, limits: Limits, relieve: Callable[[], object] = lambda: None) -> None:
        self._limits = limits
        self._relieve = relieve
        self._free = asyncio.Semaphore(limits.max_running)
        # Turns that gave their place away, the first for the longest time.
        self._long: list[Turn] = []
        self._measured = 0.0  # time of the last measurement of the grammars' memory, on the monotonic clock
        self._before = held()  # bytes of grammars of others in this process, which this server cannot free
        self.running = 0
        self.waiting = 0

    @property
    def is_full(self) -> bool:
        """True if one more request would be refused."""
        return self._free.locked() and self.waiting >= self._limits.max_waiting

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Turn]:
        """Wait for a turn, and hold it while the block runs.

        Raises:
            BusyError: too many wait, or the wait was too long.
        """
        if self.is_full:
            raise BusyError(f"{self.waiting} requests are waiting for this model", hint="try again in a moment")
        self.waiting += 1
        try:
            await asyncio.wait_for(self._free.acquire(), self._limits.answer_seconds)
        except asyncio.TimeoutError:
            raise BusyError("the request could not be started in time", hint="try again in a moment") from None
        finally:
            self.waiting -= 1
        self.running += 1
        turn = Turn(self)
        try:
            yield turn
        finally:
            self.running -= 1
            turn.is_over = True
            if turn.gave_place:
                self._long.remove(turn)
                self._measured = time.monotonic()  # the next measurement waits until what it held is freed
            else:
                self._free.release()

    def give_place(self, turn: Turn) -> bool:
        """Let the next request run beside a long one; return False if there are too many long ones."""
        if len(self._long) >= self._limits.max_long:
            return False
        self._long.append(turn)
        self._free.release()
        return True

    def has_to_end(self, turn: Turn) -> bool:
        """Drop the kept grammars if all of them take too much memory; return True if the others alone do, and this
        request has been long for the longest time. For any thread."""
        if self._long[:1] != [turn] or time.monotonic() < self._measured + _MEASURE_SECONDS:
            return False
        most = self._limits.max_grammars
        if held() - self._before > most:
            self._relieve()
        self._measured = time.monotonic()
        return held() - self._before > most


class Turn:
    """The turn of one request, in the event loop in which it was made.

    Attributes:
        gave_place: another request has its place, because this one is long or waits for an image. (Only requests that
            are being read wait for one, and the grammars of these have no bound: no mere wait is refused for memory.)
        is_over: the request has ended.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._loop = asyncio.get_running_loop()
        self._is_asked = False  # the event loop is to give the place away, or has
        self.gave_place = False
        self.is_over = False

    def check(self) -> None:
        """Give the place to another request if the work of this thread is long. For any thread.

        Raises:
            BusyError: the grammars of all requests take too much memory, and this one has to end.
        """
        if self.gave_place and self._queue.has_to_end(self):
            raise BusyError(
                "the grammars of all requests take more memory than this server allows, and this one took the longest",
                hint="try again later, or send a simpler schema",
            )
        if is_long():
            self.give_place()

    def give_place(self) -> None:
        """Give the place to another request. For any thread."""
        if not self._is_asked:
            self._is_asked = True
            with suppress(RuntimeError):  # the event loop is closed
                self._loop.call_soon_threadsafe(self._give_place)

    def _give_place(self) -> None:
        if not self.is_over:
            self.gave_place = self._queue.give_place(self)
            self._is_asked = self.gave_place  # with too many long requests it is asked again later


_TURN: ContextVar[Turn | None] = ContextVar("_TURN", default=None)


@contextmanager
def holding(turn: Turn) -> Iterator[None]:
    """Have a turn given away by `give_place` in the block."""
    before = _TURN.set(turn)
    try:
        yield
    finally:
        _TURN.reset(before)


def give_place() -> None:
    """Give the place of the turn in whose block this is to another request: what follows is a wait."""
    turn = _TURN.get()
    if turn is not None:
        turn.give_place()
