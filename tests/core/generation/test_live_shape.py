"""Structured answers with live values: every entry point, local and remote."""

import asyncio
import json
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal

import httpx
import pytest
from pydantic import BaseModel

from toolgrammar.core import (
    AtLeast,
    Copied,
    InvalidArgumentsError,
    JsonMode,
    LiveValuesError,
    Message,
    Seen,
    ToolCall,
    Values,
    given,
    load_model,
)
from toolgrammar.core.models.remote import RemoteModel
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

IDS = {"engine": ["E-1", "E-7"], "site": ["S-4"]}
MESSAGES = [
    Message("user", "Cancel my order, it broke."),
    Message("assistant", "", tool_calls=(ToolCall("c", "list_orders", {}),)),
    Message("tool", '{"orders": [{"order_id": "O-17"}, {"order_id": "O-18"}]}', tool_call_id="c"),
]


class Ticket(BaseModel):
    """A ticket of a project: the field is written after the one that it reads."""

    ticket: Annotated[str, Values(lambda call: IDS[call["project"]], after=("project",))]
    project: Literal["engine", "site"]


class Stay(BaseModel):
    """Some days."""

    first: date
    last: Annotated[date, AtLeast("first")]


class Order(BaseModel):
    """An order of the conversation."""

    order_id: Annotated[str, Seen("order_id")]
    reason: Annotated[str, Copied()]


class Report(BaseModel):
    """Tickets and orders, in lists."""

    tickets: list[Ticket]
    orders: list[Order]


#: For each class: what the model wants to write, which is wrong, and whether a value is right.
CASES: dict[str, tuple[Any, Any, Callable[[Any], bool]]] = {
    "values": (Ticket, {"project": "engine", "ticket": "S-4"}, lambda it: it.ticket in IDS[it.project]),
    "bound": (Stay, {"first": "2026-01-02", "last": "2020-01-01"}, lambda it: it.last >= it.first),
    "conversation": (
        Order,
        {"order_id": "O-9", "reason": "it smashed"},
        lambda it: it.order_id in ("O-17", "O-18") and it.reason in "Cancel my order, it broke.",
    ),
    "nested": (
        Report,
        {
            "tickets": [{"project": "site", "ticket": "E-1"}],
            "orders": [{"order_id": "O-1", "reason": "none"}],
        },
        lambda it: (
            all(one.ticket in IDS[one.project] for one in it.tickets)
            and all(one.order_id in ("O-17", "O-18") and one.reason in MESSAGES[0].text for one in it.orders)
        ),
    ),
    "list": (
        list[Ticket],
        [{"project": "site", "ticket": "E-1"}],
        lambda it: bool(it) and all(one.ticket in IDS[one.project] for one in it),
    ),
}


def note(text: str) -> str:
    """Note a text."""
    return text


def entries(model: Any, shape: Any) -> dict[str, Callable[[], Any]]:
    """Return the ways to ask for a shape; each gives a JSON text or an instance."""
    given_type: Any = {"output_type": shape, "max_tokens": 400}
    return {
        "generate": lambda: model.generate(MESSAGES, **given_type).text,
        "agenerate": lambda: asyncio.run(model.agenerate(MESSAGES, **given_type)).text,
        "generate_json": lambda: model.generate_json(MESSAGES, shape, max_tokens=400),
        "agenerate_json": lambda: asyncio.run(model.agenerate_json(MESSAGES, shape, max_tokens=400)),
        "generate_batch": lambda: model.generate_batch([MESSAGES], **given_type)[0].text,
        "json_mode": lambda: model.generate(MESSAGES, json_mode=JsonMode(schema=shape), max_tokens=400).text,
        "not strict": lambda: model.generate_json(
            MESSAGES, json_mode=JsonMode(schema=shape, strict=False), max_tokens=400
        ),
        "stream": lambda: "".join(
            event.text for event in model.stream(MESSAGES, **given_type) if type(event).__name__ == "TextDelta"
        ),
        "beside tools": lambda: model.generate(MESSAGES, tools=[note], **given_type).text,
    }


