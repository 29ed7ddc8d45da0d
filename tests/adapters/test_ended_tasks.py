"""Tasks of asyncio that end at any of their awaits, beside others that share all they work with: no other one notices."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from toolgrammar.core import Constraint, GenerationTimeoutError, Grammar, Model, Vocabulary
from toolgrammar.core.basics.pauses import pause
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

httpx = pytest.importorskip("httpx")
server = pytest.importorskip("toolgrammar.adapters.server")

#: Rounds of a test, each with a fresh model and tools that nothing has seen.
ROUNDS = 4
#: Requests of a round: those that end early, and those beside them.
ENDED, BESIDE = 6, 4

#: Tools of a request: so many that some pauses are in each part of their compilation.
TOOLS = 40

Ask = Callable[[int], Coroutine[Any, Any, list[tuple[str, Any]]]]


def tools_of(round_: int) -> list[dict[str, Any]]:
    """Tools that take long enough to compile that a request is ended within."""
    made = []
    for number in range(TOOLS):
        value = {"type": "string", "pattern": f"^r{round_}t{number}(a|b)*a(a|b){{9}}$", "minLength": 12}
        parameters = {"type": "object", "properties": {"x": value}, "required": ["x"]}
        made.append({"type": "function", "function": {"name": f"t{number}", "parameters": parameters}})
    return made


def said(round_: int, messages: Any) -> str:
    """The reply of the model: a call of the tool that the user names."""
    number = int(messages[-1].content)
    return (
        f'<tool_call>\n{{"name": "t{number}", "arguments": {{"x": "r{round_}t{number}abaababbabbaabb"}}}}\n</tool_call>'
    )


def right(round_: int, number: int) -> list[tuple[str, Any]]:
    """The one answer of a request."""
    return [(f"t{number}", {"x": f"r{round_}t{number}abaababbabbaabb"})]


def by_model(model: Model, tools: Any, timeout: float | None) -> Ask:
    """Ask the model itself."""

    async def ask(number: int) -> list[tuple[str, Any]]:
        out = await model.agenerate(str(number), tools=tools, timeout=timeout, max_tokens=300)
        return [(call.name, call.arguments) for call in out.tool_calls]

    return ask


def by_stream(model: Model, tools: Any, timeout: float | None) -> Ask:
    """Ask the model itself for a stream."""

    async def ask(number: int) -> list[tuple[str, Any]]:
        collected: dict[int, list[str]] = {}
        names: list[str] = []
        async for event in model.astream(str(number), tools=tools, timeout=timeout, max_tokens=300):
            if hasattr(event, "index") and hasattr(event, "name"):
                names.append(event.name)
            elif hasattr(event, "index") and hasattr(event, "text"):
                collected.setdefault(event.index, []).append(event.text)
        return [(name, json.loads("".join(collected[index]))) for index, name in enumerate(names)]

    return ask


def by_server(model: Model, tools: Any, timeout: float | None) -> Ask:
    """Ask our server, in this loop."""
    transport = httpx.ASGITransport(server.create_app({"m": model}), raise_app_exceptions=False)

    async def ask(number: int) -> list[tuple[str, Any]]:
        body = {"model": "m", "messages": [{"role": "user", "content": str(number)}], "tools": tools, "max_tokens": 300}
        async with httpx.AsyncClient(transport=transport, base_url="http://m.test", timeout=60) as client:
            answer = await client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        calls = answer.json()["choices"][0]["message"].get("tool_calls") or []
        return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]

    return ask


async def end_after(task: asyncio.Task[Any], steps: int) -> None:
    """Cancel a task after so many steps of the loop, and after a moment for other threads."""
    for step in range(steps):
        await asyncio.sleep(0 if step % 3 else 0.002)
    task.cancel()


@pytest.fixture
def slow_bind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Binding a grammar takes some pauses more, so that requests end within and others wait for it."""
    bind = Grammar.bind

    def slow(self: Grammar, vocabulary: Vocabulary) -> Constraint:
        for _ in range(20):
            time.sleep(0.005)
            pause()
        return bind(self, vocabulary)

    monkeypatch.setattr(Grammar, "bind", slow)


@pytest.mark.usefixtures("slow_bind")
@pytest.mark.parametrize("way", [by_model, by_stream, by_server])
def test_those_beside_an_ended_task_get_their_own_answers(way: Callable[..., Ask]) -> None:
    """Tasks end at random awaits, by cancellation or their own timeouts; each that goes on gets the answer to its own
    request, of all its tools."""
    rng = random.Random(5)
    ended = timed_out = 0

    async def round_of(round_: int) -> None:
        nonlocal ended, timed_out
        model = ScriptedModel(lambda messages: said(round_, messages))
        tools = ToolSet.from_any(tools_of(round_)) if way is not by_server else tools_of(round_)
        go_on, impatient = way(model, tools, None), way(model, tools, rng.choice([0.0, 0.01, 0.05]))
        beside, early, ends = [], [], []
        for each in [BESIDE, *rng.sample(range(ENDED + BESIDE), ENDED + BESIDE)]:
            number = rng.randrange(TOOLS)
            if each < BESIDE:
                beside.append((number, asyncio.ensure_future(go_on(number))))
                continue
            task = asyncio.ensure_future((go_on if each % 2 or way is by_server else impatient)(number))
            early.append((number, task))
            ends.append(asyncio.ensure_future(end_after(task, rng.randrange(60))))
        for number, task in beside:
            assert await asyncio.wait_for(task, 60) == right(round_, number)
        await asyncio.gather(*ends)
        for (number, _task), outcome in zip(
            early, await asyncio.gather(*(task for _, task in early), return_exceptions=True), strict=True
        ):
            if isinstance(outcome, asyncio.CancelledError):
                ended += 1
            elif isinstance(outcome, GenerationTimeoutError):
                timed_out += 1
            else:
                assert outcome == right(round_, number), outcome
        # What is shared is whole afterwards: each tool can be called.
        for number in (0, TOOLS - 1):
            assert await go_on(number) == right(round_, number)

    for round_ in range(ROUNDS):
        asyncio.run(round_of(round_))
    assert ended >= ROUNDS and (timed_out or way is by_server)
