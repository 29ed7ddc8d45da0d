"""Drivers of a generation: they run the model, and send the logits.

A generation (`Work`) is a generator that yields events, a `Forward` when it needs logits, and the complete `Generation`
last. Its driver owns the session: it opens one at the first `Forward`, and frees it at `Released`, at the end, or if
the generation is abandoned. `run_one` drives a single generation; a `Scheduler` drives many together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, Union

import numpy as np

from ..basics.forks import shared_lock
from ..basics.pauses import Account, ended_by
from ..conversation.events import Event, Generation
from ..errors import CancelledError
from .backend import Session, closed_error
from .deadline import Deadline
from .token_sequence import Forward

if TYPE_CHECKING:
    import numpy.typing as npt

    Logits = npt.NDArray[np.float32]
    Work = Generator[Union["Item", "Forward", "Released"], Union[Logits, None], None]

Sent = TypeVar("Sent")

#: Minimum time in seconds between two checks, in long work, if a request is over.
CHECK_SECONDS = 0.05

#: Items of a request: its events, then the complete generation.
Item = Union[Event, Generation]


@dataclass(frozen=True)
class Released:
    """The session is not needed any more; a later `Forward` begins a new one."""


class ForwardLock:
    """Reentrant mutex around forward passes; refuses entry after `close`."""

    def __init__(self) -> None:
        self._lock = shared_lock(self, "_lock", RLock())
        self._is_closed = False

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._is_closed:
            self._lock.release()
            self.check()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def check(self) -> None:
        """Check that the lock is not closed.

        Raises:
            ModelError: the model is closed.
        """
        if self._is_closed:
            raise closed_error("model")

    def close(self) -> None:
        """Wait for the running forward pass, and refuse all later ones."""
        with self._lock:
            self._is_closed = True


def sent(work: Generator[Sent, Logits | None, Any], logits: Logits | None) -> Sent | None:
    """Send logits to a generation (None: to begin it, or if it asked for none); return its next item, or None at its
    end."""
    try:
        return work.send(logits)
    except StopIteration:
        return None


def watched(work: Work, cancel: Callable[[], bool] | None, deadline: Deadline) -> Work:
    """Yield what a generation yields, and send it what is sent here. In each step, long work (such as a derivation)
    pauses now and then (see `pauses`): other threads may go on, and the step ends there if the request is over.

    Args:
        work: the generation.
        cancel: tells whether the request is cancelled; None: it never is.
        deadline: of the request.

    Raises:
        CancelledError: the request is cancelled.
        GenerationTimeoutError: its deadline has passed.
    """
    checked = time.monotonic()
    account = Account()

    def check() -> None:
        nonlocal checked
        if time.monotonic() < checked + CHECK_SECONDS:
            return
        checked = time.monotonic()
        if cancel is not None and cancel():
            raise CancelledError("the generation was cancelled")
        deadline.check()

    logits: Logits | None = None
    try:
        while True:
            with ended_by(check, account):
                item = sent(work, logits)
            if item is None:
                return
            logits = yield item
    finally:
        work.close()


def look_ahead(session: Session, forward: Forward) -> Logits:
    """Return the logits after each token of a tree, in one forward pass if the session supports it, else in several.

    The sequence does not change. The tokens of ``forward`` are in depth-first order; its ``passes`` are set.
    """
    parents = forward.parents or ()
    read = getattr(session, "branches", None)
    logits: Logits | None = None if read is None else read(forward.token_ids, parents)
    if logits is not None:
        return logits
    length = session.length
    depths: list[int] = []
    rows: list[Logits] = []
    try:
        for token_id, parent in zip(forward.token_ids, parents, strict=True):
            depths.append(depths[parent] + 1 if parent >= 0 else 0)
            session.crop(length + depths[-1])
            rows.append(session.extend((token_id,)))
    finally:
        session.crop(length)
    forward.passes = len(rows)
    return np.stack(rows)


def run_one(work: Work, start: Callable[[], Session], lock: ForwardLock) -> Generator[Item, None, None]:
    """Run one generation; yield its events, then the complete generation.

    Args:
        work: the generation.
        start: opens a session of the model.
        lock: held while the model runs: the opening of the session, and each forward pass.
    """
    session: Session | None = None
    logits: Logits | None = None
    try:
        while (item := sent(work, logits)) is not None:
            logits = None
            if isinstance(item, Forward):
                begins = session is None
                with lock:
                    if session is None:
                        session = start()
                    elif item.kept is not None:
                        session.crop(item.kept)
                    begin = time.perf_counter()
                    logits = session.extend(item.token_ids) if item.parents is None else look_ahead(session, item)
                    item.seconds = time.perf_counter() - begin
                if begins:
                    item.cached_tokens = session.cached_tokens
            elif not isinstance(item, Released):
                yield item
            elif session is not None:
                freed, session = session, None
                freed.close()
    finally:
        # Closed here, not by the garbage collector: the traceback of an error would keep the session alive.
        work.close()
        if session is not None:
            session.close()
