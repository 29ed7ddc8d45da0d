"""Live values over HTTP: values that the operator names, and those of the conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer

from toolgrammar.adapters.cli import serve
from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.fields import RequestError
from toolgrammar.adapters.server.named_values import NamedValues
from toolgrammar.core import InvalidSchemaError, Message, ToolCall, Values, given
from toolgrammar.core.testing import ScriptedModel

IDS = {"engine": ["E-1", "E-7"], "site": ["S-4"]}
VALUES: dict[str, Any] = {
    "tickets": Values(lambda call: IDS[call["project"]], after=("project",)),
    "projects": ["engine", "site"],
    "mine": Values(lambda call: [f"{call['user']}-1"], after=("user",)),
    "broken": lambda call: 1 / 0,
}
MESSAGES = [{"role": "user", "content": "Close the ticket of the site, it broke."}]


def parameters(ticket: Any, project: Any = None) -> dict[str, Any]:
    """Return the schema of a tool."""
    properties = {
        "project": project or {"type": "string", "x-values": {"source": "projects"}},
        "ticket": {"type": "string", "x-values": ticket} if ticket else {"type": "string"},
    }
    return {"type": "object", "properties": properties, "required": ["project", "ticket"]}


def wishing(arguments: dict[str, Any]) -> ScriptedModel:
    """Return a model that wants one call, or the arguments as an answer."""
    call = Message("assistant", tool_calls=(ToolCall("c", "close", arguments),))
    return ScriptedModel(lambda messages: call)


def tool(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the tool of chat completions."""
    return {"type": "function", "function": {"name": "close", "parameters": schema}}


#: For each protocol: its path, the body of a request for the tool, and the arguments of the call in a response.
PROTOCOLS: dict[str, tuple[str, Callable[[Any], dict[str, Any]], Callable[[Any], Any]]] = {
    "chat completions": (
        "/v1/chat/completions",
        lambda schema: {"messages": MESSAGES, "tools": [tool(schema)], "tool_choice": "required"},
        lambda body: json.loads(body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]),
    ),
    "responses": (
        "/v1/responses",
        lambda schema: {
            "input": MESSAGES,
            "tools": [{"type": "function", "name": "close", "parameters": schema}],
            "tool_choice": "required",
        },
        lambda body: json.loads(next(item["arguments"] for item in body["output"] if item["type"] == "function_call")),
    ),
    "messages": (
        "/v1/messages",
        lambda schema: {
            "messages": MESSAGES,
            "tools": [{"name": "close", "input_schema": schema}],
            "tool_choice": {"type": "any"},
            "max_tokens": 400,
        },
        lambda body: next(item["input"] for item in body["content"] if item["type"] == "tool_use"),
    ),
    "ollama": (
        "/api/chat",
        lambda schema: {"messages": MESSAGES, "tools": [tool(schema)], "stream": False},
        lambda body: body["message"]["tool_calls"][0]["function"]["arguments"],
    ),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_operators_values(http: Callable[..., httpx.Client], name: str) -> None:
    """A client names values, and the call has them: a list, and a callable that sees the arguments before it."""
    path, body, arguments = PROTOCOLS[name]
    client = http({"m": wishing({"project": "cellar", "ticket": "E-9"})}, values=VALUES)
    response = client.post(path, json={"model": "m", **body(parameters("tickets"))})
    assert response.status_code == 200, response.text
    found = arguments(response.json())
    assert found["project"] in IDS and found["ticket"] in IDS[found["project"]]


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("mark", ["tickets ", {"source": "nothing"}, "__import__('os')"])
def test_an_unknown_name_is_an_error(http: Callable[..., httpx.Client], name: str, mark: Any) -> None:
    """It is 400 before the answer begins, with the tool, the place and the names that there are."""
    path, body, _ = PROTOCOLS[name]
    client = http({"m": wishing({"project": "site", "ticket": "S-4"})}, values=VALUES)
    response = client.post(path, json={"model": "m", **body(parameters(mark)), "stream": True})
    assert response.status_code == 400
    for part in ("does not have", "/properties/ticket/x-values", "'tickets', 'projects'", "'close'"):
        assert part in response.text.replace('\\"', '"'), response.text


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ({"source": "tickets", "befor": ["project"]}, "has an unknown member 'befor'"),
        ({"after": ["project"]}, "does not name its source"),
        ({"source": "tickets", "after": "project"}, "has an 'after' that is not a list of names"),
        ({"source": "tickets", "after": 3}, "has an 'after' that is not a list of names"),
        ({"source": "tickets", "after": [["project"]]}, "has an 'after' that is not a list of names"),
        ({"source": "tickets", "longest": 0}, "has a 'longest' that is not a positive whole number"),
    ],
)
def test_a_wrong_mark(http: Callable[..., httpx.Client], mark: dict[str, Any], words: str) -> None:
    """The error says which member is wrong."""
    client = http({"m": wishing({})}, values=VALUES)
    path, body, _ = PROTOCOLS["chat completions"]
    response = client.post(path, json={"model": "m", **body(parameters(mark))})
    assert response.status_code == 400 and f"x-values {words}" in response.json()["error"]["message"]


