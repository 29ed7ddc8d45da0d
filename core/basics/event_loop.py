"""Event loop in a separate thread, for asynchronous work of callers in any thread or event loop.

A connection belongs to an event loop, and the event loop of a caller may end before the next call, so connections are
made in this one. Blocking and awaiting callers cancel their work in the same way.
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
from typing import Any, TypeVar, Union

from ..errors import ModelError
from .forks import shared_lock

T = TypeVar("T")

#: Interval in seconds at which a waiting caller's ``check`` is called.
POLL = 0.05

#: Default maximum time in seconds that closing waits for work to end by itself.
CLOSING_SECONDS = 2.0


class _End:
    """The last entry of a queue: no error, or the error that ended the work."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    def check(self) -> None:
        """Raise the error, if there is one. It does not stay here: with its traceback, it would refer to itself."""
        error, self.error = self.error, None
        if isinstance(error, asyncio.CancelledError):  # callers that cancel do not wait for this
            raise ModelError("the model was closed while it answered", hint="load it again")
        try:
            if error is not None:
                raise error
        finally:
            del error


class EventLoop:
    """Runs asynchronous work for callers of any kind. Thread-safe.

    The thread starts with the first work, and again in a forked process; it ends with `close` or with the process.
    """

    def __init__(self) -> None:
        # Reentrant: the garbage collector may close a model while it is held.
        self._lock = shared_lock(self, "_lock", threading.RLock())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def is_running(self) -> bool:
        """True if this process has the loop running."""
        return self._loop is not None and self._process == os.getpid()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start work, and return the future of its result; cancelling the future cancels the work."""
        with self._lock:
            if self._loop is None or not self.is_running:
                self._loop = asyncio.new_event_loop()
                self._process = os.getpid()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name="toolgrammar", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work, and wait for its result."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(
        self,
        last: Callable[[], Coroutine[Any, Any, Any]] | None = None,
        *,
        wait: bool = True,
        patience: float = CLOSING_SECONDS,
    ) -> None:
        """End the thread; work that takes longer than ``patience`` is cancelled. Closing twice is allowed.

        Args:
            last: work to do first, for example closing connections; its errors are ignored. None: all other work is
                cancelled at once.
            wait: return after the thread has ended.
            patience: maximum time in seconds to wait for other work to end by itself.
        """
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        atexit.unregister(self.close)
        if loop is None or thread is None or self._process != os.getpid():
            return
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: loop.create_task(_finish(last, patience)))
        if wait:
            thread.join(timeout=patience + CLOSING_SECONDS)

    def iterate(
        self, make: Callable[[], AsyncGenerator[T, None]], check: Callable[[], None] | None = None
    ) -> Generator[T, None, None]:
        """Yield the items of an asynchronous generator to a caller that blocks; leaving early cancels it.

        Args:
            make: makes the generator.
            check: called every `POLL` seconds while the caller waits; an error of it ends the work, and is raised.
        """
        items: queue.SimpleQueue[Union[T, _End]] = queue.SimpleQueue()
        future = self.submit(_pump(make, items.put))
        try:
            while True:
                if check is not None:
                    check()
                try:
                    item = items.get(timeout=None if check is None else POLL)
                except queue.Empty:
                    continue
                if isinstance(item, _End):
                    return item.check()
                yield item
        finally:
            future.cancel()

    async def aiterate(
        self, make: Callable[[], AsyncGenerator[T, None]], check: Callable[[], None] | None = None
    ) -> AsyncGenerator[T, None]:
        """Do what `iterate` does, for a caller that awaits; cancelling the caller cancels the work."""
        own = asyncio.get_running_loop()
        items: asyncio.Queue[Union[T, _End]] = asyncio.Queue()

        def put(item: Union[T, _End]) -> None:
            with suppress(RuntimeError):  # the caller's loop is closed: nobody waits
                own.call_soon_threadsafe(items.put_nowait, item)

        future = self.submit(_pump(make, put))
        try:
            while True:
                if check is not None:
                    check()
                try:
                    item = await asyncio.wait_for(items.get(), None if check is None else POLL)
                except asyncio.TimeoutError:
                    continue
                if isinstance(item, _End):
                    item.check()
                    return
                yield item
        finally:
            future.cancel()


async def _pump(make: Callable[[], AsyncGenerator[T, None]], put: Callable[[Union[T, _End]], None]) -> None:
    """Pass every item of a generator to ``put``, and then its end (`_End`)."""
    try:
        async with aclosing(make()) as items:
            async for item in items:
                put(item)
    except BaseException as error:  # passed to the waiting side
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


async def _finish(last: Callable[[], Coroutine[Any, Any, Any]] | None, patience: float) -> None:
    """Do the last work of a loop, end all other work, and stop the loop."""
    if last is not None:
        with suppress(Exception):
            await last()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks and last is not None:
        await asyncio.wait(tasks, timeout=patience)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    asyncio.get_running_loop().stop()
