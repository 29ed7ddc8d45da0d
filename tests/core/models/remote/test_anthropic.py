"""Anthropic's messages: requests and answers by the types of Anthropic's package, and a ladder of strict tools."""

from __future__ import annotations

import base64
import json
import logging
import random
from typing import Any

import anthropic
import httpx
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import (
    BudgetError,
    CallEnd,
    ContentFilterError,
    ContextOverflowError,
    Finish,
    Generation,
    ImagePart,
    JsonMode,
    Message,
    ModelError,
    ReasoningDelta,
    ServerFailureError,
    TextDelta,
    TextPart,
    ToolCall,
    load_model,
)
from toolgrammar.core.models.remote import transport
from toolgrammar.core.models.remote.schema_dialects import CLAUDE, costs, strict_schema, with_notes
from toolgrammar.tools import ToolSet

from ....schemas import random_schema, random_value
from .anthropic_server import TOO_LARGE, Anthropic, call, events, refusal, stream, text, thinking
from .test_remote_tools import ARGUMENTS, NAMES, TOOLS, check_calls

KEY = "sk-ant-very-secret-0123456789"
OSLO = {"city": "Oslo"}
ADAPTIVE = {"capabilities": {"thinking": {"types": {"adaptive": {"supported": True}}}}}


def test_answers_are_those_of_the_package() -> None:
    """Text, thinking, calls and counts of a stream are what Anthropic's own client reads in it."""
    content = [
        thinking("Oslo it is.", "c2ln"),
        text("Let me see."),
        call("weather", {"city": "Osló"}),
        call("lamp", {"on": True}, 2),
    ]
    server = Anthropic(content)
    items = list(server.model().stream("Weather?", tools=TOOLS))
    httpx2 = pytest.importorskip("httpx2", reason="httpx2 is not installed, which the package imports")
    whole = stream(events(content))
    same = httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=whole.text)
    through = httpx2.Client(transport=httpx2.MockTransport(lambda request: same))
    client = anthropic.Anthropic(api_key="key", http_client=through)
    with client.messages.stream(
        max_tokens=9, model="claude", messages=[{"role": "user", "content": "Weather?"}]
    ) as own:
        message = own.get_final_message()
    blocks = {
        kind: [block for block in message.content if block.type == kind] for kind in ("thinking", "text", "tool_use")
    }
    assert "".join(item.text for item in items if isinstance(item, ReasoningDelta)) == blocks["thinking"][0].thinking  # type: ignore[union-attr]
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == blocks["text"][0].text  # type: ignore[union-attr]
    made = [item.call for item in items if isinstance(item, CallEnd)]
    assert [(one.id, one.name, one.arguments) for one in made] == [
        (block.id, block.name, block.input)
        for block in blocks["tool_use"]  # type: ignore[union-attr]
    ]
    finish = items[-1]
    assert isinstance(finish, Finish) and finish.reason == "tool_calls"
    counts = message.usage
    cached, new = counts.cache_read_input_tokens or 0, counts.cache_creation_input_tokens or 0
    assert (finish.usage.prompt_tokens, finish.usage.cached_tokens) == (counts.input_tokens + cached + new, cached)
    assert finish.usage.completion_tokens == counts.output_tokens


