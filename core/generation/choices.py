"""Choices among finitely many words: the words that may follow in a text, their tokens, and their probabilities.

Under a mask, a model chooses a value by its first token, which several values may share, and which may lead to a value
that the model considers unlikely. If finitely many words may follow (the name of a tool, a value of an ``enum``, a
discriminating constant, a boolean, a small integer), each can be scored as a whole: their tokens form a tree, which the
model reads in one forward pass. A choice by these scores follows the model's own distribution conditioned on these
words (grammar-aligned decoding, Park and others 2024, which is exact if the language is finite).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..json import string_start
from .retokenise import begun_with, common_prefix
from .token_tree import TokenTree

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..masks import Matcher
    from ..vocabulary.vocabulary import Vocabulary
from .retokenise import Speller

#: Maximum number of words, of bytes in one, and of tokens in the tree of their spellings.
MAX_WORDS, MAX_WORD_BYTES, MAX_TREE = 64, 256, 256

#: Maximum number of possible next bytes inside a word; with more, the text is free.
MAX_BRANCHES = 64

#: Maximum number of bytes after a word with which its tokenization is tested.
_ENDS_TRIED = 4

_WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-") | frozenset(
    range(128, 256)
)
_QUOTES = frozenset(b"\"'")

#: Bytes after which a quote opens a string instead of closing one.
_BEFORE_QUOTE = frozenset(b"{[(,:=<")


@dataclass(frozen=True)
class Word:
    """One of the possible next words.

    Attributes:
        text: its bytes from the current position.
        ends: the bytes that may follow it and are not part of a word.
        may_stop: the text may end after it.
        goes_on: it is a prefix of another word.
    """

    text: bytes
    ends: bytes
    may_stop: bool
    goes_on: bool


@dataclass(frozen=True)
class WordsPlace:
    """A position at which finitely many words may follow.

    Attributes:
        before: the common prefix of the words that is already written.
        words: at least two.
    """

    before: bytes
    words: tuple[Word, ...]

    @property
    def quote(self) -> bytes:
        """The quote with which all words begin; empty if there is none."""
        starts = {(self.before + word.text)[:1] for word in self.words}
        return starts.pop() if len(starts) == 1 and _QUOTES.issuperset(b"".join(starts)) else b""

    def names(self) -> list[str]:
        """Return the whole words, without their quote."""
        size = len(self.quote)
        return [(self.before + word.text)[size:].decode("utf-8", "replace") for word in self.words]


def place_at(matcher: Matcher, tail: bytes) -> WordsPlace | None:
    """Return the possible next words: up to the closing quote inside a string, else up to a byte that is not in words.

    Args:
        matcher: after the text so far; unchanged at the end.
        tail: the end of that text.

    Returns:
        None if there are infinitely many, only one, or more than `MAX_WORDS`, or if anything but a word may follow.
    """
    first = matcher.next_bytes()
    if not first or len(first) > MAX_BRANCHES:
        return None
    before, quote = _begun(tail)
    if not quote and not before and not (_WORD_BYTES | _QUOTES).issuperset(first):
        return None
    probe = matcher.fork()
    words: list[Word] = []
    waiting = [(b"", quote)]
    path = b""
    while waiting:
        text, closing = waiting.pop()
        # The matcher has taken one step for each byte of the path.
        common = common_prefix(path, text)
        probe.rollback(len(path) - common)
        path = path[:common]
        for byte in text[common:]:
            if not probe.accept_bytes(bytes((byte,))):
                break
            path += bytes((byte,))
        if path != text:
            continue  # forbidden by the text so far
        following = probe.next_bytes()
        if len(following) > MAX_BRANCHES or len(text) > MAX_WORD_BYTES:
            return None
        if text and not closing and text[0] in _QUOTES:
            closing = text[:1]
        if closing:
            ends = b"" if text.endswith(b"\\") else bytes(byte for byte in following if byte == closing[0])
            inner = bytes(byte for byte in following if byte not in ends)
        else:
            inner = bytes(byte for byte in following if byte in _WORD_BYTES or (not text and byte in _QUOTES))
            ends = bytes(byte for byte in following if byte not in inner)
        stops = probe.is_accepting
        if ends or stops or not following:
            if not text and not before and not quote:
                return None  # the continuation may be another one than a word
            words.append(Word(text, ends, stops, bool(inner)))
        if len(words) + len(waiting) + len(inner) > MAX_WORDS:
            return None
        waiting += [(text + bytes((byte,)), closing) for byte in reversed(inner)]
    return WordsPlace(before, tuple(words)) if len(words) > 1 else None


def _begun(tail: bytes) -> tuple[bytes, bytes]:
    """Return the part of the next word at the end of a text, including its opening quote; and the quote."""
    at = max(string_start(tail, len(tail), quote) for quote in (b'"', b"'"))
    if at >= 0:
        head = tail[:at].rstrip()
        if not head or head[-1] in _BEFORE_QUOTE:
            return tail[at:], tail[at : at + 1]
    size = len(tail)
    while size and tail[size - 1] in _WORD_BYTES:
        size -= 1
    return tail[size:], b""


@dataclass(frozen=True)
class _Spelled:
    """A tokenized word.

    Attributes:
        ids: the tokens that do not depend on the text after the word.
        rest: the remaining bytes of the word, which a token may write together with the following text.
    """

    ids: tuple[int, ...]
    rest: bytes


class SpelledWords:
    """The tokenized words of a `Place`.

    Args:
        place: the words.
        spelled: the tokens of each word.

    Attributes:
        tree: the tokens that the model reads to score all words.
    """

    def __init__(self, place: WordsPlace, spelled: Sequence[_Spelled]) -> None:
        self.place = place
        self._spelled = spelled
        # The model reads the last token of a word only if the probability of what follows is needed.
        self.tree = TokenTree(
            one.ids if one.rest or word.goes_on else one.ids[:-1]
            for word, one in zip(place.words, spelled, strict=True)
        )

    def logprobs(
        self, rows: Sequence[npt.NDArray[np.float64]], vocabulary: Vocabulary
    ) -> tuple[npt.NDArray[np.float64], list[dict[int, float]]]:
        """Return the log-probability of each word, and for words that may go on, of each of their ends.

        Args:
            rows: log-probabilities of all tokens: at the current position, then after each node of the tree.
            vocabulary: the vocabulary of the tokens.

        Returns:
            For each word, the sum of the log-probabilities of its tokens; if the word is a prefix of another, or if a
            token may write its last bytes together with the following text, plus the log-probability of the possible
            continuations. And for each word that is a prefix of another, the log-probabilities of the bytes that end
            it; -1 stands for the end of the text.
        """
        totals = np.zeros(len(self._spelled))
        ends: list[dict[int, float]] = []
        for number, (word, one) in enumerate(zip(self.place.words, self._spelled, strict=True)):
            for length, token_id in enumerate(one.ids):
                totals[number] += rows[self.tree.index(one.ids[:length]) + 1][token_id]
            ends.append({})
            if not one.rest and not word.goes_on:
                continue
            row = rows[self.tree.index(one.ids) + 1]
            by_end = {byte: _mass(row, begun_with(vocabulary, one.rest + bytes((byte,)))) for byte in word.ends}
            if word.may_stop and not one.rest:
                by_end[-1] = _mass(row, np.array(sorted(vocabulary.eos), dtype=np.intp))
            totals[number] += np.logaddexp.reduce(list(by_end.values())) if by_end else -np.inf
            if word.goes_on:
                ends[number] = by_end
        return totals, ends


def spelled_words(
    place: WordsPlace, speller: Speller, vocabulary: Vocabulary, context: Sequence[int], held: bytes
) -> SpelledWords | None:
    """Return the words of a `Place` in the tokenizer's own tokens.

    Args:
        place: the words.
        speller: the tokenizer.
        vocabulary: the vocabulary of the tokens.
        context: the last tokens before the pending text.
        held: the pending text (certain, but not written in tokens yet).

    Returns:
        None if the tokenizer cannot write one of the words exactly, if a word that may go on ends with a control token,
        or if there are more than `MAX_TREE` tokens.
    """
    spelled: list[_Spelled] = []
    for word in place.words:
        if word.goes_on and not (word.ends or word.may_stop):
            return None
        data = held + word.text
        ways = [data] if data else []
        ways += [data + bytes((byte,)) for byte in word.ends[:_ENDS_TRIED]]
        found = [speller.after(context, way) for way in ways]
        certain: tuple[int, ...] | None = None if data else ()
        for ids in found:
            if ids is None:
                return None
            certain = ids if certain is None else certain[: common_prefix(certain, ids)]
        if certain is None:
            return None
        rest = data[len(vocabulary.decode(certain)) :]
        for way, ids in zip(ways, found, strict=True):
            joined = (ids or ())[len(certain) : len(certain) + 1]
            if rest and way != data and not vocabulary.decode(joined).startswith(way[len(data) - len(rest) :]):
                return None
        spelled.append(_Spelled(certain, rest))
    if len({(one.ids, one.rest) for one in spelled}) < len(spelled):
        return None
    words = SpelledWords(place, spelled)
    return words if len(words.tree.token_ids) <= MAX_TREE else None


def _mass(row: npt.NDArray[np.float64], ids: npt.NDArray[np.intp]) -> float:
    """Return the log-probability of a set of tokens."""
    return float(np.logaddexp.reduce(row[ids])) if len(ids) else -np.inf
