"""Servers that refuse a part of a request: what they do not know is left out, and checked here; nothing else is lost."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import JsonMode, Message, ServerFailureError, ToolCall
from toolgrammar.core.models.remote import transport
from toolgrammar.core.models.remote.dialect import Dialect
from toolgrammar.core.models.remote.form import Form
from toolgrammar.core.models.remote.transport import RefusedError
from toolgrammar.tools import ToolSet

TAGS = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 9}, "uniqueItems": True, "minItems": 1}
    },
    "required": ["tags"],
    "additionalProperties": False,
}
GOOD = '{"tags": ["a", "b"]}'


def sent_schema(body: dict[str, Any]) -> Any:
    """The schema of a request, wherever it is."""
    answer = body.get("response_format", {})
    found = answer.get("json_schema", answer).get("schema")
    found = found or body.get("structured_outputs", {}).get("json")
    for tool in body.get("tools", ()):
        found = found or tool["function"]["parameters"]
    return found


def refusing(status: int, words: str, *keywords: str, reply: Any = GOOD) -> Any:
    """A reply of a server that does not know some keywords; ``{}`` in its words is the first that it meets."""

    def answer(body: dict[str, Any]) -> Any:
        text = json.dumps(sent_schema(body))
        met = [each for each in keywords if f'"{each}"' in text]
        if met:
            return httpx.Response(status, json={"error": {"message": words.replace("{}", met[0])}})
        return reply(body) if callable(reply) else reply

    return answer


@pytest.mark.parametrize("kind", ["openai", "vllm", "sglang", "llama.cpp"])
@pytest.mark.parametrize(
    "words", ['Grammar error: Unimplemented keys: ["{}"]', "the keyword {} is unsupported", "schema not supported"]
)
def test_a_keyword_that_a_server_does_not_know(serve: Any, kind: str, words: str) -> None:
    """The keyword is left out, the form stays; what it asks is checked here, and the next schema goes without it."""
    script = iter(['{"tags": ["a", "a"]}', GOOD, GOOD])
    server = serve(refusing(400, words, "uniqueItems", reply=lambda body: next(script)))
    model = server.model(server=kind)
    answer = model.generate("Go", json_mode=JsonMode(schema={"anyOf": [TAGS]}))
    assert (answer.form, answer.text, answer.attempts) == ("json_schema", GOOD, len(server.asked))
    assert "response/anyOf/0/properties/tags/uniqueItems" in answer.left_out
    sent = sent_schema(server.asked[-1])["anyOf"][0]["properties"]["tags"]
    named = "{}" in words
    assert ("minItems" in sent) is named and sent["items"]["type"] == "string"
    asked = len(server.asked)
    assert asked == 3  # refused once, then one keyword, or all that may be unknown, left out
    again = model.generate("Go", json_mode=JsonMode(schema={"anyOf": [TAGS, {"type": "null"}]}))
    assert again.form == "json_schema" and len(server.asked) == asked + (1 if named else 2)


def test_tools_with_such_a_keyword(serve: Any, complete: Any) -> None:
    """The same for tools: the call is still demanded as a tool call, and checked whole."""
    tools = ToolSet.from_any([{"name": "tag", "parameters": TAGS}])
    replies = [complete(None, ("tag", {"tags": ["a", "a"]})), complete(None, ("tag", {"tags": ["a"]}))]
    for status in (400, 422, 500):
        script = iter(replies)
        server = serve(refusing(status, "'{}' is not supported", "uniqueItems", reply=lambda body: next(script)))  # noqa: B023
        answer = server.model(server="vllm").generate("Go", tools=tools, tool_choice="required")
        assert answer.form == "strict tools" and answer.left_out == ("tag/properties/tags/uniqueItems",)
        assert answer.tool_calls[0].arguments == {"tags": ["a"]}
        assert [len(server.asked), answer.attempts] == [3, 3]


def test_forms_that_are_refused_with_500(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """llama_cpp.server answers 500 to what it cannot validate: the next form is tried at once, and remembered."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(transport.asyncio, "sleep", sleep)

    def reply(body: dict[str, Any]) -> Any:
        kind = body.get("response_format", {}).get("type", "text")
        if kind not in ("text", "json_object"):
            said = "[{'type': 'literal_error', 'msg': \"Input should be 'text' or 'json_object'\"}]"
            return httpx.Response(500, json={"error": {"message": said, "type": "internal_server_error"}})
        return GOOD

    server = serve(reply)
    model = server.model()
    answer = model.generate("Go", json_mode=JsonMode(schema=TAGS))
    assert (answer.form, slept) == ("json_object with schema", [])
    asked = len(server.asked)
    assert model.generate("Go", json_mode=JsonMode(schema=TAGS)).form == "json_object with schema"
    assert len(server.asked) == asked + 1
    for number in range(5):  # and a form that is never taken is not tried for ever
        model.generate("Go", json_mode=JsonMode(schema={**TAGS, "title": str(number)}))
    asked = len(server.asked)
    model.generate("Go", json_mode=JsonMode(schema={**TAGS, "title": "last"}))
    assert len(server.asked) == asked + 1


