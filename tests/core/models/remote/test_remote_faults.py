"""Servers that fail, in every way that they know: one clear error each, quickly, and never a secret in it."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import json
import logging
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from toolgrammar.core import (
    BudgetError,
    CancelledError,
    ContextOverflowError,
    Finish,
    JsonMode,
    ModelError,
    TextDelta,
    ToolGrammarError,
    load_model,
)
from toolgrammar.core.models.remote import RemoteModel, transport

KEY = "sk-very-secret-0123456789"


def test_each_status_has_a_clear_error(serve: Any) -> None:
    """What the server says, its address and the status are in the error; 401 and 404 are not tried again."""
    cases = [
        (401, {"error": {"message": "bad key"}}, "denies access"),
        (403, {"error": "forbidden"}, "denies access"),
        (404, {"error": {"message": "no model m"}}, "no model m"),
        (405, {"detail": "wrong method"}, "wrong method"),
        (418, {"message": "teapot"}, "teapot"),
    ]
    for status, body, words in cases:
        server = serve(httpx.Response(status, json=body))
        with pytest.raises(ModelError, match=words) as caught:
            server.model().generate("Hi")
        assert str(status) in caught.value.message and "http://model.test/v1" in caught.value.message
        assert len(server.asked) == 1


def test_the_context_window_is_an_error_of_its_own(serve: Any) -> None:
    """A prompt that does not fit is a `ContextOverflowError`, so that agents shorten it; nothing else is tried."""
    said = {
        "error": {
            "code": 400,
            "type": "exceed_context_size_error",
            "message": "the request exceeds the available context size",
        }
    }
    server = serve(httpx.Response(400, json=said))
    with pytest.raises(ContextOverflowError):
        server.model().generate_json("Hi", {"type": "object"})
    assert len(server.asked) == 1


#: What servers say of a prompt that does not fit: OpenAI in two APIs and two years, vLLM, llama.cpp, Groq, xAI, Gemini,
#: Bedrock, Anthropic, Ollama, SGLang, OpenRouter.
OVERFLOWS = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9031 tokens.",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 352000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "The decoder prompt (length 9031) is longer than the maximum model length; model's maximum context limit is 8192",
    "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "Please reduce the length of the messages or completion.",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "Input is too long for requested model.",
    "prompt is too long: 200001 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
    "prompt too long; exceeded max context length by 839 tokens",
    "The input (9031 tokens) is longer than the model's context length (8192 tokens).",
    "This endpoint's maximum context length is 8192 tokens. However, you requested about 9031 tokens.",
]


@pytest.mark.parametrize("said", OVERFLOWS)
def test_every_servers_words_for_an_overflow_are_known(said: str, serve: Any) -> None:
    """What any server says of a prompt that does not fit is a `ContextOverflowError`."""
    with pytest.raises(ContextOverflowError):
        serve(httpx.Response(400, json={"error": {"message": said}})).model().generate("Hi")


BUDGETS = [
    "the shortest valid output needs 18 tokens, and the budget is 4. Hint: set max_tokens to at least 18",
    "the model began a call, which does not fit in the budget of 5 tokens. Hint: raise max_tokens",
    "Could not finish the message because max_tokens or model output limit was reached. "
    "Please try again with higher max_tokens.",
]


@pytest.mark.parametrize("said", BUDGETS)
def test_a_budget_that_is_too_small_weakens_no_form(said: str, serve: Any, complete: Any) -> None:
    """What a server says of too few tokens is a `BudgetError` after one request; the next one is as strict as before."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    server = serve(httpx.Response(400, json={"error": {"message": said, "code": "budget"}}), complete("", ("f", {})))
    model = server.model(server="openai")
    with pytest.raises(BudgetError, match="max_tokens"):
        model.generate("Hi", tools=[tool], tool_choice="required", max_tokens=4)
    assert len(server.asked) == 1
    answer = model.generate("Hi", tools=[tool], tool_choice="required", max_tokens=40)
    assert answer.tool_calls[0].name == "f" and answer.form == "strict tools"


