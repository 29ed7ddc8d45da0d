"""Tokenization of text, as far as it does not depend on the following text.

A model was trained on the tokenizer's own tokenization. To append text that the model did not choose, the loop needs
the tokens that the tokenizer writes for it *for every continuation*: ``": `` may be ``":`` and a space, or ``":`` and
the beginning of `` true``. `Speller.settle` returns them.
"""

from __future__ import annotations

import codecs
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ..basics.cached import cached_property
from ..basics.recent_memo import memoised_if_short
from ..masks.bits import flags
from ..masks.fewest_tokens import FewestTokens
from ..masks.index_files import index_of
from ..masks.promised import take

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..masks import Matcher
    from ..vocabulary.vocabulary import Vocabulary
    from .backend import Backend

#: Number of tokens before a text that are retokenized together with it.
CONTEXT_TOKENS = 12

#: Minimum number of tokens and bytes at the end of a text that are tested with possible continuations.
_EDGE_TOKENS, _EDGE_BYTES = 4, 16

#: Number of tokens before the tested end that must stay unchanged for a tokenization to count.
_AGREEING = 2

#: Maximum number of longer tokens that are tested at one position; if there are more, one is assumed to be possible.
_TRIALS = 64

#: Number of memoised tokenizations, and of memoised tables of longer tokens.
_REMEMBERED_TEXTS, _REMEMBERED_HEADS = 8_192, 4_096

