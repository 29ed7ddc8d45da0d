"""Bedrock's Converse form: requests and events by the service model of ``botocore``, and the ladder of its forms."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("botocore", reason="botocore is not installed")

from toolgrammar.core import (
    BudgetError,
    ContentFilterError,
    ContextOverflowError,
    Finish,
    ImagePart,
    Message,
    ModelError,
    ReasoningDelta,
    ServerFailureError,
    TextDelta,
    TextPart,
    ToolCall,
    errors,
    load_model,
)
from toolgrammar.core.models.remote import transport
from toolgrammar.tools import ToolSet

from . import anthropic_server
from .bedrock_server import MODEL, Bedrock, call, check, events, frame, refusal, stream, text, thinking
from .test_anthropic import tools_of
from .test_remote_tools import ARGUMENTS, NAMES, TOOLS, check_calls

KEY = "bedrock-api-key-very-secret-0123456789"
OSLO = {"city": "Oslo"}
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
TOO_LARGE = "The compiled grammar is too large. Simplify your tool schemas or reduce the number of strict tools."


def strict_names(body: dict[str, Any]) -> list[str]:
    """The names of the strict tools of a request."""
    tools = [tool["toolSpec"] for tool in body.get("toolConfig", {}).get("tools", ()) if "toolSpec" in tool]
    return [tool["name"] for tool in tools if tool.get("strict")]


def test_answers_are_read() -> None:
    """Text, reasoning, calls and counts come out of the binary stream, in whatever pieces it comes."""
    content = [
        thinking("Oslo it is."),
        text("Let me see."),
        call("weather", {"city": "Osló"}),
        call("lamp", {"on": True}, 2),
    ]
    items = list(Bedrock(content).model().stream("Weather?", tools=TOOLS))
    assert "".join(item.text for item in items if isinstance(item, ReasoningDelta)) == "Oslo it is."
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "Let me see."
    answer = Bedrock(content).model().generate("Weather?", tools=TOOLS)
    assert [(one.id, one.name, one.arguments) for one in answer.tool_calls] == [
        ("tooluse_1", "weather", {"city": "Osló"}),
        ("tooluse_2", "lamp", {"on": True}),
    ]
    finish = items[-1]
    assert isinstance(finish, Finish) and finish.reason == "tool_calls"
    usage = (finish.usage.prompt_tokens, finish.usage.completion_tokens, finish.usage.cached_tokens)
    assert usage == (15, 7, 3)
    whole = {"output": {"message": {"role": "assistant", "content": [text("Hi")]}}, "stopReason": "end_turn"}
    whole["usage"] = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    assert Bedrock(httpx.Response(200, json=whole)).model().generate("Hi").text == "Hi"


def test_blocks_with_citations_and_calls_of_the_server() -> None:
    """Text with citations is text, whole or in a stream; a call that Bedrock runs itself is none of ours."""
    where = {"location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 4}}}
    cited = {"citationsContent": {"content": [text("Rain"), text(" in Oslo.")], "citations": [where]}}
    own = {"toolUse": {"toolUseId": "t1", "name": "lamp", "input": {}, "type": "server_tool_use"}}
    message = {"role": "assistant", "content": [own, text("So: "), cited]}
    whole = {"output": {"message": message}, "stopReason": "end_turn", "metrics": {"latencyMs": 1}}
    whole["usage"] = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    check("ConverseResponse", whole)
    answer = Bedrock(httpx.Response(200, json=whole)).model().generate("Weather?", tools=TOOLS)
    assert (answer.text, answer.tool_calls) == ("So: Rain in Oslo.", ())
    started = {key: own["toolUse"][key] for key in ("toolUseId", "name", "type")}
    first, *others = events([text("Rain.")])
    sent = [
        first,
        {"contentBlockStart": {"start": {"toolUse": started}, "contentBlockIndex": 7}},
        {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}, "contentBlockIndex": 7}},
        {"contentBlockStop": {"contentBlockIndex": 7}},
        {"contentBlockDelta": {"delta": {"citation": {"title": "Weather", **where}}, "contentBlockIndex": 0}},
        *others,
    ]
    answer = Bedrock(stream(sent)).model().generate("Weather?", tools=TOOLS)
    assert (answer.text, answer.tool_calls) == ("Rain.", ())


def test_conversations_are_sent_whole() -> None:
    """System prompt, images, calls, results and errors of tools are in the blocks of the API; results are one turn."""
    server = Bedrock([text("Fine.")])
    calls = (ToolCall("call:1", "weather", OSLO), ToolCall("", "lamp", {"on": True}))
    history = [
        Message("system", "Be brief."),
        Message("user", (TextPart("See "), ImagePart(data=b"\x89PNG", media_type="image/png"))),
        Message("assistant", "", tool_calls=calls),
        Message("tool", "Rain.", tool_call_id="call:1"),
        Message("tool", "Broken.", is_error=True),
        Message("user", "And now?"),
    ]
    server.model().generate(history, tools=TOOLS, max_tokens=50, top_p=0.5, temperature=0.25)
    (body,) = server.asked
    point = {"cachePoint": {"type": "default"}}
    assert body["system"] == [{"text": "Be brief."}, point] and body["toolConfig"]["tools"][-1] == point
    user, said, results = body["messages"]
    assert user["content"][1]["image"] == {"format": "png", "source": {"bytes": "iVBORw=="}}
    assert [block["toolUse"]["toolUseId"] for block in said["content"]] == ["call_1", "call_1_1"]
    assert [block["toolResult"]["toolUseId"] for block in results["content"][:2]] == ["call_1", "call_1_1"]
    assert results["content"][1]["toolResult"]["status"] == "error" and results["content"][2:] == [
        text("And now?"),
        point,
    ]
    assert body["inferenceConfig"] == {"maxTokens": 50, "topP": 0.5, "temperature": 0.25}
    with pytest.raises(ModelError, match="no address of an image"):
        server.model().generate([Message("user", (ImagePart(url="https://a.test/b.png"),))])
    server = Bedrock([text("Fine.")])
    server.model(prompt_cache=False).generate(history, tools=TOOLS)
    assert "cachePoint" not in json.dumps(server.asked)


@pytest.mark.parametrize("carried", [True, False])
def test_reasoning_goes_back_signed(carried: bool) -> None:
    """Reasoning returns unchanged, where it was, also if the conversation comes back without it."""
    blocks = [
        thinking("First.", "s1"),
        {"reasoningContent": {"redactedContent": "eA=="}},
        text("So:"),
        thinking("Then.", "s2"),
        call("weather", OSLO),
    ]
    server = Bedrock(blocks, [text("Rain.")])
    model = server.model(prompt_cache=False)
    answer = model.generate("Weather?", tools=TOOLS, thinking=True)
    said = answer.message if carried else Message("assistant", answer.text, tool_calls=answer.tool_calls)
    model.generate([Message("user", "Weather?"), said, Message("tool", "Rain")], tools=TOOLS)
    assert server.asked[1]["messages"][1]["content"] == blocks
    assert server.asked[0]["additionalModelRequestFields"] == {"thinking": {"type": "enabled", "budget_tokens": 2_048}}


def test_strict_tools_and_json() -> None:
    """Strict tools in Claude's subset, and the schema of the answer as a text; what is left out is named and checked."""
    server = Bedrock([call("weather", {"city": "X"})], [call("weather", OSLO)])
    answer = server.model(repair=False).generate("Go", tools=TOOLS, tool_choice="weather")
    assert (answer.form, answer.attempts) == ("strict tools", 2)
    assert "weather/properties/days/maximum" in answer.left_out
    assert server.asked[0]["toolConfig"]["toolChoice"] == {"tool": {"name": "weather"}}
    server = Bedrock([text('{"a": "b"}')])
    answer = server.model().generate("Go", tools=TOOLS, output_type=CLOSED)
    assert (answer.form, answer.text) == ("strict tools + json_schema", '{"a": "b"}')
    sent = server.asked[0]["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"]
    assert json.loads(sent) == CLOSED
    server = Bedrock([text("Oslo?")], [call("weather", OSLO)])
    answer = server.model().generate("Go", tools=TOOLS, tool_choice="required", thinking=True)
    assert (answer.attempts, "tool_choice" in answer.left_out) == (2, True)
    assert "toolChoice" not in server.asked[0]["toolConfig"] and "Call a tool." in json.dumps(server.asked[0]["system"])


