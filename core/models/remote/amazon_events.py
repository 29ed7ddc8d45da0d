"""Amazon's binary event streams (``application/vnd.amazon.eventstream``).

Source: the encoding in the Smithy specification ("Amazon Event Stream"). A frame has, in bytes: its length (4), that of
its headers (4), the checksum of both (4), the headers, a payload, and the checksum of all before (4). Numbers are
big-endian; checksums are CRC 32.
"""

from __future__ import annotations

import json
import struct
from binascii import crc32
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ...errors import ServerFailureError

#: Maximum size of a frame in bytes; that of the encoding.
MAX_FRAME = 24 * 1024 * 1024

#: Bytes of a frame before its headers, and after its payload.
_PRELUDE, _CHECKSUM = 12, 4

#: Sizes of the values of headers by their types; None: two bytes with the size stand before.
_SIZES = (0, 0, 1, 2, 4, 8, None, None, 8, 16)

#: Type of a header that is a text.
_TEXT = 7


async def amazon_events(chunks: Any) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the events of a stream as objects with one member: the event's type, and its payload.

    Raises:
        ServerFailureError: a frame is damaged, or the stream ends inside one.
    """
    left = bytearray()
    async with aclosing(chunks) as received:
        async for chunk in received:
            left += chunk
            while len(left) >= _PRELUDE:
                size = struct.unpack_from(">I", left)[0]
                is_whole = crc32(left[:8]) == struct.unpack_from(">I", left, 8)[0]
                if not is_whole or not _PRELUDE + _CHECKSUM <= size <= MAX_FRAME:
                    raise _damaged()
                if len(left) < size:
                    break
                frame = bytes(left[:size])
                del left[:size]
                yield _event(frame)
    if left:
        raise ServerFailureError("the server broke off its answer inside an event", hint="see the server's log")


def _event(frame: bytes) -> dict[str, Any]:
    """Return the event of a whole frame, ``{name: payload}``; errors and exceptions are events too. Raise an error for
    a frame that is damaged (its checksum does not fit) or of another form."""
    try:
        content, checksum = frame[:-_CHECKSUM], frame[-_CHECKSUM:]
        end = _PRELUDE + struct.unpack_from(">I", frame, 4)[0]  # of the headers
        if crc32(content) != struct.unpack(">I", checksum)[0] or end > len(content):
            raise ValueError("checksum")
        headers = _headers(content[_PRELUDE:end])
        payload = json.loads(content[end:] or b"{}")
        name = headers.get(":event-type") or headers.get(":exception-type") or headers.get(":error-code")
        if name is None or not isinstance(payload, dict):
            raise ValueError("headers")
        if ":error-message" in headers:
            payload = {"message": headers[":error-message"]}
        return {name: payload}
    except (ValueError, struct.error, IndexError, UnicodeDecodeError, RecursionError):
        raise _damaged() from None


def _headers(data: bytes) -> dict[str, str]:
    """Return the headers that are texts. Each header has the length of its name (1 byte), the name, its type (1), and
    its value."""
    found: dict[str, str] = {}
    at = 0
    while at < len(data):
        end = at + 1 + data[at]
        name, kind = data[at + 1 : end].decode(), data[end]
        at = end + 1
        size = _SIZES[kind]
        if size is None:
            size, at = struct.unpack_from(">H", data, at)[0], at + 2
        if kind == _TEXT:
            found[name] = data[at : at + size].decode()
        at += size
    return found


def _damaged() -> ServerFailureError:
    return ServerFailureError("the server sent a damaged event stream", hint="try again")
