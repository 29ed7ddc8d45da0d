"""vLLM's own OpenAI server with the plug-in, on a model of noise: asked by OpenAI's SDK and by our ``vllm:`` address.

Start-up takes one to two minutes; `nox -s engines` runs this.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: nox -s engines runs these tests where it is")

from toolgrammar.core import ArgumentsDelta, BudgetError, Grammar, load_model
from toolgrammar.tools import ToolSet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 60},
        "days": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 2},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
LOOK = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 9}, "n": {"type": "integer", "minimum": 3, "maximum": 99}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = ToolSet.from_any([{"name": "get_weather", "parameters": WEATHER}, {"name": "now", "parameters": {}}])


@contextmanager
def serving(model_path: str, log: Path, *options: str, **environment: str) -> Iterator[str]:
    """Start a server, and give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model_path]
    command += ["--served-model-name", "noise", "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32"]
    command += ["--max-model-len", "1024", "--max-num-seqs", "8", "--enforce-eager", *options]
    settings = {**os.environ, **environment}
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output, env=settings) as server:
        try:
            for _ in range(1000):
                assert server.poll() is None, log.read_text()[-4000:]
                try:
                    httpx.get(f"http://127.0.0.1:{port}/health").raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def url(model_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the server."""
    options = ["--enable-auto-tool-choice", "--tool-call-parser", "toolgrammar-hermes"]
    options += ["--structured-outputs-config", '{"backend": "outlines"}']
    with serving(model_path, tmp_path_factory.mktemp("server") / "log", *options) as address:
        yield address


def test_a_stock_server_is_constrained_by_a_structural_tag(model_path: str, tmp_path: Path) -> None:
    """No plug-in of ours, no parser of calls, random weights: each first answer is valid."""
    with (
        serving(model_path, tmp_path / "log", VLLM_PLUGINS="") as address,
        load_model(f"vllm:noise@{address}", retries=0) as model,
    ):
        tools = ToolSet.from_any([{"name": "look", "parameters": LOOK}, {"name": "go", "parameters": LOOK}])
        for seed in range(5):
            given = {"seed": seed, "temperature": 1.5, "max_tokens": 200}
            for choice in ("required", "go"):
                answer = model.generate("Go", tools=tools, tool_choice=choice, parallel_tool_calls=False, **given)
                assert (answer.form, answer.guarantee) == ("structural tag", "constrained")
                # The first request of each choice finds the form that the server takes.
                assert answer.attempts == 1 or seed == 0
                assert len(answer.tool_calls) == 1 and choice in ("required", answer.tool_calls[0].name)
            answer = model.generate("Go", grammar=Grammar.from_regex("yes|no|[0-9]{3,9}"), **given)
            assert (answer.form, answer.guarantee) == ("structural tag", "constrained")


class Counted(httpx.AsyncBaseTransport):
    """The network, with the bodies of what is asked."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport()
        self.asked: list[Any] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Note and send a request."""
        self.asked.append(json.loads(request.content) if request.content else request.url.path)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def test_an_address_is_asked_once_and_constrained(url: str) -> None:
    """One probe, then one request for each answer, down to a budget of one token."""
    network = Counted()
    model = load_model(f"vllm:noise@{url}", transport=network, timeout=300.0)
    answers = 0
    for budget in (*range(1, 17), 40, 80, 200):
        for asked in ({"tools": TOOLS, "tool_choice": "required"}, {"schema": WEATHER}):
            try:
                if "schema" in asked:
                    value = model.generate_json(
                        "Go", asked["schema"], max_tokens=budget, temperature=1.0, seed=budget, allow_cut=True
                    )
                    jsonschema.validate(value, WEATHER)
                else:
                    answer = model.generate("Go", max_tokens=budget, temperature=1.0, seed=budget, **asked)
                    assert (answer.guarantee, answer.attempts) == ("constrained", 1)
                    for call in answer.tool_calls:
                        assert call.cut or call.name == "now" or not jsonschema.validate(dict(call.arguments), WEATHER)
            except BudgetError:
                assert budget < 40
            answers += 1
    assert len(network.asked) == answers + 1


def test_a_stream_is_passed_on_while_the_server_writes(url: str) -> None:
    """At its first piece the request still runs in the engine, and the rest comes in many pieces."""
    model = load_model(f"vllm:noise@{url}", timeout=300.0)
    schema = {"type": "object", "properties": {"text": {"type": "string", "minLength": 600}}, "required": ["text"]}
    tools = ToolSet.from_any([{"name": "write", "parameters": schema}])
    running, pieces = "", []
    for event in model.stream("Go", tools=tools, tool_choice="required", max_tokens=900, temperature=1.0, seed=1):
        if isinstance(event, ArgumentsDelta):
            if not pieces:
                metrics = httpx.get(url.replace("/v1", "/metrics")).text
                (running,) = re.findall(r"^vllm:num_requests_running\S* (\S+)$", metrics, re.M)
            pieces.append(event.text)
    assert float(running) == 1.0
    assert len(pieces) > 50
