"""The exchange of HTTP: keys and JSON bodies of requests, bounded work on them, responses to clients that may leave."""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from json import decoder
from types import MappingProxyType
from typing import Any, TypeVar

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from toolgrammar.core.basics import ended_by, pause
from toolgrammar.core.errors import CancelledError
from toolgrammar.core.generation import Deadline

from .failures import failure_of
from .fields import RequestError
from .limits import Limits, Queue, holding
from .protocols.base import Endpoint

T = TypeVar("T")

#: Number of requests that are read at a time, and of more whose reading takes long. They take turns, as one interpreter
#: runs them: more would not read faster.
READING = Limits(max_running=8, max_waiting=1 << 30, max_long=256, max_grammars=1 << 62)


#: Maximum number of brackets and commas up to which a body is parsed at once, in some 15 ms: no other thread runs
#: meanwhile. Commas within texts count, so a longer body may have few values.
MAX_AT_ONCE = 100_000

#: Maximum number of values in a body.
MAX_VALUES = 500_000

#: Number of values between two pauses.
_BETWEEN = 1_000


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
        if is_small(data):
            return parse(data)
        deadline = Deadline.after(self._limits.answer_seconds)
        return await self.read(request, deadline, lambda: parse(data))

    async def _bytes(self, request: Request) -> bytes:
        """Return the body of a request.

        Raises:
            RequestError: it is too large.
        """
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
        """Return what ``work`` returns: a part of reading a request that may take long.

        A thread of the readers does it, and stops at the next pause once the time is over or the client has left.

        Raises:
            ClientDisconnect: the client left.
            GenerationTimeoutError: the time is over.
        """
        is_over = threading.Event()  # nobody waits for the work any more

        async def done() -> T:
            """Wait for a turn, and do the work in a thread."""
            async with self.queue.turn() as turn:

                def check() -> None:
                    if is_over.is_set():
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
            is_over.set()


# -- bodies ------------------------------------------------------------------------------------------------------------


def is_small(data: bytes) -> bool:
    """Return True if a body can be parsed at once."""
    return sum(map(data.count, (b",", b"[", b"{"))) <= MAX_AT_ONCE


def parse(data: bytes) -> Any:
    """Return the JSON value of a body.

    Raises:
        RequestError: it is no JSON, or has more than `MAX_VALUES` values.
        Ended: the request is over (see `core/basics/pauses.py`).
    """
    try:
        return json.loads(data, cls=json.JSONDecoder if is_small(data) else _Decoder, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise RequestError("the body is not JSON", hint="send a JSON object") from None


class _Decoder(json.JSONDecoder):
    """A decoder that counts values and pauses among them: it replaces the loops of `json` that are written in C, which
    hold the interpreter until a body is parsed, by those in Python, whose calls for a value are counted."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        inner: Any = decoder
        arrays, objects = inner.JSONArray, inner.JSONObject
        left = MAX_VALUES

        def counted(scan: Callable[..., Any]) -> Callable[..., Any]:
            """Return ``scan``, which parses the value at a place of a text, with a count of its calls."""

            def scan_one(text: str, at: int) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    hint = f"at most {MAX_VALUES:,} are accepted"
                    raise RequestError("the body has too many values", hint=hint, status=413)
                if left % _BETWEEN == 0:
                    pause()
                return scan(text, at)

            return scan_one

        def array(start: Any, scan: Callable[..., Any], *more: Any) -> Any:
            return arrays(start, counted(scan), *more)

        def members(start: Any, strict: bool, scan: Callable[..., Any], *more: Any) -> Any:
            return objects(start, strict, counted(scan), *more)

        self.parse_array, self.parse_object = array, members
        self.scan_once = inner.scanner.py_make_scanner(self)  # the loop in Python, over the two functions above


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


# -- responses ---------------------------------------------------------------------------------------------------------


def as_json(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a JSON body."""
    text = json.dumps(data, separators=(",", ":"))
    return Response(text, status, dict(headers or {}), "application/json")


def refused(protocol: Endpoint, error: RequestError) -> Response:
    """Return the error for a refused request, in the form of its protocol."""
    failure = failure_of(error)
    return as_json(protocol.error(failure), failure.status, failure.headers)


class Streamed(StreamingResponse):
    """A streamed response whose pieces are closed with it, so that a model stops when its client leaves."""

    def __init__(
        self, pieces: AsyncGenerator[str, None], *, media_type: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        super().__init__(pieces, media_type=media_type, headers={"Cache-Control": "no-cache", **headers})
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._pieces.aclose()


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """Do some work, unless the client leaves before it is done.

    Raises:
        ClientDisconnect: it did; the work is cancelled.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    """Return when the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
