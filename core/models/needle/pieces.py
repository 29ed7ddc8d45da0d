"""Needle's tokenizer: a BPE over characters, as in SentencePiece, whose pieces have scores instead of merges.

Of all adjacent parts whose concatenation is a piece, those with the highest score are joined, the leftmost first. A
character that is no piece is spelled by bytes. A space is written ``▁`` in a piece.
"""

from __future__ import annotations

import heapq
import re
import struct
from functools import lru_cache

from ...errors import VocabularyError
from ...vocabulary.vocabulary import Vocabulary

_HEADER, _RECORD = struct.Struct("<IIIIIBBH"), struct.Struct("<fBH")
_NORMAL, _MARKER, _BYTE = 0, 3, 4
_SPACE = "▁"
_CACHED_WORDS = 16_384
#: Maximum length of a word that is cached.
_SHORT = 64

#: Markers that are control tokens here: text of a message that spells one is not one.
_CONTROLS = ("<|im_start|>", "<|im_end|>", "<tools>", "</tools>", "<tool_result>", "</tool_result>")
#: The marker that ends a turn.
_END = "<|im_end|>"


class PieceBPE:
    """The tokenizer in a file of Needle's weights. Immutable except for a bounded cache; thread-safe.

    Args:
        data: the last tensor of the file.

    Raises:
        VocabularyError: it is not a tokenizer of this kind.

    Attributes:
        vocabulary: its tokens.
        bos: the token that begins every sequence.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._read(data)
        except (struct.error, UnicodeDecodeError, KeyError, ValueError) as error:
            raise VocabularyError(f"the tokenizer is broken: {error}", hint="give needle3.cact again") from error
        self._encode_word = lru_cache(maxsize=_CACHED_WORDS)(self._merge)

    def _read(self, data: bytes) -> None:
        count, _, eos, bos, _, adds_space, spells_bytes, _ = _HEADER.unpack_from(data)
        if adds_space or not spells_bytes:
            raise ValueError("it adds a space to texts, or has no tokens for bytes")
        at = _HEADER.size
        self._scores: dict[str, tuple[float, int]] = {}
        self._bytes: dict[int, int] = {}
        tokens: list[bytes | None] = []
        special: dict[str, int] = {}
        markers: dict[str, int] = {}
        for token_id in range(count):
            score, kind, size = _RECORD.unpack_from(data, at)
            at += _RECORD.size
            piece = data[at : at + size].decode("utf-8")
            at += size
            if kind == _NORMAL:
                self._scores.setdefault(piece, (score, token_id))
                tokens.append(piece.replace(_SPACE, " ").encode())
            elif kind == _BYTE:
                byte = int(piece[3:5], 16)
                self._bytes[byte] = token_id
                tokens.append(bytes([byte]))
            elif kind == _MARKER and piece not in _CONTROLS:
                markers[piece] = token_id
                tokens.append(piece.encode())
            else:
                special[piece] = token_id
                tokens.append(None)
        if len(self._bytes) != 256:
            raise ValueError(f"{256 - len(self._bytes)} bytes have no token")
        if any(_SPACE in piece[1:] for piece in self._scores):
            raise ValueError("a piece has a space behind its first character")
        self.bos = bos
        self.vocabulary = Vocabulary(tokens, eos={eos, special[_END]}, special=special)
        self._added = {False: markers, True: {**markers, **special}}
        self._patterns = {
            key: re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)")
            for key, names in self._added.items()
        }

    def encode(self, text: str, *, controls: bool = False) -> list[int]:
        """Return the token ids of ``text``.

        Args:
            text: any string.
            controls: encode the name of a control token as this token; False: as other text.
        """
        ids: list[int] = []
        start = 0
        for match in self._patterns[controls].finditer(text):
            self._encode_plain(text[start : match.start()], ids)
            ids.append(self._added[controls][match.group()])
            start = match.end()
        self._encode_plain(text[start:], ids)
        return ids

    def _encode_plain(self, text: str, ids: list[int]) -> None:
        # The character that stands for a space in pieces has no piece of its own, so it is spelled by bytes.
        for index, part in enumerate(text.split(_SPACE)):
            if index:
                ids.extend(self._bytes[byte] for byte in _SPACE.encode())
            # No piece has a space behind its first character, so nothing is merged across one.
            for word in re.findall(r" ?[^ ]+| ", part):
                encode = self._encode_word if len(word) <= _SHORT else self._merge
                ids.extend(encode(word.replace(" ", _SPACE)))

    def _merge(self, word: str) -> tuple[int, ...]:
        """Return the tokens of one word, in O(n log n) time; a merge is skipped if its pair has changed."""
        scores = self._scores
        parts = list(word)
        after = list(range(1, len(parts) + 1))
        before = list(range(-1, len(parts) - 1))
        heap: list[tuple[float, int, str]] = []

        def offer(left: int) -> None:
            joined = parts[left] + parts[after[left]]
            if joined in scores:
                heapq.heappush(heap, (-scores[joined][0], left, joined))

        for left in range(len(parts) - 1):
            offer(left)
        while heap:
            _, left, joined = heapq.heappop(heap)
            right = after[left]
            if right == len(parts) or not parts[left] or parts[left] + parts[right] != joined:
                continue
            parts[left], parts[right] = joined, ""
            after[left] = after[right]
            if after[left] < len(parts):
                before[after[left]] = left
                offer(left)
            if before[left] >= 0:
                offer(before[left])
        ids: list[int] = []
        for part in filter(None, parts):
            if part in scores:
                ids.append(scores[part][1])
            else:
                ids.extend(self._bytes[byte] for byte in part.encode("utf-8", "surrogatepass"))
        return tuple(ids)