def test_whole_messages_are_read() -> None:
    """A compatible server that does not stream is understood."""
    head = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_sequence": None}
    content = [text("So."), call("weather", OSLO)]
    body = {**head, "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 4, "output_tokens": 2}}
    anthropic.types.Message.model_validate(body)
    answer = Anthropic(httpx.Response(200, json=body)).model().generate("Go", tools=TOOLS)
    assert (answer.text, answer.tool_calls[0].arguments, answer.usage.prompt_tokens) == ("So.", OSLO, 4)


def test_conversations_are_sent_whole() -> None:
    """System prompt, images, calls, results and errors of tools are in the blocks of the API; results are one turn."""
    server = Anthropic([text("Fine.")])
    calls = (ToolCall("call:1", "weather", OSLO), ToolCall("", "lamp", {"on": True}))
    picture = (
        TextPart("See "),
        ImagePart(data=b"\x89PNG", media_type="image/png"),
        ImagePart(url="https://a.test/b.jpg"),
    )
    history = [
        Message("system", "Be brief."),
        Message("user", picture),
        Message("assistant", "", tool_calls=calls),
        Message("tool", "Rain.", tool_call_id="call:1"),
        Message("tool", "Broken.", is_error=True),
        Message("user", "And now?"),
    ]
    server.model().generate(history, tools=TOOLS)
    (body,) = server.asked
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    user, said, results = body["messages"]
    assert [block["type"] for block in user["content"]] == ["text", "image", "image"]
    assert base64.b64decode(user["content"][1]["source"]["data"]) == b"\x89PNG"
    assert [block["id"] for block in said["content"]] == ["call_1", "call_1_1"]
    first, second, more = results["content"]
    assert (first["tool_use_id"], second["tool_use_id"], second["is_error"]) == ("call_1", "call_1_1", True)
    assert (more["text"], more["cache_control"]) == ("And now?", {"type": "ephemeral"})


def test_prompt_cache_marks() -> None:
    """A single question without tools is not marked, for it would cost more; and nothing is if the user says so."""
    for options, given_tools, marked in (({}, None, False), ({}, TOOLS, True), ({"prompt_cache": False}, TOOLS, False)):
        server = Anthropic([text("Fine.")])
        server.model(**options).generate("Hi", tools=given_tools)
        assert ("cache_control" in json.dumps(server.asked)) is marked


@pytest.mark.parametrize("carried", [True, False])
def test_thinking_goes_back_signed(carried: bool) -> None:
    """Thinking returns unchanged, where it was, also if the conversation comes back without it."""
    blocks = [
        thinking("First.", "s1"),
        {"type": "redacted_thinking", "data": "x"},
        text("So:"),
        thinking("Then.", "s2"),
        call("weather", OSLO),
    ]
    server = Anthropic(blocks, [text("Rain.")])
    model = server.model()
    answer = model.generate("Weather?", tools=TOOLS, thinking=True)
    assert answer.message.reasoning == "First.Then."
    said = answer.message if carried else Message("assistant", answer.text, tool_calls=answer.tool_calls)
    (made,) = answer.tool_calls
    model.generate([Message("user", "Weather?"), said, Message("tool", "Rain", tool_call_id=made.id)], tools=TOOLS)
    assert server.asked[1]["messages"][1]["content"] == blocks
    other = Anthropic([text("Rain.")])  # another process without the blocks sends none
    if not carried:
        other.model().generate([Message("user", "Weather?"), said, Message("tool", "Rain", tool_call_id=made.id)])
        assert "thinking" not in json.dumps(other.asked[0]["messages"])


def test_thinking_without_a_signature_is_not_sent() -> None:
    """Thinking that another server wrote has no signature, and Anthropic would refuse it."""
    server = Anthropic([thinking("Hm.", ""), call("weather", OSLO)], [text("Rain.")])
    model = server.model()
    answer = model.generate("Weather?", tools=TOOLS)
    model.generate([Message("user", "Weather?"), answer.message, Message("tool", "Rain")], tools=TOOLS)
    assert "thinking" not in json.dumps(server.asked[1]["messages"])


def test_strict_tools_have_the_subset() -> None:
    """Bounds move into descriptions, and are named; what was not enforced is checked."""
    server = Anthropic([call("weather", {"city": "X"})], [call("weather", OSLO)])
    answer = server.model(repair=False).generate("Go", tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    assert (answer.form, answer.attempts) == ("strict tools", 2)
    assert answer.left_out == (
        "weather/properties/city/minLength",
        "weather/properties/days/minimum",
        "weather/properties/days/maximum",
    )
    sent = {tool["name"]: tool for tool in server.asked[0]["tools"]}["weather"]
    assert sent["strict"] and sent["input_schema"]["properties"] == {
        "city": {"type": "string", "description": "{minLength: 2}"},
        "days": {"type": "integer", "description": "{minimum: 1, maximum: 9}"},
        "day": {"type": "string", "format": "date"},
    }
    assert server.asked[0]["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": "object", "properties": {"a": {"type": "string"}}},  # open
        {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"enum": [[1]]}}, "additionalProperties": False},
        {
            "type": "object",
            "properties": {"of": {"type": "array", "items": {"$ref": "#"}}},
            "additionalProperties": False,
        },
    ],
)
def test_what_no_strict_tool_can_be(schema: Any) -> None:
    """Open objects, free values, recursion and enums of arrays go without strict mode."""
    assert strict_schema(schema, CLAUDE) is None


