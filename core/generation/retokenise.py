"""Spelling of text in tokens: as the tokenizer itself writes it, as far as that does not depend on the text to come.

A model has only seen the tokenizer's own spelling of a text. Whoever appends text that the model did not choose must
therefore know which tokens the tokenizer writes for it *whatever follows*: ``": `` may be ``":`` and a space, or
``":`` and the beginning of `` true``. `Speller.settle` answers that.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DecodingError
from ..masks.bits import flags

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..masks import Matcher
    from ..vocabulary.vocabulary import Vocabulary
    from .backend import Backend

#: Number of tokens before a text that are spelled together with it, as a tokenizer would.
CONTEXT_TOKENS = 12

#: Minimum number of tokens and bytes at the end of a text in which its last tokens are tried with what may follow.
_EDGE_TOKENS, _EDGE_BYTES = 4, 16

#: Number of tokens before an edge that must come out as they are written, for the spelling after it to count.
_AGREEING = 2

#: Maximum number of longer tokens that are tried at one place; if there are more, one of them is assumed to fit.
_TRIALS = 64

#: Number of spelled texts, and of tables of longer tokens, that are remembered.
_REMEMBERED_TEXTS, _REMEMBERED_HEADS = 8_192, 4_096

#: Characters of each kind that pre-tokenizers tell apart (GPT-2, Qwen, Llama 3, o200k); the first that may come next
#: stands for its kind.
_KINDS = (
    *("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " ", "\t", "\n", "\r", "'", '"'),
    *(",.:;!?-_/\\()[]{}<>@#$%^&*+=|~`", "éñöяλ", "ÉÑÖЯΛ", "中日한", "\u00a0\u3000", "\u0301\u0900", "٣²½", "—€→😀"),
)


_NONE = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class Settled:
    """How far the spelling of a text is certain.

    Attributes:
        ids: the tokens with which the tokenizer begins the text, whatever follows it.
        among: the tokens that may come after them, ascending: what is left of the text, or a part of it, or all of it
            and some of what follows. None if nothing is left.
    """

    ids: list[int]
    among: npt.NDArray[np.intp] | None


class Speller:
    """The tokenizer of a backend, for spellings that do not depend on what follows. May be shared between threads.

    Args:
        backend: its tokenizer and vocabulary are used.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.spell = lru_cache(maxsize=_REMEMBERED_TEXTS)(self._spell)
        self._longer_by = lru_cache(maxsize=_REMEMBERED_HEADS)(self._find_longer)

    @property
    def _vocabulary(self) -> Vocabulary:
        return self._backend.vocabulary

    def after(self, before: Sequence[int], data: bytes) -> tuple[int, ...] | None:
        """Return the tokens with which the tokenizer writes ``data`` after some text tokens; None if it has none."""
        spelled = self._after(before, data)
        return None if spelled is None else spelled[1]

    def _spell(self, data: bytes) -> tuple[int, ...]:
        return tuple(spell(self._backend, data))

    def settle(self, before: Sequence[int], data: bytes, matcher: Matcher, ahead: bytes = b"") -> Settled | None:
        """Return how the tokenizer begins to write ``data``, whatever follows it.

        Args:
            before: text tokens that come before it and stay as they are.
            data: the text, not empty.
            matcher: after the text; it says what may follow, and is left as it was.
            ahead: the bytes of the matcher's last step, if they end the text.

        Returns:
            None if the tokenizer does not write this text exactly.

        Law: for each text ``x`` that may follow, the tokenizer writes ``data + x`` (after ``before``) with the tokens
        ``ids`` first and then, if ``among`` is not None, one of ``among``. This is found by trial, for tokenizers
        whose encoding of a text begins as that of its beginning up to a token's end does, a character of look-ahead
        aside: BPE and Unigram under any of the usual pre-tokenizers.
        """
        spelled = self._after(before, data)
        if spelled is None:
            return None
        fixed, ids = spelled
        whole = (*fixed, *ids)
        size = max(min(len(whole), _EDGE_TOKENS), 1)
        tokens = self._vocabulary.tokens
        while size < len(whole) and sum(len(tokens[token_id] or b"") for token_id in whole[-size:]) < _EDGE_BYTES:
            size += 1
        while size < len(whole) and self.spell(self._vocabulary.decode(whole[-size:])) != whole[-size:]:
            size += 1
        edge = whole[-size:]
        kept = max(0, size - len(ids))  # tokens of the edge that are written already
        count, among = self._edge(edge, kept, matcher, ahead)
        left = size - count
        return Settled(list(ids[: len(ids) - left]), among if left else None)

    def _after(self, before: Sequence[int], data: bytes) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the tokens before a text with which it was spelled, and its spelling after them."""
        tokens = self._vocabulary.tokens
        context = list(before[-CONTEXT_TOKENS:])
        for size in sorted({len(context), min(1, len(context)), 0}, reverse=True):
            fixed = tuple(context[len(context) - size :])
            head = self._vocabulary.decode(fixed)
            ids = self.spell(head + data)
            ends = list(accumulate(len(tokens[token_id] or b"") for token_id in ids))
            count = ends.index(len(head)) + 1 if len(head) in ends else 0
            if ids and (count or not head) and ids[max(0, count - _AGREEING) : count] == fixed[-_AGREEING:]:
                return ids[:count], ids[count:]
        return None

    def _edge(
        self, ids: tuple[int, ...], kept: int, matcher: Matcher, ahead: bytes
    ) -> tuple[int, npt.NDArray[np.intp] | None]:
        """Return how many of the tokens at the end of a text are certain, and what may come after those.

        Each way in which the text may go on gives one beginning of its spelling: (a) the text ends here, or goes on
        with a token of its own; (b) what a character that follows does to the tokens before it; (c) a longer token
        begins in the text and ends after it. The common beginning of all of these is certain.
        """
        tokens = self._vocabulary.tokens
        text = self._vocabulary.decode(ids)
        following = _Following(self._vocabulary, matcher, ahead)
        ways = {ids}
        for character in following.characters():
            spelled = self.spell(text + character)
            ways.add(spelled[: _count_within(spelled, tokens, len(text))])
        vague = False
        for start in range(len(self._vocabulary.decode(ids[:kept])), len(text)):
            longer = self._longer(text[start:], following)
            if not len(longer):
                continue
            if text[start] & 0xC0 == 0x80:  # in the midst of a character, where nothing can be spelled
                vague = True
                way = self.spell(text[: _character_start(text, start)])[:-1]
                ways.add(way if len(way) >= kept else ids[:kept])
            elif self._fits_any(text[:start], longer):
                ways.add(self.spell(text[:start]))
        ways = {way for way in ways if way[:kept] == ids[:kept]}
        count = min(common_prefix(ids, way) for way in ways)
        rest = text[len(self._vocabulary.decode(ids[:count])) :]
        if not rest:
            return count, None
        among = {way[count] for way in ways if len(way) > count}
        if vague:
            ids_of, _ = self._vocabulary.derived(_ids_of)
            among.update(ids_of[rest[:end]] for end in range(1, len(rest) + 1) if rest[:end] in ids_of)
        longer = self._longer(rest, following) if any(len(way) == count for way in ways) else _NONE
        return count, np.union1d(longer, np.array(sorted(among), dtype=np.intp))

    def _fits_any(self, head: bytes, longer: npt.NDArray[np.intp]) -> bool:
        """Return True if the tokenizer may write one of some tokens after a text."""
        spelled = self.spell(head)
        if head and not spelled:
            return True
        for token_id in longer[:: -(-len(longer) // _TRIALS)].tolist():
            data = head + (self._vocabulary.tokens[token_id] or b"")
            if whole_characters(data) != data or self.spell(data) == (*spelled, token_id):
                return True
        return len(longer) > _TRIALS

    def _longer(self, head: bytes, following: _Following) -> npt.NDArray[np.intp]:
        """Return the tokens that begin with ``head`` and go on with text that may come next."""
        ordered, numbers = self._vocabulary.derived(_sorted_tokens)
        begin = bisect_right(ordered, head)
        if begin == len(ordered) or not ordered[begin].startswith(head):
            return _NONE
        mask = following.mask_before(head)
        if mask is not None:
            ids = numbers[begin : bisect_left(ordered, _successor(head), begin)]
            return ids[mask[ids]]
        chosen = [_NONE]
        for byte in following.next_bytes:
            ids, rests = self._longer_by(head, byte)
            if len(ids):
                allowed = following.mask[rests] & (rests >= 0)
                for index in np.flatnonzero(rests < 0).tolist():
                    rest = (self._vocabulary.tokens[ids[index]] or b"")[len(head) :]
                    allowed[index] = may_say(following.matcher, rest)
                chosen.append(ids[allowed])
        return np.concatenate(chosen)

    def _find_longer(self, head: bytes, byte: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the tokens that begin with ``head`` and a byte; and for each the token after ``head``, or -1."""
        ordered, numbers = self._vocabulary.derived(_sorted_tokens)
        ids_of, _ = self._vocabulary.derived(_ids_of)
        data = head + bytes((byte,))
        begin = bisect_left(ordered, data)
        end = bisect_left(ordered, _successor(data), begin)
        rests = [ids_of.get(token[len(head) :], -1) for token in ordered[begin:end]]
        return numbers[begin:end], np.array(rests, dtype=np.intp)


