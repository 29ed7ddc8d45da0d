"""Bodies that are almost right, at random, for every endpoint: an answer or an error of the protocol, never a crash."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess
from toolgrammar.core.testing import ScriptedModel

from .conftest import BOOKING, openai_tool

HELLO = [{"role": "user", "content": "Hello"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"code": "AB123", "seats": 1}'}}
GRAMMAR = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-z]+"}}
FORM = {"type": "json_schema", "json_schema": {"name": "x", "schema": BOOKING, "strict": True}}
FUNCTION = {"type": "function", "name": "book", "parameters": BOOKING, "strict": True}

#: A full request for each endpoint, from which wrong ones are made.
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ],
        "tools": [openai_tool("book"), {"type": "custom", "custom": {"name": "sql", "format": GRAMMAR}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [openai_tool("book")]}},
        "response_format": FORM, "n": 2, "stop": ["x"], "seed": 1, "temperature": 0.5, "logit_bias": {"7": 1},
        "logprobs": True, "top_logprobs": 1, "max_tokens": 200, "stream": False,
        "stream_options": {"include_usage": False},
    },
    "/v1/completions": {
        "model": "m", "prompt": ["Once", "Twice"], "n": 1, "logprobs": 1, "max_tokens": 5, "stop": "x", "stream": False,
        "response_format": {"type": "text"},
    },
    "/v1/responses": {
        "model": "m", "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "function_call", "call_id": "c1", "name": "book", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "done"},
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]},
        ],
        "tools": [FUNCTION, {"type": "custom", "name": "sql"}], "tool_choice": "auto",
        "text": {"format": {"type": "text"}}, "reasoning": {"effort": "none"}, "max_output_tokens": 100,
        "include": ["reasoning.encrypted_content"], "stream": False, "metadata": {"a": "b"},
    },
    "/v1/messages": {
        "model": "m", "max_tokens": 100, "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            *HELLO, {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "book", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]},
        ],
        "tools": [{"name": "book", "input_schema": BOOKING}], "tool_choice": {"type": "auto"},
        "thinking": {"type": "disabled"}, "output_config": {"effort": "none"}, "stop_sequences": ["x"],
        "metadata": {"user_id": "u"}, "stream": False,
    },
    "/v1/messages/count_tokens": {"model": "m", "messages": HELLO, "tools": [{"name": "book", "input_schema": BOOKING}]},
    "/v1/decisions": {
        "model": "m",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hi"}, {"type": "input_json", "data": {"a": 1}}]},
            {"type": "function_call", "call_id": "c1", "name": "book", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "done"},
        ],
        "questions": [
            {"type": "predicate", "name": "p", "instructions": [{"type": "input_text", "text": "Is it so?"}]},
            {"type": "choice", "instructions": "Which?", "choices": [{"value": "a"}, {"value": True, "description": "t"}]},
            {"type": "score", "instructions": "", "levels": [{"label": "low"}, {"label": "high", "description": "h"}]},
        ],
        "toolgrammar": {"orders": 2, "prior": True, "refusal": True},
    },
    "/v1/systemone": {
        "model": "m", "state": {"text": "Hi"},
        "questions": {
            "n": {"type": "noul", "instructions": "Is it so?", "criteria": {"true": "yes", "false": None}},
            "c": {"type": "choice", "instructions": {"a": 1}, "criteria": {"a": None, "b": "x"}},
            "s": {"type": "score", "instructions": "How?", "criteria": ["low", ["high"]]},
        },
        "toolgrammar": {"orders": 2, "prior": True},
    },
    "/api/chat": {
        "model": "m", "messages": [*HELLO, {"role": "tool", "content": "x", "tool_name": "book"}],
        "tools": [openai_tool("book")], "options": {"temperature": 0.5, "num_predict": 100, "stop": ["x"]},
        "stream": False, "think": False, "keep_alive": "5m",
    },
    "/api/generate": {
        "model": "m", "prompt": "Hello", "system": "Be brief.", "options": {"temperature": 0.5, "num_predict": 100},
        "format": "json", "stream": False, "think": False, "raw": False, "keep_alive": "5m",
    },
    "/api/show": {"model": "m", "verbose": True},
}  # fmt: skip

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
values = st.recursive(
    scalars | st.sampled_from([2**70, -1, 0, 1e300, "\ud800", "auto", "text", "function", [], {}]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside of one."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


@st.composite
def wrong_bodies(draw: st.DrawFn, body: dict[str, Any]) -> dict[str, Any]:
    """A request with a few values replaced, removed or added."""
    made = copy.deepcopy(body)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(places(made), key=str)))
        holder = made
        for key in path[:-1]:
            holder = holder[key]
        action = draw(st.sampled_from(("replace", "replace", "remove", "add")))
        if action == "replace":
            holder[path[-1]] = draw(values)
        elif action == "remove":
            del holder[path[-1]]
        elif isinstance(holder, dict):
            holder[draw(st.text(max_size=8))] = draw(values)
        if not made:
            break
    return made


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A plain client of an application over a model that says one thing."""
    process = InProcess(create_app({"m": ScriptedModel(lambda messages: "Four.")}), httpx)
    with httpx.Client(transport=process.transport(), base_url=BASE_URL, timeout=60) as made:
        yield made


SEEN: dict[str, Counter[int]] = {path: Counter() for path in BODIES}


@pytest.mark.parametrize("path", BODIES)
def test_the_full_request_is_taken(client: httpx.Client, path: str) -> None:
    """What the wrong ones are made of is right, whole and streamed."""
    for stream in (False, True) if "stream" in BODIES[path] else (None,):
        body = BODIES[path] if stream is None else {**BODIES[path], "stream": stream}
        if "stream_options" in body:
            body["stream_options"] = {"include_usage": stream}
        answer = client.post(path, json=body)
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", BODIES)
def test_wrong_requests_are_answered_in_form(client: httpx.Client, path: str) -> None:
    """The status is 200, or 4xx with an error in the protocol's form; what is taken is as described; streams are whole."""

    paths = client.get("/openapi.json").json()["paths"]
    schema = paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    described = jsonschema.Draft202012Validator(schema)
    assert described.is_valid(BODIES[path])

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(wrong_bodies(BODIES[path]), st.booleans())
    def check(body: dict[str, Any], streams: bool) -> None:
        if streams and "stream" in body:
            body["stream"] = True
        text = json.dumps(body)  # surrogates as escapes, as a hostile client writes them
        answer = client.post(path, content=text, headers={"Content-Type": "application/json"})
        SEEN[path][answer.status_code] += 1
        assert answer.status_code in (200, 400, 404), (answer.status_code, body, answer.text)
        if answer.status_code == 200:  # what is taken, is described
            assert described.is_valid(json.loads(text)), [error.message for error in described.iter_errors(body)]
        if answer.status_code != 200:
            error = answer.json()["error"]
            message = error if path.startswith("/api/") else error["message"]
            assert isinstance(message, str) and message and "internal" not in message, answer.text
        elif answer.headers["content-type"].startswith("text/event-stream"):
            for piece in answer.text.split("\n\n"):
                data = piece.rpartition("data: ")[2]
                assert data in ("", "[DONE]") or "error" not in json.loads(data), data
        elif "ndjson" in answer.headers["content-type"]:
            assert all("error" not in json.loads(line) for line in answer.text.splitlines()), answer.text
        else:
            assert isinstance(answer.json(), dict)

    check()
    assert SEEN[path][400] >= 10  # most are wrong, and are told so
