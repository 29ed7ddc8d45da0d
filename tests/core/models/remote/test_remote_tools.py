"""Calls of models on servers: what is asked of each kind of server, and that nothing but valid calls comes out."""

from __future__ import annotations

import json
from typing import Any

import httpx
import jsonschema
import pydantic
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from toolgrammar.core import (
    BudgetError,
    CallEnd,
    Finish,
    InvalidArgumentsError,
    Message,
    ModelError,
    ParseError,
    TextDelta,
    ToolCall,
    ToolGrammarError,
    UnknownToolError,
)
from toolgrammar.core.models.remote import RemoteModel
from toolgrammar.tools import ToolSet

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 2},
                "days": {"type": "integer", "minimum": 1, "maximum": 9},
                "day": {"type": "string", "format": "date"},
            },
            "required": ["city"],
        },
    },
}
LAMP = {
    "type": "function",
    "function": {
        "name": "lamp",
        "description": "Switch it.",
        "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]},
    },
}
TOOLS = ToolSet.from_any([WEATHER, LAMP])

#: What lying servers call: names and arguments, right and wrong ones.
NAMES = st.sampled_from(["weather", "lamp", "lump", ""])
ARGUMENTS = st.dictionaries(
    st.sampled_from(["city", "days", "on", "x"]),
    st.one_of(st.integers(-3, 12), st.booleans(), st.text(max_size=3), st.none()),
    max_size=3,
)


def check_calls(model: RemoteModel) -> None:
    """Whatever the server sends in answer to a demand of a call: calls are valid, or there is an error."""
    try:
        answer = model.generate("Go", tools=TOOLS, tool_choice="required")
    except ToolGrammarError:
        return
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in (WEATHER, LAMP)}
    assert answer.tool_calls
    for one in answer.tool_calls:
        if not one.cut:
            jsonschema.validate(dict(one.arguments), {**schemas[one.name], "additionalProperties": False})


def test_valid_calls_come_out(serve: Any, complete: Any) -> None:
    """Calls of a server come with their ids, names, decoded arguments and usage."""
    server = serve(complete("Let me see.", ("weather", {"city": "Oslo"}), ("lamp", {"on": True})))
    answer = server.model().generate("Weather?", tools=TOOLS)
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [
        ("id0", "weather", {"city": "Oslo"}),
        ("id1", "lamp", {"on": True}),
    ]
    assert (answer.text, answer.finish_reason, answer.usage.prompt_tokens) == ("Let me see.", "tool_calls", 10)
    assert answer.attempts == 1


def test_equal_calls_are_one(serve: Any, complete: Any) -> None:
    """A call that a server's model made before in the same turn is left out; what it makes after it is kept."""
    oslo = ("weather", {"city": "Oslo"})
    calls = [oslo, ("lamp", {"on": True}), oslo, ("weather", {"city": "Rome"})]
    for allowed, wanted in ((False, [*calls[:2], calls[3]]), (True, calls)):
        answer = serve(complete(None, *calls)).model().generate("Weather?", tools=TOOLS, equal_calls=allowed)
        assert [(call.name, call.arguments) for call in answer.tool_calls] == wanted
        events = list(serve(complete(None, *calls)).model().stream("Weather?", tools=TOOLS, equal_calls=allowed))
        ends = [event for event in events if isinstance(event, CallEnd)]
        assert [(end.index, end.call.name, end.call.arguments) for end in ends] == [
            (index, *one) for index, one in enumerate(wanted)
        ]


