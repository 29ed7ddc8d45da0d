"""The server under hostile and honest load at once: does it answer, and does it end?

    python benchmarks/server_attack.py [--seconds 60] [--idle 10] [--hostile 5] [--honest 5] [--json FILE]

Starts ``toolgrammar serve embedded`` on the loopback interface. Hostile clients send schemas that expand (references
that multiply, members in members, alternatives in alternatives, counts in counts) and bodies of 4 MB (empty lists,
unknown fields), and hang up after a second or wait for the answer, by turns. Honest clients ask for one call of a small
tool. ``/health`` is asked ten times a second, first while nothing else is. At the end, the server gets SIGTERM while
hostile requests run. The process is measured as it is: on a busy machine, take the ratio of the two.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import multiprocessing
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from results_io import machine
from workers import peak_memory_mb

TOOL = {
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


def hostile_schemas() -> list[dict[str, Any]]:
    """Return schemas of at most some hundred bytes each that expand."""

    def references(keyword: str) -> dict[str, Any]:
        levels = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 6} for n in range(8)}
        return {"$ref": "#/$defs/d0", "$defs": {**levels, "d8": {"type": "string"}}}

    nested: dict[str, Any] = {"type": "string"}
    for _ in range(5):
        nested = {"oneOf": [{**nested, "minLength": n} if "type" in nested else nested for n in range(6)]}
    members: dict[str, Any] = {"type": "object", "minProperties": 300}
    members["additionalProperties"] = dict(members)
    both = [{"items": {"$ref": "#"}}, {"contains": {"$ref": "#"}}, {"contains": {"type": "number"}}]
    return [
        *(references(keyword) for keyword in ("anyOf", "allOf", "oneOf")),
        nested,
        members,
        {"type": "array", "oneOf": both},
        {"type": "string", "pattern": "^(([a-z]{1,100}){1,100}){1,100}$"},
        {"type": "object", "patternProperties": {"a": {"multipleOf": 9.5}, "c": {"multipleOf": 86400}}},
    ]


def hostile_bodies() -> list[bytes]:
    """Return bodies of almost the largest size: as many values as fit, and as many unknown fields."""
    fields = {f"unknown_{n}": 0 for n in range(200_000)}
    return [b"[" + b"[]," * 1_390_000 + b"[]]", json.dumps({"model": "embedded", "messages": [], **fields}).encode()]


def send(url: str, body: bytes, limit: float) -> int:
    """Send a body; return the status."""
    kind = {"Content-Type": "application/json"}
    return httpx.post(f"{url}/v1/chat/completions", content=body, headers=kind, timeout=limit).status_code


def ask(url: str, schema: dict[str, Any] | None, limit: float) -> int:
    """Send one request; return its status."""
    body: dict[str, Any] = {"model": "embedded", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 60}
    if schema is None:
        body |= {"tools": [TOOL], "tool_choice": "required"}
    else:
        parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
        body |= {"tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}]}
        body |= {"tool_choice": "required", "temperature": 1.0}
    return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=limit).status_code


def wait_for(url: str) -> None:
    """Wait until the server answers."""
    for _ in range(1200):
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(f"{url}/health", timeout=1)
            return
        time.sleep(0.1)
    raise SystemExit("the server does not start")


def watch(url: str, end: float, answer: Any) -> None:
    """Ask for ``/health`` ten times a second until a time, in a process of its own; send how long each took."""
    seconds: list[float] = []
    with httpx.Client(timeout=30) as client:
        while time.monotonic() < end:
            begin = time.monotonic()
            try:
                client.get(f"{url}/health")
            except httpx.TransportError:  # it has ended
                break
            seconds.append(time.monotonic() - begin)
            time.sleep(0.1)
    answer.send(seconds)


def watched(url: str, end: float) -> Callable[[], list[float]]:
    """Begin to watch; return a function that waits for the end, and returns the times.

    The clients' process has a dozen threads at work, and would add their waits to those of the server.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=watch, args=(url, end, theirs), daemon=True).start()
    return ours.recv


def parts(seconds: list[float], scale: float, digits: int) -> dict[str, float]:
    """Return the median, the 99th percentile and the longest of some times."""
    ordered = sorted(seconds)
    shares = (("p50", 0.5), ("p99", 0.99), ("worst", 1.0))
    return {name: round(scale * ordered[int(share * (len(ordered) - 1))], digits) for name, share in shares if ordered}


def main() -> None:
    """Run the load, and print what was seen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--idle", type=float, default=10, help="seconds without load before")
    parser.add_argument("--hostile", type=int, default=5, help="hostile clients")
    parser.add_argument("--honest", type=int, default=5, help="honest clients")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "toolgrammar", "serve", "embedded", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(url)
    idle = watched(url, time.monotonic() + options.idle)()
    end = time.monotonic() + options.seconds
    stop = end - 0.5
    health = watched(url, end)
    honest: list[tuple[float, int]] = []
    hostile: list[int] = []

    schemas, large = hostile_schemas(), hostile_bodies()

    def attack(number: int) -> None:
        requests = itertools.cycle(
            [*(partial(ask, url, one) for one in schemas), *(partial(send, url, one) for one in large)]
        )
        for turn in itertools.count(number):
            if time.monotonic() > end:
                return
            try:
                hostile.append(next(requests)(1.0 if turn % 2 else 30.0))
            except httpx.HTTPError:
                hostile.append(0)

    def work() -> None:
        while time.monotonic() < end:
            begin = time.monotonic()
            try:
                status = ask(url, None, 60.0)
            except httpx.HTTPError:
                status = 0
            if begin < stop:  # a server that ends answers no new request
                honest.append((time.monotonic() - begin, status))

    threads = [threading.Thread(target=attack, args=(n,), daemon=True) for n in range(options.hostile)]
    threads += [threading.Thread(target=work, daemon=True) for _ in range(options.honest)]
    for thread in threads:
        thread.start()
    while time.monotonic() < stop:
        time.sleep(0.05)
    memory = peak_memory_mb(server.pid)
    begin = time.monotonic()
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(60)
        ended: float | None = round(time.monotonic() - begin, 2)
    except subprocess.TimeoutExpired:
        ended = None
        server.kill()
    times = [each for each, status in honest if status == 200]
    quiet, loaded = parts(idle, 1e3, 1), parts(health(), 1e3, 1)
    result = {
        "machine": machine(),
        "seconds": options.seconds,
        "health_idle_ms": quiet,
        "health_ms": loaded,
        "ratio": {name: round(loaded[name] / quiet[name], 1) for name in loaded if quiet.get(name)},
        "honest": {"answered": len(times), "other": len(honest) - len(times)},
        "honest_s": parts(times, 1, 2),
        "hostile_by_status": {str(code): hostile.count(code) for code in sorted(set(hostile))},
        "peak_memory_mb": memory,
        "sigterm_s": ended,
        "exit_code": server.returncode,
    }
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
