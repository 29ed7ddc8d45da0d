"""Pauses in long work, at which other threads can run, and work for a cancelled request ends.

A compiled function does not let other threads run until it returns or calls an interpreted one. So long work calls
`pause` every few thousand steps: the stores of terms and nodes when they grow, and loops that add to neither. An error
raised in a pause leaves the stores in a consistent state, as a `LimitError` at the same point does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[], object] | None] = ContextVar("check", default=None)


def pause() -> None:
    """Let other threads run.

    Raises:
        CancelledError: the request of the work is over (see `ended_by`).
    """
    check = _check.get()
    if check is not None:
        check()


@contextmanager
def ended_by(check: Callable[[], object]) -> Iterator[None]:
    """Call a function at each pause of this thread in the block; its errors end the work.

    Args:
        check: raises a `CancelledError` after the request was cancelled; may be called thousands of times a second.
    """
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)
