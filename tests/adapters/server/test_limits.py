"""The queue of a model: a request whose grammar takes long gives its place to the next one, and ends if all take too
much memory."""

from __future__ import annotations

import asyncio
import gc
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx

from toolgrammar.adapters.server.failures import BusyError
from toolgrammar.adapters.server.limits import Limits, Queue, give_place, holding
from toolgrammar.core.basics.pauses import LONG_SECONDS, ended_by, is_long, pause
from toolgrammar.core.basics.resident import Space, held


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


def test_a_wait_gives_the_place_away() -> None:
    """While a request waits for an image of another host, the next one runs."""

    async def run() -> None:
        queue = Queue(Limits(max_running=1))
        async with queue.turn() as turn:

            def wait() -> None:
                with holding(turn):
                    give_place()
                    give_place()

            await asyncio.to_thread(wait)
            give_place()  # in no turn's block: without effect
            async with queue.turn():
                assert queue.running == 2
        assert queue.running == 0

    asyncio.run(run())


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
        queue = Queue(Limits(max_running=1))
        async with queue.turn() as turn:
            with ended_by(turn.check):
                pause()
            await asyncio.sleep(0.01)
            assert queue._free.locked() and not queue._long
        assert not turn.gave_place
        await asyncio.to_thread(work_long, turn.check)
        await asyncio.sleep(0.01)
        assert not queue._long and not queue._free.locked()

    asyncio.run(run())


class Store:
    """A store of so many bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.space = Space(self)

    def byte_count(self) -> int:
        """Its bytes."""
        return self.size


def test_the_longest_request_ends_when_grammars_take_too_much_memory() -> None:
    """Beyond the bound the kept grammars are dropped first, then one long request after the other ends, those that are
    long for the longest time first, until the others fit; a short one never does."""

    async def run() -> None:
        kept = [Store(2**20)]
        stores: dict[int, Store] = {}
        ended: list[int] = []
        relieved: list[int] = []

        def relieve() -> None:
            relieved.append(len(kept))
            kept.clear()

        queue = Queue(Limits(max_running=1, max_grammars=2**20), relieve)
        short = asyncio.Event()

        async def one(number: int, begun: asyncio.Event) -> None:
            async with queue.turn() as turn:
                await asyncio.to_thread(work_long, turn.check)
                await asyncio.sleep(0.01)
                stores[number] = Store(2**20)
                begun.set()
                while not short.is_set():
                    await asyncio.sleep(0.01)
                    try:
                        turn.check()
                    except BusyError:
                        ended.append(number)
                        del stores[number]
                        return

        tasks = []
        for number in range(4):
            begun = asyncio.Event()
            tasks.append(asyncio.create_task(one(number, begun)))
            await begun.wait()
        async with queue.turn() as turn:
            while len(stores) > 2:
                turn.check()
                await asyncio.sleep(0.01)
            await asyncio.sleep(1.1)  # time for two more measurements
        short.set()
        await asyncio.gather(*tasks)
        assert ended == [0, 1] and relieved[0] == 1 and not kept

    asyncio.run(run())


async def _enter(queue: Queue) -> None:
    async with queue.turn():
        pass


def test_a_request_whose_grammar_outgrows_the_server_is_refused(http: Any) -> None:
    """Of requests at the same time, the one whose grammar takes more than all may have is refused with 429, and what it
    took is freed; small ones are answered."""
    pattern = "^(?=[a-z]*a[a-z]{30}b)(?=[a-z]*c[a-z]{30}d)(?=[a-z]*e[a-z]{25}f)[a-z]*$"
    gc.collect()
    before = held()
    client = http({"embedded": "embedded"}, limits=Limits(max_grammars=20 * 2**20))

    def ask(schema: dict[str, Any], most: int) -> httpx.Response:
        form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        message = {"role": "user", "content": "hi"}
        body = {"model": "embedded", "messages": [message], "response_format": form, "max_tokens": most, "seed": 1}
        return client.post("/v1/chat/completions", json={**body, "temperature": 1.0})

    with ThreadPoolExecutor(1) as pool:
        large = pool.submit(ask, {"type": "string", "pattern": pattern}, 3_000)
        small = []
        while not large.done():
            small.append(ask({"enum": ["yes", "no"]}, 20))
    refused = large.result()
    assert refused.status_code == 429 and "Retry-After" in refused.headers
    assert "more memory than this server allows" in refused.text
    assert small and {answer.status_code for answer in small} == {200}
    del large, refused
    gc.collect()
    assert held() - before < 10 * 2**20
