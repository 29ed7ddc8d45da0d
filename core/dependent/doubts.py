"""Doubts: the tokens of a mask that the text so far may forbid.

A mask is computed as if each dependent node allowed all of its static language. The tokens that it may forbid are
stored with the mask; for each text, the forbidden ones among them are cleared. Most of these tokens end a name that was
begun before them, so they are found by the endings that would repeat a name (`Written.endings`), and few have to be
tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..basics.recent_memo import RecentMemo
from .distinct import DistinctObjects
from .written import Endings, Written

if TYPE_CHECKING:
    import numpy.typing as npt

#: A token with an escape of a JSON string and, after it, the quote that ends the string.
_CLOSER = re.compile(rb'"?(?:[^"\\]|\\.)*\\.(?:[^"\\]|\\.)*"', re.DOTALL)

#: Maximum number of sets of tokens that a vocabulary memoises by names.
MAX_BY_NAME = 256

_NO_ENDINGS: tuple[list[Endings], bool] = [], False


class NameTokens:
    """The tokens of a vocabulary by the JSON strings in them; threads share it.

    Args:
        tokens: the bytes of all tokens, None for ids that are not text.
        quoted: the ids of the tokens that hold a quote.

    Attributes:
        tokens, quoted: the same.
    """

    def __init__(self, tokens: Sequence[bytes | None], quoted: npt.NDArray[np.int64]) -> None:
        self.tokens = tokens
        self.quoted = quoted
        self._closers: npt.NDArray[np.int64] | None = None
        self._by_name: RecentMemo[dict[bytes, list[int]]] = RecentMemo(MAX_BY_NAME)

    @property
    def closers(self) -> npt.NDArray[np.int64]:
        """The ids of the tokens that hold an escape of a JSON string and, after it, the quote that ends the string."""
        if self._closers is None:
            closers = [token for token in self.quoted.tolist() if _CLOSER.match(self.tokens[token] or b"")]
            self._closers = np.array(closers, dtype=np.int64)
        return self._closers

    def by_name(self, ids: tuple[int, ...], most: int) -> dict[bytes, list[int]]:
        """Return the tokens by the whole names in them, and under ``b""`` the tokens that may have other names too.

        Memoised, because most masks have the same such tokens. The caller must not change the result: threads share it.

        Args:
            ids: the tokens.
            most: maximum number of quotes of a token without any part of a second name.
        """
        known = self._by_name.get((ids, most))
        if known is not None:
            return known
        found: dict[bytes, list[int]] = {b"": []}
        for token in ids:
            spelled = self.tokens[token] or b""
            parts = spelled.split(b'"')
            # After a closing bracket, a name may belong to an outer object.
            if len(parts) - 1 > most or b"\\" in spelled or b"}" in spelled or b"]" in spelled:
                found[b""].append(token)
                continue
            for name in parts[1:-1]:
                found.setdefault(b'"' + name + b'"', []).append(token)
        self._by_name.put((ids, most), found)
        return found


class Candidates(Protocol):
    """The mask of a text, before forbidden tokens are cleared."""

    def below(self, endings: Sequence[Endings]) -> Iterable[tuple[bytes, list[int]]]:
        """Return the endings with which tokens of the mask begin, each with these tokens."""

    def within(self, ids: npt.NDArray[np.int64]) -> list[int]:
        """Return the tokens of ``ids`` that are in the mask."""

    def ends_a_name(self, data: bytes) -> bool:
        """Return True if ``data`` leads to the end of a name and nowhere else (see `Resolution.ends_a_name`)."""

    def refuses(self, data: bytes) -> bool:
        """Return True if no text continues with ``data``: an exact step. False if live values are not there: the step
        raises the error if it is taken."""


class Doubts:
    """The tokens of a state's mask that the text so far may forbid.

    Args:
        unsure: the tokens that only an exact step decides.
        named: the tokens that have a whole name and bytes after it; forbidden if the name is repeated.
        watched: some tokens end a name that was begun before them; forbidden if they begin with one of
            `Written.endings`.
        deciding: dependent nodes after deciding members (see `distinct`) that some tokens end; these tokens may be
            forbidden if they begin with one of the nodes' `endings`.
    """

    __slots__ = ("_by_name", "_closers", "deciding", "named", "unsure", "watched")

    def __init__(
        self,
        unsure: tuple[int, ...],
        named: tuple[int, ...],
        watched: bool,
        deciding: tuple[DistinctObjects, ...] = (),
    ) -> None:
        self.unsure = unsure
        self.named = named
        self.watched = watched
        self.deciding = deciding
        self._by_name: dict[bytes, list[int]] | None = None
        self._closers: list[int] | None = None

    def forbidden(self, before: Written, mask: Candidates, names: NameTokens) -> list[int]:
        """Return the tokens that a text forbids; some may be repeated.

        Args:
            before: the text.
            mask: the mask of its state.
            names: the tokens of the vocabulary.
        """
        endings, is_partial = before.endings() if self.watched else _NO_ENDINGS
        for node in self.deciding:
            more, partial = node.endings(before)
            endings, is_partial = endings + more, is_partial or partial
        if not (endings or is_partial or self.unsure or self.named):
            return []
        forbidden: list[int] = []
        doubtful = list(self.unsure)  # they are tried at the end
        if endings or is_partial:  # tokens that end the name, with escapes in it
            if self._closers is None:  # the mask is the same for each text
                self._closers = mask.within(names.closers) if names.closers.size else []
            doubtful += self._closers
        if is_partial:  # the text ends within an escape: try every token that ends a name
            doubtful += mask.within(names.quoted)
        if endings:
            for ending, tokens in mask.below(endings):
                if mask.ends_a_name(ending) or mask.refuses(ending):
                    forbidden += tokens
                else:
                    doubtful += tokens
        if self.named:
            # A whole name has two quotes, and a value may begin with a third. Inside of a name, one of them ends that.
            if self._by_name is None:
                self._by_name = names.by_name(self.named, 2 if self.watched else 3)
            doubtful += self._by_name[b""]
            if len(self._by_name) > 1:
                for name in before.spelled_names(self._by_name):
                    doubtful += self._by_name[name]
        return forbidden + [token for token in dict.fromkeys(doubtful) if mask.refuses(names.tokens[token] or b"")]
