"""Requests of HTTP: keys, bodies, and bounded work on what they ask for."""

from __future__ import annotations

import asyncio
import hmac
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import Request

from toolgrammar.core.basics import ended_by
from toolgrammar.core.errors import CancelledError
from toolgrammar.core.generation import Deadline

from . import bodies
from .fields import RequestError
from .limits import Limits, Queue, holding
from .replies import unless_gone

T = TypeVar("T")

#: Number of requests that are read at a time, and of more whose reading takes long. They take turns, as one interpreter
#: runs them: more would not read faster.
READING = Limits(max_running=8, max_waiting=1 << 30, max_long=256, max_grammars=1 << 62)


class Incoming:
    """Reads requests.

    Args:
        limits: bounds of requests.
        keys: keys of which every request needs one; empty: none is asked for.

    Attributes:
        queue: the requests that are read, and those that wait for it.
    """

    def __init__(self, limits: Limits, keys: Sequence[str]) -> None:
        self._limits = limits
        self._keys = [key.encode() for key in keys]
        self.queue = Queue(READING)
        self._readers = ThreadPoolExecutor(
            READING.max_running + READING.max_long, thread_name_prefix="toolgrammar-reader"
        )

    def close(self) -> None:
        """End the threads of the readers."""
        self._readers.shutdown(cancel_futures=True)

    def authorize(self, request: Request) -> int | None:
        """Check the key of a request, in constant time; return its number among the keys, or None if there are none.

        Raises:
            RequestError: it has none, or a wrong one.
        """
        if not self._keys:
            return None
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = bearer.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        same = [hmac.compare_digest(given.encode("utf-8", "replace"), key) for key in self._keys]
        if not any(same):  # all were compared, so the time tells nothing
            raise RequestError("the API key is missing or wrong", hint="send 'Authorization: Bearer KEY'", status=401)
        return same.index(True)

    async def body(self, request: Request) -> Any:
        """Return the JSON of a request's body.

        Raises:
            RequestError: it is no JSON, too large, has too many values, or does not arrive in time.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        # A browser sends other types for a web page without asking us first, and says so. `curl -d` sends them, too.
        if kind != "application/json" and any(name in request.headers for name in ("origin", "sec-fetch-site")):
            raise RequestError(
                f"the content type is {kind!r}", hint="send 'Content-Type: application/json'", status=415
            )
        try:
            data = await asyncio.wait_for(self._bytes(request), self._limits.body_seconds)
        except asyncio.TimeoutError:
            raise RequestError("the body did not arrive in time", status=408) from None
        if bodies.is_small(data):
            return bodies.parse(data)
        deadline = Deadline.after(self._limits.answer_seconds)
        return await self.read(request, deadline, lambda: bodies.parse(data))

    async def _bytes(self, request: Request) -> bytes:
        most = self._limits.max_body
        stated = request.headers.get("content-length", "")
        size = int(stated) if stated.isdecimal() else 0
        data = bytearray()
        if size <= most:
            async for piece in request.stream():
                data += piece
                size = max(size, len(data))
                if size > most:
                    break
        if size > most:
            raise RequestError("the body is too large", hint=f"at most {most:,} bytes are accepted", status=413)
        return bytes(data)

    async def read(self, request: Request, deadline: Deadline, work: Callable[[], T]) -> T:
        """Return what some work on a request's fields returns. It may take long: a thread of the readers does it, and
        leaves it where the time is over or the client has left.

        Raises:
            ClientDisconnect: the client left.
            GenerationTimeoutError: the time is over.
        """
        left = threading.Event()

        async def done() -> T:
            async with self.queue.turn() as turn:

                def check() -> None:
                    if left.is_set():
                        raise CancelledError("the client has disconnected")
                    deadline.check()
                    turn.check()

                def run() -> T:
                    with ended_by(check), holding(turn):
                        check()
                        return work()

                return await asyncio.get_running_loop().run_in_executor(self._readers, run)

        try:
            return await asyncio.wait_for(unless_gone(request, done()), deadline.end - time.monotonic())
        except asyncio.TimeoutError:
            deadline.check()
            raise
        finally:
            left.set()
