"""`Budget`: masks under which a text can always be completed within its tokens.

Invariant: the shortest completion of what is written fits into the tokens that are left. An engine that samples by
itself cannot be asked again, so the mask has to leave out each token behind which no completion fits. Where it leaves
one out, the budget may have had a say in what the model wrote, and `Budget.closed_at` says from where on.

The completion is the shortest text, in as few tokens as possible. What each token of a state costs is known by state
(`Matcher.narrow`); only where it depends on the text too is the completion looked for here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from toolgrammar.core.masks.matcher import DOUBTFUL, NARROWED, NARROWED_MORE, UNSTEADY, UNSURE

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


class Budget:
    """The token budget of one text.

    Attributes:
        closed_at: number of tokens before the first mask that was narrowed; None if none was.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin a new text."""
        self.closed_at: int | None = None
        self._path: tuple[int, list[int]] | None = None  # a completion, and the number of tokens before it
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
        found = matcher.narrow(row, room)
        if not found:
            return
        cleared = found & (NARROWED | NARROWED_MORE)
        if found & UNSURE and self._unsure_length(matcher, row, written) + _SPARE >= room:
            cleared += self._try(matcher, row, room, matcher.take_unsure(row).tolist())
            found |= UNSTEADY
        if found & DOUBTFUL:
            cleared += self._try(matcher, row, room, matcher.doubtful_tokens())
        if found & UNSTEADY and (path := self._completion(matcher, written)):
            word, bit = path[0] >> 5, np.uint32(1 << (path[0] & 31))
            if not row[word] & bit:
                row[word] |= bit
                cleared -= 1
        if cleared > 0 and self.closed_at is None:
            self.closed_at = len(written)

    def _try(self, matcher: Matcher, row: npt.NDArray[np.uint32], room: int, tokens: list[int]) -> int:
        """Set those of some tokens behind which the text can be completed, as far as that is tried; return the number
        of the others."""
        fitting = [token for token in tokens[:_TRIALS] if self._fits_after(matcher, token, room)]
        for token in fitting:
            row[token >> 5] |= np.uint32(1 << (token & 31))
        return len(tokens) - len(fitting)

    def _unsure_length(self, matcher: Matcher, row: npt.NDArray[np.uint32], written: Sequence[int]) -> int:
        """Return the largest length of a completion after tokens that depend on the text, one for each state that they
        lead to."""
        groups = matcher.unsure_groups(row)
        if len(groups) > _TRIALS:
            return sys.maxsize - _SPARE
        most = 0
        for state, token in groups:
            length, at = self._unsure.get(state, (0, -_FRESH))
            if at + _FRESH <= len(written):
                length = self._length_after(matcher, token)
                self._unsure[state] = length, len(written)
            most = max(most, length)
        return most

    def _length_after(self, matcher: Matcher, token: int) -> int:
        if not matcher.accept(token):  # an end for the engine alone
            return 0
        length = matcher.shortest_length()
        matcher.rollback(1)
        return length

    def _fits_after(self, matcher: Matcher, token: int, room: int) -> bool:
        if not matcher.accept(token):  # an end for the engine alone
            return matcher.is_accepting
        fits = matcher.shortest_length() < room or len(matcher.closing_tokens()) < room
        matcher.rollback(1)
        return fits

    def _completion(self, matcher: Matcher, written: Sequence[int]) -> list[int]:
        """Return a completion: the rest of the one before, if the text followed it, or a shorter one."""
        fresh = matcher.closing_tokens()
        if self._path is not None:
            begin, ids = self._path
            followed = list(written[begin:])
            left = ids[len(followed) :]
            if ids[: len(followed)] == followed and len(left) <= len(fresh) and matcher.is_completion(left):
                return left
        self._path = len(written), fresh
        return fresh
