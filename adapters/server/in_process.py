"""The application without a port: transports for httpx and httpx2 that hand requests to it in the same process.

It runs in an event loop of its own thread, so blocking clients can use it, and clients of any event loop.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette

from toolgrammar.core.basics import EventLoop

from .served import Served

#: Address of the application in its clients; nothing is sent there.
BASE_URL = "http://toolgrammar.invalid"


@dataclass(frozen=True)
class _Start:
    """The beginning of a response."""

    status: int
    headers: list[tuple[bytes, bytes]]


class InProcess:
    """An application, and the transports by which clients reach it.

    It is closed when nobody holds it any more: frameworks are handed clients that nobody closes.

    Args:
        app: the application.
        http: the module ``httpx``, or ``httpx2``, whose clients use the transports.
    """

    def __init__(self, app: Starlette, http: Any) -> None:
        self._app = app
        self._http = http
        self._loop = EventLoop()
        # Frees the thread and the models with the last client. It refers to these two, because a reference to this
        # object would keep it alive. At the end of the process the event loop itself ends what is open.
        weakref.finalize(self, _free, self._loop, app.state.served).atexit = False
        # The library takes bodies of its own classes only; which library it is, is known here.
        self._sync_body = type("_Body", (_SyncBody, http.SyncByteStream), {})
        self._async_body = type("_Body", (_AsyncBody, http.AsyncByteStream), {})

    def transport(self) -> Any:
        """Return a transport for a blocking client."""
        return type("_Transport", (_SyncTransport, self._http.BaseTransport), {})(self)

    def async_transport(self) -> Any:
        """Return a transport for an asynchronous client."""
        return type("_Transport", (_AsyncTransport, self._http.AsyncBaseTransport), {})(self)

    def iterate(self, request: Any, body: bytes) -> Any:
        """Return the response to a request of a blocking client."""
        patience = _Patience(request, self._http)
        items: Any = self._loop.iterate(lambda: _exchange(self._app, request, body), patience.check)
        start = next(items)
        return self._response(request, start, self._sync_body(patience.renewed(items), items.close))

    async def aiterate(self, request: Any, body: bytes) -> Any:
        """Return the response to a request of an asynchronous client."""
        patience = _Patience(request, self._http)
        items: Any = self._loop.aiterate(lambda: _exchange(self._app, request, body), patience.check)
        start = await anext(items)
        return self._response(request, start, self._async_body(patience.arenewed(items), items.aclose))

    def close(self) -> None:
        """End the thread, and close the models that were given by their addresses."""
        self._loop.close()
        self._app.state.served.close()

    def _response(self, request: Any, start: _Start, stream: Any) -> Any:
        return self._http.Response(start.status, headers=start.headers, stream=stream, request=request)


def _free(loop: EventLoop, served: Served) -> None:
    """Free what an application in this process held, without waiting."""
    loop.close(wait=False)
    served.close()


async def _exchange(app: Starlette, request: Any, body: bytes) -> AsyncGenerator[_Start | bytes, None]:
    """Yield the beginning of a response, then the pieces of its body."""
    messages: asyncio.Queue[Any] = asyncio.Queue()
    is_read = False

    async def receive() -> Any:
        nonlocal is_read
        if is_read:
            await asyncio.Event().wait()  # a client that leaves cancels the task
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("127.0.0.1", 0),
        "server": (request.url.host, request.url.port),
    }
    task = asyncio.ensure_future(app(scope, receive, messages.put))
    task.add_done_callback(lambda _: messages.put_nowait(None))
    try:
        while (message := await messages.get()) is not None:
            if message["type"] == "http.response.start":
                yield _Start(message["status"], message["headers"])
            elif message.get("body"):
                yield message["body"]
        task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class _Patience:
    """The read timeout of a request: how long its client waits for the next piece."""

    def __init__(self, request: Any, http: Any) -> None:
        self._seconds = request.extensions.get("timeout", {}).get("read")
        self._error = http.ReadTimeout
        self._request = request
        self._since = time.monotonic()

    def check(self) -> None:
        """Raise the client's own error when the time is over."""
        if self._seconds is not None and time.monotonic() - self._since > self._seconds:
            raise self._error("the answer did not come in time", request=self._request)

    def renewed(self, items: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the items; the time of each counts from the one before."""
        for item in items:
            self._since = time.monotonic()
            yield item

    async def arenewed(self, items: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Do what `renewed` does."""
        async for item in items:
            self._since = time.monotonic()
            yield item


class _SyncBody:
    def __init__(self, pieces: Iterator[bytes], close: Callable[[], None]) -> None:
        self._pieces = pieces
        self.close = close

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces


class _AsyncBody:
    def __init__(self, pieces: AsyncIterator[bytes], aclose: Callable[[], Any]) -> None:
        self._pieces = pieces
        self.aclose = aclose

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces


class _SyncTransport:
    def __init__(self, process: InProcess) -> None:
        self._process = process

    def handle_request(self, request: Any) -> Any:
        return self._process.iterate(request, request.read())

    def close(self) -> None:
        self._process.close()


class _AsyncTransport:
    def __init__(self, process: InProcess) -> None:
        self._process = process

    async def handle_async_request(self, request: Any) -> Any:
        return await self._process.aiterate(request, await request.aread())

    async def aclose(self) -> None:
        await asyncio.to_thread(self._process.close)


def client_arguments(base_url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments that keep an SDK's client from the environment: its address and key are not used."""
    return {"base_url": base_url, "api_key": "in-process", "max_retries": 0, **options}
