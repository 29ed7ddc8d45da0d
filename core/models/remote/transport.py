"""HTTP transport to one server: requests, event streams, and every failure as an error of this library.

Requests are sent only to the user's address: redirects are not followed, and proxies, ``.netrc`` and the like are read
from the environment only on request. No error, log or repr contains a key.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...basics.logs import logger_of
from ...errors import (
    AuthenticationError,
    BudgetError,
    ContextOverflowError,
    ModelError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ServerConnectionError,
    ServerError,
    ServerFailureError,
    ServerTimeoutError,
)
from .amazon_events import amazon_events

if TYPE_CHECKING:
    import httpx

_LOG = logger_of("remote")

#: Maximum size of one answer, in bytes.
MAX_BODY = 32 * 1024 * 1024

#: Maximum time in seconds to wait for a busy server before a request is sent again.
MAX_WAIT = 30.0

#: Default number of times that a request is sent again to a server that is busy or has failed.
MAX_RESENT = 2


@dataclass
class RequestCount:
    """Counter of the requests that were sent for one answer, to a busy server again too."""

    number: int = 0


#: The counter of the answer that is being requested.
REQUEST_COUNT: ContextVar[RequestCount] = ContextVar("toolgrammar_request_count")

_BUSY = frozenset({429, 500, 502, 503, 504, 529})
_OVERFLOW = re.compile(
    r"context[_ ](length|size|window|limit)|maximum (context|prompt length)|exceed_context_size|prompt (is )?too long"
    r"|too many tokens|input tokens? (count|exceed)|input (is )?too long|reduce the length of the messages"
    r"|exceeds the maximum number of tokens",
    re.I,
)
#: Rejections of a number of tokens in which no answer ends: of our own server, and of OpenAI's.
_BUDGET = re.compile(r"\b(raise|higher|set) max_(completion_|output_)?tokens\b", re.I)
#: Rejections of a key with status 400 (of Google).
_KEY = re.compile(r"api[_ ]key (not valid|expired|invalid)|API_KEY_INVALID", re.I)

#: Words in rejections with status 500 (of llama_cpp.server).
_INVALID = re.compile(
    r"validation error|input should be|literal_error|extra_forbidden|response_format|json[_ ]?schema|grammar"
    r"|(not|un)[_ ]?(supported|recogni[sz]ed|permitted)|unknown (field|parameter|type)|invalid request",
    re.I,
)
_SHOWN = 400


class RefusedError(Exception):
    """The server rejects a request (400, 413, 422, 501, and perhaps 500); it may accept another form.

    Args:
        status: HTTP status.
        reason: the server's message.
        error: the error to raise if there is no other form.
        is_sure: the request is certainly the reason; a status of 500 may have another one.
    """

    def __init__(self, status: int, reason: str, error: ModelError, *, is_sure: bool = True) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.error = error
        self.is_sure = is_sure


class Transport:
    """Connections to one server. All of it runs on one event loop.

    Args:
        base_url: address of the server's API, ``http://host:port/v1``.
        headers: headers of every request; may contain secrets.
        secrets: texts that must never be shown.
        timeout: time in seconds without data after which a request fails.
        resent: maximum number of times that a request is sent again to a server that is busy or has failed.
        trust_env: use the proxies and certificates of the environment.
        transport: an httpx transport that replaces the network.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        secrets: tuple[str, ...],
        timeout: float,
        *,
        resent: int = MAX_RESENT,
        trust_env: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.base_url = base_url
        self._headers = dict(headers)
        self._secrets = tuple(sorted(filter(None, secrets), key=len, reverse=True))
        self._timeout = timeout
        self._most_resent = resent
        self._trust_env = trust_env
        self._transport = transport
        self._client: httpx.AsyncClient | None = None
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"Transport({self.base_url!r})"

    @property
    def is_open(self) -> bool:
        """True if this process has connections to close."""
        return self._client is not None and self._process == os.getpid()

    async def aclose(self) -> None:
        """Close all connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def fetch(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of the server's answer to a POST of ``body``, or to a GET.

        Args:
            path: path below the base address, or ``/PATH`` from the root of the server.
            body: JSON value to send.

        Raises:
            RefusedError: the server rejects this form of the request.
            ContextOverflowError: the prompt is too long.
            BudgetError: no answer fits in the tokens that the request allows.
            ServerError: any other failure, with a subclass for each kind.
        """
        async with self._answer(path, body) as response:
            return self._json(await self._read(response), response.headers.get("content-type", ""))

    async def events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Yield the JSON events of a stream (server-sent events, or Amazon's binary ones); a single event, if the
        answer is not a stream.

        Raises: as `fetch`.
        """
        from httpx import Response
        from httpx_sse import EventSource

        async with self._answer(path, body) as response:
            kind = response.headers.get("content-type", "")
            if "amazon.eventstream" in kind:
                async with aclosing(amazon_events(self._chunks(response))) as frames:
                    async for frame in frames:
                        yield frame
                return
            if "event-stream" not in kind:
                yield self._json(await self._read(response), kind)
                return
            # The same chunks as an event stream in UTF-8, as it always is (HTML standard, 9.2.6); the blank line at the
            # end dispatches an event whose own is missing.
            stream = Response(
                200, headers={"content-type": "text/event-stream"}, content=self._chunks(response, b"\n\n")
            )
            async with aclosing(EventSource(stream).aiter_sse()) as received:
                async for event in received:
                    if event.data.strip() == "[DONE]":
                        return
                    if not event.data:
                        continue
                    try:
                        yield json.loads(event.data)
                    except (ValueError, RecursionError):
                        raise self._error(
                            "sent an event that is not JSON", received=event.data, kind=ServerFailureError
                        ) from None

    # -- one exchange ------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _answer(self, path: str, body: Mapping[str, Any] | None) -> AsyncIterator[httpx.Response]:
        """Open a successful response, whose body is not read yet, and close it after the block; errors of the network,
        also those within the block, become errors of this library."""
        import httpx

        try:
            response = await self._sent(path, body)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx.TimeoutException as error:
            waiting = "did not accept a connection" if isinstance(error, httpx.ConnectTimeout) else "did not answer"
            raise self._error(
                f"{waiting} for {self._timeout:g} seconds", hint="raise timeout=SECONDS", kind=ServerTimeoutError
            ) from None
        except httpx.ConnectError as error:
            raise self._error(
                f"cannot be reached: {error}",
                hint="check the address, and that the server is running",
                kind=ServerConnectionError,
            ) from None
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise self._error(
                f"broke off its answer: {reason}", hint="see the server's log", kind=ServerConnectionError
            ) from None
        except (httpx.InvalidURL, httpx.StreamError) as error:
            raise self._error(f"cannot be asked: {error}", hint="openai:MODEL@http://HOST:PORT/v1") from None

    async def _sent(self, path: str, body: Mapping[str, Any] | None) -> httpx.Response:
        """Return the response with status 2xx to a request, not read yet. It is sent again, after a pause, while the
        server is busy; any other status, or a pause that is too long, raises."""
        import httpx

        if not self.is_open:
            # A forked process must neither use nor close its parent's connections.
            self._process = os.getpid()
            self._client = httpx.AsyncClient(
                headers=self._headers,
                timeout=httpx.Timeout(self._timeout, connect=min(self._timeout, 10.0), pool=None),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
                follow_redirects=False,
                trust_env=self._trust_env,
                transport=self._transport,
            )
        client = self._client
        assert client is not None
        content = None if body is None else json.dumps(body, ensure_ascii=True, allow_nan=False).encode()
        sent = 0
        while True:
            request = client.build_request("GET" if body is None else "POST", self._url(path), content=content)
            if content is not None:
                request.headers["content-type"] = "application/json"
            response = await client.send(request, stream=True)
            if 200 <= response.status_code < 300:
                return response
            try:
                reason = _message_of(await self._read(response))
            finally:
                await response.aclose()
            pause = _pause(response.headers.get("retry-after"), sent)
            is_busy = response.status_code in _BUSY and not _is_invalid(response.status_code, reason)
            if not is_busy or sent == self._most_resent or pause > MAX_WAIT:
                raise self._failure(response, reason, sent, pause)
            sent += 1
            REQUEST_COUNT.get(RequestCount()).number += 1
            _LOG.info("the server is busy (%d); asking again in %.1f s", response.status_code, pause)
            await asyncio.sleep(pause)

    def _url(self, path: str) -> str:
        if not path.startswith("/"):
            return f"{self.base_url}/{path}"
        scheme, _, rest = self.base_url.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}{path}"

    async def _chunks(self, response: httpx.Response, end: bytes = b"") -> AsyncGenerator[bytes, None]:
        """Yield the body in chunks, then ``end``; raise an error if the body is too long."""
        size = 0
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > MAX_BODY:
                raise self._error(
                    f"sent more than {MAX_BODY} bytes", hint="lower max_tokens; check that this is a model's server"
                )
            yield chunk
        yield end

    async def _read(self, response: httpx.Response) -> bytes:
        return b"".join([chunk async for chunk in self._chunks(response)])

    def _json(self, data: bytes, kind: str) -> Any:
        """Return the JSON of a response body; ``kind`` is its content type. Raise an error that shows the body if it is
        none."""
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            what = "a page of HTML" if "html" in kind else "text that is not JSON"
            raise self._error(
                f"answered with {what}",
                hint="give the address of the API, often http://HOST:PORT/v1",
                received=data.decode("utf-8", "replace"),
            ) from None

    # -- errors ------------------------------------------------------------------------------------------------

    def shown(self, text: str) -> str:
        """Return a text for messages: one line, short, without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = " ".join(text.split())
        return text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."

    def _error(
        self,
        what: str,
        *,
        hint: str | None = None,
        received: str | None = None,
        kind: type[ServerError] = ServerError,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> ServerError:
        """Return an error for ``what`` the server did, without secrets; ``received`` is shown as its answer."""
        tail = "" if received is None else f"; received: {received}"
        message = self.shown(f"the server at {self.base_url} {what}{tail}")
        return kind(message, hint=hint, status_code=status, retry_after=retry_after)

    def _failure(self, response: httpx.Response, reason: str, resent: int, pause: float) -> Exception:
        """Return the error for a response whose status is not 2xx. It is a `RefusedError` if the request itself may be
        the reason, so that another form of it may be taken.

        Args:
            response: the response.
            reason: the message in its body.
            resent: how often the request was sent again.
            pause: seconds until it might be sent again.
        """
        status = response.status_code
        if status in (400, 413, 422, 500) and _OVERFLOW.search(reason):
            message = self.shown(f"the server at {self.base_url}: {reason}")
            return ContextOverflowError(message, hint="shorten the conversation, or lower max_tokens")
        if status == 400 and _BUDGET.search(reason):  # of no form: another one would not be constrained
            return BudgetError(self.shown(f"the server at {self.base_url}: {reason}"), hint="raise max_tokens")
        if status in (400, 413, 422, 501) and not _KEY.search(reason):
            error = self._error(
                f"refuses the request ({status}): {reason}",
                hint="correct the named field; load the model with body={FIELD: None} to remove a field",
                status=status,
            )
            return RefusedError(status, reason, error)
        if status in (400, 401, 403):
            return self._error(
                f"denies access ({status}): {reason}",
                hint="give api_key='env:NAME' or api_key=KEY",
                kind=PermissionDeniedError if status == 403 else AuthenticationError,
                status=status,
            )
        if status == 404:
            return self._error(
                f"does not have this resource (404): {reason}",
                hint="the address of the API often ends with /v1; the server lists its models at /v1/models",
                kind=NotFoundError,
                status=status,
            )
        if 300 <= status < 400:
            to = response.headers.get("location", "an unknown address")
            return self._error(
                f"redirects to {to}, which is not followed", hint="give that address if you trust it", status=status
            )
        again = f" after {resent + 1} attempts" if resent else ""
        asked = pause if "retry-after" in response.headers else None
        if status == 429:
            wait = f"; it asks to wait {pause:g} seconds" if pause > MAX_WAIT else ""
            return self._error(
                f"is too busy (429){again}{wait}: {reason}",
                hint="send fewer requests, or try again later",
                kind=RateLimitError,
                status=status,
                retry_after=asked,
            )
        kind = ServerFailureError if status >= 500 else ServerTimeoutError if status == 408 else ServerError
        failed = self._error(
            f"failed ({status}){again}: {reason}",
            hint="see the server's log",
            kind=kind,
            status=status,
            retry_after=asked,
        )
        return RefusedError(status, reason, failed, is_sure=_is_invalid(status, reason)) if status == 500 else failed


def _is_invalid(status: int, reason: str) -> bool:
    """Return True if a status of failure means that the server rejected the request."""
    return status == 500 and _INVALID.search(reason) is not None


def _message_of(data: bytes) -> str:
    """Return the message in the body of an error, ``{"error": {"message": "..."}}`` or the like; else the whole body,
    of HTML without tags."""
    text = data[:100_000].decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", text, flags=re.S | re.I) if "<" in text else text
    for key in ("error", "message", "detail"):
        if isinstance(value, Mapping) and value.get(key):
            value = value[key]
    return value if isinstance(value, str) else json.dumps(value)


def _pause(header: str | None, sent: int) -> float:
    """Return the time in seconds before the request is sent again: that of the server (RFC 9110), or an increasing
    one."""
    if header is not None:
        with suppress(ValueError):
            return max(float(header), 0.0)
        with suppress(ValueError, TypeError):
            return max(email.utils.parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    return 0.25 * 2.0**sent
