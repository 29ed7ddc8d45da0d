"""Index of a vocabulary: its trie, and the memoised token sets and surveys that all grammars share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..basics.recent_memo import RecentMemo
from ..dependent.doubts import NameTokens

if TYPE_CHECKING:
    import numpy.typing as npt

    from .class_survey import ClassSurvey
    from .token_set import TokenSet
    from .trie import Trie

#: Maximum numbers of class surveys, and of token sets of runs, that a vocabulary memoises.
MAX_SURVEYS = 64
MAX_RUNS = 256


class VocabularyIndex:
    """The trie of a vocabulary, and memos that every grammar bound to it shares.

    `index_of` makes it, and the vocabulary owns it. The mask kernel fills the memos on demand (for threads, see
    `compiled.gil`).

    Args:
        trie: the tokens by their bytes.
        quoted: the ids of the tokens with a quote.
        tokens: the bytes of all tokens, None for ids that are not text.

    Attributes:
        trie: the same.
        quoted: the same, as an array.
        tokens: the same.
        names: the tokens by the JSON strings in them, made when they are first asked for.
        token_sets: token sets that are the same in every grammar, by the key of `ByteRows.shared`. These are few (free
            strings, and the first states of grammars), so there is no bound.
        runs: token sets of positions before C{m,n} and a closing quote, by C, n and m.
        surveys: surveys by class of characters (the ranges of its code points).
    """

    __slots__ = (
        "_names",
        "quoted",
        "runs",
        "surveys",
        "token_sets",
        "tokens",
        "trie",
    )

    def __init__(self, trie: Trie, quoted: Sequence[int], tokens: Sequence[bytes | None]) -> None:
        self.trie = trie
        self.quoted: npt.NDArray[np.int64] = np.array(quoted, dtype=np.int64)
        self.tokens = tokens
        self._names: NameTokens | None = None
        self.token_sets: dict[Hashable, TokenSet] = {}
        self.runs: RecentMemo[TokenSet] = RecentMemo(MAX_RUNS)
        self.surveys: RecentMemo[ClassSurvey] = RecentMemo(MAX_SURVEYS)

    @property
    def names(self) -> NameTokens:
        """The tokens by the JSON strings in them."""
        if self._names is None:
            self._names = NameTokens(self.tokens, self.quoted)
        return self._names
