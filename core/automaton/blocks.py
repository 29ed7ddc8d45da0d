"""Blocks of byte rows, all of one size: a store grows by whole blocks, which are never copied or moved.

Compiled modules use the addresses of the blocks (``blocks.pxd``); this is the interpreted form.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from .encoding import BLOCK, IN_BLOCK


def row_item(blocks: Sequence[array[int]], at: int) -> int:
    """Return the number at an index into the concatenation of all blocks."""
    return blocks[at >> BLOCK][at & IN_BLOCK]


def row_of(blocks: Sequence[array[int]], base: Sequence[int], at: int) -> Sequence[int]:
    """Return the row at an index into the concatenation of all blocks; if negative, at index -256 - ``at`` of
    ``base``."""
    if at < 0:
        return base[-256 - at : -at]
    return blocks[at >> BLOCK][at & IN_BLOCK : (at & IN_BLOCK) + 256]