def test_an_answer_after_a_result_may_be_empty(serve: Any, complete: Any) -> None:
    """A server's model that has nothing to add is not asked again, unless an answer is demanded."""
    called = Message("assistant", tool_calls=(ToolCall("id0", "lamp", {"on": True}),))
    asked = [Message("user", "Light."), called, Message("tool", "on", tool_call_id="id0", name="lamp")]
    answer = serve(complete("")).model().generate(asked, tools=TOOLS)
    assert (answer.text, answer.tool_calls, answer.attempts) == ("", (), 1)
    again = serve(complete(""), complete("It is on.")).model().generate(asked, tools=TOOLS, empty_answer=False)
    assert (again.text, again.attempts) == ("It is on.", 2)
    first = serve(complete(""), complete("Yes?")).model().generate(asked[:1], tools=TOOLS)
    assert (first.text, first.attempts) == ("Yes?", 2)


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"city": "Oslo", "days": 10}, "maximum"),
        ({"days": 1}, "city"),
        ({"city": "Oslo", "extra": 1}, "extra"),
        ({"city": "Oslo", "day": "2024-02-30"}, "date"),
        ('{"city": "Oslo", "days": NaN}', "NaN"),
        ("[1]", "not a JSON object"),
    ],
)
def test_invalid_calls_are_asked_for_again(serve: Any, complete: Any, arguments: Any, wrong: str) -> None:
    """A call that is not valid is not handed on: the model is told what is wrong, and its next answer is taken."""
    server = serve(complete(None, ("weather", arguments)), complete(None, ("weather", {"city": "Rome"})))
    answer = server.model(repair=False).generate("Weather?", tools=TOOLS)
    assert [call.arguments for call in answer.tool_calls] == [{"city": "Rome"}]
    assert answer.attempts == 2
    assert answer.usage.prompt_tokens == 20  # both requests count
    told = server.asked[1]["messages"][-1]["content"]
    assert wrong in told or "number" in told or "10" in told


@pytest.mark.parametrize("strict", [False, True])
def test_integers_are_those_of_pydantic(serve: Any, complete: Any, strict: bool) -> None:
    """JSON Schema takes 3.0 and 1e25 for integers: the one is read as 3, the other asked for again, not at the call."""
    kind = pydantic.StrictInt if strict else int

    def count(of: Any, beside: Any, share: float, any: Any) -> Any:
        """Count."""
        return of, beside, share, any

    count.__annotations__.update(of=kind, beside=dict[str, kind])  # type: ignore[valid-type]
    tools = ToolSet.from_any([count])
    large = '{"of": 1e25, "beside": {}, "share": 2.0, "any": 0}'
    good = '{"of": 3.0, "beside": {"a": 4.0}, "share": 2.5, "any": null}'
    server = serve(complete("", ("count", large)), complete("", ("count", good)))
    answer = server.model().generate("Count.", tools=tools)
    assert answer.attempts == 2 and "1e+25" in json.dumps(server.asked[1])
    assert tools.call(answer.tool_calls[0]) == (3, {"a": 4}, 2.5, None)
    described = ToolSet.from_any([tools.to_openai()[0]])  # no Python in it: JSON Schema's integers
    server = serve(complete("", ("count", large)))
    assert server.model().generate("Count.", tools=described).tool_calls[0].arguments["of"] == 1e25


def test_answers_have_the_integers_of_pydantic(serve: Any, complete: Any) -> None:
    """The same for the JSON of a class."""
    model = pydantic.create_model("Count", of=(pydantic.StrictInt, ...), more=(list[int], []))
    server = serve(complete('{"of": 1e25}'), complete('{"of": 3.0, "more": [1.0, 2]}'))
    answer = server.model().generate_json("Count.", model)
    assert answer == model(of=3, more=[1, 2]) and len(server.asked) == 2


def test_names_that_are_no_tools_are_told(serve: Any, complete: Any) -> None:
    """A call of an unknown tool is an error for the model, which is told the names."""
    server = serve(complete(None, ("wether", {"city": "Oslo"})), complete(None, ("weather", {"city": "Oslo"})))
    assert server.model().generate("Weather?", tools=TOOLS).tool_calls[0].name == "weather"
    assert "weather, lamp" in server.asked[1]["messages"][-1]["content"]


