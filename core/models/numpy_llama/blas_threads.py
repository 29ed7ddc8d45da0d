"""Bound on the threads of NumPy's linear algebra library (BLAS) while a forward pass runs.

Its threads wait for each other in loops that take the processor. Where other processes used the machine,
`toolgrammar demo` took 20 s of processor time with them, and 4 s with one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_running = 0
_limiter: Any = None


@contextmanager
def blas_threads(count: int | None) -> Iterator[None]:
    """Let BLAS use at most ``count`` threads, if it is given; afterwards as many as before.

    The number is one for the whole process. Where several forward passes run at once, the first one decides, and the
    last one restores.
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
                _limiter.restore_original_limits()


_controller: Any = None


def _limited(count: int | None) -> Any:
    """Set the bound, and return what restores it; None without threadpoolctl, where BLAS does as it likes."""
    global _controller
    try:
        import threadpoolctl
    except ImportError:
        return None
    if _controller is None:
        _controller = threadpoolctl.ThreadpoolController()
    return _controller.limit(limits=count, user_api="blas")