def test_the_subset_is_never_narrower() -> None:
    """Whatever is valid for a schema is valid for what is sent of it; ``jsonschema`` is the judge."""
    rng = random.Random(3)
    taken = checked = 0
    for _ in range(1500):
        schema = random_schema(rng)
        closed = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
        found = strict_schema(closed, CLAUDE)
        if found is None:
            continue
        taken += 1
        sent = with_notes(found[0], closed, found[1])
        for _ in range(5):
            value = {"a": random_value(rng)}
            if jsonschema.Draft202012Validator(closed).is_valid(value):
                jsonschema.Draft202012Validator(sent).validate(value)
                checked += 1
    assert taken > 100 and checked > 100, (taken, checked)


def tools_of(number: int, optional: int = 0) -> ToolSet:
    """Tools of growing size, each with some optional members."""
    return ToolSet.from_any(
        [
            {
                "name": f"tool{index}",
                "parameters": {
                    "type": "object",
                    "properties": {f"member{one}": {"type": "string"} for one in range(index + 1 + optional)},
                    "required": [f"member{one}" for one in range(index + 1)],
                },
            }
            for index in range(number)
        ]
    )


def strict_names(body: dict[str, Any]) -> list[str]:
    """The names of the strict tools of a request."""
    return [tool["name"] for tool in body.get("tools", ()) if tool.get("strict")]


@pytest.mark.parametrize(("most", "kept"), [(13, 13), (9, 6), (2, 1), (0, 0)])
def test_the_smallest_tools_stay_strict(most: int, kept: int) -> None:
    """When the grammar is too large, half of the strict tools go, the largest first; the rest are named; and the server
    is asked no more than it takes from then on."""

    def reply(body: dict[str, Any]) -> Any:
        return refusal(TOO_LARGE) if len(strict_names(body)) > most else [call("tool0", {"member0": "x"})]

    server = Anthropic(reply)
    model = server.model()
    tools = tools_of(13)
    answer = model.generate("Go", tools=tools)
    assert strict_names(server.asked[-1]) == [f"tool{index}" for index in range(kept)]
    assert sorted(answer.enforced.values()) == ["server"] * kept + ["validation"] * (13 - kept)
    assert answer.form == ("strict tools" if kept == 13 else f"strict tools ({kept} of 13)" if kept else "tools")
    assert answer.left_out == (tuple(f"tool{index}" for index in range(kept, 13)) if kept else ())
    asked = len(server.asked)
    model.generate("Again", tools=tools)
    assert len(server.asked) == asked + 1
    if kept:  # other tools begin below what was refused
        model.generate("Again", tools=tools_of(14))
        assert len(server.asked) == asked + (2 if most < 13 else 3)


def test_known_limits_are_not_tried() -> None:
    """At most 20 tools are strict, with 24 optional members and 16 unions in all, from the first request on."""
    for tools in (tools_of(30), tools_of(12, optional=3)):
        server = Anthropic([text("No.")])
        answer = server.model().generate("Go", tools=tools)
        (body,) = server.asked
        strict = [tool for tool in body["tools"] if tool.get("strict")]
        assert 0 < len(strict) <= 20 and sum(costs(tool["input_schema"])[0] for tool in strict) <= 24
        assert len(answer.left_out) == len(body["tools"]) - len(strict)


