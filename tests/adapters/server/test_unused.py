"""Declarations of what this server does not have are taken, and named in the answer; constraints are obeyed or refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolgrammar.adapters.server.fields import _FOLLOWED, Fields
from toolgrammar.adapters.server.parts import OWN
from toolgrammar.adapters.server.protocols.base import Endpoint
from toolgrammar.adapters.server.rows import Choice, Form, Row
from toolgrammar.adapters.server.unused import HEADER, UNUSED, pattern_of
from toolgrammar.core import Vocabulary
from toolgrammar.core.testing import ScriptedModel

from .conftest import BOOKING

SAID: Any = [{"role": "user", "content": "x"}]
CHAT: dict[str, Any] = {"messages": SAID}
RESPONSES: dict[str, Any] = {"input": "x"}
MESSAGES: dict[str, Any] = {"messages": SAID, "max_tokens": 99}
PLAIN = Vocabulary([*(bytes((byte,)) for byte in range(256)), None], eos=[256])
FUNCTION = {"type": "function", "name": "book", "parameters": BOOKING}
CALLED_BY_CODE = {**FUNCTION, "allowed_callers": ["direct", "code_execution"]}
IMAGE = {"type": "input_image", "image_url": "data:", "detail": "low"}
CITING = {"type": "text", "text": "x", "citations": [{"type": "char_location"}]}


def found(tool: dict[str, Any]) -> dict[str, Any]:
    """A request after the client's search for tools, which found this one."""
    call = {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {}}
    result = {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [tool]}
    return {"input": [*SAID, call, result]}


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
    "tools[].tools[].allowed_callers[]": (
        "responses",
        {**RESPONSES, "tools": [{"type": "namespace", "name": "a", "tools": [CALLED_BY_CODE]}]},
        "",
    ),
    "input[].tools[]": ("responses", found({"type": "web_search"}), ""),
    "input[].tools[].defer_loading": ("remote", {}, ""),
    "input[].tools[].allowed_callers[]": ("responses", found(CALLED_BY_CODE), ""),
    "input[].tools[].tools[]": (
        "responses",
        found({"type": "namespace", "name": "a", "tools": [FUNCTION, {"type": "local_shell"}]}),
        "",
    ),
    "input[].tools[].tools[].defer_loading": ("remote", {}, ""),
    "input[].tools[].tools[].allowed_callers[]": (
        "responses",
        found({"type": "namespace", "name": "a", "tools": [CALLED_BY_CODE]}),
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
    "messages[].content[].image_url.detail": (
        "chat/completions",
        {
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:", "detail": "low"}}]}
            ]
        },
        "",
    ),
    "input[].content[].detail": ("responses", {"input": [{"role": "user", "content": [IMAGE]}]}, ""),
    "input[].output[].detail": (
        "responses",
        {"input": [{"type": "function_call_output", "call_id": "c", "output": [IMAGE]}]},
        "",
    ),
    "messages[].content[].citations": (
        "messages",
        {"max_tokens": 99, "messages": [*SAID, {"role": "assistant", "content": [CITING]}, *SAID]},
        "",
    ),
    "messages[].content[].content[].citations": (
        "messages",
        {
            "max_tokens": 99,
            "messages": [
                *SAID,
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [CITING]}]},
            ],
        },
        "",
    ),
    "system[].citations": ("messages", {**MESSAGES, "system": [CITING]}, "system[0].citations"),
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
    if row.endswith(".detail"):  # the model of this test takes no images
        assert [*map(pattern_of, Fields({"model": "m", **body}, FORMS[f"/v1/{path}"]).unused)] == [row]
        return
    answer = asked(http, path, body)
    assert answer.status_code == 200, answer.text
    named = answer.headers[HEADER].split(", ")
    assert (name or row) in named and [*map(pattern_of, named)] == [row]


def test_an_answer_to_a_plain_request_has_no_such_header(http: Callable[..., httpx.Client]) -> None:
    """Labels, and values that ask for what is done anyway, are not named."""
    body = {**RESPONSES, "metadata": {"a": "b"}, "user": "u", "text": {"verbosity": "medium"}, "truncation": "disabled"}
    assert HEADER not in asked(http, "responses", body).headers


def _protocols(kind: type[Endpoint]) -> Iterator[type[Endpoint]]:
    for protocol in kind.__subclasses__():
        yield protocol
        yield from _protocols(protocol)


