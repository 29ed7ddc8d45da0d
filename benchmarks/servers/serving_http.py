"""Servers over HTTP with the same model: tokens a second at 1, 4 and 16 requests at the same time.

    python -m benchmarks servers/serving_http [--requests 16] [--tokens 32] [--only NAME] [--keep]

The model is SmolLM2-135M-Instruct: in single precision for `toolgrammar serve hf:` and `transformers serve` (by
default, and with `--continuous-batching`), and as the GGUF file of `toolgrammar model pull smollm2` for
`toolgrammar serve gguf:`, `toolgrammar serve smollm2` (NumPy) and llama.cpp's server (`xllamacpp`). Prompts have about
a hundred tokens and no common beginning; each server computes with one thread, and answers are not streamed. *Free
text* has up to `--tokens` tokens; *JSON* is held to a schema by `response_format`, which `transformers serve` does not
take, and is checked with `jsonschema`. Measured is processor time of the server, so that others who use the machine do
not change much, and wall time beside it. It needs `fastapi`, `accelerate` and `xllamacpp`.
"""

from __future__ import annotations

import json
import os
import random
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

from benchmarks.engines.engine_models import smollm2
from benchmarks.shared.data import is_valid
from benchmarks.shared.tables import show
from benchmarks.shared.workers import processor_seconds
from toolgrammar.core.models.published import PUBLISHED

PORT = 8077
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 40},
        "days": {"type": "integer", "minimum": 1, "maximum": 99},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "remark": {"type": "string", "maxLength": 60},
    },
    "required": ["city", "days", "unit", "remark"],
    "additionalProperties": False,
}
#: llama.cpp's server in a process of its own.
LLAMA = """
import sys, time
from benchmarks.engines.engine_models import HERMES
from benchmarks.servers.remote_servers import llama_server
with llama_server(1, HERMES, 16, int(sys.argv[1])):
    time.sleep(1e6)
"""


def prompts(count: int) -> list[str]:
    """Prompts of about a hundred tokens, different from the first on."""
    draw = random.Random(0)
    words = ("weather", "forecast", "city", "temperature", "please", "tell", "wind", "rain", "compare", "average")
    return [f"{number} " + " ".join(draw.choice(words) for _ in range(80)) for number in range(count)]


@contextmanager
def served(command: list[str], log: Path) -> Iterator[int]:
    """Run a server until the block ends; yield its process id once it answers."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
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
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def ask(body: dict[str, Any]) -> tuple[int, bool]:
    """Return the number of tokens of an answer, and False for JSON that the schema forbids."""
    kind = "chat/completions" if "messages" in body else "completions"
    response = httpx.post(f"http://127.0.0.1:{PORT}/v1/{kind}", json=body, timeout=600)
    response.raise_for_status()
    answer = response.json()
    tokens = int(answer["usage"]["completion_tokens"])
    return tokens, "messages" not in body or is_valid(SCHEMA, answer["choices"][0]["message"]["content"])


def commands(folder: Path) -> dict[str, tuple[list[str], str, tuple[str, ...]]]:
    """Return the command of each server, the name of its model, and what it is asked for."""
    own = [str(Path(sys.executable).parent / "toolgrammar"), "serve"]
    more = ["--port", str(PORT), "--max-running", "16"]
    theirs = [sys.executable, "-c", "from transformers.cli.transformers import main; main()"]
    theirs += ["serve", str(folder), "--port", str(PORT), "--device", "cpu", "--dtype", "float32"]
    both = ("free text", "JSON")
    return {
        "toolgrammar serve hf:": ([*own, f"model=hf:{folder}", *more], "model", both),
        "transformers serve": (theirs, str(folder), ("free text",)),
        "transformers serve --continuous-batching": ([*theirs, "--continuous-batching"], str(folder), ("free text",)),
        "toolgrammar serve gguf:": ([*own, f"model=gguf:{PUBLISHED['smollm2'].pull()}", *more], "model", both),
        "llama.cpp server": ([sys.executable, "-c", LLAMA, str(PORT)], "model", both),
        "toolgrammar serve smollm2": ([*own, "model=smollm2", *more], "model", both),
    }


def body(what: str, prompt: str, tokens: int) -> dict[str, Any]:
    """Return the body of a request."""
    if what == "free text":
        return {"prompt": prompt, "max_tokens": tokens, "temperature": 1.0}
    form = {"type": "json_schema", "json_schema": {"name": "plan", "strict": True, "schema": SCHEMA}}
    messages = [{"role": "user", "content": prompt}]
    return {"messages": messages, "response_format": form, "max_tokens": 200, "temperature": 1.0}


def main(requests: int = 16, tokens: int = 32, only: str = "", keep: bool = False) -> None:
    """Run, and print a table.

    Args:
        only: a server's name, for one of them alone
    """
    measures: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        smollm2(folder)
        for engine, (command, model, kinds) in commands(folder).items():
            if only not in ("", engine):
                continue
            asked = iter(prompts(6 * requests))  # none twice: what was kept of one would be read again
            with served(command, Path(name) / "log") as process:
                ask({**body("free text", "warm up", 2), "model": model})
                for what in kinds:
                    for at_once in (1, 4, 16):
                        bodies = [
                            {**body(what, next(asked), tokens), "model": model, "seed": number}
                            for number in range(requests)
                        ]
                        wall, used = time.perf_counter(), processor_seconds(process, children=True)
                        with ThreadPoolExecutor(at_once) as pool:
                            answers = list(pool.map(ask, bodies))
                        used, wall = processor_seconds(process, children=True) - used, time.perf_counter() - wall
                        row = {
                            "engine": engine,
                            "what": what,
                            "at_once": at_once,
                            "tokens": sum(count for count, _ in answers),
                            "invalid": sum(not is_valid for _, is_valid in answers),
                            "seconds": used,
                            "wall_seconds": wall,
                        }
                        measures.append(row)
                        print(json.dumps(row), flush=True)
    versions = {name: version(name) for name in ("torch", "transformers", "xllamacpp")}
    report = {"requests": requests, "tokens": tokens, "engines": versions, "measures": measures}
    show("serving_http", report, keep=keep)
