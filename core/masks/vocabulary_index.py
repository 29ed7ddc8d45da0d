"""Index of a vocabulary: its trie, and the token sets that all grammars share."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .recent_memo import RecentMemo

if TYPE_CHECKING:
    import numpy.typing as npt

    from .class_survey import ClassSurvey
    from .token_set import TokenSet
    from .trie import Trie

#: An escape in a JSON string, followed by the quote that ends the string; the token may begin anywhere before it.
_CLOSER = re.compile(rb'"?(?:[^"\\]|\\.)*\\.(?:[^"\\]|\\.)*"', re.DOTALL)

#: Maximum numbers of class surveys, of token sets of runs, and of sets of tokens by name that one vocabulary keeps.
MAX_SURVEYS = 64
MAX_RUNS = 256
MAX_BY_NAME = 256


class VocabularyIndex:
    """The trie of a vocabulary, and memos that every grammar bound to it shares.

    `index_of` makes it; the vocabulary holds it. The mask kernel fills the memos as it needs them (for threads, see
    `compiled.gil`).

    Args:
        trie: the tokens by their bytes.
        quoted: the ids of the tokens that hold a quote.
        tokens: the bytes of all tokens, None for ids that are not text.

    Attributes:
        tokens: the same.
        token_sets: token sets that do not depend on the grammar, by the key that `ByteRows.shared` gives.
        runs: token sets of JSON strings that go on with a run of one class, by the class and the maximum and minimum
            number of characters.
        surveys: surveys by class of characters (the ranges of its code points).
    """

    __slots__ = (
        "_by_name",
        "_closers",
        "quoted",
        "runs",
        "surveys",
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
        self.runs: RecentMemo[TokenSet] = RecentMemo(MAX_RUNS)
        self.surveys: RecentMemo[ClassSurvey] = RecentMemo(MAX_SURVEYS)
        self._by_name: RecentMemo[dict[bytes, list[int]]] = RecentMemo(MAX_BY_NAME)

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
        self._by_name.put((tokens, least), found)
        return found
