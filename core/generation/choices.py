"""Finite places of a text: the few words that may follow, spelled by the tokenizer, and how likely each of them is.

Under a mask a model chooses a value by its first token, which several values may share, and which may lead to a value
that the model finds unlikely. Where finitely many words may follow (the name of a tool, a value of an ``enum``, a
constant that tells alternatives apart, a boolean, a small integer), each can be scored whole: its tokens form a tree,
which the model reads in one forward pass. A choice by these scores follows the model's own distribution given that the
text is one of them (grammar-aligned decoding, Park and others 2024, exact where the language is finite).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..language.json_text import string_start
from .retokenise import begun_with, common_prefix
from .token_tree import TokenTree

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..masks import Matcher
    from ..vocabulary.vocabulary import Vocabulary
from .retokenise import Speller

#: Maximum number of words at a place, of bytes in one, and of tokens in the tree of their spellings.
MAX_WORDS, MAX_WORD_BYTES, MAX_TREE = 64, 256, 256

#: Maximum number of bytes that may come next inside a word; where there are more, the text is free.
MAX_BRANCHES = 64

#: Number of bytes that end a word for which its spelling is tried.
_ENDS_TRIED = 4

_WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-") | frozenset(
    range(128, 256)
)
_QUOTES = frozenset(b"\"'")

#: Bytes after which a quote opens a string, and does not close one.
_BEFORE_QUOTE = frozenset(b"{[(,:=<")


@dataclass(frozen=True)
class Word:
    """One of the words that may come next.

    Attributes:
        text: its bytes from the present place on.
        ends: the bytes that may come after it, of those that do not belong to a word.
        may_stop: the whole text may end after it.
        goes_on: another word begins with it.
    """

    text: bytes
    ends: bytes
    may_stop: bool
    goes_on: bool


@dataclass(frozen=True)
class Place:
    """A place where finitely many words may follow.

    Attributes:
        before: the beginning of all words, which is written already.
        words: at least two.
    """

    before: bytes
    words: tuple[Word, ...]

    @property
    def quote(self) -> bytes:
        """The quote that all words begin with; empty if there is none."""
        starts = {(self.before + word.text)[:1] for word in self.words}
        return starts.pop() if len(starts) == 1 and _QUOTES.issuperset(b"".join(starts)) else b""

    def names(self) -> list[str]:
        """Return the words as they read: without that quote."""
        size = len(self.quote)
        return [(self.before + word.text)[size:].decode("utf-8", "replace") for word in self.words]


def place_at(matcher: Matcher, tail: bytes) -> Place | None:
    """Return the words that may come next: up to the closing quote inside a string, else up to what is no word byte.

    Args:
        matcher: after the text so far; left as it was.
        tail: the end of that text.

    Returns:
        None if they are not finitely many, only one, or more than `MAX_WORDS`, or if something else than a word may
        follow.
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
        # The probe has taken one step for each byte of the path.
        common = common_prefix(path, text)
        probe.rollback(len(path) - common)
        path = path[:common]
        for byte in text[common:]:
            if not probe.accept_bytes(bytes((byte,))):
                break
            path += bytes((byte,))
        if path != text:
            continue  # the text so far forbids it
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
                return None  # what follows may be no word at all
            words.append(Word(text, ends, stops, bool(inner)))
        if len(words) + len(waiting) + len(inner) > MAX_WORDS:
            return None
        waiting += [(text + bytes((byte,)), closing) for byte in reversed(inner)]
    return Place(before, tuple(words)) if len(words) > 1 else None


def _begun(tail: bytes) -> tuple[bytes, bytes]:
    """Return the part of the next word that a text ends with, its opening quote included; and that quote."""
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
    """A word in tokens.

    Attributes:
        ids: the tokens that are certain, whatever comes after the word.
        rest: the bytes of the word after them, which a token writes together with what follows.
    """

    ids: tuple[int, ...]
    rest: bytes


class SpelledWords:
    """The words of a place in tokens.

    Args:
        place: the place.
        spelled: the words in tokens.

    Attributes:
        tree: the tokens that the model reads to score all words.
    """

    def __init__(self, place: Place, spelled: Sequence[_Spelled]) -> None:
        self.place = place
        self._spelled = spelled
        # The last token of a word is read only where what follows it counts.
        self.tree = TokenTree(
            one.ids if one.rest or word.goes_on else one.ids[:-1]
            for word, one in zip(place.words, spelled, strict=True)
        )

    def logprobs(
        self, rows: Sequence[npt.NDArray[np.float64]], vocabulary: Vocabulary
    ) -> tuple[npt.NDArray[np.float64], list[dict[int, float]]]:
        """Return the logarithm of the probability of each word, and where a word may go on that of each end of it.

        Args:
            rows: log-probabilities of all tokens: at the present place, then after each node of the tree.
            vocabulary: of the tokens.

        Returns:
            One number for each word: the sum over its tokens; where another word begins with it, or its last bytes are
            written with what follows, times the probability of what may follow. And for each word that others begin
            with the log-probabilities of the bytes that end it; -1 is the end of the text.
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
    place: Place, speller: Speller, vocabulary: Vocabulary, context: Sequence[int], held: bytes
) -> SpelledWords | None:
    """Return the words of a place in the tokens with which the tokenizer writes them.

    Args:
        place: the place.
        speller: the tokenizer.
        vocabulary: of the tokens.
        context: the last tokens before.
        held: text after them that is certain, and not written yet.

    Returns:
        None if the tokenizer does not write one of the words exactly, a word that may go on ends with a control token,
        or there are more tokens than `MAX_TREE`.
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
    """Return the logarithm of the probability of some tokens together."""
    return float(np.logaddexp.reduce(row[ids])) if len(ids) else -np.inf
