"""Declarations of what this server does not have are taken, and named in the answer; constraints are obeyed or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolgrammar.adapters.server.asked import Served
from toolgrammar.adapters.server.fields import RequestError
from toolgrammar.adapters.server.protocols.chat_completions import CHAT_COMPLETIONS
from toolgrammar.adapters.server.unused import HEADER, UNUSED, Told, header, pattern_of
from toolgrammar.core import Message, ToolCall, Vocabulary
from toolgrammar.core.testing import ScriptedModel

from ...counted import at_most
from .conftest import BOOKING, openai_tool

SAID: Any = [{"role": "user", "content": "x"}]
CHAT: dict[str, Any] = {"messages": SAID}
RESPONSES: dict[str, Any] = {"input": "x"}
MESSAGES: dict[str, Any] = {"messages": SAID, "max_tokens": 99}
PLAIN = Vocabulary([*(bytes((byte,)) for byte in range(256)), None], eos=[256])
FUNCTION = {"type": "function", "name": "book", "parameters": BOOKING}

#: For each row of the table: a request that has such a field, and how the header names it if not as the table does.
ROWS: dict[str, tuple[str, dict[str, Any], str]] = {
    "tools[]": ("responses", {**RESPONSES, "tools": [FUNCTION, {"type": "web_search"}]}, "tools[1]"),
    "tools[].defer_loading": ("remote", {}, ""),  # of models on servers: test_deferred_tools.py
    "tools[].tools[]": (
        "responses",
        {**RESPONSES, "tools": [{"type": "namespace", "name": "a", "tools": [FUNCTION, {"type": "local_shell"}]}]},
        "",
    ),
    "tools[].tools[].defer_loading": ("remote", {}, ""),
    "tools[].allowed_callers[]": (
        "messages",
        {
            **MESSAGES,
            "tools": [{"name": "f", "input_schema": BOOKING, "allowed_callers": ["direct", "code_execution"]}],
        },
        "",
    ),
    "include[]": ("responses", {**RESPONSES, "include": ["file_search_call.results"]}, "include[0]"),
    "input[]": (
        "responses",
        {"input": [{"type": "web_search_call", "id": "ws_1", "status": "completed"}, *SAID]},
        "input[0]",
    ),
    "messages[].content[]": (
        "messages",
        {
            "max_tokens": 99,
            "messages": [
                *SAID,
                {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web_search"}]},
                *SAID,
            ],
        },
        "",
    ),
    "client_metadata": ("responses", {**RESPONSES, "client_metadata": {"session_id": "s"}}, ""),
    "chat_template_kwargs": ("chat/completions", {**CHAT, "chat_template_kwargs": {"a": 1}}, ""),
    "text.verbosity": ("responses", {**RESPONSES, "text": {"verbosity": "low"}}, ""),
    "verbosity": ("chat/completions", {**CHAT, "verbosity": "low"}, ""),
    "reasoning.effort": ("responses", {**RESPONSES, "reasoning": {"effort": "medium"}}, ""),
    "reasoning.summary": ("responses", {**RESPONSES, "reasoning": {"summary": "none"}}, ""),
    "reasoning.generate_summary": ("responses", {**RESPONSES, "reasoning": {"generate_summary": "concise"}}, ""),
    "output_config.effort": ("messages", {**MESSAGES, "output_config": {"effort": "high"}}, ""),
    "thinking.display": ("messages", {**MESSAGES, "thinking": {"type": "disabled", "display": "omitted"}}, ""),
    "web_search_options": ("chat/completions", {**CHAT, "web_search_options": {}}, ""),
    "prediction": ("chat/completions", {**CHAT, "prediction": {"type": "content", "content": "x"}}, ""),
    "service_tier": ("chat/completions", {**CHAT, "service_tier": "flex"}, ""),
    "speed": ("messages", {**MESSAGES, "speed": "fast"}, ""),
    "moderation": ("chat/completions", {**CHAT, "moderation": {"model": "m"}}, ""),
    "truncation": ("responses", {**RESPONSES, "truncation": "auto"}, ""),
    "max_tool_calls": ("responses", {**RESPONSES, "max_tool_calls": 3}, ""),
    "context_management": ("responses", {**RESPONSES, "context_management": [{"type": "compaction"}]}, ""),
    "context_management.edits[]": (
        "messages",
        {**MESSAGES, "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
        "context_management.edits[0]",
    ),
    "mcp_servers": ("messages", {**MESSAGES, "mcp_servers": [{"name": "x", "type": "url", "url": "http://x"}]}, ""),
    "container": ("messages", {**MESSAGES, "container": "c"}, ""),
    "diagnostics": ("messages", {**MESSAGES, "diagnostics": {"previous_message_id": "m"}}, ""),
    "stream_options.include_obfuscation": (
        "chat/completions",
        {**CHAT, "stream": True, "stream_options": {"include_obfuscation": True}},
        "",
    ),
}


def asked(http: Callable[..., httpx.Client], path: str, body: dict[str, Any], reply: Any = "hello") -> httpx.Response:
    """Ask a model without reasoning that says the same to all."""
    return http({"m": ScriptedModel(lambda messages: reply, vocabulary=PLAIN)}).post(
        f"/v1/{path}", json={"model": "m", **body}
    )


@pytest.mark.parametrize("row", UNUSED)
def test_each_declaration_is_taken_and_named(http: Callable[..., httpx.Client], row: str) -> None:
    """The answer is a good one, and its header has the field."""
    path, body, name = ROWS[row]
    if path == "remote":
        return
    answer = asked(http, path, body)
    assert answer.status_code == 200, answer.text
    named = answer.headers[HEADER].split(", ")
    assert (name or row) in named and [*map(pattern_of, named)] == [row]


def test_an_answer_to_a_plain_request_has_no_such_header(http: Callable[..., httpx.Client]) -> None:
    """Labels, and values that ask for what is done anyway, are not named."""
    body = {**RESPONSES, "metadata": {"a": "b"}, "user": "u", "text": {"verbosity": "medium"}, "truncation": "disabled"}
    assert HEADER not in asked(http, "responses", body).headers


def test_every_row_is_documented() -> None:
    """The page of the server has each row of the table, with its reason."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "server.md").read_text(encoding="utf-8")
    assert [row for row, why in UNUSED.items() if f"| `{row}` | {why} |" not in page] == []


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("chat/completions", {**CHAT, "frequency_penalty": 0.5}, "frequency_penalty"),
        ("chat/completions", {**CHAT, "tool_choise": "required"}, "tool_choise"),
        ("responses", {**RESPONSES, "max_output_token": 5}, "max_output_token"),
        (
            "responses",
            {**RESPONSES, "tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
            "tool_choice",
        ),
        ("responses", {**RESPONSES, "tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice"),
        ("responses", {**RESPONSES, "conversation": "c"}, "conversation"),
        ("chat/completions", {**CHAT, "toolgrammar": {"exact": True}}, "toolgrammar.exact"),
        ("chat/completions", {**CHAT, "response_format": {"type": "xml"}}, "response_format.type"),
    ],
)
def test_a_constraint_that_is_not_obeyed_is_refused(
    http: Callable[..., httpx.Client], path: str, body: dict[str, Any], field: str
) -> None:
    """A penalty, a forced tool that is not offered, a misspelt constraint: status 400, and the field."""
    answer = asked(http, path, body)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == field, answer.text