def test_keywords_that_are_refused() -> None:
    """A keyword that a refusal names is left out of the same form; then it is known."""
    schema = {"type": "object", "properties": {"tag": {"type": "string", "pattern": "^[a-z]+$"}}, "required": ["tag"]}
    tools = ToolSet.from_any([{"name": "note", "parameters": schema}])

    def reply(body: dict[str, Any]) -> Any:
        if "pattern" in body["tools"][0]["input_schema"]["properties"]["tag"]:
            return refusal("tools.0.custom: For 'string' type, property 'pattern' is not supported")
        return [call("note", {"tag": "a"})]

    server = Anthropic(reply)
    model = server.model()
    answer = model.generate("Go", tools=tools)
    assert (answer.form, answer.left_out) == ("strict tools", ("note/properties/tag/pattern",))
    assert "pattern" in server.asked[-1]["tools"][0]["input_schema"]["properties"]["tag"]["description"]
    model.generate("Go", tools=tools)
    assert len(server.asked) == 3


def test_the_last_form_needs_nothing() -> None:
    """A server that refuses all tools is told of them in the prompt, and its text is parsed."""

    def reply(body: dict[str, Any]) -> Any:
        said = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
        return refusal("tools: this model does not support tools") if "tools" in body else [text(said)]

    answer = Anthropic(reply).model().generate("Go", tools=TOOLS, tool_choice="required")
    assert (answer.form, answer.tool_calls[0].arguments) == ("prompt", OSLO)


def test_models_without_strict_mode_are_not_asked_for_it() -> None:
    """What the server's list of models says is believed: no strict tools, its window, and its token budget."""
    facts = {"id": "claude", "max_input_tokens": 200_000, "max_tokens": 8_192}
    facts["capabilities"] = {"structured_outputs": {"supported": False}}
    server = Anthropic([call("weather", OSLO)], facts=facts)
    model = server.model()
    assert model.generate("Go", tools=TOOLS).form == "tools"
    assert (model.context_window, server.asked[0]["max_tokens"]) == (200_000, 8_192)
    assert [request.method for request in server.requests] == ["GET", "POST"]


def test_answers_in_json() -> None:
    """The schema of an answer is sent as it can be, alone and beside strict tools."""
    schema = {"type": "object", "properties": {"stars": {"type": "integer", "maximum": 5}}, "required": ["stars"]}
    server = Anthropic([text('{"stars": 7}')], [text('{"stars": 5}')])
    closed = {**schema, "additionalProperties": False}
    assert server.model().generate_json("Rate", closed) == {"stars": 5}
    sent = server.asked[0]["output_config"]["format"]
    assert sent["schema"]["properties"]["stars"] == {"type": "integer", "description": "{maximum: 5}"}
    server = Anthropic([text('{"stars": 5}')])
    answer = server.model().generate("Rate", tools=TOOLS, output_type=closed)
    assert (answer.form, answer.text) == ("strict tools + json_schema", '{"stars": 5}')
    assert answer.left_out[-1] == "response/properties/stars/maximum"
    server = Anthropic([text('{"a": 1, "b": 2}')])  # an open object cannot be said
    assert server.model().generate_json("Rate", {"type": "object"}) == {"a": 1, "b": 2}
    assert "output_config" not in server.asked[0] and "JSON Schema" in json.dumps(server.asked[0]["system"])


def test_a_schema_that_is_too_large_goes_into_the_prompt() -> None:
    """Fewer tools are strict, then the schema of the answer is in the prompt."""
    closed = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }

    def reply(body: dict[str, Any]) -> Any:
        return refusal(TOO_LARGE) if "output_config" in body or strict_names(body) else [text('{"a": "b"}')]

    answer = Anthropic(reply).model().generate("Go", tools=TOOLS, output_type=closed)
    assert (answer.form, answer.text) == ("tools", '{"a": "b"}')
    answer = Anthropic(reply).model().generate("Go", json_mode=JsonMode(schema=closed))
    assert (answer.form, answer.text) == ("prompt", '{"a": "b"}')