def instance(shape: Any, found: Any) -> Any:
    """Return the instance of a shape."""
    from pydantic import TypeAdapter

    return TypeAdapter(shape).validate_json(found) if isinstance(found, str) else found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("entry", entries(None, None))
def test_every_entry_holds_the_values(case: str, entry: str) -> None:
    """Whatever the model wants, the answer has live values, and values of the conversation."""
    shape, wish, is_right = CASES[case]
    model = ScriptedModel(lambda messages: Message("assistant", json.dumps(wish)))
    found = instance(shape, entries(model, shape)[entry]())
    assert is_right(found), found


@pytest.mark.parametrize("case", CASES)
def test_what_the_model_wants_is_kept_if_it_is_right(case: str) -> None:
    """An answer that the values allow is written as it is."""
    right = {
        "values": {"project": "engine", "ticket": "E-7"},
        "bound": {"first": "2026-01-02", "last": "2027-03-04"},
        "conversation": {"order_id": "O-17", "reason": "my order"},
        "nested": {"tickets": [{"project": "site", "ticket": "S-4"}], "orders": []},
        "list": [{"project": "engine", "ticket": "E-7"}, {"project": "site", "ticket": "S-4"}],
    }[case]
    model = ScriptedModel([Message("assistant", json.dumps(right))])
    assert json.loads(model.generate(MESSAGES, output_type=CASES[case][0], max_tokens=400).text) == right


@pytest.mark.parametrize("seed", range(12))
def test_random_weights(seed: int) -> None:
    """A model that wants nothing writes right answers too."""
    shape, _, is_right = CASES[["values", "bound", "conversation"][seed % 3]]
    with load_model("embedded", seed=seed) as model:
        found = model.generate_json(MESSAGES, shape, temperature=1.0, seed=seed, max_tokens=200, allow_cut=True)
    assert is_right(found), found


def test_a_json_schema_with_a_callable() -> None:
    """``x-values`` of a plain schema may be the callable, and is asked once for the same members."""
    asked: list[Any] = []

    def values(call: Any) -> list[str]:
        asked.append(call)
        return ["a-1"]

    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}, "id": {"x-values": values}}, "required": ["id"]}
    model = ScriptedModel([Message("assistant", '{"n": 2, "id": "b"}')])
    assert json.loads(model.generate("Go.", output_type=schema, max_tokens=200).text) == {"n": 2, "id": "a-1"}
    assert [one for one in asked if one] == [{"n": 2}] and schema["properties"]["id"] == {"x-values": values}


def test_given_arguments_reach_the_callable() -> None:
    """What `given` gives is seen, and a member of the answer comes first."""

    class Mine(BaseModel):
        ticket: Annotated[str, Values(lambda call: IDS[call["team"]], after=("team",))]

    model = ScriptedModel([Message("assistant", '{"ticket": "E-1"}')])
    with given(team="site"):
        assert model.generate_json("Mine.", Mine, max_tokens=200).ticket == "S-4"


def test_a_failing_callable_names_the_field() -> None:
    """The error has the field and the cause."""

    class Broken(BaseModel):
        ticket: Annotated[str, Values(lambda call: call["nothing"])]

    model = ScriptedModel([Message("assistant", '{"ticket": "E-1"}')])
    with pytest.raises(LiveValuesError, match=r"KeyError: 'nothing'.*parameter 'ticket'"):
        model.generate_json("Mine.", Broken, max_tokens=200)


def test_without_values_there_is_an_error_before_the_answer() -> None:
    """A conversation without results has no answer; the error names the field's place."""
    model = ScriptedModel([Message("assistant", "{}")])
    with pytest.raises(LiveValuesError, match=r"no value for a required field.*properties/order_id"):
        model.generate("Cancel it.", output_type=Order, max_tokens=200)