def test_the_ladder() -> None:
    """Fewer strict tools when the grammar is too large; none for models that do not know them, from then on."""

    def too_large(body: dict[str, Any]) -> Any:
        return refusal(TOO_LARGE) if len(strict_names(body)) > 5 else [call("tool0", {"member0": "x"})]

    answer = Bedrock(too_large).model().generate("Go", tools=tools_of(13))
    assert [name for name, by in answer.enforced.items() if by == "server"] == ["tool0", "tool1", "tool2"]
    assert answer.form == "strict tools (3 of 13)" and answer.left_out == tuple(f"tool{at}" for at in range(3, 13))

    def no_strict(body: dict[str, Any]) -> Any:
        said = "toolConfig.tools.0.toolSpec.strict: Extra inputs are not permitted"
        return refusal(said) if strict_names(body) else [call("weather", OSLO)]

    server = Bedrock(no_strict)
    model = server.model()
    assert "strict" in model.generate("Go", tools=TOOLS).left_out
    assert model.generate("Go", tools=TOOLS).form == "tools" and len(server.asked) == 3

    def nothing(body: dict[str, Any]) -> Any:
        said = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
        return refusal("This model doesn't support tool use.") if "toolConfig" in body else [text(said)]

    assert Bedrock(nothing).model().generate("Go", tools=TOOLS).form == "prompt"