#: Characters of each kind that pre-tokenizers distinguish (GPT-2, Qwen, Llama 3, o200k); the first allowed one
#: represents its kind.
_KINDS = (
    *("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " ", "\t", "\n", "\r", "'", '"'),
    *(",.:;!?-_/\\()[]{}<>@#$%^&*+=|~`", "éñöяλ", "ÉÑÖЯΛ", "中日한", "\u00a0\u3000", "\u0301\u0900", "٣²½", "—€→😀"),
)


_NONE = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class Settled:
    """The certain part of the tokenization of a text.

    Attributes:
        ids: the tokens with which the tokenizer begins the text for every continuation.
        among: the tokens that may come after them, ascending: each writes the rest of the text, a prefix of the rest,
            or the rest and the beginning of a continuation. None if nothing is left.
    """

    ids: list[int]
    among: npt.NDArray[np.intp] | None


class _Spelled(NamedTuple):
    """The tokens of a text, and of the context with which it was tokenized: the end of the text before it."""

    context: tuple[int, ...]
    text: tuple[int, ...]


class Speller:
    """The tokenizer of a backend, for tokenizations that do not depend on the following text. Thread-safe.

    Args:
        backend: the backend of the tokenizer and vocabulary.
    """

    #: Number of tokens before a text that its spelling may depend on.
    CONTEXT_TOKENS: ClassVar[int] = CONTEXT_TOKENS

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        #: Returns the tokenizer's tokens of a text; none if it cannot write it exactly.
        tokens: Callable[[bytes], tuple[int, ...]] = lambda data: tuple(spell(backend, data))  # noqa: E731
        self.spell = memoised_if_short(_REMEMBERED_TEXTS)(tokens)
        self._longer_by = lru_cache(maxsize=_REMEMBERED_HEADS)(self._find_longer)

    @property
    def _vocabulary(self) -> Vocabulary:
        return self._backend.vocabulary

    def after(self, before: Sequence[int], data: bytes) -> tuple[int, ...] | None:
        """Return the tokenizer's tokens of ``data`` after text tokens; None if it cannot write it exactly."""
        spelled = self._after(before, data)
        return None if spelled is None else spelled.text

    def settle(self, before: Sequence[int], data: bytes, matcher: Matcher, ahead: bytes = b"") -> Settled | None:
        """Return the tokens with which the tokenizer begins ``data`` for every continuation.

        Args:
            before: text tokens before it, which do not change.
            data: the text, not empty.
            matcher: after the text; it defines the continuations, and is unchanged at the end.
            ahead: the bytes of the matcher's last step, if they end the text.

        Returns:
            None if the tokenizer cannot write this text exactly.

        Law: for each continuation ``x``, the tokenizer writes ``data + x`` (after ``before``) with the tokens ``ids``
            first and then, if ``among`` is not None, one of ``among``. This is tested with sample continuations. It
            holds for tokenizers with this property: up to the end of a token and one character of look-ahead, the
            tokenization of a text begins with that of its prefix (BPE and Unigram with any of the usual
            pre-tokenizers).
        """
        spelled = self._after(before, data)
        if spelled is None:
            return None
        ids = spelled.text
        whole = (*spelled.context, *ids)
        # The tested end: long enough, and a text that the tokenizer reads alone as it does here.
        size = max(min(len(whole), _EDGE_TOKENS), 1)
        while size < len(whole) and (
            len(self._vocabulary.decode(whole[-size:])) < _EDGE_BYTES
            or self.spell(self._vocabulary.decode(whole[-size:])) != whole[-size:]
        ):
            size += 1
        count, next_tokens = self._edge(whole[-size:], max(0, size - len(ids)), matcher, ahead)
        uncertain = size - count
        return Settled(list(ids[: len(ids) - uncertain]), next_tokens if uncertain else None)

    def _after(self, before: Sequence[int], data: bytes) -> _Spelled | None:
        """Return the tokenizer's own tokens of a text after the end of ``before``; None if it cannot write the text
        exactly.

        The longest context is tried first; if its last `_AGREEING` tokens are not those of ``before``, then one token,
        then none.
        """
        tokens = self._vocabulary.tokens
        context = list(before[-CONTEXT_TOKENS:])
        for size in sorted({len(context), min(1, len(context)), 0}, reverse=True):
            fixed = tuple(context[len(context) - size :])
            head = self._vocabulary.decode(fixed)
            ids = self.spell(head + data)
            ends = list(accumulate(len(tokens[token_id] or b"") for token_id in ids))
            # The number of tokens of the context, if one ends exactly there.
            count = ends.index(len(head)) + 1 if len(head) in ends else 0
            if ids and (count or not head) and ids[max(0, count - _AGREEING) : count] == fixed[-_AGREEING:]:
                return _Spelled(ids[:count], ids[count:])
        return None

    def _edge(
        self, ids: tuple[int, ...], kept: int, matcher: Matcher, ahead: bytes
    ) -> tuple[int, npt.NDArray[np.intp] | None]:
        """Return how many of the tokens at the end of a text are certain, and the ids of the tokens that may come after
        those (None: all are certain).

        The certain tokens are the common prefix of the tokenizations for all kinds of continuations: (a) the text ends
        here, or a new token begins here; (b) the next character changes the tokens before it; (c) a longer token begins
        in the text and ends after it.

        Args:
            ids: the tokenizer's tokens of the end of the text.
            kept: number of the first of them that are written, and so certain.
            matcher: after the text.
            ahead: the bytes of its last step, if they end the text.
        """
        tokens = self._vocabulary.tokens
        text = self._vocabulary.decode(ids)
        following = _Following(self._vocabulary, matcher, ahead)
        # Tokenizations of the text for its continuations, each without a token that ends after the text. Case (a):
        spellings = {ids}
        for character in following.characters():  # (b)
            spelled = self.spell(text + character)
            spellings.add(spelled[: _count_within(spelled, tokens, len(text))])
        splits_character = False  # (c), and the longer token may begin inside a character
        for start in range(len(self._vocabulary.decode(ids[:kept])), len(text)):
            longer = self._longer(text[start:], following)
            if not len(longer):
                continue
            if text[start] & 0xC0 == 0x80:  # a byte 10xxxxxx: the text before it cannot be tokenized
                splits_character = True
                before = self.spell(text[: _character_start(text, start)])[:-1]
                spellings.add(before if len(before) >= kept else ids[:kept])
            elif self._fits_any(text[:start], longer):
                spellings.add(self.spell(text[:start]))
        spellings = {each for each in spellings if each[:kept] == ids[:kept]}
        count = min(common_prefix(ids, each) for each in spellings)
        rest = text[len(self._vocabulary.decode(ids[:count])) :]
        if not rest:
            return count, None
        inside = {each[count] for each in spellings if len(each) > count}  # next tokens that end in the text
        if splits_character:
            ids_of = self._vocabulary.derived(_ids_of)
            inside.update(ids_of[rest[:end]] for end in range(1, len(rest) + 1) if rest[:end] in ids_of)
        longer = self._longer(rest, following) if any(len(each) == count for each in spellings) else _NONE
        return count, np.union1d(longer, np.array(sorted(inside), dtype=np.intp))

    def _fits_any(self, head: bytes, longer: npt.NDArray[np.intp]) -> bool:
        """Return True if the tokenizer may write one of the ``longer`` tokens after a text, ``head``. Only `_TRIALS`
        are tried; if there are more and none of these fits, the answer is True, to be safe."""
        spelled = self.spell(head)
        if head and not spelled:
            return True
        every = -(-len(longer) // _TRIALS)  # rounded up
        for token_id in longer[::every].tolist():
            data = head + (self._vocabulary.tokens[token_id] or b"")
            if whole_characters(data) != data or self.spell(data) == (*spelled, token_id):
                return True
        return len(longer) > _TRIALS

    def _longer(self, head: bytes, following: _Following) -> npt.NDArray[np.intp]:
        """Return the tokens that consist of ``head``, the end of a text, and the beginning of a continuation that the
        matcher allows, so that the tokenizer may still merge ``head`` with what follows."""
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
                # The rest of a token, after ``head``: if it is itself a token, the mask decides, and else the matcher.
                allowed = following.mask[rests] & (rests >= 0)
                for index in np.flatnonzero(rests < 0).tolist():
                    rest = (self._vocabulary.tokens[ids[index]] or b"")[len(head) :]
                    allowed[index] = may_say(following.matcher, rest)
                chosen.append(ids[allowed])
        return np.concatenate(chosen)

    def _find_longer(self, head: bytes, byte: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the tokens that begin with ``head`` and a byte; and for each the token of its rest after ``head``, or
        -1."""
        ordered, numbers = self._vocabulary.derived(_sorted_tokens)
        ids_of = self._vocabulary.derived(_ids_of)
        data = head + bytes((byte,))
        begin = bisect_left(ordered, data)
        end = bisect_left(ordered, _successor(data), begin)
        rests = [ids_of.get(token[len(head) :], -1) for token in ordered[begin:end]]
        return numbers[begin:end], np.array(rests, dtype=np.intp)


class _Following:
    """The possible continuations of a text.

    Args:
        vocabulary: the vocabulary of the tokens.
        matcher: after the text; unchanged at the end.
        ahead: the bytes of its last step; empty if unknown.
    """

    def __init__(self, vocabulary: Vocabulary, matcher: Matcher, ahead: bytes) -> None:
        self._vocabulary = vocabulary
        self._ahead = ahead
        self.matcher = matcher

    @cached_property
    def mask(self) -> npt.NDArray[np.bool_]:
        """The allowed tokens, as flags by id."""
        return mask_of(self.matcher, self._vocabulary)

    def mask_before(self, tail: bytes) -> npt.NDArray[np.bool_] | None:
        """Return the tokens that are allowed before ``tail``, the end of the text, as flags; None if they are unknown:
        the last step of the matcher did not write all of ``tail``, or readings of the text were dropped."""
        # The matcher, which is after `tail`, may lack a reading that a token from before `tail` needs.
        if not self._ahead.endswith(tail) or self.matcher.has_dropped:
            return None
        matcher = self.matcher.fork()
        matcher.rollback(1)
        if len(tail) < len(self._ahead):
            take(matcher, self._ahead[: len(self._ahead) - len(tail)])
        return mask_of(matcher, self._vocabulary)

    @cached_property
    def next_bytes(self) -> list[int]:
        """The possible next bytes."""
        return [byte for byte in self.matcher.next_bytes() if may_say(self.matcher, bytes((byte,)))]

    def characters(self) -> Iterator[bytes]:
        """Yield one possible next character of each kind."""
        for kind in _KINDS:
            for character in kind:
                data = character.encode()
                if data[0] in self.next_bytes and (len(data) == 1 or may_say(self.matcher, data)):
                    yield data
                    break


def spell(backend: Backend, data: bytes) -> list[int]:
    """Return the tokenizer's own tokens of ``data``; empty if it cannot write it exactly.

    It cannot write an incomplete character, or text that its normaliser changes.

    Law: ``vocabulary.decode(spell(backend, data))`` is ``data`` or empty.
    """
    try:
        ids = backend.encode(data.decode())
    except UnicodeDecodeError:
        return []
    return ids if backend.vocabulary.decode(ids) == data else []


def spell_somehow(backend: Backend, data: bytes) -> list[int]:
    """Return tokens of ``data``: the tokenizer's own if they are exact, else as few as possible.

    Raises:
        DecodingError: the vocabulary cannot write it.

    Law: ``vocabulary.decode(spell_somehow(backend, data)) == data``.
    """
    # A text that begins inside a character is tokenized from its first complete one.
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
    return FewestTokens(index_of(vocabulary).trie, vocabulary.special).tokens((data,))


def _ids_of(vocabulary: Vocabulary) -> dict[bytes, int]:
    """Return the first token of each byte string; ask `Vocabulary.derived`."""
    return {data: token_id for token_id, data in reversed(list(enumerate(vocabulary.tokens))) if data}


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
    """Return the first string after all strings with prefix ``head``, in order; ``head`` is UTF-8, so no byte is
    255."""
    return head[:-1] + bytes((head[-1] + 1,))


def mask_of(matcher: Matcher, vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
    """Return the tokens that a matcher allows, as flags by id."""
    mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
    matcher.fill_mask(mask)
    return flags(mask)


def whole_characters(data: bytes) -> bytes:
    """Return ``data`` without an incomplete UTF-8 character at its end; empty if the rest is not UTF-8."""
    try:
        return data[: codecs.utf_8_decode(data)[1]]
    except UnicodeDecodeError:
        return b""


def text_end(ids: Sequence[int], vocabulary: Vocabulary) -> list[int]:
    """Return the tokens after the last control token."""
    begin = next((index for index in range(len(ids), 0, -1) if vocabulary.tokens[ids[index - 1]] is None), 0)
    return list(ids[begin:])


def size_of(vocabulary: Vocabulary, token_id: int) -> int:
    """Return the number of bytes of a token; a control token has none."""
    return len(vocabulary.tokens[token_id] or b"")


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the longest common prefix of two sequences."""
    size = min(len(one), len(other))
    return next((index for index in range(size) if one[index] != other[index]), size)


def _count_within(ids: Sequence[int], tokens: Sequence[bytes | None], size: int) -> int:
    """Return the number of tokens that end within the first ``size`` bytes."""
    return sum(end <= size for end in accumulate(len(tokens[token_id] or b"") for token_id in ids))


def _character_start(text: bytes, index: int) -> int:
    """Return the index of the first byte of the character at ``index``."""
    while text[index] & 0xC0 == 0x80:
        index -= 1
    return index