def test_the_log_has_each_row_once_and_no_names_of_users() -> None:
    """Fields that no table has count as one; a second request adds nothing."""
    told = Told()
    first = told.new(map(pattern_of, ["tools[3]", "tools[4]", "secret_field", "messages[0].other_secret"]))
    assert first == ["fields unknown to this server", f"tools[]: {UNUSED['tools[]']}"]
    assert told.new(map(pattern_of, ["tools[7]", "third_secret"])) == []


def test_the_header_is_bounded_and_plain() -> None:
    """Names of a request may be anything; a header is one short line of ASCII."""
    name, value = header([f"f{n}\r\nSet-Cookie: é" * 20 for n in range(500)]).popitem()
    assert name == HEADER and value.isascii() and value.isprintable() and len(value) < 8_000
    assert value.endswith("468 more")


@pytest.mark.parametrize("place", ["body", "messages"])
def test_unknown_fields_of_many_names_are_refused_at_once(place: str) -> None:
    """The comparison with known names is for some unknown fields of a request; one more is an error at its place."""
    many = {f"unknown_{n}": 1 for n in range(200_000)}
    served = Served({"m": ScriptedModel([""])})
    message = {"role": "user", "content": "x"}
    body = {"model": "m", **CHAT, **many} if place == "body" else {"model": "m", "messages": [{**message, **many}]}
    with at_most(100_000), pytest.raises(RequestError, match="more than 100 fields are not known") as caught:
        CHAT_COMPLETIONS.read(served.fields(body), served)
    assert caught.value.field == ("" if place == "body" else "messages[0].") + "unknown_100"