def test_busy_servers_are_asked_again(serve: Any, complete: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """429 and 5xx are asked again, after what Retry-After says, within a bound; then the error says so."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(transport.asyncio, "sleep", sleep)
    busy = httpx.Response(429, headers={"retry-after": "3"}, json={"error": {"message": "slow down"}})
    server = serve(busy, httpx.Response(503, text="loading"), complete("Hi"))
    assert server.model().generate("Hi").text == "Hi"
    assert slept == [3.0, 0.5]
    with pytest.raises(ModelError, match=r"429.*3 attempts.*slow down"):
        serve(busy).model().generate("Hi")
    with pytest.raises(ModelError, match=r"failed \(500\) after 3 attempts: Boom"):
        serve(httpx.Response(500, text="<html><style>x{}</style><h1>Boom</h1></html>")).model().generate("Hi")
    slept.clear()
    later = httpx.Response(429, headers={"retry-after": "3600"}, json={})
    with pytest.raises(ModelError, match="wait 3600 seconds"):
        serve(later).model().generate("Hi")
    assert slept == []


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (httpx.Response(200, html="<html><body>Welcome</body></html>"), "page of HTML.*Welcome"),
        (httpx.Response(200, text='{"choices": ['), "not JSON"),
        (httpx.Response(200, json={"hello": 1}), "not a chat completion.*hello"),
        (httpx.Response(200, json=[1]), "not a chat completion"),
        (httpx.Response(200, json={"choices": [{"message": 5, "finish_reason": "stop"}]}), "not a chat completion"),
        (httpx.Response(200, json={"choices": [{"message": {"tool_calls": [5]}}]}), "not a chat completion"),
        (httpx.Response(200, json={"choices": []}), "broke off"),
        (httpx.Response(200, json={"error": {"message": "cuda died"}}), "cuda died"),
        (httpx.Response(302, headers={"location": "http://evil.test/v1"}), "redirects to http://evil.test/v1"),
        (httpx.ConnectError("refused"), "cannot be reached"),
        (httpx.ReadTimeout("slow"), "did not answer for 120 seconds"),
        (httpx.RemoteProtocolError("peer closed connection"), "broke off.*peer closed"),
    ],
)
def test_bodies_that_are_no_answer(serve: Any, response: Any, words: str) -> None:
    """HTML, broken JSON, other JSON, redirects and dropped connections are errors with what was received."""
    server = serve(response)
    with pytest.raises(ModelError, match=words):
        server.model().generate("Hi")
    assert {request.url.host for request in server.requests} == {"model.test"}
    assert len(server.requests) == 1


def test_streams_that_break(serve: Any) -> None:
    """A stream that ends early, holds what is no JSON, or an error, is an error with what was received."""
    head = {"content-type": "text/event-stream"}
    half = 'data: {"choices": [{"delta": {"content": "Half a"}}]}\n\n'
    for data, words in (
        (half, "broke off.*Half a"),
        (half + "data: {oops\n\n", "not JSON.*oops"),
        (half + 'data: {"error": {"message": "out of memory"}}\n\n', "out of memory"),
    ):
        seen = []
        with pytest.raises(ModelError, match=words):
            seen.extend(serve(httpx.Response(200, headers=head, text=data)).model().stream("Hi"))


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("charset", ["", "; charset=latin-1"])
def test_event_streams_as_the_standard_has_them(serve: Any, line_end: str, charset: str) -> None:
    """Events without data are no answer, lines end in three ways, the text is UTF-8, the last blank line may miss."""
    lines = [
        *(": ping", "", "retry: 10", "", "id: 1", "event: message"),
        *('data: {"choices": [{"delta": {"content":', 'data: "Zo\u00eb\u2028\u0085"}}]}', "", "id: 2", "data:", ""),
        'data:{"choices": [{"delta": {}, "finish_reason": "stop"}]}',
    ]
    head = {"content-type": f"text/event-stream{charset}"}
    body = line_end.join(lines).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 5):
            yield body[start : start + 5]

    model = serve(httpx.Response(200, headers=head, content=pieces())).model()
    assert [event.text for event in model.stream("Hi") if isinstance(event, TextDelta)] == ["Zo\u00eb\u2028\u0085"]


def test_endless_events_end(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a stream ends at the same bound, also inside of one event."""
    monkeypatch.setattr(transport, "MAX_BODY", 10_000)
    head = {"content-type": "text/event-stream"}
    with pytest.raises(ModelError, match="more than 10000 bytes"):
        list(serve(httpx.Response(200, headers=head, text="data: " + "x" * 20_000)).model().stream("Hi"))


def test_a_server_that_does_not_stream(serve: Any, complete: Any) -> None:
    """A server that answers a streaming request in one piece is understood."""
    model = serve(httpx.Response(200, json=complete("One piece"))).model()
    events = list(model.stream("Hi"))
    assert events[0] == TextDelta("One piece") and isinstance(events[-1], Finish)


def test_huge_bodies_end(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading ends at a bound, whatever a server sends, also for errors."""
    monkeypatch.setattr(transport, "MAX_BODY", 10_000)
    for status in (200, 400, 500):
        with pytest.raises(ModelError, match="more than 10000 bytes"):
            serve(httpx.Response(status, text="x" * 20_000)).model().generate("Hi")


def test_secrets_are_never_shown(serve: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key and header values go to the server, and into no error, repr or log, not even if the server repeats them."""
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    headers = {"X-Team": "Bearer team-secret-42"}
    for given in (KEY, "env:MY_KEY"):
        server = serve(httpx.Response(401, json={"error": {"message": f"key {KEY} of team-secret-42 is wrong"}}))
        model = server.model(api_key=given, headers=headers)
        with pytest.raises(ModelError, match=r"key \*\*\* of \*\*\* is wrong") as caught:
            model.generate("Hi")
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        shown = [
            repr(model),
            repr(vars(model)),
            str(caught.value),
            repr(caught.value),
            caplog.text,
            repr(model._transport),
        ]
        assert not any(KEY in text or "team-secret" in text for text in shown)
    with pytest.raises(ModelError, match="NO_SUCH_KEY"):
        RemoteModel("m@http://x.test/v1", api_key="env:NO_SUCH_KEY")


@pytest.mark.parametrize(
    "address",
    [
        *(
            "openai:",
            "openai:m",
            "openai:@http://x.test/v1",
            "openai:m@ftp://x.test",
            "openai:m@http://",
            "vllm:m@x.test",
        ),
        *("openai:m@http://user:pass@x.test/v1", "openai:m@http://x.test/v1?key=1", "openai:m@http://x.test:99999/v1"),
    ],
)
def test_addresses_that_name_no_server(address: str) -> None:
    """No server is ever assumed, and an address that cannot be right is an error without a request."""
    with pytest.raises(ModelError) as caught:
        load_model(address)
    assert caught.value.hint and "pass" not in caught.value.message.replace("password", "")


def test_addresses() -> None:
    """Models' names may have colons, slashes and at-signs; the scheme says what the server is."""
    model = load_model("ollama:hf.co/a@b/c:q4@http://localhost:11434/v1/")
    assert (model.name, model.base_url, model._protocol.kind) == (
        "hf.co/a@b/c:q4",
        "http://localhost:11434/v1",
        "ollama",
    )  # type: ignore[attr-defined]
    assert load_model("openai:m", base_url="https://x.test/v1").name == "m"
    assert copy.deepcopy(model) is model
    for options in ({"server": "what"}, {"retries": -1}, {"timeout": 0}, {"unknown": 1}):
        with pytest.raises(ModelError):
            load_model("openai:m@http://x.test/v1", **options)


def test_what_a_server_is_asked_about_itself(serve: Any, complete: Any) -> None:
    """Only with ``server="auto"`` are the server's own endpoints asked, and only once."""

    def listing(owner: str, **more: Any) -> httpx.Response:
        return httpx.Response(200, json={"data": [{"id": "m", "owned_by": owner, **more}]})

    vllm = serve(listing("vllm", max_model_len=4_096), complete("Hi"))
    model = vllm.model(server="auto")
    assert model.context_window == 4_096
    assert model.generate("Hi", top_k=3).text == "Hi"
    assert [request.url.path for request in vllm.requests] == ["/v1/models", "/v1/chat/completions"]
    assert serve(listing("sglang", max_model_len=1_024)).model(server="auto").context_window == 1_024
    llama = serve(listing("llamacpp", meta={"n_ctx_train": 2_048}))
    assert llama.model(server="auto").context_window == 2_048
    ollama = serve(listing("library"), httpx.Response(200, json={"version": "0.9"}), complete("Hi"))
    model = ollama.model(server="auto")
    model.generate("Hi")
    assert (model._protocol.kind, ollama.requests[1].url.path) == ("ollama", "/api/version")
    other = serve(httpx.Response(404), httpx.Response(404))
    with pytest.raises(ModelError, match="404"):
        other.model(server="auto").generate("Hi")
    told = serve(complete("Hi"))
    assert told.model().context_window == 8_192 and told.requests == []


def test_newer_names_of_the_budget(serve: Any, complete: Any) -> None:
    """A server that knows the token budget as ``max_completion_tokens`` only is given it so."""

    def reply(body: dict[str, Any]) -> Any:
        said = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        return httpx.Response(400, json={"error": {"message": said}}) if "max_tokens" in body else "Hi"

    server = serve(reply)
    assert server.model().generate("Hi", max_tokens=7).text == "Hi"
    assert server.asked[1]["max_completion_tokens"] == 7


def test_fields_of_ones_own(serve: Any) -> None:
    """``body`` adds fields to every request, and takes ours out."""
    server = serve("Hi")
    server.model(body={"reasoning_effort": "low", "temperature": None}).generate("Hi")
    assert server.asked[0]["reasoning_effort"] == "low" and "temperature" not in server.asked[0]


# -- over a real network -------------------------------------------------------------------------------------------


class _Slow(BaseHTTPRequestHandler):
    """Streams a word at a time, for ever."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for _ in range(2_000):
                chunk = {"choices": [{"index": 0, "delta": {"content": "word "}}]}
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.flush()
                time.sleep(0.01)
        except OSError:
            self.server.left.set()  # type: ignore[attr-defined]
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def slow() -> Iterator[Any]:
    """A server on this machine that never comes to an end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Slow)
    server.daemon_threads = True
    server.left = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_refused_connections_are_told_quickly() -> None:
    """A port where nobody listens is an error at once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(ModelError, match="cannot be reached"):
        load_model(f"openai:m@http://127.0.0.1:{port}/v1").generate("Hi")
    assert time.monotonic() - started < 5


def test_silence_ends() -> None:
    """A server that takes the connection and says nothing is an error after the timeout."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        model = load_model(f"openai:m@http://127.0.0.1:{deaf.getsockname()[1]}/v1", timeout=0.2)
        with pytest.raises(ModelError, match=r"did not answer for 0\.2 seconds"):
            model.generate("Hi")
        started = time.monotonic()
        with pytest.raises(CancelledError):
            model.generate("Hi", timeout=0.1)
        assert time.monotonic() - started < 5


def test_leaving_a_stream_ends_the_request(slow: Any) -> None:
    """Leaving the loop, cancelling the task, or a ``cancel`` that says so, closes the connection."""
    model = load_model(f"openai:m@http://127.0.0.1:{slow.server_port}/v1")
    events = model.stream("Hi")
    assert next(events) == TextDelta("word ")
    events.close()  # type: ignore[attr-defined]
    assert slow.left.wait(10)
    slow.left.clear()

    async def run() -> None:
        task = asyncio.ensure_future(_read(model))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert slow.left.wait(10)
    slow.left.clear()
    seen: list[Any] = []
    seen.extend(model.stream("Hi", cancel=lambda: len(seen) > 3))
    stop = threading.Event()
    for event in model.stream("Hi", cancel=stop.is_set):
        seen.append(event)
        stop.set()
    assert seen[-1].reason == "cancelled"
    assert slow.left.wait(10)


async def _read(model: Any) -> None:
    async for _ in model.astream("Hi"):
        pass


def test_many_at_once_do_not_mix(serve: Any) -> None:
    """Fifty conversations at once, from several event loops and threads, get their own answers."""
    server = serve(lambda body: f"echo {body['messages'][0]['content']}")
    model = server.model()

    async def many(first: int) -> list[str]:
        answers = await asyncio.gather(*(model.agenerate(f"n{first + number}") for number in range(25)))
        return [answer.text for answer in answers]

    found: dict[int, list[str]] = {}
    threads = [threading.Thread(target=lambda at=at: found.update({at: asyncio.run(many(at))})) for at in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {at: [f"echo n{at + number}" for number in range(25)] for at in (0, 100)}


def test_every_error_is_ours(serve: Any) -> None:
    """Whatever bytes a server sends, what is raised is an error of this library."""
    bodies = [
        b"",
        b"null",
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"choices": [null]}',
        b'{"choices": [{"delta": {"tool_calls": 7}}]}',
    ]
    for body in bodies:
        for kind in ("application/json", "text/event-stream"):
            data = body if kind == "application/json" else b"data: " + body + b"\n\n"
            for ask in (lambda model: model.generate("Hi"), lambda model: list(model.stream("Hi"))):
                with pytest.raises(ToolGrammarError):
                    ask(serve(httpx.Response(200, headers={"content-type": kind}, content=data)).model())


def test_a_fork_has_connections_of_its_own(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process made by fork opens its own connections: those of its parent are not its to use or to close."""
    model = serve("Hi").model()
    model.generate("Hi")
    before = model._transport._client
    monkeypatch.setattr(transport.os, "getpid", lambda: -1)
    monkeypatch.setattr(model._loop, "_process", -1)  # its loop is another matter, and stays
    assert not model._transport.is_open
    model.generate("Hi")
    assert model._transport._client is not before
    model.close()
    monkeypatch.undo()
    assert before is not None and not before.is_closed
    asyncio.run(before.aclose())


def test_closed_models(serve: Any) -> None:
    """A closed model's connections are gone, and what is asked of it is an error; so are those of a collected one."""
    with serve("Hi").model() as model:
        model.generate("Hi")
    model.close()
    assert not model._transport.is_open
    with pytest.raises(ModelError, match="closed"):
        model.generate("Hi")
    other = serve("Hi").model()
    other.generate("Hi")
    connections, thread = other._transport, other._loop._thread
    del other
    gc.collect()
    for _ in range(100):
        if not connections.is_open:
            break
        time.sleep(0.01)
    assert not connections.is_open
    assert thread is not None
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_a_model_that_is_closed_while_it_answers(slow: Any) -> None:
    """Its streams end with an error of ours, and its thread ends."""
    model = RemoteModel(f"m@http://127.0.0.1:{slow.server_port}/v1")
    events = model.stream("Hi")
    next(events)
    thread = model._loop._thread
    model.close()
    assert thread is not None and not thread.is_alive()
    with pytest.raises(ModelError):
        list(events)


def test_a_process_ends_quietly() -> None:
    """A program that leaves a stream open ends at once, and says nothing."""
    code = """
import httpx, json, logging
from toolgrammar.core.models.remote import RemoteModel
logging.getLogger("asyncio").setLevel(logging.ERROR)  # -X dev logs slow callbacks, of which a busy machine has some
class Endless(httpx.AsyncByteStream):
    async def __aiter__(self):
        import asyncio
        while True:
            yield b'data: {"choices": [{"delta": {"content": "word "}}]}\\n\\n'
            await asyncio.sleep(0.01)
kind = {"content-type": "text/event-stream"}
answer = lambda request: httpx.Response(200, headers=kind, stream=Endless())
model = RemoteModel("m@http://model.test/v1", transport=httpx.MockTransport(answer))
events = model.stream("Hi")
print(next(events).text)
"""
    result = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.stdout.strip(), result.stderr, result.returncode) == ("word", "", 0)


def test_our_own_server_is_recognised(serve: Any) -> None:
    """``toolgrammar serve`` has Ollama's version too, and takes all that Ollama does not."""
    version = httpx.Response(200, json={"version": "0.30"})
    listed = httpx.Response(200, json={"data": [{"id": "m", "owned_by": "toolgrammar"}]})
    server = serve(listed, version)
    model = server.model(server="auto")
    assert model.context_window == 8_192 and model._protocol.kind == "openai"


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("ollama:qwen3:4b", "http://localhost:11434/v1"),
        ("vllm:Qwen/Qwen3-8B", "http://localhost:8000/v1"),
        ("sglang:x", "http://localhost:30000/v1"),
        ("llama.cpp:default", "http://localhost:8080/v1"),
        ("ollama:qwen3@http://gpu:1234/v1", "http://gpu:1234/v1"),
    ],
)
def test_servers_on_this_machine_need_no_url(address: str, url: str) -> None:
    """Without a URL, a server is asked at its default port; an OpenAI-compatible one has none."""
    with load_model(address) as model:
        assert repr(url) in repr(model)
    with pytest.raises(ModelError, match="lacks the server"):
        load_model("openai:gpt-4.1")


