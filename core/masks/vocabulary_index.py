"""Index of a vocabulary: its trie, and the token sets that all grammars share."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from .character_counts import ClassExits, ClassRuns, TokenCounts
    from .run_sets import RunSurvey
    from .token_set import TokenSet
    from .trie import Trie

#: An escape in a JSON string, followed by the quote that ends the string; the token may begin anywhere before it.
_CLOSER = re.compile(rb'"?(?:[^"\\]|\\.)*\\.(?:[^"\\]|\\.)*"', re.DOTALL)

#: Maximum number of sets of tokens whose names one vocabulary keeps.
MAX_BY_NAME = 256


class VocabularyIndex:
    """The trie of a vocabulary, and memos that every grammar bound to it shares.

    `index_of` makes it; the vocabulary holds it. The mask kernel fills the dictionaries as it needs them.

    Args:
        trie: the tokens by their bytes.
        quoted: the ids of the tokens that hold a quote.
        tokens: the bytes of all tokens, None for ids that are not text.

    Attributes:
        tokens: the same.
        token_sets: token sets that do not depend on the grammar, by the key that `ByteRows.shared` gives.
        inside: by a number, the tokens that stay inside a JSON string and have at most that number of characters.
        counted: token sets of counted strings, by the maximum and the minimum number of characters that remain.
        counts: the number of characters of each token in a JSON string; None until it is needed.
        runs: `ClassRuns` by class of characters.
        exits: `ClassExits` by class of characters.
        run_surveys: `RunSurvey` by class of ASCII characters.
        met: number of times that a class of characters was met before its `ClassRuns` were computed.
    """

    __slots__ = (
        "_by_name",
        "_closers",
        "counted",
        "counts",
        "exits",
        "inside",
        "met",
        "quoted",
        "run_surveys",
        "runs",
        "token_sets",
        "tokens",
        "trie",
    )

    def __init__(self, trie: Trie, quoted: Iterable[int], tokens: Sequence[bytes | None]) -> None:
        self.trie = trie
        self.quoted: npt.NDArray[np.int64] = np.array(quoted, dtype=np.int64)
        self.tokens = tokens
        self._closers: npt.NDArray[np.int64] | None = None
        self.token_sets: dict[Hashable, TokenSet] = {}
        self.inside: dict[int, TokenSet] = {}
        self.counted: dict[tuple[int, int], TokenSet] = {}
        self.counts: TokenCounts | None = None
        self.runs: dict[Hashable, ClassRuns] = {}
        self.exits: dict[Hashable, ClassExits] = {}
        self.run_surveys: dict[bytes, RunSurvey] = {}
        self.met: dict[Hashable, int] = {}
        self._by_name: dict[tuple[tuple[int, ...], int], dict[bytes, list[int]]] = {}

    @property
    def closers(self) -> npt.NDArray[np.int64]:
        """The ids of the tokens that hold an escape of a JSON string and, after it, the quote that ends the string."""
        if self._closers is None:
            closers = [token for token in self.quoted.tolist() if _CLOSER.match(self.tokens[token] or b"")]
            self._closers = np.array(closers, dtype=np.int64)
        return self._closers

    def tokens_by_name(self, tokens: tuple[int, ...], least: int) -> dict[bytes, list[int]]:
        """Return those tokens that need a trial whatever was written, under ``b""``, and the others by the whole names
        in them; kept, since most masks have the same such tokens.

        Args:
            tokens: the ids of the tokens.
            least: number of quotes from which a token may hold two names.
        """
        known = self._by_name.get((tokens, least))
        if known is not None:
            return known
        found: dict[bytes, list[int]] = {b"": []}
        for token in tokens:
            spelled = self.tokens[token] or b""
            parts = spelled.split(b'"')
            # With a bracket, perhaps a name of an object further out.
            if len(parts) > least or b"\\" in spelled or b"}" in spelled or b"]" in spelled:
                found[b""].append(token)
                continue
            for name in parts[1 : len(parts) - 1]:
                found.setdefault(b'"' + name + b'"', []).append(token)
        if len(self._by_name) >= MAX_BY_NAME:
            self._by_name.clear()
        self._by_name[tokens, least] = found
        return found