def test_thinking_and_a_forced_call() -> None:
    """The API refuses both together: the call is demanded in words, checked, and demanded again."""
    server = Anthropic([thinking("Hm."), text("Oslo?")], [thinking("Ah."), call("weather", OSLO)])
    answer = server.model().generate("Go", tools=TOOLS, tool_choice="weather", thinking=True)
    assert (answer.tool_calls[0].arguments, answer.attempts) == (OSLO, 2)
    assert "tool_choice" in answer.left_out
    body = server.asked[0]
    assert body["thinking"] == {"type": "adaptive"} and "tool_choice" not in body  # the API's default is auto
    assert "temperature" not in body and "Call the tool weather." in json.dumps(body["system"])


@pytest.mark.parametrize(
    ("asked", "facts", "sent"),
    [
        (False, None, {"type": "disabled"}),
        (True, None, {"type": "adaptive"}),
        ("auto", None, {"type": "adaptive"}),
        (2_000, None, {"type": "enabled", "budget_tokens": 2_000}),
        (50, None, {"type": "enabled", "budget_tokens": 1_024}),
        (
            True,
            {"capabilities": {"thinking": {"types": {"adaptive": {"supported": False}}}}},
            {"type": "enabled", "budget_tokens": 2_048},
        ),
    ],
)
def test_thinking_is_asked_for(asked: Any, facts: Any, sent: dict[str, Any]) -> None:
    """Thinking is adaptive where the model knows it, or has a budget within that of the answer."""
    server = Anthropic([text("Yes.")], facts=facts)
    server.model().generate("Go", thinking=asked, max_tokens=4_096)
    assert server.asked[0]["thinking"] == sent


def test_forms_of_thinking_that_are_refused() -> None:
    """The other form of thinking is sent, then none, and the answer names it."""

    def reply(body: dict[str, Any]) -> Any:
        kind = body.get("thinking", {}).get("type")
        if kind == "adaptive":
            return refusal("adaptive thinking is not supported on this model")
        return (
            refusal("thinking.budget_tokens: not supported")
            if kind == "enabled" and body["max_tokens"] > 5_000
            else [text("Yes.")]
        )

    server = Anthropic(reply)
    answer = server.model().generate("Go", thinking=True, max_tokens=4_096)
    assert server.asked[-1]["thinking"]["type"] == "enabled" and answer.left_out == ("adaptive",)
    server = Anthropic(reply)
    answer = server.model().generate("Go", thinking=True, max_tokens=6_000)
    assert "thinking" not in server.asked[-1] and answer.left_out == ("adaptive", "budget_tokens", "thinking")
    with pytest.raises(ModelError, match="no room for thinking"):
        Anthropic([text("Yes.")]).model().generate("Go", thinking=2_000, max_tokens=500)


def test_sampling_that_newer_models_refuse() -> None:
    """A field of sampling that is refused is sent no more, and named."""

    def reply(body: dict[str, Any]) -> Any:
        return refusal("`temperature` is deprecated for this model.") if "temperature" in body else [text("Yes.")]

    server = Anthropic(reply)
    model = server.model()
    assert model.generate("Go", temperature=0.5).left_out == ("temperature",)
    assert model.generate("Go", temperature=0.5).left_out == ("temperature",)
    assert ["temperature" in body for body in server.asked] == [True, False, False]
    for option in ({"seed": 1}, {"min_p": 0.1}, {"logit_bias": {1: 1.0}}, {"prefix": "a"}):
        with pytest.raises(ModelError, match=f"does not take {next(iter(option))}"):
            model.generate("Go", **option)


def test_stop_strings() -> None:
    """Stop strings are sent where they cannot cut a call or JSON."""
    server = Anthropic([text("a")])
    server.model().generate("Go", stop=["END"])
    server.model().generate("Go", stop=["END"], tools=TOOLS)
    assert [body.get("stop_sequences") for body in server.asked] == [["END"], None]