class _Following:
    """The possible continuations of a text.

    Args:
        vocabulary: of the tokens.
        matcher: after the text; left as it was.
        ahead: the bytes of its last step; empty if they are unknown.
    """

    def __init__(self, vocabulary: Vocabulary, matcher: Matcher, ahead: bytes) -> None:
        self._vocabulary = vocabulary
        self._ahead = ahead
        self.matcher = matcher

    @cached_property
    def mask(self) -> npt.NDArray[np.bool_]:
        """The tokens that may come next, one flag for each."""
        return mask_of(self.matcher, self._vocabulary)

    def mask_before(self, tail: bytes) -> npt.NDArray[np.bool_] | None:
        """Return the tokens that may come where ``tail``, the end of the text, begins; None if that is unknown.

        Where a text had too many readings, some were dropped between ``tail`` and what follows it: a token that spans
        both may need one of them, and the matcher, which goes on after ``tail``, would refuse it.
        """
        if not self._ahead.endswith(tail) or self.matcher.has_dropped:
            return None
        matcher = self.matcher.fork()
        matcher.rollback(1)
        if len(tail) < len(self._ahead):
            matcher.accept_bytes(self._ahead[: len(self._ahead) - len(tail)])
        return mask_of(matcher, self._vocabulary)

    @cached_property
    def next_bytes(self) -> list[int]:
        """The bytes that may come next."""
        return [byte for byte in self.matcher.next_bytes() if may_say(self.matcher, bytes((byte,)))]

    def characters(self) -> Iterator[bytes]:
        """Yield one character of each kind that may come next."""
        for kind in _KINDS:
            for character in kind:
                data = character.encode()
                if data[0] in self.next_bytes and (len(data) == 1 or may_say(self.matcher, data)):
                    yield data
                    break


