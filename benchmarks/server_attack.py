"""The server under hostile and honest load at once: does it answer, and does it end?

    python benchmarks/server_attack.py [--seconds 120] [--idle 10] [--hostile 5] [--honest 50] [--keep]

Starts ``toolgrammar serve embedded`` on the loopback interface. Honest clients ask for one call of a small tool, again
and again: first alone, then beside as many more honest clients as there are hostile ones, then beside the hostile
clients. Those send schemas that expand (references that multiply, members in members, alternatives in alternatives,
counts in counts) and bodies of 4 MB (empty lists, unknown fields), and hang up after a second or wait for the answer,
by turns. ``/health`` is asked ten times a second. At the end the hostile clients hang up, and the time until all slots
of the model are free is measured; then the server gets SIGTERM while hostile requests run.

The process is measured as it is: on a busy machine, compare the phases of one run. All clients are on the same machine
as the server and take processor time from it.
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
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from results_io import machine, show, table
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


def ask(url: str, schema: dict[str, Any] | None, limit: float, client: Any = httpx) -> int:
    """Send one request; return its status."""
    body: dict[str, Any] = {"model": "embedded", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 60}
    if schema is None:
        body |= {"tools": [TOOL], "tool_choice": "required"}
    else:
        parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
        body |= {"tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}]}
        body |= {"tool_choice": "required", "temperature": 1.0}
    status: int = client.post(f"{url}/v1/chat/completions", json=body, timeout=limit).status_code
    return status


def wait_for(url: str) -> None:
    """Wait until the server answers."""
    for _ in range(1200):
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(f"{url}/health", timeout=1)
            return
        time.sleep(0.1)
    raise SystemExit("the server does not start")


def watch(url: str, end: float, answer: Any) -> None:
    """Ask for ``/health`` ten times a second until a time; send how long each took, in seconds."""
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


def work(url: str, end: float, answer: Any, clients: int) -> None:
    """Ask for one call of a small tool by some clients until a time; send the seconds and the status of each."""
    answers: list[tuple[float, int]] = []
    stop = end - 0.5  # a server that ends answers no new request

    def one() -> None:
        with httpx.Client() as client:
            while time.monotonic() < stop:
                begin = time.monotonic()
                try:
                    status = ask(url, None, 60.0, client)
                except httpx.HTTPError:
                    status = 0
                if time.monotonic() < end:
                    answers.append((time.monotonic() - begin, status))

    run_together([one] * clients)
    answer.send(answers)


def attack(url: str, end: float, answer: Any, clients: int) -> None:
    """Send hostile requests by some clients until a time; send the status of each (0: hung up)."""
    statuses: list[int] = []
    schemas, large = hostile_schemas(), hostile_bodies()

    def one(number: int) -> None:
        requests = itertools.cycle(
            [*(partial(ask, url, one) for one in schemas), *(partial(send, url, one) for one in large)]
        )
        for turn in itertools.count(number):
            left = end - time.monotonic()
            if left <= 0:
                return
            try:
                statuses.append(next(requests)(min(left, 1.0 if turn % 2 else 30.0)))
            except httpx.HTTPError:
                statuses.append(0)

    run_together([partial(one, number) for number in range(clients)])
    answer.send(statuses)


def run_together(functions: Sequence[Callable[[], None]]) -> None:
    """Run functions in threads of their own, until all have returned."""
    threads = [threading.Thread(target=function, daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def begun(load: Callable[..., None], url: str, seconds: float, *args: Any) -> Callable[[], Any]:
    """Begin a load for some seconds, in a process of its own; return a function that waits for its result.

    With all clients in one process, they would add their waits for the interpreter to the times of the server.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=load, args=(url, time.monotonic() + seconds, theirs, *args), daemon=True).start()
    return ours.recv


def parts(seconds: Iterable[float], scale: float, digits: int) -> dict[str, float]:
    """Return the median, the 99th percentile and the longest of some times."""
    ordered = sorted(seconds)
    shares = (("p50", 0.5), ("p99", 0.99), ("worst", 1.0))
    return {name: round(scale * ordered[int(share * (len(ordered) - 1))], digits) for name, share in shares if ordered}