def test_earlier_calls_without_tools() -> None:
    """The API demands the tools of calls in the history: they are declared, and may not be called."""
    server = Anthropic([call("weather", OSLO)], [text("Rain.")])
    history = [
        Message("user", "Weather?"),
        Message("assistant", "", tool_calls=(ToolCall("a", "weather", OSLO),)),
        Message("tool", "Rain", tool_call_id="a"),
    ]
    answer = server.model().generate(history)
    assert (answer.text, answer.attempts) == ("Rain.", 2)  # the server's call is not handed on
    assert (server.asked[0]["tools"][0]["name"], server.asked[0]["tool_choice"]) == ("weather", {"type": "none"})
    server = Anthropic([text("Rain.")])
    assert server.model().generate("Go", tools=TOOLS, tool_choice="none").text == "Rain."
    assert len(server.asked[0]["tools"]) == 2


def test_cut_answers() -> None:
    """At the token budget, a call is marked as cut, and JSON is an error; 1,024 tokens alone are no sign of it."""
    cut = stream(events([call("weather", '{"city": "Os')], stop="max_tokens"))
    answer = Anthropic(cut).model().generate("Go", tools=TOOLS)
    assert (answer.finish_reason, answer.tool_calls[0].cut, answer.guarantee) == ("length", ("",), "cut")
    with pytest.raises(BudgetError):
        Anthropic(stream(events([text('{"a": ')], stop="max_tokens"))).model().generate_json("Go", {"type": "object"})
    whole = stream(events([call("weather", OSLO)], usage={"output_tokens": 1_024}))
    assert Anthropic(whole).model().generate("Go", tools=TOOLS).tool_calls[0].arguments == OSLO


def test_each_failure_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Status codes, overload, limits, errors in streams, refusals and broken streams: one error each."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(transport.asyncio, "sleep", sleep)
    whole = events([text("Half an answer")])
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    cases: list[tuple[Any, type[Exception], str]] = [
        (
            refusal("invalid x-api-key", 401, "authentication_error"),
            anthropic_error("AuthenticationError"),
            "invalid x-api-key",
        ),
        (refusal("no", 403, "permission_error"), anthropic_error("PermissionDeniedError"), "denies access"),
        (refusal("model: claude", 404, "not_found_error"), anthropic_error("NotFoundError"), "model: claude"),
        (
            refusal("slow down", 429, "rate_limit_error", headers={"retry-after": "2"}),
            anthropic_error("RateLimitError"),
            "429",
        ),
        (refusal("Overloaded", 529, "overloaded_error"), ServerFailureError, "529.*Overloaded"),
        (refusal("prompt is too long: 200001 tokens > 200000 maximum"), ContextOverflowError, "too long"),
        (refusal("input length and `max_tokens` exceed context limit"), ContextOverflowError, "context limit"),
        (refusal("messages: at least one"), ModelError, "at least one"),
        (stream([*whole[:5], failed], is_checked=False), ServerFailureError, "Overloaded"),
        (stream(whole[:5]), ServerFailureError, "broke off.*Half"),
        (stream([{"type": "what"}], is_checked=False), ModelError, "not one of Anthropic's messages.*what"),
        (stream([{"type": "content_block_delta", "index": 0, "delta": 5}], is_checked=False), ModelError, "not one of"),
        (httpx.Response(200, json={"choices": []}), ModelError, "not one of Anthropic's messages"),
        (httpx.ReadTimeout("slow"), ModelError, "did not answer"),
        (stream(events([text("I can't.")], stop="refusal")), ContentFilterError, "I can't"),
    ]
    for reply, kind, words in cases:
        with pytest.raises(kind, match=words):
            Anthropic(reply).model().generate("Hi")
    assert slept[:2] == [2.0, 2.0]
    server = Anthropic(refusal("Overloaded", 529, "overloaded_error"), [text("Hi")])
    assert server.model().generate("Hi").text == "Hi"


