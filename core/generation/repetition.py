"""Detection and closing of loops: a model repeats a short unit in a string, a list or a text until its budget ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .choices import MAX_BRANCHES

if TYPE_CHECKING:
    from ..masks import Matcher
    from ..vocabulary.vocabulary import Vocabulary
    from .pending_text import PendingText

#: Default minimum number of bytes of a loop: longer than any repetition in 2,819 source files and licence texts.
LEAST_BYTES = 384

#: The same for the items of a list, in which equal values (zeros of a matrix) are frequent.
LEAST_LIST = 4 * LEAST_BYTES

#: Maximum length of the repeated unit, in bytes.
MAX_UNIT = 64

#: Number of tokens between two checks.
EVERY = 16


@dataclass(frozen=True)
class Loop:
    """A loop at the end of the output.

    Attributes:
        unit: the repeated bytes.
        size: minimum number of bytes of the repetitions.
        may_end: the output may end here.
        is_free: nearly any byte may come next: the loop is in a string or free text, and not among the items of a list.
    """

    unit: bytes
    size: int
    may_end: bool
    is_free: bool

    @property
    def shown(self) -> str:
        """The unit as text."""
        return self.unit.decode("utf-8", "replace")


class LoopGuard:
    """Finds and closes loops in the output of one generation.

    Args:
        vocabulary: the vocabulary of the tokens.
        wanted: `GenerateParams.max_repetition`.
        budget: the budget of the answer, in tokens.
    """

    def __init__(self, vocabulary: Vocabulary, wanted: int | None, budget: int) -> None:
        self._vocabulary = vocabulary
        self._is_default = wanted is None
        self._bound = bound_of(wanted, budget)
        self._next_check = EVERY  # number of tokens

    def find(self, matcher: Matcher, token_ids: Sequence[int]) -> Loop | None:
        """Return the loop at the end of the output; None if there is none, or if it cannot be closed here.

        Args:
            matcher: after the output, with no text pending.
            token_ids: the output.
        """
        if not self._bound or len(token_ids) < self._next_check:
            return None
        is_free, may_end = len(matcher.next_bytes()) > MAX_BRANCHES, matcher.is_accepting
        if may_end and not is_free:  # a complete answer, which the model may end
            return None
        size = max(self._bound, LEAST_LIST) if self._is_default and not is_free else self._bound
        unit = repeated_unit(self._vocabulary, token_ids, size)
        # In a list, the position may be inside an escape: check after the next token.
        self._next_check = len(token_ids) + (EVERY if is_free or not unit else 1)
        # With a quote in the unit, whole strings are repeated: the loop is closed between them, as one of a list.
        in_string = is_free and not may_end
        if not unit or (in_string and b'"' in unit):
            return None
        return Loop(unit, size, may_end, is_free)


def bound_of(wanted: int | None, budget: int) -> int:
    """Return the minimum length of a loop, in bytes: by default, one for each token of the budget; 0: no detection.

    Args:
        wanted: `GenerateParams.max_repetition`.
        budget: the budget of the answer, in tokens.
    """
    return max(LEAST_BYTES, budget) if wanted is None else wanted


def close_value(matcher: Matcher, pending: PendingText, is_free: bool, fits: Callable[[], bool]) -> bool:
    """Add the end of the current string, or of the list of the current item, to the pending text.

    Args:
        matcher: after the output, with no text pending.
        pending: the pending text, which is empty.
        is_free: True: end a string; False: end a list.
        fits: returns True if the output can still be completed.

    Returns:
        False, without changes, if the shortest completion does not begin with such an end.
    """
    before = pending.mark()
    completion = matcher.shortest_completion()
    # The end is the shortest beginning of the completion after which the text is not free (for a list: up to a "]").
    for size in range(1, min(len(completion), MAX_UNIT) + 1):
        if not is_free and completion[size - 1 : size] != b"]":
            continue
        pending.add(matcher, completion[:size])
        if len(matcher.next_bytes()) <= MAX_BRANCHES and fits():
            return True
        matcher.rollback(1)
        pending.reset(before)
    return False


def repeated_unit(vocabulary: Vocabulary, token_ids: Sequence[int], size: int) -> bytes:
    """Return the unit that is repeated, at least twice, in the last ``size`` bytes of a text; empty if there is no
    short one."""
    tail = vocabulary.decode(token_ids[-size:])[-size:]
    if len(tail) < size:
        return b""
    for length in range(1, min(MAX_UNIT, size // 2) + 1):
        if tail[length:] == tail[:-length]:
            return tail[-length:]
    return b""