def test_nothing_invalid_after_all_attempts(serve: Any, complete: Any) -> None:
    """When the model never learns, the error says how often it was asked, what is wrong and what was received."""
    server = serve(complete(None, ("weather", {"town": "Oslo"})))
    with pytest.raises(
        InvalidArgumentsError, match=r"asked 3 times.*city.*received: weather\(\{\"town\": \"Oslo\"\}\)"
    ):
        server.model().generate("Weather?", tools=TOOLS)
    assert len(server.asked) == 3
    with pytest.raises(InvalidArgumentsError, match="asked once"):
        serve(complete(None, ("weather", {}))).model(retries=0).generate("Weather?", tools=TOOLS)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('{"city": "Oslo", "days": "3"}', {"city": "Oslo", "days": 3}),
        ("{'city': 'Oslo', 'days': 3,}", {"city": "Oslo", "days": 3}),
        (json.dumps('{"city": "Oslo"}'), {"city": "Oslo"}),
    ],
)
def test_what_can_be_mended_is(serve: Any, complete: Any, written: str, meant: Any) -> None:
    """Numbers written as strings, broken JSON, and JSON encoded twice are mended without asking again."""
    answer = serve(complete(None, ("weather", written))).model().generate("Weather?", tools=TOOLS)
    (call,) = answer.tool_calls
    assert (call.arguments, answer.attempts) == (meant, 1)
    assert json.loads(call.raw) == meant


def test_demanded_calls(serve: Any, complete: Any) -> None:
    """A demanded call is demanded of the server, checked, and asked for again where only text came."""
    server = serve("I will not.", complete("Well.", ("weather", {"city": "Oslo"})))
    answer = server.model().generate("Weather?", tools=TOOLS, tool_choice="required")
    assert answer.tool_calls
    assert server.asked[0]["tool_choice"] == "required"
    named = serve(complete(None, ("weather", {"city": "Oslo"})), complete(None, ("lamp", {"on": False})))
    answer = named.model().generate("Off!", tools=TOOLS, tool_choice="lamp")
    assert [call.name for call in answer.tool_calls] == ["lamp"]
    assert named.asked[0]["tool_choice"] == {"type": "function", "function": {"name": "lamp"}}
    with pytest.raises(ParseError, match="no tool was called"):
        serve("No.").model().generate("Weather?", tools=TOOLS, tool_choice="required")
    with pytest.raises(UnknownToolError):
        serve("No.").model().generate("Weather?", tools=TOOLS, tool_choice="lamb")


def test_one_call_only(serve: Any, complete: Any) -> None:
    """Without parallel calls, the first one is taken, also of a server that does not know the option."""
    server = serve(complete(None, ("weather", {"city": "Oslo"}), ("lamp", {"on": True})))
    answer = server.model().generate("Go", tools=TOOLS, parallel_tool_calls=False)
    assert [call.name for call in answer.tool_calls] == ["weather"]
    assert server.asked[0]["parallel_tool_calls"] is False


def test_no_calls_where_none_is_allowed(serve: Any, complete: Any) -> None:
    """With ``tool_choice="none"`` a call is not handed on."""
    server = serve(complete(None, ("lamp", {"on": True})), "All right.")
    answer = server.model().generate("Go", tools=TOOLS, tool_choice="none")
    assert (answer.text, answer.tool_calls) == ("All right.", ())


@pytest.mark.parametrize("live", [False, True])
def test_no_calls_in_text_where_none_is_allowed(serve: Any, live: bool) -> None:
    """Nor one that the model writes into its text, as its history shows calls: it is told, and asked again."""
    written = 'Well. <tool_call>\n{"name": "lamp", "arguments": {"on": true}}\n</tool_call>'
    server = serve(written, "All right.")
    if live:
        events = server.model().stream("Go", tools=TOOLS, tool_choice="none")
        text = "".join(event.text for event in events if isinstance(event, TextDelta))
    else:
        text = server.model().generate("Go", tools=TOOLS, tool_choice="none").text
    assert "All right." in text and "tool_call" not in text
    assert "tools" not in server.asked[0] and "no tool may be called" in server.asked[1]["messages"][-1]["content"]
    # What is JSON, or has a form of its own, may hold any text.
    answer = serve(json.dumps(written)).model().generate("Go", tools=TOOLS, tool_choice="none", output_type=True)
    assert json.loads(answer.text) == written


def test_cut_calls_are_no_calls(serve: Any, complete: Any) -> None:
    """A call that the token budget cut is named as cut, has no arguments, and cannot run; whole ones before it stay."""
    reply = complete(None, ("lamp", {"on": True}), ("weather", '{"city": "Os'), finish="length")
    answer = serve(reply).model().generate("Go", tools=TOOLS, max_tokens=9)
    whole, cut = answer.tool_calls
    assert (whole.arguments, whole.cut, whole.error) == ({"on": True}, (), None)
    assert (cut.name, len(cut.arguments), cut.cut, answer.finish_reason) == ("weather", 0, ("",), "length")
    assert cut.error is not None and '{"city": "Os' in cut.error
    assert TOOLS.execute(cut, allow_cut=True).is_error
    with pytest.raises(BudgetError):
        serve(reply).model().generate("Go", tools=TOOLS, on_budget="error")


