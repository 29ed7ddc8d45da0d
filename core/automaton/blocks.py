"""Blocks of byte rows, all of one size: more are added, and none is ever copied or moved.

Compiled modules have this in C, as ``blocks.pxd`` says, with the addresses of the blocks; this is the same for
interpreted ones.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from .encoding import BLOCK, IN_BLOCK


def row_item(blocks: Sequence[array[int]], at: int) -> int:
    """Return the number at an index of all blocks, one behind the other."""
    return blocks[at >> BLOCK][at & IN_BLOCK]
