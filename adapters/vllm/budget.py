"""`Budget`: masks under which a text can always be completed within its tokens.

Invariant: the shortest completion of what is written fits into the tokens that are left. An engine that samples by
itself cannot be asked again, so the mask has to leave out each token behind which no completion fits. Where it leaves
one out, the budget may have had a say in what the model wrote, and `Budget.closed_at` says from where on.

A completion of *n* bytes and control tokens needs at most *n* tokens, so most places are decided by lengths, which the
automaton knows by state; only where these are too long is a completion spelled.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .spelling import Spelling

if TYPE_CHECKING:
    import numpy.typing as npt

    from toolgrammar.core import Matcher

#: Maximum number of completions that are spelled for one mask; tokens beyond them are left out.
_TRIALS = 48

#: Tokens that must be left beyond the longest completion for a mask that depends on more than the state to stay whole:
#: that completion is one of a token for each state, and other tokens that lead there may need a few bytes more.
_SPARE = 256

#: Maximum number of tokens after which the length of such a completion is asked for again.
_FRESH = 32

#: Maximum number of states of a store whose largest length is kept.
_KEPT = 65_536


class Budget:
    """The token budget of one text.

    Args:
        spelling: the model's tokenizer.

    Attributes:
        closed_at: number of tokens before the first mask that was narrowed; None if none was.
    """

    def __init__(self, spelling: Spelling) -> None:
        self._spelling = spelling
        self.reset()

    def reset(self) -> None:
        """Begin a new text."""
        self.closed_at: int | None = None
        self._path: tuple[int, list[int]] | None = None  # a completion, and the number of tokens before it
        self._places: tuple[Any, ...] | None = None  # where the tokens of the last state lead
        self._sizes: dict[int, int] = {}  # number of tokens of completions from there
        # By state, the length of a completion that depends on the text too, and after how many tokens it was asked for.
        self._unsure: dict[int, tuple[int, int]] = {}

    def rollback(self, written: int) -> None:
        """Note that only the first tokens of the text are left."""
        if self.closed_at is not None and self.closed_at > written:
            self.closed_at = None
        if self._path is not None and self._path[0] > written:
            self._path = None
        self._unsure = {state: found for state, found in self._unsure.items() if found[1] <= written}

    def narrow(self, matcher: Matcher, written: Sequence[int], row: npt.NDArray[np.uint32], room: int) -> None:
        """Clear the tokens behind which the text could not be completed.

        Args:
            matcher: the state of the text.
            written: the tokens of the text.
            row: the mask of its next token.
            room: number of tokens that may still be written. The token that ends the text needs none.
        """
        engine, state = matcher._place
        longest = engine.longest.get(state)
        if longest is not None and 0 <= longest < room:
            return
        flags = np.unpackbits(row.view(np.uint8), bitorder="little").view(np.bool_)
        control = [token for token in self._spelling.control if flags[token]]
        places = self._places
        if places is None or places[0] is not engine or places[1] != state:
            texts = np.flatnonzero(flags[: self._spelling.vocabulary.size] & self._spelling.is_text)
            # In the midst of a string the next place is mostly the same.
            places = self._places = engine, state, texts, *matcher.lengths_after(texts)
            self._sizes = {}
        _, _, texts, states, lengths = places
        unsure = lengths < 0
        if longest is None:
            if len(engine.longest) >= _KEPT:
                engine.longest.clear()
            most = max([int(lengths.max(initial=0)), *(self._length_after(matcher, token) for token in control)])
            longest = engine.longest[state] = -1 if unsure.any() else most
            if 0 <= longest < room:
                return
        if unsure.any():
            longest = max(
                int(lengths.max(initial=0)), self._unsure_length(matcher, texts[unsure], states[unsure], written)
            )
            if longest + _SPARE < room:
                return
        kept = np.zeros(len(flags), np.bool_)
        kept[texts[~unsure & (lengths < room)]] = True
        kept[self._tried(matcher, texts, states, lengths, room)] = True
        kept[[token for token in control if self._fits_after(matcher, token, room)]] = True
        path = self._completion(matcher, written)
        if path:
            kept[path[0]] = True
        if (kept == flags).all():
            return
        if self.closed_at is None:
            self.closed_at = len(written)
        row[:] = np.packbits(kept, bitorder="little").view(np.uint32)

    def _unsure_length(
        self,
        matcher: Matcher,
        texts: npt.NDArray[np.int64],
        states: npt.NDArray[np.int64],
        written: Sequence[int],
    ) -> int:
        """Return the largest length of a completion after some tokens, one of them for each state that they lead to."""
        groups, first = np.unique(states, return_index=True)
        if len(groups) > _TRIALS:
            return sys.maxsize - _SPARE
        most = 0
        for state, token in zip(groups.tolist(), texts[first].tolist(), strict=True):
            length, at = self._unsure.get(state, (0, -_FRESH))
            if at + _FRESH <= len(written):
                length = self._length_after(matcher, token)
                self._unsure[state] = length, len(written)
            most = max(most, length)
        return most

    def _tried(
        self,
        matcher: Matcher,
        texts: npt.NDArray[np.int64],
        states: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        room: int,
    ) -> npt.NDArray[np.int64]:
        """Return the tokens among those with long or unknown completions whose completion fits all the same."""
        found = [np.zeros(0, np.int64)]
        long = lengths >= room
        # One token stands for all that lead to the same state.
        groups, first = np.unique(states[long], return_index=True)
        for state, token in zip(groups[:_TRIALS].tolist(), texts[long][first].tolist(), strict=False):
            size = self._sizes.get(state)
            if size is None:
                size = self._sizes[state] = self._size_after(matcher, token)
            if size < room:
                found.append(texts[long & (states == state)])
        for token in texts[lengths < 0][: max(0, _TRIALS - len(groups))].tolist():
            if self._fits_after(matcher, token, room):
                found.append(np.array([token], np.int64))
        return np.concatenate(found)

    def _length_after(self, matcher: Matcher, token: int) -> int:
        if not matcher.accept(token):  # an end for the engine alone
            return 0
        length = matcher.shortest_length()
        matcher.rollback(1)
        return length

    def _size_after(self, matcher: Matcher, token: int) -> int:
        matcher.accept(token)
        size = len(self._spelling.completion(matcher))
        matcher.rollback(1)
        return size

    def _fits_after(self, matcher: Matcher, token: int, room: int) -> bool:
        if token in self._spelling.vocabulary.eos:
            return True
        if not matcher.accept(token):  # an end for the engine alone
            return matcher.is_accepting
        fits = matcher.shortest_length() < room or len(self._spelling.completion(matcher)) < room
        matcher.rollback(1)
        return fits

    def _completion(self, matcher: Matcher, written: Sequence[int]) -> list[int]:
        """Return a completion: the rest of the one before, if the text followed it, or a shorter one."""
        fresh = self._spelling.completion(matcher)
        if self._path is not None:
            begin, ids = self._path
            followed = list(written[begin:])
            if ids[: len(followed)] == followed and len(ids) - len(followed) <= len(fresh):
                return ids[len(followed) :]
        self._path = len(written), fresh
        return fresh
