"""From bytes back to tokens, as the tokenizer itself would have written them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import DecodingError

if TYPE_CHECKING:
    from ..automaton import Matcher
    from ..models.protocol import Backend
    from ..vocabulary import Vocabulary


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


def spell_somehow(backend: Backend, data: bytes) -> list[int]:
    """``data`` in tokens: as the tokenizer writes it as far as that is exact, else in as few tokens as can be.

    Raises:
        DecodingError: the vocabulary cannot write it.

    Law: ``vocabulary.decode(spell_somehow(backend, data)) == data``.
    """
    begin = next((at for at in range(min(4, len(data))) if data[at] & 0xC0 != 0x80), 0)  # behind half a character
    rest = spell(backend, data[begin:])
    return [*_fewest(backend.vocabulary, data[:begin]), *rest] if rest else _fewest(backend.vocabulary, data)


def complete(backend: Backend, matcher: Matcher) -> list[int]:
    """Tokens that complete a text from where it is, by its shortest completion; the matcher is left as it was.

    Raises:
        DecodingError: the vocabulary cannot write it.
    """
    ids: list[int] = []
    for part in matcher.shortest_parts():
        if isinstance(part, bytes):
            ids += spell_somehow(backend, part)
        elif part in backend.vocabulary.special:
            ids.append(backend.vocabulary.special[part])
        else:
            raise no_token("be completed")
    return ids


def _fewest(vocabulary: Vocabulary, data: bytes) -> list[int]:
    """``data`` in as few tokens as can be."""
    ids, longest = _ids_of(vocabulary)
    counts = [0] + [len(data) + 1] * len(data)  # fewest tokens up to each place
    sizes = [0] * (len(data) + 1)  # how long the last of them is
    for end in range(1, len(data) + 1):
        for size in range(1, min(longest, end) + 1):
            if counts[end - size] + 1 < counts[end] and data[end - size : end] in ids:
                counts[end], sizes[end] = counts[end - size] + 1, size
    found: list[int] = []
    end = len(data)
    while end:
        if not sizes[end]:
            raise no_token("be completed")
        found.append(ids[data[end - sizes[end] : end]])
        end -= sizes[end]
    return found[::-1]


def _ids_of(vocabulary: Vocabulary) -> tuple[dict[bytes, int], int]:
    """The first token of each byte string, and the length of the longest."""
    with vocabulary.lock:
        known: tuple[dict[bytes, int], int] | None = vocabulary.cache.get("ids")
        if known is None:
            ids: dict[bytes, int] = {}
            for token_id, data in enumerate(vocabulary.tokens):
                if data:
                    ids.setdefault(data, token_id)
            known = vocabulary.cache["ids"] = ids, max(map(len, ids), default=0)
    return known


def has_all_bytes(vocabulary: Vocabulary) -> bool:
    """Whether each single byte is a token, so that ``n`` bytes can be written in ``n`` tokens at most."""
    ids, _ = _ids_of(vocabulary)
    known = vocabulary.cache.get("all bytes")
    if known is None:
        known = vocabulary.cache["all bytes"] = all(bytes((byte,)) in ids for byte in range(256))
    return bool(known)


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


def no_token(what: str) -> DecodingError:
    """The error of a vocabulary that cannot write what the grammar wants."""
    return DecodingError(
        f"the vocabulary has no token with which the text could {what}",
        hint="the vocabulary must have a token for every single byte",
    )
