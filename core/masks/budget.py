"""`Budget`: the number of tokens that complete a text, and masks that keep it within a budget.

Invariant: the shortest completion of the text, in as few tokens as possible, fits into the remaining tokens. The
generation loop can ask its model again, so it takes a token only if the text `fits` after it. An engine that samples by
itself cannot, so `narrow` clears in its mask each token after which the text would not fit; the first mask that was
narrowed is recorded in `Budget.closed_at`.

The number of tokens to the end mostly depends on the state only (`TokenCosts`). If it also depends on the text, the
completion of the text itself is made and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DecodingError, LiveValuesError
from .bits import tokens_within
from .promised import take

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..vocabulary.vocabulary import Vocabulary
    from .matcher import Matcher
    from .token_costs import Costs

#: Maximum length, in bytes, of a completion that is made only to count its tokens.
_LONG = 65_536

#: Maximum number of unsure tokens that are tried for one mask; further ones are cleared.
_TRIALS = 48

#: Minimum number of spare tokens with which unsure tokens stay in a mask untried. One token is measured for each state
#: to which they lead, and the completion after another one may be a few bytes longer.
_AMPLE = 256

#: Maximum number of tokens until the completions after unsure tokens are measured again.
_FRESH = 32


class Budget:
    """The token budget of one text.

    Args:
        matcher: the matcher of the text.

    Attributes:
        closed_at: number of tokens before the first narrowed mask; None if none was narrowed.
    """

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._longest = matcher.constraint.vocabulary.derived(_longest)
        self.closed_at: int | None = None
        #: The number of tokens before the last completion, and its tokens.
        self._path: tuple[int, list[int]] = 0, []
        #: By the costs of a state: the number of tokens that complete the text after an unsure token, and the number of
        #: tokens of the text when it was counted.
        self._measured: dict[Costs, tuple[int, int]] = {}

    def rollback(self, count: int) -> None:
        """Follow a rollback of the text to its first ``count`` tokens."""
        if self.closed_at is not None and self.closed_at > count:
            self.closed_at = None
        if self._path[0] > count:
            self._path = 0, []
        self._measured = {costs: found for costs, found in self._measured.items() if found[1] <= count}

    # -- one text ----------------------------------------------------------------------------------------------

    def fits(self, room: int, held: bytes = b"") -> bool:
        """Return True if ``room`` tokens complete the text.

        Args:
            room: in tokens. The token that ends the text needs none.
            held: the end of the matcher's text that is not written in tokens yet.
        """
        matcher = self._matcher
        if not held and matcher.is_accepting:
            return room >= 0
        if len(held) + matcher.least_length() > room * self._longest:  # without making the completion
            return False
        # Below 0: it depends on the text.
        count = 0 if matcher.is_finished else matcher._with_costs(lambda costs, state: costs.tokens_left(state, held))
        try:
            return 0 <= count <= room or len(self._fewest(held)) <= room
        except DecodingError:  # the vocabulary cannot write it
            return False

    def needed(self) -> tuple[int, bool]:
        """Return the number of tokens that complete the text, and True; or a lower bound, and False, if counting would
        take long.

        Raises:
            DecodingError: the vocabulary cannot write it.
        """
        length = self._matcher.least_length()
        return (-(-length // self._longest), False) if length > _LONG else (len(self._fewest()), True)

    def completion(self, written: Sequence[int], held: bytes = b"") -> list[int]:
        """Return the tokens of a completion: the rest of the last one, if the text has followed it, or a shorter one.

        Args:
            written: the tokens of the text.
            held: the end of the matcher's text that is not written in tokens yet.

        Raises:
            DecodingError: the vocabulary cannot write it.
        """
        fresh = self._fewest(held)
        left = self._left(written)
        if left and len(left) <= len(fresh) and self._writes(left, held):
            return left
        if self._matcher.values is None:  # else it may have a text in the place of a value that is not known yet
            self._path = len(written), fresh
        return fresh

    def follows(self, written: Sequence[int], token: int, held: bytes = b"") -> bool:
        """Return True if a token, which the matcher has accepted, follows the last completion, and the rest of that
        still completes the text (it may not, if readings of the text were dropped).

        Args:
            written: the tokens of the text before it.
            token: the token.
            held: the end of the matcher's text that is not written in tokens yet.
        """
        left = self._left(written)
        return bool(left) and left[0] == token and self._writes(left[1:], held)

    def _left(self, written: Sequence[int]) -> list[int]:
        """Return the rest of the last completion; empty if there is none, or if the text did not follow it."""
        begin, ids = self._path
        count = len(written) - begin
        if not 0 <= count < len(ids) or list(written[begin:]) != ids[:count]:
            self._path = 0, []
        return self._path[1][count:]

    def _writes(self, ids: list[int], held: bytes) -> bool:
        """Return True if tokens of the last completion still complete the text and begin with the held text (after a
        choice among whole words, the held text may be another one)."""
        tokens = self._matcher.constraint.vocabulary.tokens
        begins = not held or b"".join(tokens[token] or b"\xff" for token in ids[: len(held)]).startswith(held)
        return begins and self._matcher.is_completion(ids)

    def _fewest(self, held: bytes = b"") -> list[int]:
        """Return the shortest completion in as few tokens as possible."""
        parts = [held, *self._matcher.shortest_parts()]
        return self._matcher._with_costs(lambda costs, _: costs.fewest.tokens(parts))

    # -- masks -------------------------------------------------------------------------------------------------

    def narrow(self, row: npt.NDArray[np.uint32], written: Sequence[int], room: int) -> None:
        """Clear the tokens after which the text could not be completed within the budget; tokens that end it stay.

        Args:
            row: the mask of the next token, as `Matcher.fill_mask` writes it.
            written: the tokens of the text.
            room: number of tokens that may still be written. The token that ends the text needs none.
        """
        matcher = self._matcher
        costs = matcher._known_costs
        if costs is None:
            if matcher.is_finished:
                return
            costs = matcher._with_costs(lambda all_costs, state: all_costs.of(state))
        cleared = 0
        if costs.longest >= room:
            found = costs
            cleared = matcher._with_costs(lambda all_costs, _: all_costs.narrow(found, row, max(0, room)))
        if costs.unsure and self._bound_after(costs, row, written) + _AMPLE >= room:
            cleared += self._try(costs, row, room)
        if cleared and not row.any() and (path := self.completion(written)):  # its next token always stays
            row[path[0] >> 5] |= np.uint32(1 << (path[0] & 31))
            cleared -= 1
        if cleared and self.closed_at is None:
            self.closed_at = len(written)

    def _bound_after(self, costs: Costs, row: npt.NDArray[np.uint32], written: Sequence[int]) -> int:
        """Return a bound of the tokens that complete the text after an unsure token: the bytes and control tokens of
        the longest completion, after one token for each state to which the unsure tokens lead.

        It is measured at every `_FRESH` tokens of the text; more than any room if there are more than `_TRIALS` states.
        """
        most, at = self._measured.get(costs, (0, -_FRESH))
        if at + _FRESH <= len(written):
            firsts = [int(tokens[0]) for each in costs.unsure if len(tokens := tokens_within(each, row))]
            most = len(row) * 32 * max(0, len(firsts) - _TRIALS)  # if not all can be tried
            for token in firsts[:_TRIALS]:
                try:
                    take(self._matcher, token)
                except LiveValuesError:  # raised if the token is chosen
                    continue
                most = max(most, self._matcher.shortest_length())
                self._matcher.rollback(1)
            self._measured[costs] = most, len(written)
        return most

    def _try(self, costs: Costs, row: npt.NDArray[np.uint32], room: int) -> int:
        """Try unsure tokens (whose cost depends on the text): accept each, and clear it from the mask ``row`` if ``room
        - 1`` tokens do not complete the text after it. Only the first `_TRIALS` are tried; the others are cleared too.
        Return the number of cleared tokens."""
        tokens = [token for each in costs.unsure for token in tokens_within(each, row).tolist()]
        fitting = 0
        for number, token in enumerate(tokens):
            try:
                is_tried = number < _TRIALS and self._matcher.accept(token)
            except LiveValuesError:  # raised if the token is chosen
                fitting += 1
                continue
            if is_tried:
                fits = self.fits(room - 1)
                self._matcher.rollback(1)
                if fits:
                    fitting += 1
                    continue
            row[token >> 5] ^= np.uint32(1 << (token & 31))
        return len(tokens) - fitting


def _longest(vocabulary: Vocabulary) -> int:
    """Return the length of the longest token; ask `Vocabulary.derived`."""
    return max((len(token) for token in vocabulary.tokens if token), default=1)
