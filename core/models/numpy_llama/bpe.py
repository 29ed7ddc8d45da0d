"""Byte-level BPE tokenizers: that of the embedded model, and those in GGUF files.

A pre-tokenizer splits text into pieces, such as a word with the space before it; tokens do not cross pieces. In each
piece, the adjacent pair whose merge has the lowest rank is joined, the leftmost first, until no pair can be joined.

If every byte is a token, every text has an encoding. Some models lack tokens for control characters and for bytes that
are not in UTF-8: such a byte is omitted, as in the original libraries.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from ...unicode.charset import CharSet
from ...unicode.properties import find_property
from ...vocabulary.token_bytes import byte_alphabet
from ...vocabulary.vocabulary import Vocabulary

#: Splits a text into pieces, whose concatenation is the text.
Splitter = Callable[[str], Iterable[str]]

#: Ranks of merges by pair; lower ranks first.
Merges = Mapping[tuple[bytes, bytes], int]

# In order: a word with at most one sign before it, one digit, punctuation with a space before and line ends after it,
# whitespace up to the last line end, whitespace but for the last character if a word follows, other whitespace.
_PIECES = re.compile(
    r"(?:[^\r\n\w]|_)?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)  # fmt: skip

#: Maximum length of a piece that is cached, and maximum number of these.
_SHORT, _CACHED_PIECES = 64, 16_384

# Sources: the tokenizer.json of the models, and `llama_vocab::impl::load` in llama.cpp, src/llama-vocab.cpp. L, N and S
# stand for letters, numbers and white space, as Unicode has them.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?[{L}]+| ?[{N}]+| ?[^{S}{L}{N}]+|[{S}]+(?![^{S}])|[{S}]+"
_PATTERNS = {
    "gpt-2": _GPT2,
    "smollm": _GPT2,
    "llama-bpe": r"'(?i:s|t|re|ve|m|ll|d)|[^\r\n{L}{N}]?[{L}]+|[{N}]{{1,3}}| ?[^{S}{L}{N}]+[\r\n]*|"
    r"[{S}]*[\r\n]+|[{S}]+(?![^{S}])|[{S}]+",
}
_PATTERNS["qwen2"] = _PATTERNS["llama-bpe"].replace("[{N}]{{1,3}}", "[{N}]")
#: Patterns with which each number is a separate piece, before other rules.
_DIGITS = frozenset({"smollm"})

#: The known pre-tokenizers, by their names in GGUF files.
SPLITTERS = tuple(_PATTERNS)


def split_pieces(text: str) -> Iterable[str]:
    """Yield the pieces of ``text`` for the embedded model's tokenizer.

    Law: ``"".join(split_pieces(text)) == text``; likewise for every `splitter`.
    """
    return (match.group() for match in _PIECES.finditer(text))


@lru_cache(maxsize=len(_PATTERNS))
def splitter(name: str) -> Splitter:
    """Return the function from a text to its pieces; ``name`` is that of a pre-tokenizer, one of `SPLITTERS`. If it is
    one of `_DIGITS`, each number character is a piece: ``a 12`` -> ``a``, `` ``, ``1``, ``2``."""
    classes = {
        letter: _class_body(find_property(property_name))
        for letter, property_name in (("L", "L"), ("N", "N"), ("S", "White_Space"))
    }
    find = re.compile(_PATTERNS[name].format(**classes)).findall
    if name not in _DIGITS:
        return find
    split_at_digits = re.compile("([{N}])".format(**classes)).split

    def split(text: str) -> Iterable[str]:
        for index, part in enumerate(split_at_digits(text)):
            if index % 2:  # a digit: `re.split` returns the text of its group between the others
                yield part
            else:
                yield from find(part)

    return split


def _class_body(characters: CharSet | None) -> str:
    """Return a set of characters in the syntax of a class in a Python regular expression, without brackets."""
    assert characters is not None
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in characters)


class ByteBPE:
    """A byte-level BPE tokenizer. Immutable except for a bounded cache; thread-safe.

    Args:
        vocabulary: the tokens; control tokens are used only with ``controls``.
        merges: the merges by rank.
        split: the pre-tokenizer.
        markers: added tokens that are ordinary text, such as ``<tool_call>``, with their ids; a text that spells one is
            encoded as this token.
        whole_pieces: a piece that is a token is encoded as this token, independently of the merges.

    Attributes:
        vocabulary: the argument.
        markers: the argument.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        merges: Merges,
        split: Splitter,
        *,
        markers: Mapping[str, int],
        whole_pieces: bool,
    ) -> None:
        added = set(markers.values())
        self._ids = {  # of equal tokens the first
            token: token_id
            for token_id, token in reversed(list(enumerate(vocabulary.tokens)))
            if token and token_id not in added
        }
        self.vocabulary = vocabulary
        self.markers = markers
        self._merges = merges
        self._split = split
        self._whole_pieces = whole_pieces
        # The tokens that a text may spell, by ``controls`` of `encode`, and patterns that find them, the longest first.
        self._added = {False: dict(markers), True: {**markers, **vocabulary.special}}
        self._patterns = {
            controls: re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)")
            for controls, names in self._added.items()
        }
        self._encode_short = lru_cache(maxsize=_CACHED_PIECES)(self._merged)

    @classmethod
    def load(cls, path: Path) -> ByteBPE:
        """Read the tokenizer of the embedded model from a file.

        The file is UTF-8 text: lines ``#special NAME``, ``#eos NAME`` and ``#marker TEXT``, an empty line, then one
        token a line, lower rank first, in GPT-2's notation for bytes (`byte_alphabet`); all 256 single bytes are among
        them. The ids are in the order of the tokens, then of the markers, then of the special tokens. The order of the
        tokens implies the merges.
        """
        head, _, body = path.read_text(encoding="utf-8").partition("\n\n")
        fields: dict[str, list[str]] = {"#special": [], "#eos": [], "#marker": []}
        for line in head.splitlines():
            kind, _, value = line.partition(" ")
            fields[kind].append(value)
        alphabet = byte_alphabet()
        tokens = [bytes([alphabet[character] for character in line]) for line in body.splitlines()]
        markers = {name: token_id for token_id, name in enumerate(fields["#marker"], len(tokens))}
        special = {name: token_id for token_id, name in enumerate(fields["#special"], len(tokens) + len(markers))}
        ranks = {token: rank for rank, token in enumerate(tokens)}
        # A merge makes the token of its rank: each cut of a token into two others is one.
        cuts = ((token[:at], token[at:], rank) for token, rank in ranks.items() for at in range(1, len(token)))
        return cls(
            Vocabulary(
                [*tokens, *(name.encode() for name in markers), *(None for _ in special)],
                eos=[special[name] for name in fields["#eos"]],
                special=special,
            ),
            {(left, right): rank for left, right, rank in cuts if left in ranks and right in ranks},
            split_pieces,
            markers=markers,
            whole_pieces=True,
        )

    def encode(self, text: str, *, markers: bool = True, controls: bool = False) -> list[int]:
        """Return the token ids of ``text``.

        Args:
            text: any string; a lone surrogate is encoded as three bytes, as by UTF-8 for other code points.
            markers: encode a marker as its token; False: as other text.
            controls: likewise for names of control tokens; for the text of chat templates only.

        Law: ``decode(encode(text)) == text``, without ``controls``, if every byte of the text has a token.
        """
        ids: list[int] = []
        start = 0
        if markers or controls:
            added = self._added[controls]
            for match in self._patterns[controls].finditer(text):
                self._encode_plain(text[start : match.start()], ids)
                ids.append(added[match.group()])
                start = match.end()
        self._encode_plain(text[start:], ids)
        return ids

    def _encode_plain(self, text: str, ids: list[int]) -> None:
        """Append the ids of a text without markers and control tokens."""
        for piece in self._split(text):
            ids.extend(self._encode_short(piece) if len(piece) <= _SHORT else self._merged(piece))

    def _merged(self, piece: str) -> tuple[int, ...]:
        """Return the tokens of one piece, in O(n log n) time: of all neighbouring parts, those whose merge has the
        lowest rank are joined, the leftmost first, until none can be.

        Merges are taken from a heap; one whose pair has changed is skipped.
        """
        merges, ids = self._merges, self._ids
        data = piece.encode("utf-8", "surrogatepass")
        if self._whole_pieces and data in ids:
            return (ids[data],)
        # A linked list: a part that was joined to the one before it is empty, and nothing leads to it.
        parts: list[bytes] = [data[i : i + 1] for i in range(len(data))]
        after = list(range(1, len(parts) + 1))
        before = list(range(-1, len(parts) - 1))
        heap = [(merges[pair], i, pair) for i, pair in enumerate(pairwise(parts)) if pair in merges]
        heapq.heapify(heap)
        while heap:
            _, i, pair = heapq.heappop(heap)
            j = after[i]
            if j == len(parts) or (parts[i], parts[j]) != pair:
                continue
            parts[i], parts[j] = parts[i] + parts[j], b""
            after[i] = after[j]
            if after[i] < len(parts):
                before[after[i]] = i
            for left in (before[i], i):
                if left >= 0 and after[left] < len(parts):
                    pair = (parts[left], parts[after[left]])
                    if pair in merges:
                        heapq.heappush(heap, (merges[pair], left, pair))
        return tuple(ids[part] for part in parts if part in ids)