def test_servers_without_tools(serve: Any, complete: Any) -> None:
    """A server that refuses tools is told of them in the prompt, and calls are read out of its text; it is remembered."""

    def reply(body: dict[str, Any]) -> Any:
        if "tools" in body:
            return httpx.Response(400, json={"error": {"message": "m does not support tools"}})
        return 'Sure.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'

    server = serve(reply)
    model = server.model()
    history = [
        Message("user", "Lamp on"),
        Message("assistant", tool_calls=(ToolCall("1", "lamp", {"on": True}),)),
        Message("tool", "done", tool_call_id="1"),
        Message("user", "Weather?"),
    ]
    answer = model.generate(history, tools=TOOLS)
    assert answer.tool_calls[0].arguments == {"city": "Oslo"}
    assert (answer.text.strip(), answer.form) == ("Sure.", "prompt")
    assert "weather" in server.asked[-1]["messages"][0]["content"]
    assert all("tool_calls" not in message for message in server.asked[-1]["messages"])
    asked = len(server.asked)
    model.generate("Weather?", tools=TOOLS)
    assert len(server.asked) == asked + 1


@pytest.mark.parametrize("kind", ["openai", "vllm", "sglang", "llama.cpp", "ollama"])
def test_each_kind_is_asked_in_its_own_way(serve: Any, complete: Any, kind: str) -> None:
    """The strongest form that a kind of server takes is tried first; the schemas sent are never narrower."""
    server = serve(complete(None, ("lamp", {"on": True})))
    answer = server.model(server=kind).generate("Go", tools=TOOLS, tool_choice="required")
    body = server.asked[0]
    weather, lamp = (each["function"] for each in body["tools"])
    assert lamp["parameters"]["additionalProperties"] is False
    assert weather["parameters"]["properties"]["city"]["minLength"] == 2  # optional members: no strict mode of OpenAI's
    assert lamp.get("strict") == (True if kind in ("openai", "vllm", "sglang") else None)
    assert weather.get("strict") == (True if kind in ("vllm", "sglang") else None)
    assert body.get("tool_choice") == (None if kind == "ollama" else "required")
    forms = {"llama.cpp": "tools", "ollama": "json_schema of calls"}
    assert answer.form == forms.get(kind, "strict tools")


def test_what_is_not_sent_is_recorded_and_checked(serve: Any, complete: Any) -> None:
    """Keywords that OpenAI's strict mode lacks are left out of the request, named on the result, and checked here."""
    tools = ToolSet.from_any(
        [
            {
                "name": "tag",
                "parameters": {
                    "type": "object",
                    "properties": {"word": {"type": "string", "minLength": 3}},
                    "required": ["word"],
                },
            }
        ]
    )
    server = serve(complete(None, ("tag", {"word": "ab"})), complete(None, ("tag", {"word": "abc"})))
    answer = server.model().generate("Go", tools=tools)
    assert answer.left_out == ("tag/properties/word/minLength",)
    assert server.asked[0]["tools"][0]["function"]["parameters"]["properties"]["word"] == {"type": "string"}
    assert (answer.tool_calls[0].arguments, answer.attempts) == ({"word": "abc"}, 2)


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_stream_is_what_generate_gives(serve: Any, complete: Any, choice: str) -> None:
    """The deltas of a stream add up to the whole result, however the server cuts its events, also after a retry."""
    replies = [
        complete("Grüß Gott \u2028 🌧", ("weather", {"city": "O"}), reasoning_content="hm, rain"),
        complete("Again.", ("weather", {"city": "Tromsø 🌧"}), ("lamp", {"on": False})),
    ]
    whole = serve(*replies).model().generate("Go", tools=TOOLS, tool_choice=choice)
    events = list(serve(*replies).model().stream("Go", tools=TOOLS, tool_choice=choice))
    from toolgrammar.adapters._shared import Collector

    collector = Collector()
    for event in events:
        collector.add(event)
    assert collector.message() == whole.message
    assert isinstance(events[-1], Finish) and events[-1].usage == whole.usage
    assert [json.loads(text) for text in collector.arguments.values()] == [c.arguments for c in whole.tool_calls]
    if choice == "auto":
        assert sum(isinstance(event, TextDelta) for event in events) > 3