#: The forms of requests, by the path of the endpoint.
FORMS = {protocol.path: protocol.form for protocol in _protocols(Endpoint) if hasattr(protocol, "form")}


def _without_effect(shape: Form | Choice | Row, path: str) -> Iterator[str]:
    """Yield the patterns of what a form takes and gives no effect: fields, and objects in lists without a form."""
    if isinstance(shape, Form):
        for name, row in shape.rows.items():
            yield from _without_effect(row, f"{path}.{name}" if path else name)
    elif isinstance(shape, Choice):
        if shape.others or None in shape.forms.values():
            yield path
        for form in shape.forms.values():
            if form is not None:
                yield from _without_effect(form, path)
    elif shape.effect == "unused":
        yield path
    elif shape.form is not None:
        for kind in shape.kinds:
            if kind in (list, dict):
                yield from _without_effect(shape.form, path + ("[]" if kind is list else ""))


@pytest.mark.parametrize("path", FORMS)
def test_every_field_without_effect_has_its_reason(path: str) -> None:
    """No field of a form is logged as one that this server does not know."""
    assert set(_without_effect(FORMS[path], "")) - UNUSED.keys() == set()


def test_every_row_is_documented() -> None:
    """The page of the server has each row of the table, with its reason, and no other row."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "server.md").read_text(encoding="utf-8")
    _, _, section = page.partition("### Declared, not offered")
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", section.partition("\n## ")[0].partition("\n### ")[0], re.MULTILINE)
    assert dict(rows) == dict(UNUSED)


def test_no_option_of_requests_is_said_to_be_left_out() -> None:
    """A name that the field `toolgrammar` takes has no hint that nothing here follows it."""
    assert sorted(set(_FOLLOWED) & set(OWN)) == []


MISPLACED: list[tuple[str, dict[str, Any], str]] = [
    (
        "chat/completions",
        {**CHAT, "response_format": {"type": "json_object", "shema": BOOKING}},
        "response_format.shema",
    ),
    ("chat/completions", {**CHAT, "response_format": {"type": "text", "form": BOOKING}}, "response_format.form"),
    (
        "chat/completions",
        {**CHAT, "response_format": {"type": "json_object", "json_schema": {"schema": BOOKING}}},
        "response_format.json_schema",
    ),
    (
        "chat/completions",
        {**CHAT, "tools": [{"type": "function", "function": {"name": "f"}, "input_schema": BOOKING}]},
        "tools[0].input_schema",
    ),
    (
        "chat/completions",
        {**CHAT, "tools": [{"type": "function", "function": {"name": "f", "inputSchema": BOOKING}}]},
        "tools[0].function.inputSchema",
    ),
    ("responses", {**RESPONSES, "tools": [{"type": "function", "name": "f", "args": BOOKING}]}, "tools[0].args"),
    ("responses", {**RESPONSES, "text": {"shape": {"anyOf": [BOOKING]}}}, "text.shape"),
]


@pytest.mark.parametrize(("path", "body", "field"), MISPLACED, ids=[field for _, _, field in MISPLACED])
def test_a_schema_in_an_unknown_field_is_an_error(
    http: Callable[..., httpx.Client], path: str, body: dict[str, Any], field: str
) -> None:
    """A constraint is not lost."""
    answer = http({"m": ScriptedModel(["x"])}).post(f"/v1/{path}", json={"model": "m", **body})
    assert answer.status_code == 400 and field in answer.text


def test_a_schema_that_constrains_nothing_is_taken(http: Callable[..., httpx.Client]) -> None:
    """Of a result (as `transformers.utils.get_json_schema` writes it), a second one, in a note or in the history."""
    result = {name: {"type": "integer"} for name in ("return", "returns", "output_schema", "outputSchema", "response")}
    told = [
        {"type": "function", "function": {"name": "f", "parameters": BOOKING, "inputSchema": BOOKING, **result}},
        {"type": "function", "function": {"name": "g", "_meta": {"properties": {}}, **result}, "outputSchema": BOOKING},
    ]
    said = [{"role": "user", "content": "x", "made_by": BOOKING}]
    body = {"model": "m", "messages": said, "tools": told, "posthog": {"properties": {"a": 1}}}
    answer = http({"m": ScriptedModel(["x"])}).post("/v1/chat/completions", json=body)
    assert answer.status_code == 200 and "tools[0].function.return," in answer.headers[HEADER]
