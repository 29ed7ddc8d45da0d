"""One event loop in a thread of its own, on which all requests to servers run, whoever waits for them.

Connections belong to an event loop, and callers come from threads and from loops of their own, which may end before the
next call. So connections are kept here, and both fronts, blocking and awaiting, cancel a request the same way.
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

from ...generation.deadline import Deadline

T = TypeVar("T")

#: How often a caller's wish to stop is asked for, in seconds.
POLL = 0.05


class StoppedError(Exception):
    """The caller's ``stopped`` said so; the request is cancelled."""


class _End(Generic[T]):
    """The last thing in a queue: nothing, or the error that ended the work."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class Portal:
    """Runs asynchronous work for callers of any kind. Thread-safe; starts with its first work, and anew in a fork."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a collected model is closed at any time, also while this is held
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running event loop."""
        with self._lock:
            if self._loop is None or not self.is_running:
                self._loop = asyncio.new_event_loop()
                self._process = os.getpid()
                self._thread = threading.Thread(target=self._loop.run_forever, name="toolgrammar-remote", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            return self._loop

    def close(self) -> None:
        """Cancel what is running, and end the thread."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None or self._process != os.getpid():
            return
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(timeout=2)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=2)
        if not thread.is_alive():
            loop.close()

    @property
    def is_running(self) -> bool:
        """Whether there is a loop in this process."""
        return self._loop is not None and self._process == os.getpid()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin some work; its result comes later."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work, and wait for it."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(
        self, make: Callable[[], AsyncGenerator[T, None]], stopped: Callable[[], bool] | None = None
    ) -> Generator[T, None, None]:
        """The items of an asynchronous generator, for a caller that blocks; leaving early cancels it.

        Raises:
            StoppedError: ``stopped()`` was true while the caller waited; what it raises passes through.
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
                    if item.error is not None:
                        raise item.error
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
                    if item.error is not None:
                        raise item.error
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


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def stopper(cancel: Callable[[], bool] | None, deadline: Deadline) -> Callable[[], bool] | None:
    """Return the ``stopped`` of `Portal.iterate` for a caller's wishes; None if the caller never stops.

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


#: The process has one.
PORTAL = Portal()