def test_fields_that_a_model_refuses() -> None:
    """Cache points, sampling and thinking that a model does not know are left out, and named."""

    def reply(body: dict[str, Any]) -> Any:
        for word, said in (("cachePoint", "cachePoint is not supported"), ("thinking", "thinking: unknown field")):
            if f'"{word}"' in json.dumps(body):
                return refusal(said)
        return [text("Yes.")]

    server = Bedrock(reply)
    model = server.model()
    assert model.generate("Go", tools=TOOLS, thinking=True).left_out[-2:] == ("cachePoint", "thinking")
    model.generate("Go", tools=TOOLS, thinking=True)
    assert len(server.asked) == 4 and "additionalModelRequestFields" not in server.asked[-1]
    with pytest.raises(ModelError, match="does not take top_k"):
        model.generate("Go", top_k=3)


def test_earlier_calls_without_tools() -> None:
    """The API demands the tools of calls in the history; a call that comes all the same is not handed on."""
    server = Bedrock([call("weather", OSLO)], [text("Rain.")])
    calls = (ToolCall("a", "weather", OSLO),)
    history = [
        Message("user", "?"),
        Message("assistant", "", tool_calls=calls),
        Message("tool", "Rain", tool_call_id="a"),
    ]
    answer = server.model().generate(history)
    assert (answer.text, answer.attempts) == ("Rain.", 2)
    assert server.asked[0]["toolConfig"]["tools"][0]["toolSpec"]["name"] == "weather"


@pytest.mark.parametrize("of_anthropic", [True, False])
def test_refused_fields_leave_the_conversation_alone(of_anthropic: bool) -> None:
    """Without a field that a server refuses, a request has the same arguments, results and schemas as before."""
    odd = {"strict": True, "note": [{"cachePoint": {"type": "default"}}]}
    refused = "strict: Extra inputs are not permitted", "cachePoint is not supported"

    def places(body: dict[str, Any]) -> list[Any]:
        config = body if of_anthropic else body["toolConfig"]
        tools = [tool for tool in config["tools"] if tool != {"cachePoint": {"type": "default"}}]
        specs = tools if of_anthropic else [tool["toolSpec"] for tool in tools]
        said = body["messages"][1]["content"][0]
        schemas = [tool["input_schema"] if of_anthropic else tool["inputSchema"]["json"] for tool in specs]
        return [said["input"] if of_anthropic else said["toolUse"]["input"], schemas, "strict" in specs[0]]

    def reply(body: dict[str, Any]) -> Any:
        if places(body)[-1]:
            return (anthropic_server.refusal if of_anthropic else refusal)(refused[0])
        if not of_anthropic and {"cachePoint": {"type": "default"}} in body["toolConfig"]["tools"]:
            return refusal(refused[1])
        return [anthropic_server.text("Yes.") if of_anthropic else text("Yes.")]

    server: Any = anthropic_server.Anthropic(reply) if of_anthropic else Bedrock(reply)
    free = {"type": "object", "properties": {"of": {"const": odd}, "by": {"type": "object", "default": odd}}}
    tools = ToolSet.from_any([*tools_of(1).to_openai(), {"name": "free", "parameters": free}])
    call = Message("assistant", "", tool_calls=(ToolCall("a", "free", odd),))
    model = server.model()
    model.generate([Message("user", "?"), call, Message("tool", "Done", tool_call_id="a")], tools=tools)
    first, *_, last = map(places, server.asked)
    assert first == [odd, last[1], True] and last == [odd, first[1], False]
    assert json.dumps(first[1]).count('"strict": true') == 2


