"""Bound on the threads of NumPy's linear algebra library (BLAS) while a forward pass runs.

Its threads spin while they wait for each other. On a machine with other processes, `toolgrammar demo` took 20 s of
processor time with several threads, and 4 s with one.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..basics.forks import shared_lock

_lock = shared_lock(sys.modules[__name__], "_lock", threading.Lock())
_running = 0
_limiter: Any = None


@contextmanager
def blas_threads(count: int | None) -> Iterator[None]:
    """Limit BLAS to ``count`` threads (None: no limit) in the block; restore the number afterwards.

    The limit is global to the process. With concurrent forward passes, the first one sets it, and the last one restores
    it.
    """
    global _running, _limiter
    with _lock:
        if _running == 0:
            _limiter = _limited(count)
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0 and _limiter is not None:
                # Unlike `restore_original_limits`, this lets another thread set the next limit.
                _limiter.__exit__(None, None, None)


_controller: Any = None


def _limited(count: int | None) -> Any:
    """Set the limit, and return an object that restores it; None without threadpoolctl, which sets no limit."""
    global _controller
    try:
        import threadpoolctl
    except ImportError:
        return None
    if _controller is None:
        _controller = threadpoolctl.ThreadpoolController()
    return _controller.limit(limits=count, user_api="blas")
