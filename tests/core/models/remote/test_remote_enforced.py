"""vLLM with our plug-in: it is recognised, sent the envelope, believed as it streams, and never asked twice."""

from __future__ import annotations

import json
from typing import Annotated, Any

import httpx
import pytest
from pydantic import AfterValidator, BaseModel

from toolgrammar.adapters import _shared
from toolgrammar.adapters.vllm.envelope import Tokens, read_envelope, wanted
from toolgrammar.core import (
    ArgumentsDelta,
    AuthenticationError,
    CallEnd,
    CallStart,
    Copied,
    Finish,
    GenerateParams,
    LiveValuesError,
    Message,
    Seen,
    ServerConnectionError,
    ServerTimeoutError,
    TextDelta,
    ToolCall,
    ToolCallError,
    Values,
)
from toolgrammar.core.generation import JsonMode
from toolgrammar.core.generation.plan import resolve_params
from toolgrammar.core.models.remote import RemoteFinish, RemoteModel, enforced
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import get_format
from toolgrammar.tools.toolset import MAX_CALLS

TOOLS = ToolSet.from_any(
    [
        {
            "name": "look",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        }
    ]
)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def cut(whole: dict[str, Any], *places: str) -> dict[str, Any]:
    """A completion that the server closed by force."""
    whole["choices"][0] |= {"finish_reason": "length", "stop_reason": json.dumps({"toolgrammar": {"cut": places}})}
    return whole


def test_the_envelope_is_sent_and_nothing_is_held_back(serve: Any, complete: Any) -> None:
    """Calls come piece by piece, and the request names the tools for the template and for the grammar."""
    server = serve(complete("See: ", ("look", {"city": "Bergen"})), plugin=True)
    model = server.model(server="vllm")
    events = list(model.stream("Go", tools=TOOLS))
    pieces = [event.text for event in events if isinstance(event, ArgumentsDelta)]
    assert len(pieces) > 3 and "".join(pieces) == '{"city": "Bergen"}'
    assert sum(isinstance(event, TextDelta) for event in events) > 1
    assert [type(event) for event in events if isinstance(event, (CallStart, CallEnd))] == [CallStart, CallEnd]
    (asked,) = server.asked
    envelope = json.loads(asked["structured_outputs"]["grammar"])
    assert envelope["toolgrammar"] == 1 and envelope["tools"] == asked["tools"] == TOOLS.to_openai(closed=True)
    assert envelope["tool_choice"] == asked["tool_choice"] == "auto"


def test_a_whole_answer_is_streamed_too(serve: Any, complete: Any) -> None:
    """A long answer is no long silence, after which the request would fail."""
    server = serve(complete(None, ("look", {"city": "Oslo"})), complete('{"n": 12}'), plugin=True)
    model = server.model(server="vllm")
    assert model.generate("Go", tools=TOOLS).tool_calls[0].arguments == {"city": "Oslo"}
    assert model.generate_json("Go", SCHEMA) == {"n": 12}
    assert [asked["stream"] for asked in server.asked] == [True, True]


def test_values_of_a_schema_are_enforced_and_those_of_a_class_validated(serve: Any, complete: Any) -> None:
    """Validators of a Pydantic class run here, so its answers may have to be asked for again; a schema has none."""

    class Even(BaseModel):
        n: Annotated[int, AfterValidator(lambda n: n if n % 2 == 0 else n + 1)]

    server = serve(complete('{"n": 11}'), plugin=True)
    model = server.model(server="vllm")
    assert model.generate_json("Go", SCHEMA) == {"n": 11}
    assert model.generate_json("Go", Even) == Even(n=12)
    assert ["structured_outputs" in asked for asked in server.asked] == [True, False]


