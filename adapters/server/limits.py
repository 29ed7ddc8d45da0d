"""Limits of a server, and the queue in front of each model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from toolgrammar.core.basics import is_long

from .failures import BusyError


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
        answer_seconds: maximum time for one answer; a request waits no longer than that for its turn.
        body_seconds: maximum time in which the body of a request arrives.
    """

    max_body: int = 4 << 20
    max_schema: int = 1 << 20
    max_answers: int = 16
    max_running: int = 4
    max_waiting: int = 256
    max_long: int = 32
    answer_seconds: float = 600.0
    body_seconds: float = 30.0


class Queue:
    """The requests of one model: some run, some wait, in the order in which they came, and more are refused.

    A request whose grammar takes long gives its place to the next one, and goes on beside it, so that a few of them do
    not keep all others waiting; together they get a twentieth of the interpreter (see `core/basics/pauses.py`).

    Attributes:
        running: number of requests that run, with the long ones.
        waiting: number of requests that wait.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._free = asyncio.Semaphore(limits.max_running)
        self._long = 0
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
        turn = Turn(self._give_place)
        try:
            yield turn
        finally:
            self.running -= 1
            if turn.end():
                self._long -= 1
            else:
                self._free.release()

    def _give_place(self) -> bool:
        """Let the next request run beside a long one; return False if there are too many long ones."""
        if self._long >= self._limits.max_long:
            return False
        self._long += 1
        self._free.release()
        return True


class Turn:
    """The turn of one request, in the event loop in which it was made.

    Args:
        give: gives the place of the request to another one, and returns True; or returns False.
    """

    def __init__(self, give: Callable[[], bool]) -> None:
        self._give = give
        self._loop = asyncio.get_running_loop()
        self._is_told = self._is_given = self._is_over = False

    def check(self) -> None:
        """Give the place to another request if the work of this thread is long. For any thread."""
        if not self._is_told and is_long():
            self._is_told = True
            with suppress(RuntimeError):  # the event loop is closed
                self._loop.call_soon_threadsafe(self._pass_on)

    def end(self) -> bool:
        """End; return True if the place was given away."""
        self._is_over = True
        return self._is_given

    def _pass_on(self) -> None:
        if not self._is_over:
            self._is_given = self._give()
            self._is_told = self._is_given
