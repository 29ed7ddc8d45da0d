"""Drivers of generations: one alone, or many together in one forward pass a step.

A generation (`Work`) is a generator that yields events, a `Forward` whenever it needs logits, and the whole
`Generation` last; the driver runs the model and sends the logits back. A generation knows no session: the driver opens
one at its first `Forward` and frees it at `Released`, at its end, or when it is abandoned.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Union

from ..conversation.events import Event, Generation
from .backend import BatchSession, Session, closed_error
from .loop import Forward

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Logits = npt.NDArray[np.float32]
    Work = Generator[Union["Item", "Forward", "Released"], Union[Logits, None], None]

#: Items of a request: its events, then the whole of it.
Item = Union[Event, Generation]


@dataclass(frozen=True)
class Released:
    """The sequence is over and can be freed; a later `Forward` begins a new one."""


class ForwardLock:
    """Mutex around forward passes; refuses entry after `close`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_closed = False

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._is_closed:
            self._lock.release()
            self.check()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def check(self) -> None:
        """Check that the lock is open.

        Raises:
            ModelError: the model is closed.
        """
        if self._is_closed:
            raise closed_error("model")

    def close(self) -> None:
        """Wait for the forward pass that is running, and refuse all others."""
        with self._lock:
            self._is_closed = True


def run_one(work: Work, start: Callable[[], Session], lock: ForwardLock) -> Generator[Item, None, None]:
    """Run one generation; yield its events, then the whole of it.

    Args:
        work: the generation.
        start: opens a sequence.
        lock: held during each forward pass, and not between them.
    """
    session: Session | None = None
    logits: Logits | None = None
    try:
        while True:
            try:
                item = work.send(logits)
            except StopIteration:
                return
            logits = None
            if isinstance(item, Forward):
                begins = session is None
                with lock:
                    if session is None:
                        session = start()
                    begin = time.perf_counter()
                    logits = session.extend(item.token_ids)
                    item.seconds = time.perf_counter() - begin
                if begins:
                    item.cached_tokens = session.cached_tokens
            elif not isinstance(item, Released):
                yield item
            elif session is not None:
                freed, session = session, None
                freed.close()
    finally:
        # Closed here and not when collected: the traceback of an error would keep the session alive.
        work.close()
        if session is not None:
            session.close()


def run_many(
    works: Sequence[Work], batch: BatchSession, lock: ForwardLock, max_rows: int, emit: Callable[[int, Item], None]
) -> list[Exception | None]:
    """Run many generations, one forward pass for all that need logits; a row that ends makes room for the next.

    Args:
        works: the generations.
        batch: holds their sequences.
        lock: held during each forward pass.
        max_rows: maximum number of sequences at once.
        emit: takes each event and each whole generation, with its number.

    Returns:
        For each generation the error that ended it, or None. An error of the model itself ends them all: it is raised.
    """
    errors: list[Exception | None] = [None] * len(works)
    waiting = deque(range(len(works)))
    rows: dict[int, int] = {}  # the row of each generation that has a sequence
    fresh = 0
    ready: dict[int, Any] = {}  # generations that can go on, with what they are sent
    try:
        while waiting or ready:
            while waiting and len(ready) < max_rows:
                ready[waiting.popleft()] = None
            asked: list[tuple[int, Forward]] = []
            for number, reply in ready.items():
                try:
                    wanted = _advance(works[number], reply, number, rows, batch, emit)
                except Exception as error:
                    errors[number] = error
                    wanted = None
                if wanted is not None:
                    asked.append((number, wanted))
                elif number in rows:
                    batch.drop(rows.pop(number))
            ready = {}
            if not asked:
                continue
            for number, _ in asked:
                if number not in rows:
                    rows[number] = fresh
                    fresh += 1
            with lock:
                begin = time.perf_counter()
                replies = batch.extend([(rows[number], forward.token_ids) for number, forward in asked])
                seconds = time.perf_counter() - begin
            for _, forward in asked:
                forward.seconds = seconds
            ready = {number: reply for (number, _), reply in zip(asked, replies, strict=True)}
    finally:
        for work in works:
            work.close()
    return errors


def _advance(
    work: Work,
    reply: Logits | None,
    number: int,
    rows: dict[int, int],
    batch: BatchSession,
    emit: Callable[[int, Item], None],
) -> Forward | None:
    """Run a generation until it needs logits; return None at its end."""
    while True:
        try:
            item = work.send(reply)
        except StopIteration:
            return None
        reply = None
        if isinstance(item, Forward):
            return item
        if not isinstance(item, Released):
            emit(number, item)
        elif number in rows:
            batch.drop(rows.pop(number))
