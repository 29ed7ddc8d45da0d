"""Pauses in long work: there other threads get to run, and work for a request that is over ends.

A compiled function lets no other thread run until it returns or calls an interpreted one. So whatever may take long
calls `pause` every few thousand steps: the stores of terms and nodes whenever they grow, and loops that add to neither.
An error that is raised there leaves the stores as a `LimitError` does at the same place, so they go on serving others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[], object] | None] = ContextVar("check", default=None)


def pause() -> None:
    """Let other threads run.

    Raises:
        CancelledError: the request that the work is done for is over (see `ended_by`).
    """
    check = _check.get()
    if check is not None:
        check()


@contextmanager
def ended_by(check: Callable[[], object]) -> Iterator[None]:
    """End the work in the block, in this thread, by the errors of a function that is called at each pause.

    Args:
        check: raises a `CancelledError` once the work is wanted no more; may be called thousands of times a second.
    """
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)