def spell(backend: Backend, data: bytes) -> list[int]:
    """Return the tokenizer's own spelling of ``data``; empty if it has none that is exact.

    It has none for half a character, and for text that its normaliser changes.

    Law: ``vocabulary.decode(spell(backend, data))`` is ``data`` or empty.
    """
    try:
        ids = backend.encode(data.decode())
    except UnicodeDecodeError:
        return []
    return ids if backend.vocabulary.decode(ids) == data else []


def spell_somehow(backend: Backend, data: bytes) -> list[int]:
    """Return ``data`` in tokens: as the tokenizer writes it where that is exact, else in as few tokens as possible.

    Raises:
        DecodingError: the vocabulary cannot write it.

    Law: ``vocabulary.decode(spell_somehow(backend, data)) == data``.
    """
    # A text that begins inside a character is spelled from its first whole one.
    begin = next((index for index in range(min(4, len(data))) if data[index] & 0xC0 != 0x80), 0)
    rest = spell(backend, data[begin:])
    return [*_fewest(backend.vocabulary, data[:begin]), *rest] if rest else _fewest(backend.vocabulary, data)


def may_say(matcher: Matcher, data: bytes) -> bool:
    """Return True if a matcher allows these bytes next."""
    if not matcher.accept_bytes(data):
        return False
    matcher.rollback(1)
    return True


