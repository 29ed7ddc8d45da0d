"""Running generations: one alone, or many together in one forward pass a step.

A generation (`Work`) is a generator that yields events and, whenever it needs logits, a `Forward`; the driver sends
them. It knows no session: the driver opens one at its first `Forward` and frees it at `Released`, at its end, or when
it is abandoned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Union

from ..conversation.events import Event
from ..errors import ModelError
from .backend import BatchSession, Session
from .loop import Forward

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Logits = npt.NDArray[np.float32]
    Work = Generator[Union[Event, "Forward", "Released"], Union[Logits, None], None]


@dataclass(frozen=True)
class Released:
    """The sequence is over: free it. What is asked for afterwards belongs to a new one."""


class Turn:
    """Whose forward pass it is: ``with turn`` lets one run at a time, and none once it is closed."""

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
        """Say that there are no more turns, if that is so.

        Raises:
            ModelError: it is closed.
        """
        if self._is_closed:
            raise ModelError("the model is closed", hint="load it again")

    def close(self) -> None:
        """Wait for the forward pass that is running, and let no other begin."""
        with self._lock:
            self._is_closed = True


def alone(work: Work, start: Callable[[], Session], turn: Turn) -> Iterator[Event]:
    """Run one generation; yields its events.

    Args:
        work: the generation.
        start: opens a sequence.
        turn: held during each forward pass, and not between them.
    """
    session: Session | None = None
    reply: Logits | None = None
    try:
        while True:
            try:
                item = work.send(reply)
            except StopIteration:
                return
            reply = None
            if isinstance(item, Forward):
                begins = session is None
                with turn:
                    if session is None:
                        session = start()
                    reply = session.extend(item.token_ids)
                if begins:  # a session that goes on from a kept one says how much of it it had
                    item.cached_tokens = getattr(session, "cached_tokens", 0)
            elif not isinstance(item, Released):
                yield item
            elif session is not None:
                freed, session = session, None
                freed.close()
    finally:
        # Here and not when it is collected: an error's traceback would keep the session alive.
        work.close()
        if session is not None:
            session.close()


def together(
    works: Sequence[Work], batch: BatchSession, turn: Turn, most: int, emit: Callable[[int, Event], None]
) -> list[Exception | None]:
    """Run many generations, with one forward pass for all that need one; a row that is over makes room for the next.

    Args:
        works: the generations.
        batch: where their sequences live.
        turn: held during each forward pass.
        most: how many sequences there may be at once.
        emit: takes each event, with the number of its generation.

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
            while waiting and len(ready) < most:
                ready[waiting.popleft()] = None
            asked: list[tuple[int, tuple[int, ...]]] = []
            for number, reply in ready.items():
                try:
                    wanted = _advance(works[number], reply, number, rows, batch, emit)
                except Exception as error:
                    errors[number] = error
                    wanted = None
                if wanted is not None:
                    asked.append((number, wanted.token_ids))
                elif number in rows:
                    batch.drop(rows.pop(number))
            ready = {}
            if not asked:
                continue
            for number, _ in asked:
                if number not in rows:
                    rows[number] = fresh
                    fresh += 1
            with turn:
                replies = batch.extend([(rows[number], ids) for number, ids in asked])
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
    emit: Callable[[int, Event], None],
) -> Forward | None:
    """Run a generation up to where it needs logits; None at its end."""
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
