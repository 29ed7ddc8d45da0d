"""From bytes back to tokens, as the tokenizer itself would have written them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..models.protocol import Backend


def spell(backend: Backend, data: bytes) -> list[int]:
    """The tokenizer's own spelling of ``data``; empty if it has none that is exact.

    It has none for half a character, and for text that its normaliser changes.

    Law: ``vocabulary.decode(spell(backend, data))`` is ``data`` or empty.
    """
    try:
        ids = backend.encode(data.decode())
    except UnicodeDecodeError:
        return []
    return ids if backend.vocabulary.decode(ids) == data else []


def whole_characters(data: bytes) -> bytes:
    """``data`` without an unfinished UTF-8 character at its end; empty if it is not UTF-8 otherwise."""
    for missing in range(min(4, len(data) + 1)):
        head = data[: len(data) - missing]
        try:
            head.decode()
        except UnicodeDecodeError:
            continue
        return head
    return b""


def added_bytes(ids: Sequence[int], tokens: Sequence[bytes | None], known: int) -> list[bytes]:
    """The bytes that each token adds when the first ``known`` bytes were there already."""
    added = []
    for token_id in ids:
        data = tokens[token_id] or b""
        added.append(data[known:])
        known = max(0, known - len(data))
    return added
