"""Images through the server: one prompt for every protocol's form of them, what is fetched, and what is refused."""

from __future__ import annotations

import base64
import http.server
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from toolgrammar import Model, load_model
from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.images import ImageFetcher
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess
from toolgrammar.core import ModelError

from ...core.models.tiny_vision import png, write_vision

PICTURE = png(40, 30)
CODED = base64.b64encode(PICTURE).decode()
DATA = f"data:image/png;base64,{CODED}"
QUESTION, FOUND = "What is it?", "found"
Form = Callable[[str], dict[str, Any]]


def _chat(url: str) -> dict[str, Any]:
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": QUESTION}]
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 2}


def _responses(url: str) -> dict[str, Any]:
    content = [{"type": "input_image", "image_url": url}, {"type": "input_text", "text": QUESTION}]
    return {"input": [{"role": "user", "content": content}], "max_output_tokens": 2}


def _anthropic_image(url: str) -> dict[str, Any]:
    head, _, data = url.partition(",")
    if not data or head != "data:image/png;base64":
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def _messages(url: str) -> dict[str, Any]:
    content = [_anthropic_image(url), {"type": "text", "text": QUESTION}]
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 2}


def _ollama(url: str) -> dict[str, Any]:
    message = {"role": "user", "content": QUESTION, "images": [url.partition(",")[2]]}
    return {"messages": [message], "stream": False, "options": {"num_predict": 2}}


def _generate(url: str) -> dict[str, Any]:
    return {"prompt": QUESTION, "images": [url.partition(",")[2]], "stream": False, "options": {"num_predict": 2}}


#: By endpoint: one question about one image.
FORMS: dict[str, Form] = {
    "/v1/chat/completions": _chat,
    "/v1/responses": _responses,
    "/v1/messages": _messages,
    "/api/chat": _ollama,
    "/api/generate": _generate,
}
#: Those in which an image may be an address.
ADDRESSES = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
_ASKED: dict[str, Any] = {"role": "user", "content": QUESTION}


def _chat_result(url: str) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "shoot", "arguments": "{}"}}
    content = [{"type": "text", "text": FOUND}, {"type": "image_url", "image_url": {"url": url}}]
    result = {"role": "tool", "tool_call_id": "c1", "content": content}
    return {"messages": [_ASKED, {"role": "assistant", "tool_calls": [call]}, result], "max_tokens": 2}


