"""Load on `toolgrammar serve`: many streaming clients at a time on the embedded model, over loopback.

Each client asks again and again for a call under a tool choice, streamed, and checks it against the schema. An answer
that is lost, cut without saying so, or not valid counts as an error; a declared refusal (429) is counted apart.

Run it: python -m benchmarks servers/server_load --clients 200 --seconds 60
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from jsonschema import Draft202012Validator

SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Bergen"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
VALID = Draft202012Validator(SCHEMA)
TOOL = {"type": "function", "function": {"name": "plan_trip", "parameters": SCHEMA}}
ASKED = {
    "model": "embedded",
    "messages": [{"role": "user", "content": "Plan a trip."}],
    "tools": [TOOL],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "max_tokens": 60,
    "stream": True,
    "stream_options": {"include_usage": True},
}


@dataclass
class Tally:
    """What all clients saw.

    Attributes:
        answers: whole, valid answers.
        refused: answers 429, which are declared.
        errors: everything else, by kind.
        tokens: tokens of the answers.
        waits: seconds to the first event of each answer.
    """

    answers: int = 0
    refused: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    waits: list[float] = field(default_factory=list)

    def fail(self, kind: str) -> None:
        """Count an error."""
        self.errors[kind] = self.errors.get(kind, 0) + 1


async def ask(client: httpx.AsyncClient, seed: int, tally: Tally) -> None:
    """Ask once, and check the whole answer."""
    begin = time.perf_counter()
    arguments, done, first = "", False, True
    async with client.stream("POST", "/v1/chat/completions", json={**ASKED, "seed": seed}) as response:
        if response.status_code == 429:
            tally.refused += 1
            await asyncio.sleep(float(response.headers["retry-after"]))
            return
        if response.status_code != 200:
            return tally.fail(f"status {response.status_code}")
        async for line in response.aiter_lines():
            if first:
                tally.waits.append(time.perf_counter() - begin)
                first = False
            if line == "data: [DONE]":
                done = True
            elif line:
                event = json.loads(line.removeprefix("data: "))
                if "error" in event:
                    return tally.fail("error in the stream")
                for choice in event["choices"]:
                    for call in choice["delta"].get("tool_calls", ()):
                        arguments += call["function"]["arguments"]
                tally.tokens += (event.get("usage") or {}).get("completion_tokens", 0)
    if not done:
        return tally.fail("no end")
    try:
        VALID.validate(json.loads(arguments))
    except Exception as error:
        return tally.fail(type(error).__name__)
    tally.answers += 1


async def client_loop(url: str, number: int, until: float, tally: Tally) -> None:
    """Ask again and again until the time is over."""
    async with httpx.AsyncClient(base_url=url, timeout=300) as client:
        seed = number * 100_000
        while time.perf_counter() < until:
            try:
                await ask(client, seed, tally)
            except httpx.HTTPError as error:
                tally.fail(type(error).__name__)
            seed += 1


def resident(process: int) -> float:
    """Return the memory of a process in MiB (Linux); 0 where it cannot be told."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


async def measure(url: str, process: int, clients: int, seconds: float) -> dict[str, Any]:
    """Run the clients, and return what they saw."""
    tally = Tally()
    begin = time.perf_counter()
    loops = [asyncio.create_task(client_loop(url, n, begin + seconds, tally)) for n in range(clients)]
    memory = []
    while any(not loop.done() for loop in loops):
        await asyncio.sleep(min(5.0, seconds / 4))
        memory.append(resident(process))
    await asyncio.gather(*loops)
    taken = time.perf_counter() - begin
    waits = sorted(tally.waits) or [0.0]
    return {
        "clients": clients,
        "answers": tally.answers,
        "refused (429)": tally.refused,
        "errors": tally.errors,
        "tokens/s": round(tally.tokens / taken, 1),
        "first event, median s": round(waits[len(waits) // 2], 3),
        "first event, 99% s": round(waits[int(len(waits) * 0.99)], 3),
        "memory MiB, first quarter and last": [round(memory[len(memory) // 4]), round(memory[-1])],
    }


def main() -> None:
    """Start a server, measure one client and then many, and print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    program = "from toolgrammar.adapters.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", "embedded", "--port", "0", "--temperature", "1"]
    with subprocess.Popen([*command, "--log-level", "error"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        try:
            for clients, seconds in ((1, options.seconds / 4), (options.clients, options.seconds)):
                print(json.dumps(asyncio.run(measure(url, server.pid, clients, seconds)), indent=2))
        finally:
            server.terminate()
