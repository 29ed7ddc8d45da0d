"""Responses of HTTP: JSON, streams that end with their client, and work that a leaving client ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from .failures import failure_of
from .fields import RequestError
from .protocols.base import Endpoint

T = TypeVar("T")


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