def test_an_unknown_field_of_many_objects_is_compared_once() -> None:
    """Each message of a long history may have the same unknown field; a misspelt field in the last is still an error."""
    served = Served({"m": ScriptedModel([""])})
    history = [{"role": "user", "content": "x", "vendor_label": n} for n in range(2_000)]
    fields = served.fields({"model": "m", "messages": history})
    with at_most(200_000):
        CHAT_COMPLETIONS.read(fields, served)
    assert len(fields.unused) == 2_000
    history[-1] = {"role": "user", "content": "x", "contents": []}
    with pytest.raises(RequestError, match=re.escape("messages[1999].contents is not known")):
        CHAT_COMPLETIONS.read(served.fields({"model": "m", "messages": history}), served)


SPACE = {
    "type": "namespace",
    "name": "mcp__files",
    "description": "Files",
    "tools": [
        {"type": "function", "name": "book", "parameters": BOOKING},
        {"type": "custom", "name": "note", "format": {"type": "text"}},
    ],
}
BOOKED = {"code": "AB123", "seats": 2}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("name", "arguments"), [("book", BOOKED), ("note", {"input": "hello"})])
def test_tools_of_a_namespace_are_served(
    http: Callable[..., httpx.Client], stream: bool, name: str, arguments: dict[str, Any]
) -> None:
    """Calls come back with the namespace and the tool's own name, and are understood in the next turn's history."""
    call = Message("assistant", tool_calls=(ToolCall("c", f"mcp__files__{name}", arguments),))
    model = ScriptedModel(lambda messages: call if messages[-1].role == "user" else "done")
    client = http({"m": model})
    choice = {"type": "custom" if name == "note" else "function", "namespace": "mcp__files", "name": name}
    body = {"model": "m", "input": SAID, "tools": [SPACE], "tool_choice": choice, "stream": stream}
    answer = client.post("/v1/responses", json=body)
    assert answer.status_code == 200, answer.text
    if stream:
        lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        response = json.loads(lines[-1])["response"]
        items = [event["item"] for line in lines if "item" in (event := json.loads(line))]
        assert {(item["namespace"], item["name"]) for item in items} == {("mcp__files", name)}
    else:
        response = answer.json()
    (item,) = response["output"]
    assert (item["namespace"], item["name"]) == ("mcp__files", name)
    output = {"type": f"{item['type']}_output", "call_id": item["call_id"], "output": "yes"}
    again = client.post("/v1/responses", json={"model": "m", "input": [*SAID, item, output], "tools": [SPACE]})
    assert again.status_code == 200, again.text
    assert model.requests[-1][1].tool_calls[0].name == f"mcp__files__{name}"


def test_a_tool_and_one_of_a_namespace_may_not_have_one_name(http: Callable[..., httpx.Client]) -> None:
    """The model knows both by one name, so its call would be of either."""
    tools = [SPACE, {**FUNCTION, "name": "mcp__files__book", "description": "other"}]
    answer = asked(http, "responses", {**RESPONSES, "tools": tools})
    assert answer.status_code == 400 and "two tools have the name" in answer.text