def test_the_guarantee_is_constrained(serve: Any, complete: Any) -> None:
    """It is `validated` before the first answer, and where the server cannot enforce all that was asked for."""
    server = serve(complete(None, ("look", {"city": "Oslo"})), plugin=True)
    model, params = server.model(server="vllm"), GenerateParams(tools=TOOLS, tool_choice="required")
    assert _shared.guarantee(model, params) == "validated"
    answer = model.generate("Go", params)
    assert answer.form == "toolgrammar" and answer.attempts == 1
    assert _shared.guarantee(model, params) == "constrained"
    assert _shared.guarantee(model, GenerateParams(tools=TOOLS, tool_format="hermes")) == "validated"
    assert answer.guarantee == "constrained"
    assert model.generate("Go", tools=TOOLS, tool_format="hermes").guarantee == "validated"


def test_the_first_stream_says_that_it_was_constrained(serve: Any, complete: Any) -> None:
    """Its end says so, and LangChain's metadata, though nothing was known of the server when it began."""
    from langchain_core.messages import AIMessageChunk

    from toolgrammar.adapters.langchain import ChatToolGrammar

    server = serve(complete(None, ("look", {"city": "Oslo"})), plugin=True)
    *_, end = server.model(server="vllm").stream("Go", tools=TOOLS)
    assert isinstance(end, RemoteFinish) and end.guarantee == "constrained"
    chat = ChatToolGrammar(model=server.model(server="vllm")).bind_tools(TOOLS.to_openai())
    whole = AIMessageChunk("")
    for chunk in chat.stream("Go"):
        whole += chunk
    assert whole.response_metadata["guarantee"] == "constrained"


def test_json_is_streamed_as_it_comes(serve: Any, complete: Any) -> None:
    """A JSON answer is handed on in pieces too."""
    server = serve(complete('{"n": 12}'), plugin=True)
    model = server.model(server="vllm")
    events = list(model.stream("Go", json_mode=JsonMode(schema=SCHEMA)))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ['{"n', '": ', "12}"]
    assert server.asked[0]["structured_outputs"] == {"json": SCHEMA}
    assert model.generate_json("Go", SCHEMA) == {"n": 12}


def test_cut_values_are_named(serve: Any, complete: Any) -> None:
    """What the server closed by force is in the call, or in the end of a JSON answer."""
    server = serve(cut(complete(None, ("look", {"city": ""})), "look/city"), plugin=True)
    answer = server.model(server="vllm").generate("Go", tools=TOOLS)
    (call,) = answer.tool_calls
    assert call.cut == ("/city",) and call.error is None and answer.finish_reason == "length"
    server = serve(cut(complete('{"n": 1}'), "/n"), plugin=True)
    events = list(server.model(server="vllm").stream("Go", json_mode=JsonMode(schema=SCHEMA)))
    assert isinstance(events[-1], Finish) and events[-1].cut == ("/n",) and events[-1].reason == "length"


def test_the_place_of_a_cut_call_is_that_of_its_own_tool(serve: Any, complete: Any) -> None:
    """One tool's name may begin another's; and an answer cut open behind whole arguments is the last call's cut."""
    named = [{"name": name, "parameters": {"type": "object", "properties": {}}} for name in ("look", "look_up")]
    tools = ToolSet.from_any(named)
    calls = ("look_up", {}), ("look", {})
    server = serve(cut(complete(None, *calls), "look_up"), cut(complete(None, *calls), ""), plugin=True)
    model = server.model(server="vllm")
    for places in ([("",), ()], [(), ("",)]):
        answer = model.generate("Go", tools=tools)
        assert [call.cut for call in answer.tool_calls] == places and answer.finish_reason == "length"


def test_a_call_that_was_cut_open_does_not_run(serve: Any, complete: Any) -> None:
    """A budget below the shortest call leaves arguments that do not parse."""
    server = serve(cut(complete(None, ("look", '{"ci')), ""), plugin=True)
    (call,) = server.model(server="vllm").generate("Go", tools=TOOLS, tool_choice="required").tool_calls
    assert call.cut == ("",) and call.error


