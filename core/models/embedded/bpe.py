"""A small byte-level BPE tokenizer, for the model that comes with the library.

Text is cut into pieces (a word with the character before it, a digit, a run of punctuation or of whitespace), and in
each piece the neighbours whose union has the lowest rank are joined until no union is a token. Since every single
byte is a token, every text has an encoding.

Pieces are at most `_LONGEST_PIECE` characters long, longer ones are cut: so the time is linear in the text, whatever
the text. (A heap of merges would avoid the cut, and is slower on every usual piece.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from ...errors import VocabularyError
from ...vocabulary.token_bytes import byte_alphabet
from ...vocabulary.vocabulary import Vocabulary

DATA = Path(__file__).parent / "data" / "embedded_tokenizer.txt"

# In order: a word with at most one sign before it, one digit, punctuation with a space before and line ends after it,
# whitespace up to the last line end, whitespace but for the last character if a word follows, other whitespace.
_PIECES = re.compile(
    r"(?:[^\r\n\w]|_)?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)  # fmt: skip
_LONGEST_PIECE = 64
_CACHED_PIECES = 16_384
_NO_RANK = 1 << 30


def split_pieces(text: str) -> Iterable[str]:
    """Yield the pieces of ``text``, in order, that tokens never cross.

    Law: ``"".join(split_pieces(text)) == text``.
    """
    for match in _PIECES.finditer(text):
        start, end = match.span()
        while end - start > _LONGEST_PIECE:
            yield text[start : start + _LONGEST_PIECE]
            start += _LONGEST_PIECE
        yield text[start:end]


class ByteBPE:
    """The tokenizer. Immutable but for a bounded cache; may be shared between threads.

    Ids: first ``tokens``, then ``markers``, then ``special``.

    Args:
        tokens: the bytes of the tokens, lower rank first; all 256 single bytes are among them.
        markers: added tokens that are ordinary text, such as ``<tool_call>``.
        special: control tokens, such as ``<|im_end|>``; no text is ever encoded as one.
        eos: those of ``special`` that end the text.

    Raises:
        VocabularyError: a single byte is missing, a token is there twice, or ``eos`` is not special.
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        *,
        markers: Sequence[str] = (),
        special: Sequence[str] = (),
        eos: Sequence[str] = (),
    ) -> None:
        self._ranks = {token: rank for rank, token in enumerate(tokens)}
        if len(self._ranks) != len(tokens):
            raise VocabularyError("a token is listed twice", hint="give each token once, lower rank first")
        missing = [byte for byte in range(256) if bytes([byte]) not in self._ranks]
        if missing:
            raise VocabularyError(f"the byte {missing[0]:#04x} has no token", hint="every single byte must be a token")
        self._markers = {marker: len(tokens) + i for i, marker in enumerate(markers)}
        first_special = len(tokens) + len(markers)
        self.special = {name: first_special + i for i, name in enumerate(special)}
        unknown = [name for name in eos if name not in self.special]
        if unknown:
            raise VocabularyError(f"eos names {unknown[0]!r}, which is not a special token", hint="add it to special")
        self.vocabulary = Vocabulary(
            [*tokens, *(marker.encode() for marker in markers), *(None for _ in special)],
            eos=[self.special[name] for name in eos],
            special=self.special,
        )
        longest_first = sorted(markers, key=len, reverse=True)
        self._marker_pattern = re.compile("|".join(map(re.escape, longest_first))) if markers else None
        self._encode_piece = lru_cache(maxsize=_CACHED_PIECES)(self._merge)

    @classmethod
    def load(cls, path: Path = DATA) -> ByteBPE:
        """Read a tokenizer from a file: by default the one that comes with the library.

        The file is UTF-8 text: lines ``#special NAME``, ``#eos NAME`` and ``#marker TEXT``, an empty line, then one
        token a line, lower rank first, in GPT-2's notation for bytes (`byte_alphabet`).

        Raises:
            VocabularyError: it is not such a file.
        """
        head, _, body = path.read_text(encoding="utf-8").partition("\n\n")
        fields: dict[str, list[str]] = {"#special": [], "#eos": [], "#marker": []}
        alphabet = byte_alphabet()
        try:
            for line in head.splitlines():
                kind, _, value = line.partition(" ")
                fields[kind].append(value)
            tokens = [bytes([alphabet[character] for character in line]) for line in body.splitlines()]
        except KeyError as error:
            raise VocabularyError(
                f"{path} is not a tokenizer file: it has {error.args[0]!r}", hint="`ByteBPE.load` names its lines"
            ) from None
        return cls(tokens, markers=fields["#marker"], special=fields["#special"], eos=fields["#eos"])

    def encode(self, text: str, *, markers: bool = True) -> list[int]:
        """Return the token ids of ``text``. Control tokens are never among them, whatever the text spells.

        Args:
            text: any string; a lone surrogate is written as the three bytes that UTF-8 would give it.
            markers: write a marker as its one token; False spells it like any other text.

        Law: ``decode(encode(text)) == text``.
        """
        ids: list[int] = []
        start = 0
        if markers and self._marker_pattern is not None:
            for match in self._marker_pattern.finditer(text):
                self._encode_plain(text[start : match.start()], ids)
                ids.append(self._markers[match.group()])
                start = match.end()
        self._encode_plain(text[start:], ids)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text that these tokens write; bytes that are not UTF-8 become U+FFFD.

        Raises:
            VocabularyError: an id out of range.
        """
        data = self.vocabulary.decode(ids)
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace")

    def _encode_plain(self, text: str, ids: list[int]) -> None:
        encode_piece = self._encode_piece
        for piece in split_pieces(text):
            ids.extend(encode_piece(piece))

    def _merge(self, piece: str) -> tuple[int, ...]:
        """Return the tokens of one piece: join the neighbours of lowest rank, the leftmost first, while any join."""
        ranks = self._ranks
        data = piece.encode("utf-8", "surrogatepass")
        whole = ranks.get(data)
        if whole is not None:
            return (whole,)
        parts = [data[i : i + 1] for i in range(len(data))]
        # joined[i]: the rank of parts[i] + parts[i + 1].
        joined = [ranks.get(data[i : i + 2], _NO_RANK) for i in range(len(data) - 1)]
        while joined:
            best = min(joined)
            if best == _NO_RANK:
                break
            i = joined.index(best)
            parts[i] += parts[i + 1]
            del parts[i + 1], joined[i]
            if i > 0:
                joined[i - 1] = ranks.get(parts[i - 1] + parts[i], _NO_RANK)
            if i < len(joined):
                joined[i] = ranks.get(parts[i] + parts[i + 1], _NO_RANK)
        return tuple(ranks[part] for part in parts)