def test_every_request_is_counted(serve: Any, complete: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """``attempts`` is the number of requests that the server saw for an answer: refused forms, requests that a busy
    server got again, invalid answers; an error has it too."""

    async def at_once(seconds: float) -> None:
        return None

    monkeypatch.setattr(transport.asyncio, "sleep", at_once)
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    busy, refused = httpx.Response(503, text="busy"), httpx.Response(400, json={"error": "no response_format"})
    for replies in (
        ['{"n": 1}'],
        [busy, '{"n": 1}'],
        [refused, '{"n": 1}'],
        ["x", busy, '{"n": 1}'],
        [refused, "x", busy, '{"n": 1}'],
    ):
        server = serve(*replies)
        answer = server.model().generate("Hi", json_mode=JsonMode(schema=schema))
        assert answer.attempts == len(server.asked) == len(replies)
    for replies in (["x"], [busy], [refused], [busy, "x"]):
        server = serve(*replies)
        with pytest.raises(ToolGrammarError) as caught:
            server.model().generate("Hi", json_mode=JsonMode(schema=schema))
        assert caught.value.attempts == len(server.asked) >= 3
    server = serve(complete("cut", finish="content_filter"))
    with pytest.raises(ToolGrammarError) as caught:
        list(server.model().stream("Hi"))
    assert caught.value.attempts == len(server.asked) == 1


@pytest.mark.parametrize("live", [False, True])
def test_a_model_that_failed_is_free_at_once(live: bool, serve: Any) -> None:
    """An error of a request refers to no frame that refers to it: a model that was not closed ends its thread when it
    goes, without waiting for a garbage collection."""
    model = serve(httpx.Response(404, json={"error": {"message": "no model m"}})).model()
    is_free = weakref.ref(model)
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(ModelError):
            [*model.stream("Hi")] if live else model.generate("Hi")
        del model
        assert is_free() is None
    finally:
        gc.enable()