def test_each_failure_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Status codes, limits, errors in streams, damaged and broken streams: one error each."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(transport.asyncio, "sleep", sleep)
    whole = events([text("Half an answer")])
    damaged = bytearray(b"".join(map(frame, whole)))
    damaged[40] ^= 1
    head = {"content-type": "application/vnd.amazon.eventstream"}
    cases: list[tuple[Any, type[Exception], str]] = [
        (refusal("bad token", 403, "AccessDeniedException"), errors.PermissionDeniedError, "bad token"),
        (refusal("no such model", 404, "ResourceNotFoundException"), errors.NotFoundError, "no such model"),
        (refusal("slow", 429, "ThrottlingException", headers={"retry-after": "2"}), errors.RateLimitError, "429"),
        (refusal("later", 503, "ServiceUnavailableException"), ServerFailureError, "503"),
        (refusal("Input is too long for requested model."), ContextOverflowError, "too long"),
        (refusal("Malformed input request"), ModelError, "Malformed input"),
        (stream([*whole[:4], {"throttlingException": {"message": "Too many"}}]), ServerFailureError, "Too many"),
        (stream(whole[:4]), ServerFailureError, "broke off.*Half"),
        (stream(whole, cut=9), ServerFailureError, "inside an event"),
        (httpx.Response(200, headers=head, content=bytes(damaged)), ServerFailureError, "damaged"),
        (httpx.Response(200, headers=head, content=b"\xff" * 64), ServerFailureError, "damaged"),
        (stream([{"what": {}}], is_checked=False), ModelError, "not one of Bedrock's.*what"),
        (stream(events([text("I can't.")], stop="guardrail_intervened")), ContentFilterError, "I can't"),
        (httpx.ReadTimeout("slow"), ModelError, "did not answer"),
    ]
    for reply, kind, words in cases:
        with pytest.raises(kind, match=words):
            Bedrock(reply).model().generate("Hi")
    assert slept[:2] == [2.0, 2.0]
    broken = stream(events([text("x(")], stop="malformed_tool_use"))
    answer = Bedrock(broken, [call("weather", OSLO)]).model().generate("Go", tools=TOOLS)
    assert (answer.attempts, answer.tool_calls[0].arguments) == (2, OSLO)
    with pytest.raises(BudgetError):
        Bedrock(stream(events([text('{"a": ')], stop="max_tokens"))).model().generate_json("Go", CLOSED)


def test_keys_are_never_shown(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The key comes from the environment for Amazon's own address only; the region names that address."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    server = Bedrock(refusal(f"the token {KEY} is bad", 403, "AccessDeniedException"))
    own = load_model(f"bedrock:{MODEL}", transport=httpx.MockTransport(server))
    for model, sent in ((own, f"Bearer {KEY}"), (server.model(), None)):
        with pytest.raises(ModelError) as caught:
            model.generate("Hi")
        assert server.requests[-1].headers.get("authorization") == sent
        if sent is not None:
            assert server.requests[-1].url.host == "bedrock-runtime.eu-north-1.amazonaws.com"
            shown = [repr(model), repr(vars(model)), str(caught.value), caplog.text]
            assert not any(KEY in one for one in shown)
        caplog.clear()
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(ModelError, match="lacks the server"):
        load_model(f"bedrock:{MODEL}")


@given(st.data())
def test_a_lying_server_passes_nothing_invalid(data: Any) -> None:
    """Whatever a server sends in answer to strict tools: calls are valid, or there is an error."""
    block = st.one_of(
        st.builds(call, NAMES, ARGUMENTS, st.integers(1, 3)),
        st.builds(text, st.text(max_size=5)),
        st.builds(call, NAMES, st.sampled_from(['{"city": "Os', "{}}", "[1]", '"a"', "NaN"])),
    )
    answers = data.draw(st.lists(st.lists(block, max_size=3), min_size=1, max_size=3))
    stop = data.draw(st.sampled_from(["end_turn", "tool_use", "max_tokens", "malformed_tool_use"]))
    replies = [stream(events(one, stop=stop), is_checked=False) for one in answers]
    check_calls(Bedrock(*replies).model())
