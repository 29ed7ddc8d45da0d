"""The queue of a model: a request whose grammar takes long gives its place to the next one."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from toolgrammar.adapters.server.limits import Limits, Queue, Turn
from toolgrammar.core.basics.pauses import LONG_SECONDS, ended_by, is_long, pause


def work_long(check: Any) -> None:
    """Do work that becomes long, in this thread, with a check at its pauses."""
    with ended_by(check):
        end = time.thread_time() + 2 * LONG_SECONDS
        while time.thread_time() < end:
            pass
        pause()
        assert is_long()


async def long_turn(queue: Queue, entered: asyncio.Event, leave: asyncio.Event) -> None:
    """Hold a turn, with long work in a thread."""
    async with queue.turn() as turn:
        await asyncio.to_thread(work_long, turn.check)
        entered.set()
        await leave.wait()


def test_long_requests_run_beside_the_others() -> None:
    """A long request gives its place away once, so another runs beside it; when both end, there is one place again."""

    async def run() -> None:
        queue = Queue(Limits(max_running=1, max_waiting=4, max_long=1))
        entered, leave = asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(long_turn(queue, entered, leave))
        await entered.wait()
        async with queue.turn():
            assert queue.running == 2
            other = asyncio.create_task(long_turn(queue, asyncio.Event(), leave))
            await asyncio.sleep(0.05)
            assert queue.waiting == 1  # there is one place, and one long request
        leave.set()
        await asyncio.gather(first, other)
        assert queue.running == queue.waiting == 0
        async with queue.turn():
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(_enter(queue), 0.05)
                raise AssertionError("two run at a time")

    asyncio.run(run())


def test_too_many_long_requests_keep_their_places() -> None:
    """Beyond `max_long`, a long request keeps its place; a place is given back as often as it was taken."""

    async def run() -> None:
        queue = Queue(Limits(max_running=2, max_waiting=4, max_long=1))
        entered, leave = [asyncio.Event(), asyncio.Event()], asyncio.Event()
        held = [asyncio.create_task(long_turn(queue, one, leave)) for one in entered]
        for one in entered:
            await one.wait()
        async with queue.turn():
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(_enter(queue), 0.05)
                raise AssertionError("four run at a time")
        leave.set()
        await asyncio.gather(*held)
        assert queue.running == 0

    asyncio.run(run())


def test_short_work_keeps_its_place() -> None:
    """Work within its time, and a turn that is over, give nothing away."""

    async def run() -> None:
        given: list[int] = []

        def give() -> bool:
            given.append(1)
            return True

        turn = Turn(give)
        with ended_by(turn.check):
            pause()
        await asyncio.sleep(0.01)
        assert not given and not turn.end()
        await asyncio.to_thread(work_long, turn.check)
        await asyncio.sleep(0.01)
        assert not given

    asyncio.run(run())


async def _enter(queue: Queue) -> None:
    async with queue.turn():
        pass
