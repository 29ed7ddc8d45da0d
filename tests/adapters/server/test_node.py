"""Clients in JavaScript: the SDKs of OpenAI, Anthropic and Ollama, and the Vercel AI SDK, against a running server.

Without Node.js, or without ``npm install`` in the folder ``node`` beside this file, they are skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from .conftest import BOOKING
from .test_serve import Running, start

FOLDER = Path(__file__).parent / "node"
#: Providers of the Vercel AI SDK by the names that ``clients.mjs`` gives them.
PROVIDERS = ("vercelChat", "vercelResponses", "vercelCompatible", "vercelAnthropic")
#: Without what may be long: a call that the budget cuts is not sent.
SHORT = {**BOOKING, "properties": {name: BOOKING["properties"][name] for name in ("code", "seats")}}
VALID = Draft202012Validator(SHORT)

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (FOLDER / "node_modules").exists(),
    reason="needs Node.js, and `npm install` in tests/adapters/server/node",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server over the model of noise."""
    running = start(tmp_path_factory.mktemp("node"), "embedded", "--temperature", "1")
    yield running
    running.process.kill()
    running.process.wait()
    assert running.process.stdout is not None
    running.process.stdout.close()


def run(server: Running, client: str) -> dict[str, Any]:
    """What a client of ``clients.mjs`` got."""
    command = ["node", "clients.mjs", server.url, "embedded", json.dumps(SHORT), client]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    for name, values in found.items():
        if isinstance(values, list) and values and isinstance(values[0], dict):
            for value in values:
                VALID.validate(value)
            found[name] = len(values)
    return found


def test_openai(server: Running) -> None:
    """Whole, streamed, by responses and completions; a field that is refused is named."""
    assert run(server, "openai") == {
        "chat": 1, "chatStream": 1, "chatText": [True, True], "responses": 1, "responsesStream": 1,
        "completions": True, "refused": [400, "audio"],
    }  # fmt: skip


def test_anthropic(server: Running) -> None:
    """Whole and streamed, and the count of tokens."""
    assert run(server, "anthropic") == {"messages": 1, "messagesStream": 1, "count": True}


def test_ollama(server: Running) -> None:
    """Calls, a streamed format, and the list of models."""
    found = run(server, "ollama")
    assert found.pop("ollama") >= 1
    assert found == {"ollamaStream": 1, "ollamaList": ["embedded"]}


def test_vercel(server: Running) -> None:
    """Four providers: agents of two steps, whole and streamed, run their calls, streams have a call and an end, objects
    are of the schema, text comes in pieces.

    In the second step the default model of ``@ai-sdk/openai`` sends references to the items of the first.
    """
    found = run(server, "vercel")
    for name in PROVIDERS:
        assert found.pop(name) >= 4
        assert (found.pop(f"{name}Kinds"), found.pop(f"{name}Object"), found.pop(f"{name}Text")) == (True, 1, True)
    assert not found
