"""``toolgrammar serve`` as a process: clients, keys, metrics, logs, faults, and the end."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
import uvicorn

from toolgrammar.adapters.cli import main, serve
from toolgrammar.adapters.server import create_app
from toolgrammar.core import load_model
from toolgrammar.core.masks import index_files

PROGRAM = "from toolgrammar.adapters.cli import main; main()"
KEY = "k-0123456789"
HELLO: Any = [{"role": "user", "content": "A word that no log may have: xylophone"}]


@dataclass
class Running:
    """A server process.

    Attributes:
        process: the process.
        url: its address.
        log: the file that has its standard error.
    """

    process: subprocess.Popen[str]
    url: str
    log: Path

    def plain(self, **options: Any) -> httpx.Client:
        """A client with the key."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=60, **options)

    def raw(self, data: bytes, seconds: float = 20) -> bytes:
        """Send bytes, and return what comes back until the server closes, or is silent for long."""
        host, port = self.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=seconds) as connection:
            received = b""
            try:
                connection.sendall(data)
                while piece := connection.recv(65536):
                    received += piece
                    if b"\r\n\r\n" in received and b"keep-alive" not in received.lower():
                        break
            except (TimeoutError, ConnectionError):
                pass
            return received


def start(folder: Path, *arguments: str) -> Running:
    """Start a server, and wait until it says where it is."""
    log = folder / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "serve", *arguments, "--port", "0"],
            env={**os.environ, "THE_KEY": KEY, "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"at (http://\S+)", line)
    assert found is not None, log.read_text()
    return Running(process, found[1], log)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with a key, one place to run, one to wait, and little patience."""
    options = ["--max-running", "1", "--max-waiting", "1", "--body-seconds", "1", "--max-body", "20000"]
    running = start(
        tmp_path_factory.mktemp("serve"), "small=embedded", "embedded", "--api-key", "env:THE_KEY",
        "--temperature", "1", "--record", str(tmp_path_factory.mktemp("record") / "record.jsonl"),
        "--record-key", "env:THE_KEY", *options,
    )  # fmt: skip
    yield running
    running.process.kill()
    running.process.wait()
    assert running.process.stdout is not None
    running.process.stdout.close()


def test_a_client_of_openai_over_the_network(server: Running) -> None:
    """Both models answer, streamed and whole, and are listed."""
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["small", "embedded"]
        assert client.models.retrieve("small").id == "small"
        for name in ("small", "embedded"):
            answer = client.chat.completions.create(model=name, messages=HELLO, max_tokens=8, seed=1)
            text = "".join(
                chunk.choices[0].delta.content or ""
                for chunk in client.chat.completions.create(
                    model=name, messages=HELLO, max_tokens=8, seed=1, stream=True
                )
            )
            assert text == answer.choices[0].message.content


def test_answers_are_recorded(
    server: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--record``: each answer is an entry without its words; ``record verify`` reads it, and says what was changed."""
    path = server.log.parent.parent / "record0" / "record.jsonl"
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0) as client:
        client.chat.completions.create(
            model="small", messages=[{"role": "user", "content": "a secret word"}], max_tokens=9
        )
    last = json.loads(path.read_text().splitlines()[-1])
    assert last["event"] == "answer" and last["attributes"]["gen_ai.usage.output_tokens"] <= 9
    assert "a secret word" not in path.read_text()
    monkeypatch.setenv("THE_KEY", KEY)
    ended = []
    for changed, arguments in ((False, ()), (False, ("--json",)), (False, ("--head", "0")), (True, ())):
        if changed:
            path.write_text(path.read_text().replace('"chat"', '"CHAT"').replace("output_tokens", "tokens", 1))
        monkeypatch.setattr(
            sys, "argv", ["toolgrammar", "record", "verify", str(path), "--key", "env:THE_KEY", *arguments]
        )
        with pytest.raises(SystemExit) as ending:
            main()
        ended.append((ending.value.code, capsys.readouterr().out))
    assert [code for code, _ in ended] == [0, 0, 1, 1]
    assert json.loads(ended[1][1])["ok"] is True
    assert last["hash"] in ended[0][1] and "no entry has the hash 0" in ended[2][1] and "was changed" in ended[3][1]


def test_keys_are_needed(server: Running) -> None:
    """Without the key: 401 in the protocol's form; health and readiness need none."""
    with httpx.Client(base_url=server.url, timeout=30) as client:
        for headers in ({}, {"Authorization": "Bearer k-012345678"}, {"x-api-key": "é".encode("latin-1")}):
            for path in ("/v1/models", "/metrics"):
                assert client.get(path, headers=headers).status_code == 401
            refused = client.post("/v1/chat/completions", json={}, headers=headers)
            assert refused.status_code == 401 and refused.json()["error"]["type"] == "authentication_error"
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/ready").json() == {"status": "ready"}
        assert client.get("/v1/models", headers={"x-api-key": KEY}).status_code == 200
        cross = client.options(
            "/v1/models", headers={"Origin": "http://a.test", "Access-Control-Request-Method": "GET"}
        )
        assert cross.status_code == 405 and not any(name.startswith("access-control") for name in cross.headers)


def post(body: bytes, *headers: str) -> bytes:
    """A request as bytes."""
    head = ["POST /v1/chat/completions HTTP/1.1", "Host: x", f"Authorization: Bearer {KEY}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def test_a_fault_client(server: Running) -> None:
    """Garbage, wrong bodies, too many headers, slow and huge bodies: each is refused, and the server lives on."""
    json_type = "Content-Type: application/json"
    status = re.compile(rb"^HTTP/1.1 (\d+)")
    cases = [
        (b"\x00\xff garbage \r\n\r\n", b"400"),
        (post(b"", "Content-Length: 0"), b"400"),
        (post(b"{}", "Content-Type: text/plain", "Origin: null", "Content-Length: 2"), b"415"),
        (post(b"{}", "Sec-Fetch-Site: cross-site", "Content-Length: 2"), b"415"),
        (post(b"nothing", json_type, "Content-Length: 7"), b"400"),
        (post(b'{"a": NaN}', json_type, "Content-Length: 10"), b"400"),
        (post(b"\xff\xfe{}", json_type, "Content-Length: 4"), b"400"),
        (post(b"[" * 19_000, json_type, "Content-Length: 19000"), b"400"),
        (post(b'{"model"', json_type, "Content-Length: 5000"), b"408"),
        (post(b"", json_type, "Content-Length: 99999999"), b"413"),
        (post(b"5000\r\n" + b"x" * 0x5000 + b"\r\n", json_type, "Transfer-Encoding: chunked"), b"413"),
        (post(b"{}", json_type, *(f"X-{number}: y" for number in range(10_000)), "Content-Length: 2"), b"400"),
    ]
    for data, wanted in cases:
        answer = server.raw(data, seconds=10)
        found = status.match(answer)
        assert found is not None and found[1] == wanted, (data[:80], answer[:200])
        assert b"Traceback" not in answer
    surrogate = post(
        b'{"model": "small", "\\ud800": 1, "messages": [{"role": "user", "content": "\\udfff"}]}',
        json_type,
        "Content-Length: 83",
        "Connection: close",
    )
    assert status.match(server.raw(surrogate))[1] == b"400"  # type: ignore[index]
    with server.plain() as client:
        assert client.get("/ready").status_code == 200


def test_two_statements_of_a_length_end_the_connection(server: Running) -> None:
    """After a request with Content-Length and Transfer-Encoding, the connection is closed, and no other is read."""
    json_type, chunked = "Content-Type: application/json", "Transfer-Encoding: chunked"
    body = b"2\r\n{}\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    host, port = server.url.removeprefix("http://").split(":")
    for lengths, answers in (
        ((chunked, "Content-Length: 7"), 1), (("Content-Length: 7", chunked), 1), ((chunked,), 2)
    ):  # fmt: skip
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(post(body, json_type, *lengths))
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 400") and answer.count(b"HTTP/1.1") == answers
        assert answer.lower().count(b"connection: close") == 1


def test_slow_clients_are_cut_off(server: Running) -> None:
    """One that sends its head byte by byte, or nothing at all, gets 408; a whole request in between is answered."""
    host, port = server.url.removeprefix("http://").split(":")
    begin = time.monotonic()
    with socket.create_connection((host, int(port)), timeout=20) as silent:
        with socket.create_connection((host, int(port)), timeout=20) as slow:
            slow.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while b'"ok"' not in answer:
                answer += slow.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")
            answer = b""
            for byte in b"GET /health HTTP/1.1\r\nHost: " + b"x" * 200:
                slow.sendall(bytes((byte,)))
                slow.settimeout(0.1)
                with contextlib.suppress(TimeoutError):
                    if answer := slow.recv(65536):
                        break
            assert answer.startswith(b"HTTP/1.1 408")
        assert silent.recv(65536).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - begin < 15
    with server.plain() as client:
        assert client.get("/health").status_code == 200


def test_a_client_that_does_not_read_frees_its_place(server: Running) -> None:
    """A stream that nobody reads ends when the time for it is over, and the next request has its turn."""
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 500}
    form = {"type": "json_schema", "json_schema": {"name": "long", "schema": schema}}
    much = {"logprobs": True, "top_logprobs": 20, "n": 8, "max_tokens": 1500}  # more than the system's buffers take
    asked = {"model": "small", "messages": HELLO, "stream": True, "response_format": form, **much}
    body = json.dumps(asked).encode()
    host, port = server.url.removeprefix("http://").split(":")
    with server.plain() as other, socket.socket() as unread:
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        unread.connect((host, int(port)))
        unread.sendall(post(body, "Content-Type: application/json", f"Content-Length: {len(body)}"))
        wait_for(lambda: gauge(other, "toolgrammar_running") == 1)
        wait_for(lambda: gauge(other, "toolgrammar_running") == 0)
        lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
        assert [line["status"] for line in lines if line["event"] == "request" and line["stream"]][-1] == 499


def gauge(client: httpx.Client, name: str, model: str = "small") -> float:
    """The value of a metric."""
    found = re.search(rf'^{name}{{model="{model}".*}} (\S+)$', client.get("/metrics").text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_a_client_that_leaves_frees_its_place_and_a_full_queue_refuses(server: Running) -> None:
    """One runs, one waits, the third gets 429 with Retry-After; when the clients leave, all stops within seconds."""
    asked = {"model": "small", "messages": HELLO, "max_tokens": 4000}
    long = {**asked, "stream": True, "n": 16}  # without a schema, whose grammar might take long and give up the place
    leaves = threading.Event()

    def read() -> None:
        with server.plain() as client, client.stream("POST", "/v1/chat/completions", json=long) as one:
            for _ in one.iter_lines():
                if leaves.is_set():
                    return

    with server.plain() as other, ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            wait_for(lambda: gauge(other, "toolgrammar_running") == 1)
            host, port = server.url.removeprefix("http://").split(":")
            body = json.dumps(asked).encode()
            with socket.create_connection((host, int(port))) as waiting:
                waiting.sendall(post(body, "Content-Type: application/json", f"Content-Length: {len(body)}"))
                wait_for(lambda: gauge(other, "toolgrammar_waiting") == 1)
                assert other.get("/ready").status_code == 503
                refused = other.post("/v1/chat/completions", json=asked)
                assert refused.status_code == 429 and refused.headers["retry-after"] == "1"
                assert refused.json()["error"]["type"] == "rate_limit_error"
            wait_for(lambda: gauge(other, "toolgrammar_waiting") == 0)
            assert gauge(other, "toolgrammar_running") == 1
        finally:
            leaves.set()
        reading.result()
        wait_for(lambda: gauge(other, "toolgrammar_running") == 0)
        assert other.get("/ready").status_code == 200


def wait_for(is_so: Any, seconds: float = 30) -> None:
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_metrics_and_logs_have_no_words_of_users(server: Running) -> None:
    """Tokens and requests are counted; each request is a line of JSON; no prompt is anywhere."""
    with server.plain() as client:
        counted = re.compile(r'^toolgrammar_tokens_total{kind="completion",model="small"} (\S+)$', re.MULTILINE)
        before = sum(map(float, counted.findall(client.get("/metrics").text)))
        asked = {"model": "small", "messages": HELLO, "max_tokens": 5, "seed": 1}  # unseeded, it may end earlier
        client.post("/v1/chat/completions", json=asked)
        client.post("/v1/chat/completions", json={"model": "small", "messages": HELLO, "temperature": "xylophone"})
        metrics = client.get("/metrics").text
        assert sum(map(float, counted.findall(metrics))) == before + 5
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    requests = [line for line in lines if line["event"] == "request" and line["path"] == "/v1/chat/completions"]
    assert {"status", "model", "seconds", "prompt_tokens", "completion_tokens"} <= set(requests[-2])
    assert requests[-2]["status"] == 200 and requests[-1]["status"] == 400
    for text in (metrics, server.log.read_text()):
        assert "xylophone" not in text and KEY not in text


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM")
def test_a_running_request_ends_before_the_server_does(tmp_path: Path) -> None:
    """SIGTERM: the answer in progress comes whole, then the process ends well."""
    running = start(tmp_path, "embedded", "--temperature", "1")
    asked = {"model": "embedded", "messages": HELLO, "max_tokens": 60, "seed": 2, "stream": True}
    with httpx.stream("POST", f"{running.url}/v1/chat/completions", json=asked, timeout=60) as response:
        lines = response.iter_lines()
        next(lines)
        running.process.send_signal(signal.SIGTERM)
        assert [line for line in lines if line][-1] == "data: [DONE]"
    assert running.process.wait(30) in (0, -signal.SIGTERM)
    assert running.process.stdout is not None
    running.process.stdout.close()


def test_what_cannot_start_says_why(tmp_path: Path) -> None:
    """A key on the command line, a model twice, a port that is taken: one line, exit code 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for arguments, words in (
            (["embedded", "--api-key", "secret"], "env:NAME"),
            (["embedded", "embedded"], "unique name"),
            (["embedded", "--port", str(taken.getsockname()[1])], "cannot listen"),
            (["nothing:here"], "nothing:here"),
        ):
            result = subprocess.run(
                [sys.executable, "-c", PROGRAM, "serve", *arguments], capture_output=True, text=True, timeout=60
            )
            assert result.returncode == 2 and words in result.stderr, result.stderr
            assert "Traceback" not in result.stderr


def test_the_process_is_prepared_for_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules and models are frozen before the first request, since a full collection stops all threads; and a thread
    that waits for the interpreter gets it sooner; the index of the vocabulary is there."""
    module = importlib.import_module("toolgrammar.adapters.cli.serve")
    seen: list[tuple[int, float, bool]] = []
    model = load_model("embedded")
    monkeypatch.setattr(module, "loaded_models", lambda models: {"embedded": model})

    def run(*arguments: Any) -> None:
        seen.append((gc.get_freeze_count(), sys.getswitchinterval(), index_files._make in model.vocabulary._derived))

    monkeypatch.setattr(module, "_run", run)
    before = sys.getswitchinterval()
    monkeypatch.setattr(module, "_log_to_stderr", lambda level: None)
    gc.unfreeze()  # what the tests froze
    with warnings.catch_warnings():  # what earlier tests did not close
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    try:
        module.serve(["embedded"], host="127.0.0.1", port=0, temperature=0.0, max_running=1, max_waiting=1)
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before)
    assert seen[0][0] > 10_000 and seen[0][1] < before and seen[0][2]


def test_idle_connections_live_longer_than_in_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client reuses a connection that the server is about to close: it keeps idle ones longer than their pools."""
    seen: list[uvicorn.Config] = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda server: seen.append(server.config))
    serve._run(create_app("embedded"), "127.0.0.1", 0, 1, 30.0, lambda address: None)
    limits = [httpx.Limits(), openai.DEFAULT_CONNECTION_LIMITS, anthropic.DEFAULT_CONNECTION_LIMITS]
    of_go_and_rust = 90.0
    assert seen[0].timeout_keep_alive > max(of_go_and_rust, *(one.keepalive_expiry or 0.0 for one in limits))
