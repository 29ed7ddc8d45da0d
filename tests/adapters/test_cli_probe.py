"""``toolgrammar probe``: what it says of a server that lies, of one that refuses, and of our own."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from toolgrammar.adapters import cli
from toolgrammar.adapters.cli.prober import Prober, Report
from toolgrammar.core import NotFoundError, load_model

pytest.importorskip("starlette", reason="the server is not installed")

from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess

KEY = "sk-very-secret-0123456789"


def completion(text: str = "", *calls: tuple[str, str], finish: str = "stop", written: int = 5) -> dict[str, Any]:
    """A chat completion."""
    made = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": given}}
        for at, (name, given) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    usage = {"prompt_tokens": 9, "completion_tokens": written}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}


OSLO = ("weather", '{"city": "Oslo"}')


def liar(body: dict[str, Any]) -> Any:
    """Ignore each field that a request has."""
    prompt = body["messages"][0 if body["messages"][0]["role"] == "user" else 1]["content"]
    given = re.search(r"exactly this JSON[^:]*: (.*)", prompt)
    if given:
        return completion(given[1])
    if "Count" in prompt:
        return completion("<think>one two three", written=50)
    if body.get("tools") and body.get("response_format"):
        return completion("Hello.")
    if not body.get("tools"):
        return completion("Hello.")
    if "stars" in prompt or "Rate" in prompt:
        return completion("", ("rate", '{"stars": 900}'), finish="tool_calls")
    if "three times" in prompt:
        return completion("", OSLO, OSLO, OSLO, finish="tool_calls")
    if body["max_tokens"] == 10:
        return completion("", ("weather", '{"ci'), finish="tool_calls", written=10)
    return completion("Hello.") if body.get("tool_choice") == "required" and "hello" in prompt else completion("", OSLO)


class Fake:
    """A server over httpx's mock transport.

    Args:
        answer: makes a completion, or a response, of a request.
        streams_calls: streams have the calls of an answer.
    """

    def __init__(self, answer: Any, *, streams_calls: bool = True) -> None:
        self.answer, self.streams_calls = answer, streams_calls
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        self.requests.append(request)
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"data": [{"id": "small"}]})
        if request.url.path != "/v1/chat/completions":
            return httpx.Response(404)
        body = json.loads(request.content)
        made = self.answer(body)
        if isinstance(made, httpx.Response) or not body.get("stream"):
            return made if isinstance(made, httpx.Response) else httpx.Response(200, json=made)
        message = made["choices"][0]["message"]
        if not self.streams_calls:
            message.pop("tool_calls", None)
        for index, call in enumerate(message.get("tool_calls", ())):
            call["index"] = index
        chunk = {"choices": [{"index": 0, "delta": message, "finish_reason": made["choices"][0]["finish_reason"]}]}
        head = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=head, text=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n")

    def report(self, **options: Any) -> Report:
        """Probe this server."""
        return Prober("http://small.test/v1", transport=httpx.MockTransport(self), **options).run()


def outcomes(report: Report) -> dict[str, str]:
    """The outcome of each check."""
    return {row.check: row.outcome for row in report.rows}


def test_a_liar_is_caught_in_each_row() -> None:
    """A server that ignores what it is asked for is told in each row, and through this library nothing invalid comes."""
    report = Fake(liar, streams_calls=False).report()
    found = outcomes(report)
    mangled = {"calls in a stream", "max_tokens inside a call", "reasoning and calls are parsed"}
    assert {check for check, outcome in found.items() if outcome == "mangled"} == mangled
    assert {check for check, outcome in found.items() if outcome == "works"} == {"usage"}
    assert {check for check, outcome in found.items() if outcome == "ignored"} == found.keys() - mangled - {"usage"}
    assert len(found) == 24 and not report.is_sound and (report.model, report.kind) == ("small", "openai")
    through = {row.check: row.through_us for row in report.rows}
    assert all(
        text.startswith("an error, nothing invalid") for check, text in through.items() if "json_schema" in check
    )
    assert through["parallel_tool_calls: false"].startswith("valid") and through["usage"] == ""


def test_what_vllm_takes_without_effect_is_told() -> None:
    """On vLLM there is a row for ``guided_json``, which it has ignored since 0.23, and strict tools that are off are
    named as such: of tools that share a parser engine with the reasoning, say."""

    class VLLM(Fake):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            if request.url.path == "/v1/models":
                return httpx.Response(200, json={"data": [{"id": "small", "owned_by": "vllm"}]})
            return super().__call__(request)

    def answer(body: dict[str, Any]) -> Any:
        if "response_format" in body and not body.get("tools"):
            return completion('{"n": 1}')
        return liar(body)

    rows = {row.check: row for row in VLLM(answer).report().rows}
    assert rows["guided_json"].outcome == "ignored" and rows["guided_json"].through_us == "valid (form json_schema)"
    for check in ("schema of a tool", "strict tool under auto"):
        assert rows[check].outcome == "ignored" and rows[check].detail.startswith("strict tool calling is off")


def test_a_server_that_listens_when_corrected() -> None:
    """Where the model corrects its answer, the row says how many requests that took."""

    def answer(body: dict[str, Any]) -> Any:
        if "That is not valid" not in body["messages"][-1]["content"] or "response_format" not in body:
            return liar(body)
        schema = body["response_format"]["json_schema"]["schema"]
        is_number = "integer" in json.dumps(schema)
        return completion(json.dumps({"value": 7 if is_number else "AAA-0000"}))

    report = Fake(answer).report()
    rows = {row.check: row for row in report.rows}
    assert rows["json_schema: pattern"].through_us == "valid (form json_schema, 2 requests)"
    assert rows["json_schema: minimum"].through_us.startswith("an error")  # 7 is below it, again


def test_a_server_that_refuses() -> None:
    """What a server refuses is told with its reason, and is no lie; through this library it is asked in the prompt."""

    def answer(body: dict[str, Any]) -> Any:
        if "tools" in body or "response_format" in body:
            return httpx.Response(400, json={"error": {"message": f"unknown field; the key is {KEY}"}})
        return completion('{"value": 14}', written=8, finish="length" if body["max_tokens"] == 8 else "stop")

    fake = Fake(answer)
    report = fake.report(headers={"Authorization": f"Bearer {KEY}"}, secrets=(KEY,))
    found = outcomes(report)
    assert found["tool_choice: required"] == found["json_schema: type"] == "refused" and found["max_tokens"] == "works"
    assert report.is_sound and KEY not in json.dumps(report.to_json())
    assert {request.headers["authorization"] for request in fake.requests} == {f"Bearer {KEY}"}
    rows = {row.check: row for row in report.rows}
    assert rows["json_schema: type"].through_us == "valid (form prompt, 4 requests)"


def test_our_own_server_does_as_it_is_asked() -> None:
    """``toolgrammar serve embedded`` ignores and mangles nothing, with random weights."""
    process = InProcess(create_app({"embedded": load_model("embedded", seed=1)}), httpx)
    report = Prober(f"{BASE_URL}/v1", transport=process.async_transport()).run()
    found = outcomes(report)
    assert report.is_sound, report
    assert report.kind == "openai"
    assert set(found.values()) <= {"works", "unclear", "refused"}
    assert [check for check, outcome in found.items() if outcome == "refused"] == ["max_tokens inside a call"]
    assert all(found[check] == "works" for check in found if check.startswith(("json_schema", "tool_choice", "schema")))


def test_the_time_is_a_bound() -> None:
    """After the time, no more is asked, and the rest is named."""

    def slow(body: dict[str, Any]) -> Any:
        time.sleep(0.05)
        return completion("Hello.", written=8, finish="length")

    report = Fake(slow).report(seconds=0.3)
    assert report.seconds < 3
    assert list(outcomes(report).values()).count("not asked") > 10


def test_failures_are_rows() -> None:
    """A server that answers with something else is mangled, not a traceback; one without models is an error."""
    report = Fake(lambda body: {"hello": 1}).report()
    assert set(outcomes(report).values()) == {"mangled"}
    assert "not a chat completion" in report.rows[0].detail


@pytest.fixture
def address() -> Iterator[str]:
    """The address of the liar, on a port."""

    class Handler(BaseHTTPRequestHandler):
        def _send(self, status: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._send(*((200, {"data": [{"id": "small"}]}) if self.path == "/v1/models" else (404, {})))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self._send(200, liar(body))

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_model_that_the_server_does_not_have() -> None:
    """The probe ends with the server's error at its first request."""
    fake = Fake(lambda body: httpx.Response(404, json={"error": {"message": "The model `nope` does not exist."}}))
    with pytest.raises(NotFoundError, match="`nope` does not exist"):
        fake.report(model="nope")
    assert sum(request.url.path.endswith("chat/completions") for request in fake.requests) <= 3


def test_the_command(address: str) -> None:
    """The table and the JSON have the same rows; the exit code tells whether the server does as it is asked."""
    result = CliRunner().invoke(cli.app, ["probe", address, "--json"])
    report = json.loads(result.stdout)
    assert (result.exit_code, report["model"], report["url"]) == (1, "small", f"{address}/v1")
    shown = CliRunner().invoke(cli.app, ["probe", address], env={"NO_COLOR": "1", "COLUMNS": "200"})
    assert shown.exit_code == 1 and f"toolgrammar serve openai:small@{address}/v1" in shown.stdout
    for row in report["rows"]:
        assert row["check"] in shown.stdout


def test_an_address_that_is_no_url() -> None:
    """The error says what to give."""
    result = CliRunner().invoke(cli.app, ["probe", "localhost:8000"])
    assert result.exit_code == 2 and "'localhost:8000' is not a URL" in result.stderr
    assert "http://HOST:PORT/v1" in result.stderr
