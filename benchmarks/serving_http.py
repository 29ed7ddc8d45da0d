"""`toolgrammar serve` and `transformers serve` over HTTP: tokens a second at 1, 4 and 16 requests at the same time.

    python benchmarks/serving_http.py [--requests 16] [--tokens 32] [--keep]

The model is that of `serving.py`: 88 million random weights in single precision on the CPU, one thread of PyTorch; the
prompts too. Requests are `/v1/completions` of free text, not streamed. Measured is processor time of the server, so
that others who use the machine do not change much, and wall time beside it. `transformers serve` runs as it does by
default, and with `--continuous-batching`; it needs `fastapi` and `accelerate`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
from results_io import show, table
from serving import prompts, save_model

PORT = 8077


def processor_seconds(process: int) -> float:
    """Return the processor time of a process and its children that have ended, from Linux's /proc."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(command: list[str], log: Path) -> Iterator[int]:
    """Run a server until the block ends; yield its process id once it answers."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with log.open("w") as output, subprocess.Popen(command, env=environment, stdout=output, stderr=output) as process:
        try:
            until = time.monotonic() + 300
            while True:
                try:
                    httpx.get(f"http://127.0.0.1:{PORT}/health").raise_for_status()
                    break
                except httpx.HTTPError:
                    if process.poll() is not None or time.monotonic() > until:
                        raise RuntimeError(f"{command[0]} did not start: {log.read_text()[-2000:]}") from None
                    time.sleep(0.5)
            yield process.pid
        finally:
            process.terminate()


def ask(body: dict[str, Any]) -> int:
    """Return the number of tokens that a completion has."""
    response = httpx.post(f"http://127.0.0.1:{PORT}/v1/completions", json=body, timeout=600)
    response.raise_for_status()
    return int(response.json()["usage"]["completion_tokens"])


def main() -> None:
    """Run, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--only", default="", help="a server's name, for one of them alone")
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/serving_http.{json,md}")
    options = parser.parse_args()
    asked = prompts(3 * options.requests)  # none twice: what was kept of one would be read again
    measures: list[dict[str, Any]] = []
    binaries = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        parameters = save_model(folder)
        theirs = [sys.executable, "-c", "from transformers.cli.transformers import main; main()"]
        theirs += ["serve", str(folder), "--port", str(PORT), "--device", "cpu", "--dtype", "float32"]
        ours = [
            str(binaries / "toolgrammar"),
            "serve",
            f"model=hf:{folder}",
            "--port",
            str(PORT),
            "--max-running",
            "16",
        ]
        servers = {
            "toolgrammar serve": (ours, "model", (1, 4, 16)),
            "transformers serve": (theirs, str(folder), (1, 4, 16)),
            "transformers serve --continuous-batching": ([*theirs, "--continuous-batching"], str(folder), (1, 4, 16)),
        }
        for engine, (command, model, counts) in servers.items():
            if options.only not in ("", engine):
                continue
            with served(command, Path(name) / "log") as process:
                body = {"model": model, "max_tokens": options.tokens, "temperature": 1.0}
                ask({**body, "prompt": "warm up", "max_tokens": 2})
                for run, at_once in enumerate(counts):
                    own = asked[run * options.requests : (run + 1) * options.requests]
                    bodies = [{**body, "prompt": prompt, "seed": number} for number, prompt in enumerate(own)]
                    wall, used = time.perf_counter(), processor_seconds(process)
                    with ThreadPoolExecutor(at_once) as pool:
                        tokens = sum(pool.map(ask, bodies))
                    used, wall = processor_seconds(process) - used, time.perf_counter() - wall
                    row = {
                        "engine": engine,
                        "at_once": at_once,
                        "tokens": tokens,
                        "seconds": used,
                        "wall_seconds": wall,
                    }
                    measures.append(row)
                    print(json.dumps(row), flush=True)
    rows = [
        [one["engine"], one["at_once"], one["tokens"] / one["seconds"], one["tokens"] / one["wall_seconds"]]
        for one in measures
    ]
    rendered = table(["server", "requests at once", "tokens a processor second", "tokens a second"], rows)
    versions = {name: version(name) for name in ("torch", "transformers")}
    report = {"parameters": parameters, "requests": options.requests, "engines": versions, "measures": measures}
    show("serving_http", report, rendered, keep=options.keep)


if __name__ == "__main__":
    main()
