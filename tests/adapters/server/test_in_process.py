"""Applications in this process: they end with their clients, and their errors are seen."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

import httpx
import httpx2
import openai
import pytest

from toolgrammar.adapters.anthropic import client as anthropic_client
from toolgrammar.adapters.openai import async_client, async_http_client, client, http_client
from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess
from toolgrammar.core.testing import ScriptedModel

HELLO: Any = [{"role": "user", "content": "Hello"}]


def ask(kind: str, model: ScriptedModel) -> Any:
    """Use a client of a kind once, and return it open."""
    if kind == "openai":
        made: Any = client({"m": model})
        made.chat.completions.create(model="m", messages=HELLO)
    elif kind == "async":
        made = async_client({"m": model})
        asyncio.run(made.chat.completions.create(model="m", messages=HELLO))
    elif kind == "anthropic":
        made = anthropic_client({"m": model})
        made.messages.create(model="m", messages=HELLO, max_tokens=20)
    else:
        made = http_client({"m": model})
        made.post("/chat/completions", json={"model": "m", "messages": HELLO}).raise_for_status()
    return made


def test_http_clients_fit_the_sdk() -> None:
    """They are of the module that the installed SDK itself makes its clients with."""
    with http_client({"m": ScriptedModel(["Hi."])}) as made:
        assert isinstance(made, openai.DefaultHttpxClient.__mro__[1])
    made = async_http_client({"m": ScriptedModel(["Hi."])})
    assert isinstance(made, openai.DefaultAsyncHttpxClient.__mro__[1])
    asyncio.run(made.aclose())


@pytest.mark.parametrize("http", [httpx, httpx2])
def test_http_clients_follow_an_sdk_of_either_module(http: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An SDK on httpx (openai 2) and one on httpx2 (openai 3) get clients that answer, blocking and not."""
    made_by_sdk = type("DefaultHttpxClient", (http.Client,), {})
    monkeypatch.setattr(sys.modules["toolgrammar.adapters.openai.client"], "DefaultHttpxClient", made_by_sdk)
    asked = {"model": "m", "messages": HELLO}
    with http_client({"m": ScriptedModel(["Hi."])}) as made:
        assert type(made) is http.Client
        assert made.post("/chat/completions", json=asked).json()["choices"][0]["message"]["content"] == "Hi."

    async def ask_async() -> Any:
        async with async_http_client({"m": ScriptedModel(["Ho."])}) as made:
            assert type(made) is http.AsyncClient
            return (await made.post("/chat/completions", json=asked)).json()

    assert asyncio.run(ask_async())["choices"][0]["message"]["content"] == "Ho."


@pytest.mark.parametrize("kind", ["openai", "async", "anthropic", "http"])
def test_a_client_that_nobody_closes_leaves_no_thread(kind: str) -> None:
    """Its threads end when it is collected, as frameworks are handed clients inline."""
    before = threading.active_count()
    clients = [ask(kind, ScriptedModel(lambda messages: "Hi.")) for _ in range(5)]
    assert threading.active_count() >= before + 5
    clients.clear()
    for _ in range(200):  # threads end by themselves, a little later
        gc.collect()
        if threading.active_count() <= before:
            break
        time.sleep(0.02)
    assert threading.active_count() <= before


def test_a_stream_keeps_its_client_alive() -> None:
    """A stream whose client was dropped comes whole."""
    model = ScriptedModel(lambda messages: "One two three.")
    made = client({"m": model})
    stream = made.chat.completions.create(model="m", messages=HELLO, stream=True)
    del made
    gc.collect()
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "One two three."


def test_a_model_that_was_loaded_for_a_client_is_freed_with_it() -> None:
    """A model that was given by its address is closed; one that was given itself is not."""
    process = InProcess(create_app({"e": "embedded", "m": ScriptedModel(lambda messages: "Hi.")}), httpx)
    served = process._app.state.served
    loaded, own = served.model("e"), served.model("m")
    gone = weakref.ref(process)
    del process
    gc.collect()
    assert gone() is None
    assert own.generate("x").text == "Hi."
    with pytest.raises(Exception, match="closed"):
        loaded.generate("x", max_tokens=1)


FAULTY = """
import httpx
from toolgrammar.adapters.openai import http_client
from toolgrammar.core.testing import ScriptedModel
{settings}
def fail(messages):
    raise RuntimeError("secret")
with http_client({{"m": ScriptedModel(fail)}}) as made:
    asked = {{"model": "m", "messages": [{{"role": "user", "content": "x"}}]}}
    assert made.post("/chat/completions", json=asked).status_code == 500
"""


@pytest.mark.parametrize("level", [None, "DEBUG"])
def test_an_internal_error_is_on_the_console(level: str | None) -> None:
    """It is told without what it may quote, though the application has configured no logging; DEBUG has the trace."""
    settings = "" if level is None else (
        f"import logging; logging.basicConfig(); logging.getLogger('toolgrammar.server').setLevel({level!r})"
    )  # fmt: skip
    code = FAULTY.format(settings=settings)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert "internal error: RuntimeError in a request of /v1/chat/completions" in done.stderr
    assert done.stderr.count("internal error") == 1
    assert ("secret" in done.stderr) == (level is not None)


def test_an_application_that_logs_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Where logging is configured, the record goes there alone."""
    process = InProcess(create_app({"m": ScriptedModel(lambda messages: 1 / 0)}), httpx)  # type: ignore[arg-type,return-value]
    with caplog.at_level(logging.ERROR), httpx.Client(transport=process.transport(), base_url=BASE_URL) as http:
        assert http.post("/v1/chat/completions", json={"model": "m", "messages": HELLO}).status_code == 500
    assert sum("internal error" in record.getMessage() for record in caplog.records) == 1