@pytest.mark.parametrize("name", ["tickets", "nothing"])
@pytest.mark.parametrize("keyword", ["const", "enum", "default", "examples"])
def test_names_are_those_of_schemas(name: str, keyword: str) -> None:
    """In data ``x-values`` is a member like any other; under a property that is called like a keyword it is not."""
    named = NamedValues(VALUES)
    data = {"type": "object", "properties": {"a%/b": {keyword: [{"x-values": name}], "x-values": "projects"}}}
    bound = named.bound(data)["properties"]["a%/b"]
    assert bound[keyword] == [{"x-values": name}] and bound["x-values"]["source"].startswith("toolgrammar-values-")
    schema = {"type": "object", "properties": {keyword: {"type": "string", "x-values": name}}}
    if name in VALUES:
        mark = named.bound(schema)["properties"][keyword]["x-values"]
        assert mark["source"].startswith("toolgrammar-values-") and mark["after"] == ["project"]
    else:
        with pytest.raises(RequestError, match=rf"'nothing' \(at /properties/{keyword}/x-values\)"):
            named.bound(schema)


@pytest.mark.parametrize("levels", [151, 300, 400])
def test_names_in_a_deep_schema(http: Callable[..., httpx.Client], levels: int) -> None:
    """It is refused as one without names is."""
    schema: dict[str, Any] = {"type": "string", "x-values": "tickets"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    client = http({"m": wishing({})}, values=VALUES)
    path, body, _ = PROTOCOLS["chat completions"]
    response = client.post(path, json={"model": "m", **body(schema)})
    assert response.status_code == 400 and "nested" in response.text


def test_a_server_without_values(http: Callable[..., httpx.Client]) -> None:
    """The error says who gives them."""
    client = http({"m": wishing({})})
    path, body, _ = PROTOCOLS["chat completions"]
    error = client.post(path, json={"model": "m", **body(parameters("tickets"))}).json()["error"]
    assert "its operator gives them" in error["message"] and error["param"] == "tools"


def test_a_structured_answer(http: Callable[..., httpx.Client]) -> None:
    """``response_format`` has the operator's values, and those of the conversation."""
    wish = {"project": "site", "ticket": "E-9", "order": "O-9", "why": "smashed"}
    model = ScriptedModel(lambda messages: Message("assistant", json.dumps(wish)))
    schema = parameters("tickets")
    schema["properties"] |= {"order": {"type": "string", "x-seen": "order_id"}, "why": {"x-copied": "user"}}
    schema["required"] += ["order", "why"]
    call = {"id": "c1", "type": "function", "function": {"name": "orders", "arguments": "{}"}}
    turns = [
        *MESSAGES,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"order_id": "O-4"}'},
    ]
    asked = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    client = http({"m": model}, values=VALUES)
    path = "/v1/chat/completions"
    response = client.post(path, json={"model": "m", "messages": turns, "response_format": asked})
    found = json.loads(response.json()["choices"][0]["message"]["content"])
    assert found["ticket"] == "S-4" and found["order"] == "O-4" and found["why"] in MESSAGES[0]["content"]
    response = client.post(path, json={"model": "m", "messages": MESSAGES, "response_format": asked})
    assert response.status_code == 400 and "no value for a required field" in response.text
    schema["properties"]["ticket"]["x-values"] = "nothing"
    response = client.post(path, json={"model": "m", "messages": turns, "response_format": asked})
    assert response.status_code == 400 and "'nothing'" in response.text and "x-values" in response.text