def _fewest(vocabulary: Vocabulary, data: bytes) -> list[int]:
    """Return ``data`` in as few tokens as possible."""
    ids, longest = vocabulary.derived(_ids_of)
    counts = [0] + [len(data) + 1] * len(data)  # fewest tokens up to each place
    sizes = [0] * (len(data) + 1)  # length of the last of them
    for end in range(1, len(data) + 1):
        for size in range(1, min(longest, end) + 1):
            if counts[end - size] + 1 < counts[end] and data[end - size : end] in ids:
                counts[end], sizes[end] = counts[end - size] + 1, size
    chosen: list[int] = []
    end = len(data)
    while end:
        if not sizes[end]:
            raise no_token("be completed")
        chosen.append(ids[data[end - sizes[end] : end]])
        end -= sizes[end]
    return chosen[::-1]


def _ids_of(vocabulary: Vocabulary) -> tuple[dict[bytes, int], int]:
    """Return the first token of each byte string, and the length of the longest; ask `Vocabulary.derived`."""
    ids: dict[bytes, int] = {}
    for token_id, data in enumerate(vocabulary.tokens):
        if data:
            ids.setdefault(data, token_id)
    return ids, max(map(len, ids), default=0)


def _sorted_tokens(vocabulary: Vocabulary) -> tuple[list[bytes], npt.NDArray[np.intp]]:
    """Return the text tokens in the order of their bytes, and their ids; ask `Vocabulary.derived`."""
    texts: list[bytes] = [data or b"" for data in vocabulary.tokens]
    order = sorted((token_id for token_id, data in enumerate(texts) if data), key=texts.__getitem__)
    return [texts[token_id] for token_id in order], np.array(order, dtype=np.intp)


def begun_with(vocabulary: Vocabulary, head: bytes) -> npt.NDArray[np.intp]:
    """Return the text tokens that begin with ``head``, which is not empty."""
    ordered, numbers = vocabulary.derived(_sorted_tokens)
    begin = bisect_left(ordered, head)
    return numbers[begin : bisect_left(ordered, _successor(head), begin)]


def _successor(head: bytes) -> bytes:
    """Return the first string that sorts after all that begin with ``head``, which is UTF-8: no byte of it is 255."""
    return head[:-1] + bytes((head[-1] + 1,))


def mask_of(matcher: Matcher, vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
    """Return the tokens that a matcher allows, one flag for each."""
    mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
    matcher.fill_mask(mask)
    return flags(mask)


def whole_characters(data: bytes) -> bytes:
    """Return ``data`` without an unfinished UTF-8 character at its end; empty if it is not UTF-8 otherwise."""
    for missing in range(min(4, len(data) + 1)):
        head = data[: len(data) - missing]
        try:
            head.decode()
        except UnicodeDecodeError:
            continue
        return head
    return b""


def text_end(ids: Sequence[int], vocabulary: Vocabulary) -> list[int]:
    """Return the tokens after the last control token."""
    begin = next((index for index in range(len(ids), 0, -1) if vocabulary.tokens[ids[index - 1]] is None), 0)
    return list(ids[begin:])


def size_of(vocabulary: Vocabulary, token_id: int) -> int:
    """Return the number of bytes of a token; a control token has none."""
    return len(vocabulary.tokens[token_id] or b"")


def no_token(what: str) -> DecodingError:
    """Return the error of a vocabulary that cannot write a text of the grammar."""
    return DecodingError(
        f"the vocabulary has no token with which the text could {what}",
        hint="the vocabulary must have a token for every single byte",
    )


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the longest common beginning of two sequences."""
    size = min(len(one), len(other))
    return next((index for index in range(size) if one[index] != other[index]), size)


def _count_within(ids: Sequence[int], tokens: Sequence[bytes | None], size: int) -> int:
    """Return the number of tokens that end within the first ``size`` bytes."""
    return sum(end <= size for end in accumulate(len(tokens[token_id] or b"") for token_id in ids))


def _character_start(text: bytes, index: int) -> int:
    """Return the first byte of the character that ``index`` is inside of."""
    while text[index] & 0xC0 == 0x80:
        index -= 1
    return index