def test_500_without_a_reason(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 500 that says nothing is tried again as it is, then in another form; only the second time it is remembered."""

    async def sleep(seconds: float) -> None:
        pass

    monkeypatch.setattr(transport.asyncio, "sleep", sleep)
    schema = {"type": "array", "items": {"type": "string"}}

    def reply(body: dict[str, Any]) -> Any:
        return httpx.Response(500, text="Internal Server Error") if "response_format" in body else '["a"]'

    server = serve(reply)
    model = server.model()
    counts = []
    for _ in range(3):
        before = len(server.asked)
        assert model.generate("Go", json_mode=JsonMode(schema=schema)).form == "prompt"
        counts.append(len(server.asked) - before)
    assert counts == [4, 4, 1]
    with pytest.raises(ServerFailureError, match="failed \\(500\\) after 3 attempts"):
        serve(httpx.Response(500, text="Boom")).model().generate("Go", json_mode=JsonMode(schema=schema))


def test_an_agent_on_a_strict_server(serve: Any, complete: Any) -> None:
    """A server that takes only texts as content (llama_cpp.server) can carry a conversation with calls."""

    def reply(body: dict[str, Any]) -> Any:
        if any(not isinstance(message.get("content"), str) for message in body["messages"]):
            return httpx.Response(500, json={"error": {"message": "Input should be a valid string"}})
        return "It rains." if body["messages"][-1]["role"] == "tool" else complete(None, ("tag", {"tags": ["a"]}))

    model = serve(reply).model()
    tools = ToolSet.from_any([{"name": "tag", "parameters": TAGS}])
    first = model.generate("Go", tools=tools)
    (call,) = first.tool_calls
    history = [Message("user", "Go"), first.message, Message("tool", "done", tool_call_id=call.id)]
    assert model.generate(history, tools=tools).text == "It rains."
    calls = (ToolCall("", "tag", {"tags": ["a"]}),)
    assert model.generate(
        [Message("user", "Go"), Message("assistant", "", tool_calls=calls), Message("tool", "x")]
    ).text


KEYWORDS = ("uniqueItems", "minItems", "maxLength", "minLength", "pattern", "not", "format")


@given(unknown=st.sets(st.sampled_from(KEYWORDS)), rounds=st.integers(1, 4), named=st.booleans())
def test_descents_end_and_learn(unknown: set[str], rounds: int, named: bool) -> None:
    """Whatever keywords a server does not know: a form of the same name is found, soon, and then at once."""
    schema = {"type": "string", **dict.fromkeys(KEYWORDS, 1)}

    def make(left_out: Any) -> list[Form]:
        kept = {key: value for key, value in schema.items() if key not in left_out}
        return [Form("json", {"kept": kept}, schemas=(kept,)), Form("prompt")]

    dialect = Dialect()
    tries = []
    for _ in range(rounds):
        descent = dialect.descend(make)
        count = 0
        for form in descent:
            met = unknown & form.fields.get("kept", {}).keys()
            if not met:
                break
            reason = f"unknown: '{min(met)}'" if named else "no"
            descent.refuse(RefusedError(400, reason, ServerFailureError(reason)))
            count += 1
        assert form.name == "json"
        descent.take(form)
        tries.append(count)
    assert tries[0] <= (min(len(unknown), 4) if named else 1)
    assert tries[1:] == [0] * (rounds - 1)