def _responses_result(url: str) -> dict[str, Any]:
    output = [{"type": "input_text", "text": FOUND}, {"type": "input_image", "image_url": url}]
    call = {"type": "function_call", "call_id": "c1", "name": "shoot", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": output}
    return {"input": [_ASKED, call, result], "max_output_tokens": 2}


def _messages_result(url: str) -> dict[str, Any]:
    content = [{"type": "text", "text": FOUND}, _anthropic_image(url)]
    call = {"type": "tool_use", "id": "c1", "name": "shoot", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": content}
    turns = [_ASKED, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return {"messages": turns, "max_tokens": 2}


def _ollama_result(url: str) -> dict[str, Any]:
    call = {"function": {"name": "shoot", "arguments": {}}}
    result = {"role": "tool", "tool_name": "shoot", "content": FOUND, "images": [url.partition(",")[2]]}
    turns = [_ASKED, {"role": "assistant", "content": "", "tool_calls": [call]}, result]
    return {"messages": turns, "stream": False, "options": {"num_predict": 2}}


#: By endpoint: a result of a tool with an image.
RESULTS: dict[str, Form] = {
    "/v1/chat/completions": _chat_result,
    "/v1/responses": _responses_result,
    "/v1/messages": _messages_result,
    "/api/chat": _ollama_result,
}


@pytest.fixture(scope="module")
def sees(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A tiny vision model."""
    pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    if not hasattr(transformers, "LlavaImageProcessorPil"):
        pytest.skip("this transformers has no processors without torchvision")
    return load_model(f"hf:{write_vision(tmp_path_factory.mktemp('vision'), 'llava')}")


class Pictures(http.server.BaseHTTPRequestHandler):
    """A host of images, some of them elsewhere, large or slow."""

    asked: list[str]

    def do_GET(self) -> None:
        """Answer."""
        self.asked.append(self.path)
        port = self.server.server_address[1]
        away = {
            "/moved": "/a.png",
            "/loop": "/loop",
            "/private": f"http://localhost:{port}/a.png",
            "/file": "file:///a",
        }
        path = self.path.partition("?")[0]
        if path in away:
            self.send_response(302)
            self.send_header("Location", away[path])
            self.end_headers()
        elif self.path == "/slow":
            while self.asked:
                self.wfile.write(b"H")
                time.sleep(0.02)
        else:
            self.send_response(404 if self.path == "/none" else 200)
            self.end_headers()
            self.wfile.write({"/large": bytes(2_000_000), "/broken": PICTURE[:300]}.get(self.path, PICTURE))

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def host() -> Iterator[tuple[str, list[str]]]:
    """Where a host of images is, and what it was asked for."""
    kind = type("_Pictures", (Pictures,), {"asked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", kind.asked  # type: ignore[attr-defined]
        kind.asked.clear()  # type: ignore[attr-defined]
        server.shutdown()


@pytest.fixture(scope="module")
def clients(sees: Model, host: tuple[str, list[str]]) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Clients of a server that fetches nothing, and of one that fetches images from one host."""
    made = [
        httpx.Client(transport=InProcess(app, httpx).transport(), base_url=BASE_URL, timeout=60)
        for app in (create_app({"v": sees}), create_app({"v": sees}, fetch_images=[host[0]]))
    ]
    yield made[0], made[1]
    for client in made:
        client.close()


@pytest.fixture
def prompts(sees: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The prompts of the model, as tokens; two of images are equal only for equal images."""
    found: list[Any] = []
    encode = sees.backend.prompt_ids

    def kept(*arguments: Any) -> Any:
        ids = encode(*arguments)
        found.append(ids)
        return ids

    monkeypatch.setattr(sees.backend, "prompt_ids", kept)
    return found


def said(answer: httpx.Response) -> str:
    """The message of an error."""
    error = answer.json()["error"]
    return str(error["message"] if isinstance(error, dict) else error)


@pytest.mark.parametrize("forms", [FORMS, RESULTS], ids=["questions", "results"])
def test_every_form_is_one_prompt(
    forms: dict[str, Form],
    clients: tuple[httpx.Client, httpx.Client],
    prompts: list[Any],
    host: tuple[str, list[str]],
) -> None:
    """Data and addresses, in every protocol, in questions and in results of tools, are the same tokens."""
    plain, fetching = clients
    for path, form in forms.items():
        answer = plain.post(path, json={"model": "v", **form(DATA)})
        assert answer.status_code == 200, answer.text
        if path in ADDRESSES:
            host[1].clear()
            answer = fetching.post(path, json={"model": "v", **form(f"http://{host[0]}/moved?a=b c")})
            assert answer.status_code == 200 and host[1] == ["/moved?a=b%20c", "/a.png"], answer.text
    counted = plain.post(
        "/v1/messages/count_tokens", json={"model": "v", **_without_budget(forms["/v1/messages"](DATA))}
    )
    assert counted.json()["input_tokens"] == len(prompts[0])
    assert sum(type(token) is not int for token in prompts[0]) > 1 and all(prompt == prompts[0] for prompt in prompts)


def _without_budget(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "max_tokens"}


#: By endpoint: where the image of `RESULTS` is.
PLACES = {
    "/v1/chat/completions": "messages[2].content",
    "/v1/responses": "input[2].output",
    "/v1/messages": "messages[2].content",
    "/api/chat": "messages[2].images",
}


@pytest.mark.parametrize("path", RESULTS)
def test_a_bad_image_is_an_error_with_its_place(
    path: str, clients: tuple[httpx.Client, httpx.Client], host: tuple[str, list[str]]
) -> None:
    """What is broken, of no known format, an address or not found there: 400, with the item of the request."""
    plain, fetching = clients
    system = {"/v1/responses": {"instructions": "Look."}, "/v1/messages": {"system": "Look."}}.get(path, {})
    bad = {PICTURE[:300]: "cannot be read", b"no image": "format is not known", b"": "is empty"}
    cases = [(plain, f"data:image/png;base64,{base64.b64encode(data).decode()}", why) for data, why in bad.items()]
    if path in ADDRESSES:
        cases += [
            (plain, f"http://{host[0]}/a.png", "--fetch-images HOST"),
            (fetching, f"http://{host[0]}/broken", "cannot be read"),
            (fetching, f"http://{host[0]}/none", "status 404"),
            (fetching, "http://elsewhere.example/a.png", "not among those"),
        ]
    host[1].clear()
    for client, url, why in cases:
        answer = client.post(path, json={"model": "v", **system, **RESULTS[path](url)})
        assert answer.status_code == 400 and why in said(answer) and PLACES[path] in said(answer), answer.text
    assert host[1] == (["/broken", "/none"] if path in ADDRESSES else [])


@pytest.mark.parametrize("path", FORMS)
def test_a_text_model_takes_no_images(path: str, http: Callable[..., httpx.Client]) -> None:
    """It says so, whatever the image."""
    answer = http({"v": "embedded"}, fetch_images=["*"]).post(path, json={"model": "v", **FORMS[path](DATA)})
    assert answer.status_code == 400 and "this model takes no images" in said(answer)


def test_a_model_may_fetch_by_itself(
    sees: Any, clients: tuple[httpx.Client, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function that a model was loaded with gets the addresses of a server that fetches none."""
    asked: list[str] = []
    monkeypatch.setattr(sees.backend, "fetch_image", lambda url: asked.append(url) or PICTURE)
    for path in ADDRESSES:
        assert clients[0].post(path, json={"model": "v", **FORMS[path]("s3://a/b.png")}).status_code == 200
    assert set(asked) == {"s3://a/b.png"}


# -- fetching ------------------------------------------------------------------------------------------------------


def fetched(hosts: list[str], url: str, seconds: float = 5.0, most: int = 1_000_000) -> bytes:
    """What a fetcher reads."""
    return ImageFetcher(hosts).read(url, time.monotonic() + seconds, most)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/loop", "more than 3 redirects"),
        ("/private", "not among those"),
        ("/file", "not of the form"),
        ("/large", "more than 1,000,000 bytes"),
        ("/slow", "longer than"),
        ("/none", "status 404"),
    ],
)
def test_a_fetch_is_bounded(path: str, why: str, host: tuple[str, list[str]]) -> None:
    """Redirects go to listed hosts; number of redirects, size and time have bounds, also of a host that drips."""
    assert fetched([host[0]], f"http://{host[0]}/moved") == PICTURE
    with pytest.raises(ValueError, match=why):
        fetched([host[0]], f"http://{host[0]}{path}", 0.3 if path == "/slow" else 5.0)


@pytest.mark.parametrize(
    ("hosts", "url", "allowed"),
    [
        (["a.test"], "http://a.test/x", True),
        (["a.test"], "https://A.TEST:443/x", True),
        (["a.test"], "http://a.test:8080/x", False),
        (["a.test:8080"], "http://a.test:8080/x", True),
        (["a.test:8080"], "http://a.test/x", False),
        (["a.test"], "http://b.a.test/x", False),
        (["*.a.test"], "http://b.a.test/x", True),
        (["*.a.test"], "http://a.test/x", False),
        (["*.a.test"], "http://nota.test/x", False),
        (["*"], "http://b.test/x", True),
        (["a.test"], "http://a.test@b.test/x", False),
        (["a.test"], "http://user:key@a.test/x", False),
        (["a.test"], "http://b.test\\@a.test/x", False),
        (["a.test"], "ftp://a.test/x", False),
        (["a.test"], "http:///x", False),
        (["münchen.test"], "http://xn--mnchen-3ya.test/x", True),
    ],
)
def test_only_listed_hosts_are_reached(
    hosts: list[str], url: str, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host is compared whole, with its port; names are not resolved before."""
    resolved: list[str] = []

    def resolve(name: str, *_: Any, **__: Any) -> Any:
        resolved.append(name)
        raise OSError("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(ValueError, match="no such host" if allowed else "its (host is not|address is not)"):
        fetched(hosts, url)
    assert len(resolved) == allowed


PRIVATE = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
    *("255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"),
    *("2002:7f00:1::1", "2001:0:7f00:1::1"),
]


@pytest.mark.parametrize("host", ["a.test", "*"])
def test_private_addresses_are_never_reached(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host all of whose addresses are not public is refused, also one that has a public one too."""
    reached: list[Any] = []
    fetcher = ImageFetcher([host])
    monkeypatch.setattr(socket, "create_connection", lambda *given, **_: reached.append(given))
    for address in PRIVATE:
        literal = f"[{address}]" if ":" in address else address
        for found in ([address], ["93.184.216.34", address]):
            answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 80)) for one in found]
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_, answer=answer, **__: answer)
            for url in ("http://a.test/x", f"http://{literal}/x"):
                with pytest.raises(ValueError, match=r"private address|not among those"):
                    fetcher.read(url, time.monotonic() + 5, 9)
    assert not reached


def test_the_checked_address_is_the_one_that_is_reached(
    host: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is resolved once for each hop: another answer of its server does not count; a redirect is checked alike."""
    answers = {"a.test": iter(["93.184.216.34", "127.0.0.1"]), "localhost": iter(["127.0.0.1"])}
    port = int(host[0].partition(":")[2])
    reached: list[Any] = []

    def connected(address: Any, timeout: float) -> socket.socket:
        reached.append(address)
        connection = socket.socket()
        connection.settimeout(timeout)
        connection.connect(("127.0.0.1", port))
        return connection

    def resolve(name: str, port: int, **_: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers[name]), port))]

    monkeypatch.setattr(socket, "create_connection", connected)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(ValueError, match="private address"):
        fetched(["a.test", f"localhost:{port}"], "http://a.test/private")
    assert reached == [("93.184.216.34", 80)]


@pytest.mark.parametrize("given", ["", "https://a.test", "a.test/x", "me@a.test", "a*.test", "*a.test", "a.test:port"])
def test_a_malformed_host_is_an_error(given: str) -> None:
    """A list of hosts is checked when the server is made."""
    with pytest.raises(ModelError, match="no host of images"):
        create_app("embedded", fetch_images=[given])
