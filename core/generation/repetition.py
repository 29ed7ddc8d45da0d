"""Loops of a model in a string, a list or a text: a short text again and again, until the token budget ends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

#: Least number of bytes of a repetition, by default: longer than any of 2,819 source files and licence texts has.
LEAST_BYTES = 384

#: The same between the items of a list, where equal values (zeros of a matrix) are ordinary.
LEAST_LIST = 4 * LEAST_BYTES

#: Maximum length of the text that is repeated, in bytes.
MAX_UNIT = 64

#: Number of tokens after which a text is looked at again.
EVERY = 16


def bound_of(wanted: int | None, budget: int) -> int:
    """Return the length from which on a repetition is a loop, in bytes; 0: there is no bound.

    Args:
        wanted: `GenerateParams.max_repetition`.
        budget: of the answer, in tokens.
    """
    return max(LEAST_BYTES, budget) if wanted is None else wanted


def repeated_unit(vocabulary: Vocabulary, token_ids: Sequence[int], size: int) -> bytes:
    """Return what the last ``size`` bytes of a text repeat, at least twice; empty if they repeat nothing short."""
    tail = vocabulary.decode(token_ids[-size:])[-size:]
    if len(tail) < size:
        return b""
    for length in range(1, min(MAX_UNIT, size // 2) + 1):
        if tail[length:] == tail[:-length]:
            return tail[-length:]
    return b""
