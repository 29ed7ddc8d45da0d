"""The server under hostile and honest load at once: does it answer, how much slower, and does it end?

    python -m benchmarks servers/server_attack [--seconds 120] [--rounds 4] [--hostile 5] [--small 50]

Starts ``toolgrammar serve embedded`` on the loopback interface. Small clients ask for one call of a small tool, each
again as soon as it is answered, a third of them streamed; each call is checked against the tool's schema. In each round
they do so three times: *alone*; beside clients
that send the *same* request; and beside as many *hostile* ones. Their throughput under hostile load is compared with
both. The parts alternate, so that other load on the machine meets all three.

Hostile clients send schemas that are expensive to read, to compile, at the first mask or at a later one (references
that multiply, members in members, alternatives in alternatives, counts in counts, large enums), long texts, and bodies
of 4 MB. They hang up after a second or wait for the answer, and stream or do not, by turns. ``/health`` is asked ten
times a second all the while. After each hostile part all its clients leave, and the time is taken until no request of
them runs. At the end, the server gets SIGTERM while hostile and small requests run.

Each group of clients is a process of its own, so that one does not wait for another's interpreter.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import httpx
from jsonschema import Draft202012Validator

from benchmarks.shared.tables import show
from benchmarks.shared.workers import peak_memory_mb, processor_seconds

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}

VALID = Draft202012Validator(TOOL["function"]["parameters"])

#: Longest time in seconds that a client waits for an answer.
PATIENCE = 60.0

#: A pattern of three languages with thousands of states each, any combination of which may be the present one.
COMBINED = "^(?=[a-z]*a[a-z]{30}b)(?=[a-z]*c[a-z]{30}d)(?=[a-z]*e[a-z]{25}f)[a-z]*$"


def hostile_parameters() -> dict[str, dict[str, Any]]:
    """Return schemas of a tool's parameters, by kind."""

    def tool(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"x": schema}, "required": ["x"], **more}

    def references(keyword: str) -> dict[str, Any]:
        levels = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 6} for n in range(8)}
        return tool({"$ref": "#/$defs/d0"}, **{"$defs": {**levels, "d8": {"type": "string"}}})

    nested: dict[str, Any] = {"type": "string"}
    for _ in range(5):
        nested = {"oneOf": [{**nested, "minLength": n} if "type" in nested else nested for n in range(6)]}
    members: dict[str, Any] = {"type": "object", "minProperties": 300}
    members["additionalProperties"] = dict(members)
    both = [{"items": {"$ref": "#"}}, {"contains": {"$ref": "#"}}, {"contains": {"type": "number"}}]
    formula = {"allOf": [{"anyOf": [{"minimum": i * j} for j in range(6)]} for i in range(6)]}
    objects = [
        {"type": "object", "required": [f"p{i}"], "properties": {f"p{i}": {"type": "integer"}, "x": {"const": i}}}
        for i in range(60)
    ]
    names = [f"{n * 7_919 % 99_991:05d}-{'x' * (n % 17)}" for n in range(20_000)]
    many = {f"p{n}": {"type": "string", "pattern": f"^[a-{chr(98 + n % 24)}]{{1,{n % 90 + 9}}}$"} for n in range(2_000)}
    return {
        **{f"references in {keyword}": references(keyword) for keyword in ("anyOf", "allOf", "oneOf")},
        "nested oneOf": tool(nested),
        "objects in oneOf": tool({"oneOf": objects}),
        "members in members": tool(members),
        "arrays of two kinds": tool({"type": "array", "oneOf": both}),
        "counts in counts": tool({"type": "string", "pattern": "^(([a-z]{1,100}){1,100}){1,100}$"}),
        "patterns together": tool({"type": "string", "pattern": COMBINED}),
        "names by patterns": tool(
            {"type": "object", "patternProperties": {"a": {"multipleOf": 9.5}, "c": {"multipleOf": 86400}}}
        ),
        "formula": tool({"type": "number", **formula}),
        "large enum": tool({"enum": names}),
        "many patterns": tool({"type": "object", "properties": many}),
        "distinct items": tool({"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 20}),
    }


def hostile_bodies() -> list[bytes]:
    """Return the bodies of hostile requests: the schemas, a long text, and bodies of almost the largest size."""
    bodies = []
    for number, parameters in enumerate(hostile_parameters().values()):
        tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
        more = {"tools": tools, "tool_choice": "required", "temperature": 1.0, "stream": number % 2 == 1}
        bodies.append({**asked("hi"), **more})
    bodies.append(asked("a long text, with words. " * 40_000))
    fields = {f"unknown_{n}": 0 for n in range(200_000)}
    bodies.append({**asked("hi"), **fields})
    return [*(json.dumps(body).encode() for body in bodies), b"[" + b"[]," * 1_390_000 + b"[]]"]


def asked(text: str) -> dict[str, Any]:
    """Return a request for at most 60 tokens."""
    return {"model": "embedded", "messages": [{"role": "user", "content": text}], "max_tokens": 60}


def small_body(number: int) -> bytes:
    """Return the body of a small request."""
    return json.dumps(
        {**asked("hi"), "tools": [TOOL], "tool_choice": "required", "stream": number % 3 == 0, "seed": number}
    ).encode()


def is_valid(body: str) -> bool:
    """Return True unless a call of the small tool violates its schema, in a body or in the events of a stream."""
    pieces = [line.removeprefix("data: ") for line in body.splitlines() if line and line != "data: [DONE]"]
    calls: dict[int, str] = {}
    name = ""
    for choice in (one for piece in pieces for one in json.loads(piece)["choices"]):
        for index, call in enumerate((choice.get("delta") or choice.get("message") or {}).get("tool_calls") or ()):
            name = call["function"].get("name") or name
            at = call.get("index", index)
            calls[at] = calls.get(at, "") + (call["function"].get("arguments") or "")
    return name != TOOL["function"]["name"] or all(VALID.is_valid(json.loads(text)) for text in calls.values())


async def send(client: httpx.AsyncClient, body: bytes, limit: float) -> tuple[float, str]:
    """Send one request; return the seconds until its whole answer, and its status."""
    begin = time.monotonic()

    async def whole() -> str:
        kind = {"Content-Type": "application/json"}
        response = await client.post("/v1/chat/completions", content=body, headers=kind)
        whole = response.status_code == 200 and b"arguments" in response.content
        if not whole or b'"error"' in response.content:
            return str(response.status_code)
        return "answered" if is_valid(response.text) else "invalid"

    try:
        status = await asyncio.wait_for(whole(), limit)
    except asyncio.TimeoutError:
        status = "left"
    except httpx.HTTPError:
        status = "lost"
    return time.monotonic() - begin, status


async def work(url: str, kind: str, clients: int, seconds: float) -> list[tuple[float, str]]:
    """Send requests of one kind for some time; return how long each took, and its status."""
    found: list[tuple[float, str]] = []
    end = time.monotonic() + seconds
    hostile = itertools.cycle(hostile_bodies()) if kind == "hostile" else None

    async def loop(number: int) -> None:
        for turn in itertools.count(number):
            if time.monotonic() >= end:
                return
            body = next(hostile) if hostile else small_body(turn)
            left = end - time.monotonic()
            limit = 1.0 if hostile is not None and turn % 2 else PATIENCE
            result = await send(client, body, min(limit, left))
            if result[1] != "left" or limit < left:
                found.append(result)

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits, trust_env=False) as client:
        await asyncio.gather(*(loop(n) for n in range(clients)))
    return found


async def watch(url: str, seconds: float) -> list[tuple[float, str]]:
    """Ask for ``/health`` ten times a second."""
    found: list[tuple[float, str]] = []
    end = time.monotonic() + seconds
    async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
        await client.get("/health")
        while time.monotonic() < end:
            begin = time.monotonic()
            try:
                await client.get("/health")
            except httpx.TransportError:  # the server has ended
                break
            found.append((time.monotonic() - begin, "answered"))
            await asyncio.sleep(0.1)
    return found


def serve_group(url: str, wire: Any) -> None:
    """Do what the main process asks for: the body of a process of clients."""
    with contextlib.suppress(EOFError, ConnectionResetError):  # the main process has ended
        while True:
            kind, clients, seconds = wire.recv()
            run = watch(url, seconds) if kind == "health" else work(url, kind, clients, seconds)
            wire.send(asyncio.run(run))


class Group:
    """A process of clients."""

    def __init__(self, url: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._wire, theirs = context.Pipe()
        context.Process(target=serve_group, args=(url, theirs), daemon=True).start()

    def begin(self, kind: str, clients: int, seconds: float) -> None:
        """Send requests for some time."""
        self._wire.send((kind, clients, seconds))

    def end(self) -> list[tuple[float, str]]:
        """Wait for the end of that time; return what was seen."""
        found: list[tuple[float, str]] = self._wire.recv()
        return found


def parts(seconds: list[float], scale: float, digits: int) -> dict[str, float]:
    """Return the median, the 99th percentile and the longest of some times."""
    ordered = sorted(seconds)
    shares = (("p50", 0.5), ("p99", 0.99), ("worst", 1.0))
    return {name: round(scale * ordered[int(share * (len(ordered) - 1))], digits) for name, share in shares if ordered}


def wait_until_free(url: str, limit: float) -> float | None:
    """Return the seconds until no request runs or waits; None if that takes too long."""
    begin = time.monotonic()
    with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
        while time.monotonic() < begin + limit:
            lines = client.get("/metrics").text.splitlines()
            # fmt: off
            counts = [float(line.split()[-1]) for line in lines
                      if line.startswith(("toolgrammar_running{", "toolgrammar_waiting{", "toolgrammar_reading "))]
            # fmt: on
            if not any(counts):
                return round(time.monotonic() - begin, 2)
            time.sleep(0.02)
    return None


def start(port: int) -> subprocess.Popen[bytes]:
    """Start the server, and wait until it answers."""
    command = [
        sys.executable,
        *os.environ.get("SERVE", "-m toolgrammar").split(),
        "serve",
        "embedded",
        "--port",
        str(port),
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1200):
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{port}/health", timeout=1)
            return server
        time.sleep(0.1)
    raise SystemExit("the server does not start")


def main(seconds: float = 120, rounds: int = 4, hostile: int = 5, small: int = 50, keep: bool = False) -> None:
    """Run the load, and print what was seen.

    Args:
        seconds: of hostile load, in all rounds together
        hostile: hostile clients
        small: small clients
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    server = start(port)
    result = attack(url, server, seconds, rounds, hostile, small)
    show("server_attack", result, keep=keep)


def attack(
    url: str, server: subprocess.Popen[bytes], hostile_seconds: float, rounds: int, hostile: int, clients: int
) -> dict[str, Any]:
    """Return what is seen of a server under small and hostile clients, which ends."""
    small, others, health = Group(url), Group(url), Group(url)
    each = hostile_seconds / rounds
    small.begin("small", clients, 3.0)  # the grammar of the small tool is compiled, and the clients have started
    others.begin("small", 1, 1.0)
    health.begin("health", 1, 1.0)
    for group in (small, others, health):
        group.end()
    found: dict[str, list[list[tuple[float, str]]]] = {"alone": [], "same": [], "hostile": []}
    waits: dict[str, list[float]] = {name: [] for name in found}
    seconds: Counter[str] = Counter()
    processor: Counter[str] = Counter()
    freed: list[float | None] = []
    for _ in range(rounds):
        for name, answers in found.items():
            begin, used = time.monotonic(), processor_seconds(server.pid, children=True)
            small.begin("small", clients, each)
            health.begin("health", 1, each)
            if name != "alone":
                others.begin("hostile" if name == "hostile" else "small", hostile, each)
            answers.append(small.end())
            waits[name] += [one for one, _ in health.end()]
            if name != "alone":
                others.end()
            seconds[name] += time.monotonic() - begin
            processor[name] += processor_seconds(server.pid, children=True) - used
            took = wait_until_free(url, 60)
            if name == "hostile":
                freed.append(took)
    peak = peak_memory_mb(server.pid)
    small.begin("small", clients, 5.0)
    others.begin("hostile", hostile, 5.0)
    time.sleep(2.0)
    begin = time.monotonic()
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(90)
        ended: float | None = round(time.monotonic() - begin, 2)
    except subprocess.TimeoutExpired:
        ended = None
        server.kill()
    per_second = {
        name: sum(status == "answered" for run in runs for _, status in run) / (rounds * each)
        for name, runs in found.items()
    }
    return {
        "clients": {"small": clients, "hostile": hostile},
        "load_average": round(os.getloadavg()[0], 1),
        "hostile_seconds": hostile_seconds,
        "small_per_second": {name: round(rate, 1) for name, rate in per_second.items()},
        "small_per_processor_second": {
            name: round(per_second[name] / max(processor[name] / seconds[name], 1e-9), 1) for name in found
        },
        "share_kept": {
            "of_alone": round(per_second["hostile"] / per_second["alone"], 3),
            "of_same": round(per_second["hostile"] / per_second["same"], 3),
        },
        "small_s": {
            name: parts([one for run in runs for one, status in run if status == "answered"], 1, 2)
            for name, runs in found.items()
        },
        "small_not_answered": {
            name: dict(Counter(status for run in runs for _, status in run if status != "answered"))
            for name, runs in found.items()
        },
        "health_ms": {name: parts(times, 1e3, 1) for name, times in waits.items()},
        "freed_s": freed,
        "peak_memory_mb": peak,
        "sigterm_s": ended,
    }
