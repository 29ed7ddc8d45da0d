"""Event loop of a remote model, in a thread of its own, on which all of the model's requests run.

Connections belong to an event loop, and callers come from threads and from event loops of their own, which may end
before the next call. So connections stay here, and both fronts, blocking and awaiting, cancel a request the same way.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import aclosing, suppress
from typing import Any, Generic, TypeVar, Union

from .errors import ModelError
from .generation.deadline import Deadline

T = TypeVar("T")

#: Interval in seconds at which a caller's wish to stop is polled.
POLL = 0.05

#: Maximum number of seconds that closing waits for requests to end by themselves, and then for the thread to end.
CLOSING_SECONDS = 2.0


class StoppedError(Exception):
    """The caller's ``stopped`` returned True; the request is cancelled."""


class _End(Generic[T]):
    """The last entry of a queue: no error, or the error that ended the work."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    def check(self) -> None:
        """Raise the error, if there is one."""
        if isinstance(self.error, asyncio.CancelledError):  # callers that cancel do not wait for this
            raise ModelError("the model was closed while it answered", hint="load it again")
        if self.error is not None:
            raise self.error


class EventLoop:
    """Runs asynchronous work for callers of any kind. Thread-safe.

    The thread starts with the first work, and anew in a forked process; it ends with `close` or with the process.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a collected model is closed at any time, also while this is held
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def is_running(self) -> bool:
        """True if this process has the loop running."""
        return self._loop is not None and self._process == os.getpid()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin some work, and return the future of its result."""
        with self._lock:
            if self._loop is None or not self.is_running:
                self._loop = asyncio.new_event_loop()
                self._process = os.getpid()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name="toolgrammar-remote", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            loop = self._loop
        return asyncio.run_coroutine_threadsafe(work, loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work, and wait for it."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self, last: Callable[[], Coroutine[Any, Any, Any]] | None = None, *, wait: bool = True) -> None:
        """End the thread; work that goes on for long is cancelled. Closing twice is allowed.

        Args:
            last: work to do first, for example closing connections; its errors are ignored.
            wait: return when the thread has ended.
        """
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        atexit.unregister(self.close)
        if loop is None or thread is None or self._process != os.getpid():
            return
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: loop.create_task(_finish(last, patient=last is not None)))
        if wait:
            thread.join(timeout=2 * CLOSING_SECONDS)

    def iterate(
        self, make: Callable[[], AsyncGenerator[T, None]], stopped: Callable[[], bool] | None = None
    ) -> Generator[T, None, None]:
        """Yield the items of an asynchronous generator to a caller that blocks; leaving early cancels it.

        Raises:
            StoppedError: ``stopped()`` was True while the caller waited; what it raises passes through.
        """
        items: queue.SimpleQueue[Union[T, _End[T]]] = queue.SimpleQueue()
        future = self.submit(_pump(make, items.put))
        try:
            while True:
                if stopped is not None and stopped():
                    raise StoppedError
                try:
                    item = items.get(timeout=None if stopped is None else POLL)
                except queue.Empty:
                    continue
                if isinstance(item, _End):
                    item.check()
                    return
                yield item
        finally:
            future.cancel()

    async def aiterate(
        self, make: Callable[[], AsyncGenerator[T, None]], stopped: Callable[[], bool] | None = None
    ) -> AsyncGenerator[T, None]:
        """`iterate`, for a caller that awaits; cancelling the caller cancels the work."""
        own = asyncio.get_running_loop()
        items: asyncio.Queue[Union[T, _End[T]]] = asyncio.Queue()

        def put(item: Union[T, _End[T]]) -> None:
            with suppress(RuntimeError):  # the caller's loop is closed: nobody waits any more
                own.call_soon_threadsafe(items.put_nowait, item)

        future = self.submit(_pump(make, put))
        try:
            while True:
                if stopped is not None and stopped():
                    raise StoppedError
                try:
                    item = await asyncio.wait_for(items.get(), None if stopped is None else POLL)
                except (asyncio.TimeoutError, TimeoutError):
                    continue
                if isinstance(item, _End):
                    item.check()
                    return
                yield item
        finally:
            future.cancel()


async def _pump(make: Callable[[], AsyncGenerator[T, None]], put: Callable[[Union[T, _End[T]]], None]) -> None:
    try:
        async with aclosing(make()) as items:
            async for item in items:
                put(item)
    except BaseException as error:  # handed to the waiting side, whatever it is
        put(_End(error))
        if isinstance(error, asyncio.CancelledError):
            raise
    else:
        put(_End(None))


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run an event loop until it is stopped, in its thread."""
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _finish(last: Callable[[], Coroutine[Any, Any, Any]] | None, *, patient: bool) -> None:
    """Do the last work of a loop, end all other, and stop the loop."""
    if last is not None:
        with suppress(Exception):
            await last()
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if tasks and patient:
        await asyncio.wait(tasks, timeout=CLOSING_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    asyncio.get_running_loop().stop()


def stopper(cancel: Callable[[], bool] | None, deadline: Deadline) -> Callable[[], bool] | None:
    """Return the ``stopped`` of `EventLoop.iterate` for a caller's wishes; None if the caller never stops.

    It raises `GenerationTimeoutError` once the deadline has passed.
    """
    if cancel is None and deadline.seconds is None:
        return None

    def stopped() -> bool:
        if cancel is not None and cancel():
            return True
        deadline.check()
        return False

    return stopped