def phase(url: str, seconds: float, honest: int, hostile: int = 0) -> dict[str, Any]:
    """Return the result of one phase: the answers to the honest clients, and the times of ``/health``."""
    health, answers = begun(watch, url, seconds), begun(work, url, seconds, honest)
    statuses = begun(attack, url, seconds, hostile)() if hostile else []
    seen = answers()
    times = [each for each, status in seen if status == 200]
    return {
        "answers_per_second": round(len(times) / seconds, 2),
        "not_answered": len(seen) - len(times),
        "honest_s": parts(times, 1, 2),
        "health_ms": parts(health(), 1e3, 1),
        "hostile_by_status": {str(code): statuses.count(code) for code in sorted(set(statuses))},
    }


def seconds_until_idle(url: str, limit: float) -> float | None:
    """Return the time until no request of the model runs or waits; None: longer than the limit, in seconds."""
    begin = time.monotonic()
    while time.monotonic() < begin + limit:
        lines = httpx.get(f"{url}/metrics", timeout=30).text.splitlines()
        gauges = ("toolgrammar_running{", "toolgrammar_waiting{")
        counts = [float(line.split()[-1]) for line in lines if line.startswith(gauges)]
        assert counts, "the server does not say how many requests run"
        if not any(counts):
            return round(time.monotonic() - begin, 2)
        time.sleep(0.02)
    return None


def rendered(result: dict[str, Any]) -> str:
    """Return the result as text with a table."""
    clients = result["clients"]
    names = {
        "alone": f"{clients['honest']} honest clients",
        "beside_honest": f"{clients['honest'] + clients['hostile']} honest clients",
        "beside_hostile": f"{clients['honest']} honest clients, {clients['hostile']} hostile",
    }
    rows = []
    for key, name in names.items():
        seen = result["phases"][key]
        honest, health = seen["honest_s"], seen["health_ms"]
        row = [name, seen["answers_per_second"], seen["not_answered"], honest.get("p50", ""), honest.get("p99", "")]
        rows.append([*row, *(health.get(share, "") for share in ("p50", "p99", "worst"))])
    columns = ["", "answers/s", "not answered", "p50, s", "p99, s", "`/health` p50, ms", "p99, ms", "worst, ms"]
    end = (
        f"SIGTERM to the end: {result['sigterm_s']} s" if result["sigterm_s"] is not None else "SIGTERM did not end it"
    )
    return (
        f"{table(columns, rows)}\n\n{result['kept_share']:.0%} of the honest answers are kept beside hostile clients; "
        f"all slots free {result['seconds_until_idle']} s after they hang up; {end}; "
        f"{result['peak_memory_mb']:,} MB at most"
    )


def main() -> None:
    """Run the load, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120, help="of the attack; the phases before take a third each")
    parser.add_argument("--idle", type=float, default=10, help="seconds without load before")
    parser.add_argument("--hostile", type=int, default=5, help="hostile clients")
    parser.add_argument("--honest", type=int, default=50, help="honest clients")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", action="store_true", help="keep the result for docs/performance.md")
    options = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "toolgrammar", "serve", "embedded", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(url)
    idle = parts(begun(watch, url, options.idle)(), 1e3, 1)
    third = options.seconds / 3
    phases = {
        "alone": phase(url, third, options.honest),
        "beside_honest": phase(url, third, options.honest + options.hostile),
        "beside_hostile": phase(url, options.seconds, options.honest, options.hostile),
    }
    slots = seconds_until_idle(url, 120)
    begun(attack, url, 3.0, options.hostile)
    time.sleep(2.0)
    memory = peak_memory_mb(server.pid)
    begin = time.monotonic()
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(60)
        ended: float | None = round(time.monotonic() - begin, 2)
    except subprocess.TimeoutExpired:
        ended = None
        server.kill()
    share = phases["beside_hostile"]["answers_per_second"] / max(phases["alone"]["answers_per_second"], 1e-9)
    result = {
        "clients": {"honest": options.honest, "hostile": options.hostile},
        "seconds": options.seconds,
        "health_idle_ms": idle,
        "phases": phases,
        "kept_share": round(share, 3),
        "seconds_until_idle": slots,
        "peak_memory_mb": memory,
        "sigterm_s": ended,
        "exit_code": server.returncode,
    }
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), **result}, indent=1) + "\n", encoding="utf-8")
    show("server_attack", result, rendered(result), keep=options.keep)


if __name__ == "__main__":
    main()