def test_a_failing_callable_tells_clients_nothing(http: Callable[..., httpx.Client]) -> None:
    """It is an error of the server, without the text of the exception."""
    client = http({"m": wishing({"project": "site", "ticket": "S-4"})}, values=VALUES)
    path, body, _ = PROTOCOLS["chat completions"]
    response = client.post(path, json={"model": "m", **body(parameters("broken"))})
    assert response.status_code == 500 and "not available now" in response.text
    assert "division" not in response.text and "ZeroDivision" not in response.text


def test_values_of_the_client_that_asks(http: Callable[..., httpx.Client]) -> None:
    """A middleware of the operator tells the callables who asks; the client cannot."""
    app = create_app({"m": wishing({"project": "site", "ticket": "eve-1"})}, values=VALUES)

    async def with_user(scope: Any, receive: Any, send: Any) -> None:
        with given(user="ann"):
            await app(scope, receive, send)

    transport = httpx.ASGITransport(app=with_user)

    async def ask() -> Any:
        async with httpx.AsyncClient(transport=transport, base_url="http://server.test") as client:
            path, body, arguments = PROTOCOLS["chat completions"]
            response = await client.post(path, json={"model": "m", **body(parameters("mine"))})
            return arguments(response.json())

    import asyncio

    assert asyncio.run(ask())["ticket"] == "ann-1"


def test_values_that_are_none() -> None:
    """What is no list and no callable is an error of the operator."""
    with pytest.raises(InvalidSchemaError, match="'projects' are str"):
        create_app({"m": wishing({})}, values={"projects": "engine"})


def test_the_values_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--values`` takes lists of a JSON file, and functions and `Values` of a Python file."""
    lists = tmp_path / "lists.json"
    lists.write_text('{"projects": ["engine"]}')
    assert serve._values_of(lists) == {"projects": ["engine"]}
    code = tmp_path / "values_of_a_test.py"
    code.write_text(
        "from toolgrammar.core import Values\n"
        "def tickets(call):\n    return [call['project'] + '-1']\n"
        "def _hidden(): ...\n"
        "rooms = Values(lambda: ['oak'], after=())\n"
    )
    functions = serve._values_of(code)
    assert list(functions) == ["tickets", "rooms"] and functions["tickets"]({"project": "a"}) == ["a-1"]
    wrong = {"a.json": '{"a": 1}', "b.json": "{", "b.py": "x = 1", "c.py": "1 / 0", "d.json": None}
    for name, text in wrong.items():
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(typer.Exit):
            serve._values_of(tmp_path / name)
        assert name in capsys.readouterr().err


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize(
    "keywords",
    [{"x-seen": 5}, {"x-seen": ["a"]}, {"x-copied": "usr"}, {"x-copied": {"source": "user", "unit": "word"}}],
)
def test_a_malformed_keyword_of_the_conversation(
    http: Callable[..., httpx.Client], name: str, keywords: dict[str, Any]
) -> None:
    """It is 400 with the tool and the place."""
    path, body, _ = PROTOCOLS[name]
    client = http({"m": wishing({"project": "site", "ticket": "S-4"})}, values=VALUES)
    schema = {"type": "object", "properties": {"order": {"type": "string", **keywords}}}
    response = client.post(path, json={"model": "m", **body(schema)})
    assert response.status_code == 400
    for part in (f"{next(iter(keywords))} names no", "/properties/order", "'close'"):
        assert part in response.text


def test_calls_and_results_of_ollama(http: Callable[..., httpx.Client]) -> None:
    """Its results have no ids: the tool's name, and the order, say which call they belong to."""
    schema = {"type": "object", "properties": {"user": {"type": "string", "x-seen": {"key": "user", "calls": True}}}}
    asked = [{"function": {"name": "see", "arguments": {"user": user}}} for user in ("U-1", "U-2")]
    history = [*MESSAGES, {"role": "assistant", "content": "", "tool_calls": asked}]
    result = {"role": "tool", "tool_name": "see", "content": "seen"}
    for count, allowed in ((1, {"U-1"}), (2, {"U-1", "U-2"})):
        for wish in ("U-1", "U-2", "U-3"):
            client = http({"m": wishing({"user": wish})})
            tools = [tool({**schema, "required": ["user"]})]
            body = {"model": "m", "messages": [*history, *[result] * count], "tools": tools, "stream": False}
            (call,) = client.post("/api/chat", json=body).json()["message"]["tool_calls"]
            assert call["function"]["arguments"]["user"] in ({wish} if wish in allowed else allowed)
