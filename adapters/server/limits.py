"""Limits of a server, and the queue in front of each model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

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
        answer_seconds: maximum time for one answer; a request waits no longer than that for its turn.
        body_seconds: maximum time in which the body of a request arrives.
    """

    max_body: int = 4 << 20
    max_schema: int = 1 << 20
    max_answers: int = 16
    max_running: int = 4
    max_waiting: int = 256
    answer_seconds: float = 600.0
    body_seconds: float = 30.0


class Queue:
    """The requests of one model: some run, some wait, in the order in which they came, and more are refused.

    Attributes:
        running: number of requests that run.
        waiting: number of requests that wait.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._free = asyncio.Semaphore(limits.max_running)
        self.running = 0
        self.waiting = 0

    @property
    def is_full(self) -> bool:
        """True if one more request would be refused."""
        return self._free.locked() and self.waiting >= self._limits.max_waiting

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
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
        try:
            yield
        finally:
            self.running -= 1
            self._free.release()