def anthropic_error(name: str) -> type[Exception]:
    """An error of ours by its name."""
    from toolgrammar.core import errors

    found: type[Exception] = getattr(errors, name)
    return found


def test_keys_are_never_shown(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The key comes from the environment for Anthropic's own address only, and is in no error, repr or log."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    server = Anthropic(refusal(f"invalid x-api-key {KEY}", 401, "authentication_error"))
    own = load_model("anthropic:claude", transport=httpx.MockTransport(server))
    other = server.model()
    given_key = server.model(api_key="env:ANTHROPIC_API_KEY")
    for model, sent in ((own, KEY), (other, None), (given_key, KEY)):
        with pytest.raises(ModelError, match=r"invalid x-api-key") as caught:
            model.generate("Hi")
        request = server.requests[-1]
        assert (request.headers.get("x-api-key"), request.headers["anthropic-version"]) == (sent, "2023-06-01")
        assert "authorization" not in request.headers
        shown = [repr(model), repr(vars(model)), repr(model._protocol), repr(model._transport)]  # type: ignore[attr-defined]
        if sent is not None:
            assert not any(KEY in one for one in (*shown, str(caught.value), repr(caught.value), caplog.text))
        caplog.clear()
    assert own.base_url == "https://api.anthropic.com/v1"  # type: ignore[attr-defined]
    assert load_model("anthropic:claude@http://localhost:8000").base_url == "http://localhost:8000/v1"  # type: ignore[attr-defined]


def test_cancelling() -> None:
    """A request that the caller cancels ends with what was there."""
    server = Anthropic([text("One two three four five")])
    seen: list[Any] = []
    for item in server.model().stream("Go", cancel=lambda: bool(seen)):
        seen.append(item)
    assert isinstance(seen[-1], (Finish, Generation)) and seen[-1].reason == "cancelled"  # type: ignore[union-attr]


@given(st.data())
def test_a_lying_server_passes_nothing_invalid(data: Any) -> None:
    """Whatever a server sends in answer to strict tools: calls are valid, or there is an error."""
    block = st.one_of(
        st.builds(call, NAMES, ARGUMENTS, st.integers(1, 3)),
        st.builds(text, st.text(max_size=5)),
        st.builds(thinking, st.text(max_size=5)),
        st.builds(call, NAMES, st.sampled_from(['{"city": "Os', "{}}", "[1]", '"a"', "NaN"])),
    )
    answers = data.draw(st.lists(st.lists(block, max_size=3), min_size=1, max_size=3))
    stop = data.draw(st.sampled_from(["end_turn", "tool_use", "max_tokens", "pause_turn", None]))
    replies = [stream(events(one, stop=stop), is_checked=False) for one in answers]
    check_calls(Anthropic(*replies).model())


def test_strict_tools_that_fail_without_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that fails (500) on strict tools is asked with ever fewer, and then without."""

    async def sleep(seconds: float) -> None:
        pass

    monkeypatch.setattr(transport.asyncio, "sleep", sleep)

    def reply(body: dict[str, Any]) -> Any:
        failed = refusal("Internal server error", 500, "api_error")
        return failed if strict_names(body) else [call("tool0", {"member0": "x"})]

    server = Anthropic(reply)
    model = server.model(max_retries=0)
    answer = model.generate("Go", tools=tools_of(4))
    assert (answer.form, len(server.asked)) == ("tools", 4)  # 4, 2, 1 and no strict ones


def test_strict_mode_that_a_server_does_not_know() -> None:
    """A compatible server that refuses ``strict`` by name is asked without it, in the same form, and no more later."""

    def reply(body: dict[str, Any]) -> Any:
        refused = refusal("tools.0.custom.strict: Extra inputs are not permitted")
        return refused if strict_names(body) else [call("tool0", {"member0": "x"})]

    server = Anthropic(reply)
    model = server.model()
    assert "strict" in model.generate("Go", tools=tools_of(4)).left_out
    assert model.generate("Go", tools=tools_of(5)).form == "tools" and len(server.asked) == 3