def test_nothing_is_asked_twice(serve: Any, complete: Any) -> None:
    """An answer that is not valid all the same is an error."""
    server = serve(complete(None, ("look", {"town": 1})), plugin=True)
    with pytest.raises(ToolCallError):
        server.model(server="vllm").generate("Go", tools=TOOLS)
    assert len(server.asked) == 1


def test_a_server_without_the_plugin_is_asked_as_before(serve: Any, complete: Any) -> None:
    """Its answers are validated, and the probe is sent once."""
    server = serve(complete(None, ("look", {"city": "Oslo"})))
    probes: list[Any] = []
    model = server.model(server="vllm")
    fetch = model._transport.fetch

    async def counted(path: str, body: Any = None) -> Any:
        if body is not None and body.get("max_tokens") == 1:
            probes.append(body)
        return await fetch(path, body)

    model._transport.fetch = counted
    for _ in range(2):
        assert model.generate("Go", tools=TOOLS).form == "strict tools"
    assert len(probes) == 1


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (httpx.ReadTimeout("slow"), ServerTimeoutError),
        (httpx.ConnectError("refused"), ServerConnectionError),
        (httpx.Response(401, json={"error": {"message": "who are you?"}}), AuthenticationError),
    ],
)
def test_a_server_that_fails_at_the_probe_is_probed_again(
    serve: Any, complete: Any, failure: Any, error: type[Exception]
) -> None:
    """The failure is told at once, and a later request finds the plug-in."""
    server = serve(complete(None, ("look", {"city": "Oslo"})), plugin=True)
    failures = [failure]

    async def first_fails(request: httpx.Request) -> httpx.Response:
        if not failures:
            return await server(request)
        failed = failures.pop()
        if isinstance(failed, Exception):
            raise failed
        return failed

    model = RemoteModel("m@http://model.test/v1", server="vllm", transport=httpx.MockTransport(first_fails))
    with pytest.raises(error, match=r"http://model\.test/v1"):
        model.generate("Go", tools=TOOLS)
    assert not server.asked
    assert model.generate("Go", tools=TOOLS).guarantee == "constrained"


def test_values_of_the_conversation_are_in_the_envelope(serve: Any, complete: Any) -> None:
    """The plug-in enforces ids of results and copied text; the prompt's tools are the same in each conversation."""

    def cancel(order: Annotated[str, Seen("order_id")], why: Annotated[str, Copied()] = "") -> str:
        """Cancel an order."""
        return order

    turns = [
        Message("user", "Cancel it, it broke."),
        Message("assistant", "", tool_calls=(ToolCall("c", "orders", {}),)),
        Message("tool", '{"order_id": "O-4"}', tool_call_id="c"),
    ]
    server = serve(complete(None, ("cancel", {"order": "O-4", "why": "it broke"})), plugin=True)
    model, params = server.model(server="vllm"), GenerateParams(tools=[cancel], tool_choice="required")
    answer = model.generate(turns, params)
    assert answer.form == "toolgrammar" and answer.left_out == () and answer.guarantee == "constrained"
    assert _shared.guarantee(model, resolve_params(params, {})) == "constrained"
    (asked,) = server.asked
    asked_for = read_envelope(asked["structured_outputs"]["grammar"], Tokens())
    wire = get_format("hermes")
    for order, why, is_right in [("O-4", "it broke", True), ("O-5", "it broke", False), ("O-4", "smashed", False)]:
        text = wire.render("", [ToolCall("", "cancel", {"order": order, "why": why})])
        assert asked_for.grammar.matches(text) is is_right
    assert "O-4" not in json.dumps(asked["tools"])
    with pytest.raises(LiveValuesError):
        model.generate("Cancel it.", params)