def test_history_is_sent_as_openai_has_it(serve: Any) -> None:
    """Calls and results of earlier turns go out with matching ids, even where they came without any."""
    server = serve("Fine.")
    server.model().generate(
        [
            Message("system", "Be kind."),
            Message("user", "Go"),
            Message("assistant", tool_calls=(ToolCall("", "lamp", {"on": True}), ToolCall("", "lamp", {"on": False}))),
            Message("tool", "on"),
            Message("tool", "off"),
        ],
        tools=TOOLS,
    )
    sent = server.asked[0]["messages"]
    assert [message["content"] for message in sent] == ["Be kind.", "Go", "", "on", "off"]  # null is refused by some
    ids = [call["id"] for call in sent[2]["tool_calls"]]
    assert len(set(ids)) == 2 and [message["tool_call_id"] for message in sent[3:]] == ids
    assert json.loads(sent[2]["tool_calls"][0]["function"]["arguments"]) == {"on": True}


def test_options_that_a_kind_lacks_are_errors(serve: Any) -> None:
    """An option that a server would silently ignore is an error before anything is sent."""
    server = serve("Fine.")
    with pytest.raises(ModelError, match="top_k"):
        server.model().generate("Go", top_k=5)
    server.model(server="vllm").generate("Go", top_k=5, thinking=False, repetition_penalty=1.1)
    assert server.asked[0]["chat_template_kwargs"] == {"enable_thinking": False}
    assert len(server.asked) == 1


WRITTEN = st.one_of(
    st.text(max_size=12),
    st.fixed_dictionaries(
        {},
        optional={
            "city": st.sampled_from(["", "O", "Oslo", 5, None, "\ud800x"]),
            "days": st.sampled_from([0, 1, 9, 10, 2.0, 2.5, "3", "x", True]),
            "day": st.sampled_from(["2024-02-29", "2023-02-29", ""]),
            "more": st.just(1),
        },
    ).map(json.dumps),
    st.sampled_from(
        ['{"city": "Oslo", "city": "O"}', '{"city": "Oslo"', '{"city": "Oslo"}}', "{'city': 'Oslo'}", '{"days": 1e999}']
    ),
)


@given(name=st.sampled_from(["weather", "lamp", "", "wether"]), written=WRITTEN, cut=st.booleans(), live=st.booleans())
def test_whatever_a_server_sends_no_invalid_call_comes_out(name: str, written: str, cut: bool, live: bool) -> None:
    """A call is valid under its schema, by ``jsonschema`` with formats, or marked so that nobody runs it; or an error."""
    function = {"name": name, "arguments": written}
    call = {"index": 0, "id": "1", "type": "function", "function": function}
    choice = {"message": {"content": None, "tool_calls": [call]}, "finish_reason": "length" if cut else "tool_calls"}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"choices": [choice]}))
    model = RemoteModel("m@http://model.test/v1", transport=transport)
    try:
        events = list(model.stream("Go", tools=TOOLS)) if live else []
        calls = [event.call for event in events if isinstance(event, CallEnd)]
        calls = calls if live else list(model.generate("Go", tools=TOOLS).tool_calls)
    except ToolGrammarError:
        reject()
    schemas = {each["function"]["name"]: each["function"]["parameters"] for each in (WEATHER, LAMP)}
    assert calls
    for found in calls:
        if found.error is not None:
            assert cut and found.cut and TOOLS.execute(found, allow_cut=True).is_error
            continue
        closed = {**schemas[found.name], "additionalProperties": False}
        checker = jsonschema.Draft202012Validator(closed, format_checker=jsonschema.FormatChecker(["date"]))
        assert list(checker.iter_errors(found.arguments)) == []
        assert json.loads(found.raw or "") == found.arguments
        (found.raw or "").encode()
