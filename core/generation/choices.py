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
    words: list[Word] = []
    # Depth first, so that the probe goes back only to the common prefix of two texts in a row.
    probe = matcher.fork()
    path = b""  # what the probe has accepted, in one step for each byte
    waiting = [b""]
    while waiting:
        text = waiting.pop()
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
        inner, ends = _inner_and_ends(text, following, quote)
        may_stop = probe.is_accepting
        if ends or may_stop or not following:
            if not text and not before and not quote:
                return None  # the continuation may be another one than a word
            words.append(Word(text, ends, may_stop, bool(inner)))
        if len(words) + len(waiting) + len(inner) > MAX_WORDS:
            return None
        waiting += [text + bytes((byte,)) for byte in reversed(inner)]
    return WordsPlace(before, tuple(words)) if len(words) > 1 else None


def _inner_and_ends(text: bytes, following: bytes, quote: bytes) -> tuple[bytes, bytes]:
    """Return the possible next bytes that continue a word, and those that end it: in ``"ab``, ``b'c"'`` -> ``c`` and
    ``"``; in a bare ``tr``, ``b'u,'`` -> ``u`` and ``,``.

    Args:
        text: the beginning of the word, from the current position.
        following: the possible next bytes.
        quote: the quote of the string that is open at the current position; empty: none.
    """
    closing = quote or (text[:1] if text[:1] in (b'"', b"'") else b"")
    if closing:
        ends = b"" if text.endswith(b"\\") or closing not in following else closing  # an escaped quote ends nothing
        return following.replace(ends, b"") if ends else following, ends
    inner = bytes(byte for byte in following if byte in _WORD_BYTES or (not text and byte in _QUOTES))
    return inner, bytes(byte for byte in following if byte not in inner)


def _begun(tail: bytes) -> tuple[bytes, bytes]:
    """Return the part of the next word at the end of a text, including its opening quote; and the quote: ``{"a`` ->
    ``"a`` and ``"``, ``x = tr`` -> ``tr`` and nothing."""
    at = max(string_start(tail, len(tail), quote) for quote in (b'"', b"'"))
    if at >= 0:
        head = tail[:at].rstrip()
        if not head or head[-1] in _BEFORE_QUOTE:  # else the quote closes a string
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
        rest: the remaining bytes of the word, which a token may write together with the following text: ``ue`` of
            ``"blue``, if the tokenizer has a token ``ue"``.
    """

    ids: tuple[int, ...]
    rest: bytes


class SpelledWords:
    """The tokenized words of a `WordsPlace`.

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
        """Return two things for each word: its log-probability, and the log-probabilities of its ends.

        An end is the byte after the word (-1: the end of the text). A word has ends only if it is a prefix of another.

        Args:
            rows: log-probabilities of all tokens: at the current position, then after each node of the tree.
            vocabulary: the vocabulary of the tokens.

        The log-probability of a word is the sum of those of its tokens. If its end is not certain by these (it is a
        prefix of another word, or one token may write its last bytes and the following text), that of all its possible
        ends is added.
        """
        totals = np.zeros(len(self._spelled))
        ends: list[dict[int, float]] = []
        for number, (word, one) in enumerate(zip(self.place.words, self._spelled, strict=True)):
            for length, token_id in enumerate(one.ids):  # row 0 is that of the current position
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
    """Return the words of a `WordsPlace` in the tokenizer's own tokens.

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
        one = _spelled(word, speller, vocabulary, context, held)
        if one is None or one in spelled:  # two words with equal tokens could not be told apart
            return None
        spelled.append(one)
    words = SpelledWords(place, spelled)
    return words if len(words.tree.token_ids) <= MAX_TREE else None


def _spelled(
    word: Word, speller: Speller, vocabulary: Vocabulary, context: Sequence[int], held: bytes
) -> _Spelled | None:
    """Return a word in the tokenizer's own tokens, as far as they are the same whatever follows; None if the tokenizer
    cannot write it exactly, or does not write the rest of it and the byte after it in one token."""
    data = held + word.text
    ended = [data + bytes((byte,)) for byte in word.ends[:_ENDS_TRIED]]
    spellings: dict[bytes, tuple[int, ...]] = {}
    for text in (data, *ended):
        ids = speller.after(context, text) if text else ()
        if ids is None:
            return None
        spellings[text] = ids
    certain = spellings[data]
    for text in ended:
        certain = certain[: common_prefix(certain, spellings[text])]
    rest = data[len(vocabulary.decode(certain)) :]
    for text in ended if rest else ():
        token_after = spellings[text][len(certain) : len(certain) + 1]
        if not vocabulary.decode(token_after).startswith(text[len(data) - len(rest) :]):  # the rest, and the byte
            return None
    return _Spelled(certain, rest)


def _mass(row: npt.NDArray[np.float64], ids: npt.NDArray[np.intp]) -> float:
    """Return the log-probability of a set of tokens."""
    return float(np.logaddexp.reduce(row[ids])) if len(ids) else -np.inf