def test_a_policy_is_in_the_envelope(serve: Any, complete: Any) -> None:
    """The plug-in enforces it, the prompt shows nothing of it, calls that a person confirms are marked, and an answer
    of a server that did not hold to it is an error."""
    policy = {"tools": {"look": {"city": ["user", "ask"]}}}
    server = serve(*(complete(None, ("look", {"city": city})) for city in ("Oslo", "Bergen", "Rome")), plugin=True)
    model, turn = server.model(server="vllm"), [Message("user", "The weather in Oslo.")]
    asked = [model.generate(turn, tools=TOOLS, policy=policy).tool_calls[0].ask for _ in range(2)]
    assert asked == [(), ("/city",)]
    with pytest.raises(ToolCallError, match="policy"):
        model.generate(turn, tools=TOOLS, policy={"tools": {"look": {"city": "user"}}})
    bodies = server.asked[:3]
    grammar = read_envelope(bodies[2]["structured_outputs"]["grammar"], Tokens()).grammar
    for city, is_right in (("Oslo", True), ("Rome", False)):
        assert grammar.matches(get_format("hermes").render("", [ToolCall("", "look", {"city": city})])) is is_right
    assert bodies[2]["tools"] == TOOLS.to_openai(closed=True)


def test_an_answer_of_the_conversation_is_enforced(serve: Any, complete: Any) -> None:
    """The schema has the texts, as a grammar in a string."""

    class Quote(BaseModel):
        text: Annotated[str, Copied()]

    server = serve(complete('{"text": "it broke"}'), plugin=True)
    answer = server.model(server="vllm").generate("Cancel it, it broke.", output_type=Quote)
    assert answer.form == "toolgrammar" and answer.left_out == ()
    grammar = wanted("JSON", json.dumps(server.asked[0]["structured_outputs"]["json"]), Tokens()).grammar
    assert grammar.matches('{"text": "it broke"}') and not grammar.matches('{"text": "smashed"}')


def test_values_of_a_callable_are_not_left_to_the_plug_in(serve: Any, complete: Any) -> None:
    """It cannot ask the callable: answers are checked here, and asked for again."""

    def close(ticket: Annotated[str, Values(lambda: ["T-1"])]) -> str:
        """Close a ticket."""
        return ticket

    server = serve(
        complete(None, ("close", {"ticket": "T-2"})), complete(None, ("close", {"ticket": "T-1"})), plugin=True
    )
    model, params = server.model(server="vllm"), GenerateParams(tools=[close], tool_choice="required")
    answer = model.generate("Close it.", params)
    assert answer.tool_calls[0].arguments == {"ticket": "T-1"} and answer.attempts == 2
    assert answer.form != "toolgrammar" and answer.enforced["close/properties/ticket/x-values"] == "validation"
    assert _shared.guarantee(model, resolve_params(params, {})) == "validated"


def test_calls_of_the_plug_in_are_counted_and_named(serve: Any, complete: Any) -> None:
    """The envelope has the bound of the tool set; another tool than the demanded one, or more calls, are no answer."""
    two = ToolSet([*TOOLS, {"name": "go", "parameters": {"type": "object", "properties": {}}}], max_calls=1)
    calls = [("go", {}), ("look", {"city": "Oslo"})]
    server = serve(complete(None, *calls), plugin=True)
    with pytest.raises(ToolCallError, match="2 calls; at most 1"):
        server.model(server="vllm").generate("Go", tools=two)
    assert json.loads(server.asked[0]["structured_outputs"]["grammar"])["max_calls"] == 1
    with pytest.raises(ToolCallError, match="'go' was called; call 'look'"):
        serve(complete(None, calls[0]), plugin=True).model(server="vllm").generate("Go", tools=two, tool_choice="look")
    assert enforced.MAX_CALLS == MAX_CALLS


def test_calls_beyond_the_bound_of_a_tool_set_are_dropped(serve: Any, complete: Any) -> None:
    """As a local model stops after the last allowed call."""
    answer = complete(None, *(("look", {"city": city}) for city in ("Oslo", "Rome", "Bonn")))
    for most, number in ((2, 2), (None, 3)):
        generation = serve(answer).model().generate("Go", tools=ToolSet(TOOLS, max_calls=most))
        assert [call.arguments["city"] for call in generation.tool_calls] == ["Oslo", "Rome", "Bonn"][:number]