def test_beside_tools_only_calls_are_offered_without_values() -> None:
    """An agent has to call a tool before it can answer; afterwards it answers with what the tool returned."""

    def list_orders() -> str:
        """List the orders."""
        return '{"order_id": "O-3"}'

    tools = ToolSet([list_orders])
    turns: list[Message] = [Message("user", "Cancel it, it broke.")]
    model = ScriptedModel(lambda messages: Message("assistant", '{"order_id": "O-9", "reason": "it broke"}'))
    first = model.generate(turns, tools=tools, output_type=Order, max_tokens=400)
    assert [call.name for call in first.tool_calls] == ["list_orders"]
    turns += [first.message, tools.execute(first.tool_calls[0]).to_message()]
    second = model.generate(turns, tools=tools, output_type=Order, parallel_tool_calls=False, max_tokens=400)
    assert json.loads(second.text) == {"order_id": "O-3", "reason": "it broke"}


def test_unconstrained_answers_are_checked() -> None:
    """An answer that was written without a grammar is asked for again; the model sees no callables."""
    prompts: list[str] = []

    def reply(messages: Any) -> Message:
        prompts.append(" ".join(message.text for message in messages))
        return Message("assistant", '{"project": "site", "ticket": "%s"}' % ("E-1" if len(prompts) == 1 else "S-4"))

    model = ScriptedModel(reply)
    mode = JsonMode(constrained_decoding=False)
    assert model.generate_json("Which?", Ticket, json_mode=mode, max_tokens=200).ticket == "S-4"
    assert "x-values" not in prompts[0] and '"E-1" is not one of the present values' in prompts[-1]


# -- on a server ---------------------------------------------------------------------------------------------------


def served(*answers: Any) -> tuple[RemoteModel, list[Any]]:
    """Return a model whose server writes these answers one after the other, and the bodies that it got."""
    sent: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        said = json.dumps(answers[min(len(sent), len(answers)) - 1])
        choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        return httpx.Response(200, json={"choices": [choice]})

    return RemoteModel("m@http://model.test/v1", transport=httpx.MockTransport(answer)), sent


def test_a_server_sees_no_callable() -> None:
    """Its answer is checked by the callable, and asked for again."""
    model, sent = served({"project": "site", "ticket": "E-1"}, {"project": "site", "ticket": "S-4"})
    generation = model.generate("Which?", output_type=Ticket)
    assert json.loads(generation.text) == {"project": "site", "ticket": "S-4"} and len(sent) == 2
    assert "x-values" not in json.dumps(sent[0]) and "S-4" not in json.dumps(sent[0])
    assert generation.left_out == ("response/properties/ticket/x-values",)
    assert generation.enforced == {"response": "server", "response/properties/ticket/x-values": "validation"}


def test_a_server_enforces_ids_of_the_conversation() -> None:
    """The schema has the ids as an enum; copied text is checked here."""
    wrong, right = {"order_id": "O-17", "reason": "smashed"}, {"order_id": "O-17", "reason": "it broke"}
    model, sent = served(wrong, right)
    generation = model.generate(MESSAGES, output_type=Order)
    assert json.loads(generation.text) == right and len(sent) == 2
    schema = sent[0]["response_format"]["json_schema"]["schema"]
    assert "O-18" in json.dumps(schema["properties"]["order_id"]) and "x-" not in json.dumps(schema)
    assert generation.left_out == ("response/properties/reason/x-copied",)


def test_a_server_is_not_asked_without_values() -> None:
    """A conversation without results has no answer, and a demanded call of such a tool neither."""

    def cancel(order_id: Annotated[str, Seen("order_id")]) -> str:
        """Cancel an order."""
        return order_id

    model, sent = served({})
    with pytest.raises(LiveValuesError):
        model.generate("Cancel it.", output_type=Order)
    with pytest.raises(LiveValuesError):
        model.generate("Cancel it.", tools=[cancel], tool_choice="required")
    assert sent == []


def test_a_server_that_never_gives_a_value() -> None:
    """After the retries the error names the field."""
    model, _ = served({"project": "site", "ticket": "E-1"})
    with pytest.raises(InvalidArgumentsError, match="present values of the field"):
        model.generate("Which?", output_type=Ticket)
