"""The C library's memory in a process of our own."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

#: Settings of glibc's ``malloc`` in a server, by the variable of the environment that has the same meaning: the number
#: for ``mallopt``, and the value. One arena instead of eight for each processor; large blocks (the caches of sequences,
#: say) are mapped, so that they are the system's again once freed; and a free end of the heap is kept for the next
#: forward pass.
_SPARING = {
    "MALLOC_ARENA_MAX": (-8, 1),
    "MALLOC_MMAP_THRESHOLD_": (-3, 2**18),
    "MALLOC_TRIM_THRESHOLD_": (-1, 2**23),
}


def keep_little() -> None:
    """Let the C library keep little of the memory that threads free, for the rest of the process.

    For a process of our own, before its threads begin: by default each thread of glibc keeps the pieces that it freed
    for itself. Variables of the environment (``MALLOC_ARENA_MAX``) have precedence. Other C libraries have no such
    settings.
    """
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, (number, value) in _SPARING.items():
            if name not in os.environ:
                mallopt(number, value)
