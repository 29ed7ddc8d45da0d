"""Answers that were cut, whatever the server says of them: no part of one is ever handed over as the whole."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from toolgrammar.core import (
    BudgetError,
    InvalidArgumentsError,
    JsonMode,
    Message,
    ToolCall,
    ToolGrammarError,
    load_model,
)
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import get_format

#: Every argument but one is optional, so that most beginnings of a call are valid once they are closed.
BOOK = {
    "name": "book",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "nights": {"type": "integer", "default": 1},
            "guests": {"type": "array", "items": {"type": "string"}},
            "room": {"type": "object", "properties": {"beds": {"type": "integer"}, "view": {"type": "string"}}},
        },
        "required": ["city"],
    },
}
TOOLS = ToolSet.from_any([BOOK, {"name": "now", "parameters": {"type": "object", "properties": {}}}])
WHOLE = {"city": "Oslo", "nights": 12, "guests": ["Åsa", "Bo"], "room": {"beds": 2, "view": "sea"}}
TEXT = json.dumps(WHOLE, ensure_ascii=False)
BUDGET = 40


def answered(complete: Any, written: int | None, *parts: Any, finish: str) -> dict[str, Any]:
    """A completion that counts this many tokens, or none at all."""
    reply: dict[str, Any] = complete(*parts, finish=finish)
    reply["usage"] = {} if written is None else {"prompt_tokens": 10, "completion_tokens": written}
    return reply


def calls_of(model: Any, live: bool, **options: Any) -> list[ToolCall]:
    """The calls that are handed over; none where there is an error instead."""
    try:
        if live:
            return [event.call for event in model.stream("Go", tools=TOOLS, **options) if hasattr(event, "call")]
        return list(model.generate("Go", tools=TOOLS, **options).tool_calls)
    except ToolGrammarError:
        return []


@pytest.mark.parametrize("finish", ["tool_calls", "stop", "length", "abort"])
@pytest.mark.parametrize("written", [BUDGET, None, BUDGET - 1])
@pytest.mark.parametrize("live", [False, True])
def test_no_beginning_of_a_call_is_a_call(
    serve: Any, complete: Any, finish: str, written: int | None, live: bool, thorough: bool
) -> None:
    """Wherever the arguments were cut, and whatever finish reason and counts say: the call is cut, or there is none."""
    cut = 0
    for size in range(0, len(TEXT), 3 if thorough else 7):
        for options in ({}, {"tool_choice": "book"}, {"max_tokens": BUDGET}):
            model = serve(answered(complete, written, None, ("book", TEXT[:size]), finish=finish)).model(retries=0)
            for call in calls_of(model, live, **options):
                assert call.cut == ("",) and call.error is not None and not call.arguments
                assert TOOLS.execute(call, allow_cut=True).is_error
                cut += 1
    assert bool(cut) == (finish in ("length", "abort") or written in (BUDGET, None))


#: What loops do with arguments without a look at ``error``.
READERS: dict[str, Callable[[Any], object]] = {
    "unpacked": lambda arguments: (lambda **named: named)(**arguments),
    "copied": dict,
    "joined": lambda arguments: {**arguments},
    "listed": lambda arguments: list(arguments.items()),
    "asked for": lambda arguments: arguments["city"],
    "asked for, or not": lambda arguments: arguments.get("city"),
    "looked for": lambda arguments: "city" in arguments,
    "written": json.dumps,
}


@pytest.mark.parametrize("way", READERS)
def test_a_loop_that_looks_at_nothing_runs_no_cut_call(serve: Any, complete: Any, way: str) -> None:
    """A cut call has no arguments rather than empty ones: whoever reads them gets an error, and the guarantee says it."""
    reply = answered(complete, BUDGET, None, ("now", {}), ("book", TEXT[:30]), finish="length")
    answer = serve(reply).model().generate("Go", tools=TOOLS, max_tokens=BUDGET)
    whole, cut = answer.tool_calls
    assert (dict(whole.arguments), answer.guarantee, answer.finish_reason) == ({}, "cut", "length")
    for call in (cut, pickle.loads(pickle.dumps(cut)), copy.deepcopy(cut)):
        assert call == cut and not call.arguments and call.arguments != {}
        with pytest.raises((InvalidArgumentsError, TypeError), match=r"no arguments|not JSON serializable"):
            READERS[way](call.arguments)


def test_a_cut_answer_that_comes_whole_has_the_end_of_its_stream(serve: Any, complete: Any) -> None:
    """An answer that is told as events ends as it was streamed: the guarantee is ``"cut"`` in both."""
    reply = answered(complete, BUDGET, None, ("book", TEXT[:9]), finish="length")
    whole = serve(reply).model(retries=0).generate("Go", tools=TOOLS)
    end = [*serve(reply).model(retries=0).stream("Go", tools=TOOLS)][-1]
    assert whole.events()[-1] == end == whole.finish()
    assert end.details == whole.details and whole.details["guarantee"] == "cut"


@pytest.mark.parametrize("parsed", ["<tool_call>\n{", '<tool_call>\n{"name": "now", "arguments": [1]}\n</tool_call>'])
def test_a_malformed_call_in_text_has_no_arguments_either(parsed: str) -> None:
    """What a parser cannot read has no arguments, whoever wrote it."""
    (call,) = TOOLS.parse(parsed, "hermes").tool_calls
    assert call.error is not None
    with pytest.raises(InvalidArgumentsError, match="malformed call"):
        dict(call.arguments)


def test_a_conversation_goes_on_after_a_cut_call(serve: Any, complete: Any) -> None:
    """The turn with the cut call goes back to models as it is: over a server, and locally."""
    reply = answered(complete, BUDGET, None, ("book", TEXT[:30]), finish="length")
    server = serve(reply, complete("Fine."))
    model = server.model()
    first = model.generate("Go", tools=TOOLS, max_tokens=BUDGET)
    result = TOOLS.execute(first.tool_calls[0])
    turns = [Message("user", "Go"), first.message, result.to_message()]
    assert result.is_error and model.generate(turns, tools=TOOLS).text == "Fine."
    assert [call["function"]["name"] for call in server.asked[1]["messages"][1]["tool_calls"]] == ["book"]
    assert load_model("embedded").generate(turns, tools=TOOLS, max_tokens=200).finish_reason


@pytest.mark.parametrize("live", [False, True])
def test_what_the_server_closed_itself_is_no_call(serve: Any, complete: Any, live: bool) -> None:
    """Some servers close what they cut, and say ``tool_calls``: the budget that was used up is what gives it away."""
    import json_repair

    closed = {json.dumps(json_repair.loads(TEXT[:size])) for size in range(9, len(TEXT))}
    assert len(closed) > 10
    for arguments in closed:
        reply = answered(complete, BUDGET, None, ("now", {}), ("book", arguments), finish="tool_calls")
        first, last = calls_of(serve(reply).model(), live, max_tokens=BUDGET)
        assert (first.name, first.cut, first.error) == ("now", (), None)
        assert last.cut == ("",) and not last.arguments
    whole = answered(complete, BUDGET - 1, None, ("book", TEXT), finish="tool_calls")
    assert [call.arguments for call in calls_of(serve(whole).model(), live, max_tokens=BUDGET)] == [WHOLE]


def test_the_window_is_a_budget_too(serve: Any, complete: Any) -> None:
    """Where the server tells its window (``server="auto"``), an answer that fills it may be cut; a guess tells nothing."""
    import httpx

    listing = httpx.Response(200, json={"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 50}]})
    reply = answered(complete, 40, None, ("book", TEXT), finish="tool_calls")
    (call,) = calls_of(serve(listing, reply).model(server="auto"), False)
    assert call.cut
    (call,) = calls_of(serve(reply).model(context_window=50), False)
    assert not call.cut


def test_calls_that_come_without_arguments(serve: Any, complete: Any) -> None:
    """An empty text is a call of a tool that takes no arguments; of another one it may be all that came."""
    for name, cut in (("now", False), ("book", True)):
        reply = answered(complete, None, None, (name, ""), finish="tool_calls")
        (call,) = calls_of(serve(reply).model(), False, max_tokens=BUDGET)
        assert bool(call.cut) is cut


@pytest.mark.parametrize("name", ["hermes", "mistral-v7", "llama-json", "glm-4.5", "pythonic"])
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_no_beginning_of_a_call_in_text_is_a_call(serve: Any, complete: Any, name: str, finish: str) -> None:
    """Calls that come as text are whole when the text shows their end, and only then."""
    text = get_format(name).render("", [ToolCall("aaaaaaaaa", "book", WHOLE)])
    whole = 0
    for size in range(1, len(text) + 1):
        reply = answered(complete, None, text[:size], finish=finish)
        for call in calls_of(serve(reply).model(retries=0), False, tool_format=name, max_tokens=BUDGET):
            assert call.cut or call.arguments == WHOLE
            whole += not call.cut
    assert whole >= 1


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize("written", [BUDGET, None, 1])
def test_no_beginning_of_json_is_json(serve: Any, complete: Any, finish: str, written: int | None) -> None:
    """JSON that ends too early is an error; the budget is named as the reason where it may be."""
    for size in range(1, len(TEXT)):
        model = serve(answered(complete, written, TEXT[:size], finish=finish)).model()
        with pytest.raises(ToolGrammarError) as caught:
            model.generate("Go", json_mode=JsonMode(schema=BOOK["parameters"]), max_tokens=BUDGET)
        assert isinstance(caught.value, BudgetError) == (finish == "length" or written != 1)
    whole = serve(answered(complete, BUDGET, f"{TEXT} ", finish="length")).model()
    answer = whole.generate("Go", json_mode=JsonMode(schema=BOOK["parameters"]), max_tokens=BUDGET)
    assert (json.loads(answer.text), answer.finish_reason) == (WHOLE, "stop")


def test_json_in_the_spelling_that_was_asked_for(serve: Any) -> None:
    """``whitespace="compact"`` counts for servers too."""
    answer = serve(TEXT).model().generate("Go", json_mode=JsonMode(schema=True, whitespace="compact"))
    assert answer.text == json.dumps(WHOLE, ensure_ascii=False, separators=(",", ":"))


#: A call with a stop string in its argument.
CALL_OF_STOP = '\n<tool_call>\n{"name": "note", "arguments": {"text": "one STOP"}}\n</tool_call>'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("text", "options", "said", "calls"),
    [
        ("I look." + CALL_OF_STOP, {}, "I look.", ["one STOP"]),
        ("I STOP." + CALL_OF_STOP, {}, "I ", []),
        ("STOP" + CALL_OF_STOP, {}, "", []),
        ("I STOP." + CALL_OF_STOP, {"tool_choice": "required"}, "I ", ["one STOP"]),
        ("I look." + CALL_OF_STOP.replace("one", "1"), {"stop": ["call", "ST"]}, "I look.", ["1 STOP"]),
    ],
)
def test_stop_strings_outside_of_calls(
    serve: Any, text: str, options: dict[str, Any], said: str, calls: list[str], stream: bool
) -> None:
    """They end the text, and are not sent, since they would end a call in whose arguments they stand."""
    note = {"name": "note", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}
    given = {"stop": ["STOP"], "tools": ToolSet([note]), "tool_format": "hermes", **options}
    server = serve(text)
    if stream:
        answer = server.model().stream("Go", **given).result
    else:
        answer = server.model().generate("Go", **given)
    assert (answer.text.rstrip(), [call.arguments["text"] for call in answer.tool_calls]) == (said.rstrip(), calls)
    assert answer.finish_reason == ("tool_calls" if calls else "stop")
    assert len(server.asked) == 1 and "stop" not in server.asked[0]
    local = ScriptedModel([text]).generate("Go", max_tokens=300, **given)
    if "tool_choice" not in options:
        assert (local.text.rstrip(), [call.arguments["text"] for call in local.tool_calls]) == (said.rstrip(), calls)


def test_a_stop_string_in_json_beside_tools(serve: Any) -> None:
    """It ends no JSON answer, with tools or without."""
    server = serve('{"text": "one STOP"}')
    shape = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    answer = server.model().generate("Go", tools=[shape | {"title": "note"}], output_type=shape, stop=["STOP"])
    assert json.loads(answer.text) == {"text": "one STOP"} and "stop" not in server.asked[0]