@pytest.mark.parametrize("path", ["/v1/embeddings", "/api/embed", "/v1/audio/speech", "/api/pull"])
def test_what_this_server_does_not_do_is_said(http: Callable[..., httpx.Client], path: str) -> None:
    """A known endpoint that is not here says what it would do, and that no repetition helps."""
    answer = http({"m": ScriptedModel(["x"])}).post(path, json={"model": "m", "input": "x"})
    assert answer.status_code == 501 and "this server does not" in answer.text
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    ("path", "find"),
    [
        ("/v1/models", lambda body: body["data"][0]["id"]),
        ("/v1/models?client_version=0.169.0", lambda body: body["models"][0]["slug"]),
        ("/api/v0/models", lambda body: body["data"][0]["id"]),
        ("/api/v0/models", lambda body: body["data"][0]["state"] == "loaded" and body["data"][0]["id"]),
        ("/api/v1/models", lambda body: body["models"][0]["loaded_instances"][0]["id"]),
        ("/api/tags", lambda body: body["models"][0]["name"]),
        ("/api/ps", lambda body: body["models"][0]["name"]),
    ],
)
def test_models_are_listed_as_clients_ask(http: Callable[..., httpx.Client], path: str, find: Any) -> None:
    """OpenAI's list, Codex's, both of LM Studio's and both of Ollama's."""
    answer = http({"m": ScriptedModel(["x"])}).get(path)
    assert answer.status_code == 200 and find(answer.json()) == "m"


def test_no_tool_of_another_type_reaches_the_model(http: Callable[..., httpx.Client]) -> None:
    """In chat completions and messages too, hosted tools are left out, and the others are served."""
    model = ScriptedModel(lambda messages: "hello")
    client = http({"m": model})
    hosted = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    answer = client.post("/v1/messages", json={"model": "m", **MESSAGES, "tools": [hosted]})
    assert answer.status_code == 200 and answer.headers[HEADER] == "tools[0]"
    body = {"model": "m", **CHAT, "tools": [openai_tool("book"), {"type": "web_search_preview"}]}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200 and answer.headers[HEADER] == "tools[1]"


def test_a_search_of_the_clients_own_tools_names_what_it_found(http: Callable[..., httpx.Client]) -> None:
    """The model reads the names of the tools in such a result, as Claude Code's tool search sends them."""
    model = ScriptedModel(lambda messages: "hello")
    found = [{"type": "tool_reference", "tool_name": "mcp__files__read"}]
    messages = [
        *SAID,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ToolSearch", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": found}]},
    ]
    tools = [{"name": name, "input_schema": BOOKING} for name in ("ToolSearch", "mcp__files__read")]
    body = {"model": "m", "messages": messages, "max_tokens": 99, "tools": tools}
    answer = http({"m": model}).post("/v1/messages", json=body)
    assert answer.status_code == 200, answer.text
    assert model.requests[-1][-1].text == "mcp__files__read"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("chat/completions", {**CHAT, "response_format": {"type": "json_object", "shema": BOOKING}}, "response_format.shema"),
        ("chat/completions", {**CHAT, "answer_form": BOOKING}, "answer_form"),
        (
            "chat/completions",
            {**CHAT, "tools": [{"type": "function", "function": {"name": "f"}, "input_schema": BOOKING}]},
            "tools[0].input_schema",
        ),
        ("responses", {**RESPONSES, "tools": [{"type": "function", "name": "f", "args": BOOKING}]}, "tools[0].args"),
        ("responses", {**RESPONSES, "text": {"shape": {"anyOf": [BOOKING]}}}, "text.shape"),
        ("messages", {**MESSAGES, "tools": [{"name": "f", "input_schema": BOOKING, "more": BOOKING}]}, "tools[0].more"),
    ],
)  # fmt: skip
def test_a_schema_in_an_unknown_field_is_an_error(
    http: Callable[..., httpx.Client], path: str, body: dict[str, Any], field: str
) -> None:
    """A constraint is not lost; a schema of results constrains nothing, and neither does one in the history."""
    client = http({"m": ScriptedModel(["x"])})
    answer = client.post(f"/v1/{path}", json={"model": "m", **body})
    assert answer.status_code == 400 and field in answer.text and "not known" in answer.text
    told = {"type": "function", "function": {"name": "f", "output_schema": BOOKING}}
    said = [{"role": "user", "content": "x", "made_by": BOOKING}]
    assert (
        client.post("/v1/chat/completions", json={"model": "m", "messages": said, "tools": [told]}).status_code == 200
    )
