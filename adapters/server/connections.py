"""Connections of `toolgrammar serve`: HTTP/1.1 by h11, which bounds headers, with limits of time for slow clients."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


def protocol_of(seconds: float) -> type[asyncio.Protocol]:
    """Return the protocol of connections for uvicorn, which asks for a class.

    Args:
        seconds: maximum time in which the head of a request arrives, and for which a client may leave unread what is
            sent to it; then the connection ends, and with it the request.
    """
    return type("_Connection", (_Connection,), {"seconds": seconds})


class _Connection(H11Protocol):
    """One connection; uvicorn's ``cycle`` is the request that is answered, with its response."""

    seconds: float
    _head: asyncio.TimerHandle | None = None  # ends the connection if no whole head arrives
    _unread: asyncio.TimerHandle | None = None  # ends it if the client does not read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and wait for a head."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        _stop(self._head)
        self._head = None
        _stop(self._unread)
        self._unread = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read data: the head of the first request, or of another."""
        if self._head is None and (self.cycle is None or self.cycle.response_complete):
            self._await_head()
        super().data_received(data)

    def handle_events(self) -> None:
        """Read what has arrived; stop the timer of the head if it is whole."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            _stop(self._head)
            self._head = None
            # Two statements of the length: a proxy may see the end elsewhere, so this is the last request of the
            # connection (RFC 9112, section 6.1).
            if {b"content-length", b"transfer-encoding"} <= {name for name, _ in self.headers}:
                self.scope["headers"] = [*self.scope["headers"], (b"connection", b"close")]

    def pause_writing(self) -> None:
        """Wait for a client that reads slowly."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: it has read."""
        _stop(self._unread)
        self._unread = None
        super().resume_writing()

    def _await_head(self) -> None:
        self._head = self.loop.call_later(self.seconds, self._give_up)

    def _give_up(self) -> None:
        self.transport.write(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        self.transport.close()


def _stop(timer: asyncio.TimerHandle | None) -> None:
    """Stop a timer."""
    if timer is not None:
        timer.cancel()
