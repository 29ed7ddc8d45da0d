"""OpenAI's responses, through the real SDK: items, events, and conversations that go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest
from jsonschema import Draft202012Validator
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from toolgrammar.adapters.openai import client
from toolgrammar.adapters.server.fields import RequestError
from toolgrammar.adapters.server.protocols.response_memory import Kept, Memory
from toolgrammar.core import GenerateParams, Message, Model
from toolgrammar.core.testing import ScriptedModel

from .conftest import BOOKING

TOOLS: Any = [
    {"type": "function", "name": "book", "description": "Book.", "parameters": BOOKING, "strict": True},
    {"type": "function", "name": "cancel", "parameters": BOOKING, "strict": False},
]
VALID = Draft202012Validator(BOOKING)
EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@pytest.fixture(scope="module")
def noisy(noise: Model) -> Iterator[openai.OpenAI]:
    """OpenAI's client over the model of noise, which samples."""
    with client({"noise": noise}, defaults=GenerateParams(temperature=1.5, seed=5)) as made:
        yield made


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", {"book", "cancel"}),
        ({"type": "function", "name": "cancel"}, {"cancel"}),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "book"}]}, {"book"}),
        ("none", set()),
    ],
)
def test_choices_are_kept_and_calls_are_valid(noisy: openai.OpenAI, choice: Any, names: set[str]) -> None:
    """Noise calls what it must, with valid arguments; the stream of the same seed ends with the same items."""
    asked: Any = {
        "model": "noise", "input": "Hello", "tools": TOOLS, "tool_choice": choice, "parallel_tool_calls": False,
        "max_output_tokens": 120,
    }  # fmt: skip
    answer = noisy.responses.create(**asked)
    calls = [item for item in answer.output if item.type == "function_call"]
    assert {call.name for call in calls} <= names and len(calls) == bool(names)
    for call in calls:
        VALID.validate(json.loads(call.arguments))
    last: Any = list(noisy.responses.create(**asked, stream=True))[-1]
    final: Response = last.response
    assert [(i.type, getattr(i, "arguments", None)) for i in final.output] == [
        (i.type, getattr(i, "arguments", None)) for i in answer.output
    ]
    assert final.output_text == answer.output_text and final.status == answer.status


def test_a_conversation_goes_on_by_its_id(call: Callable[..., Message]) -> None:
    """Calls, results and answers, with what went before kept by the server; instructions are not."""
    model = ScriptedModel([call("book", code="AB123", seats=2), "Booked.", "Bye."])
    with client(model) as made:
        first = made.responses.create(model="scripted", input="Two.", instructions="Be brief.", tools=TOOLS)
        (wanted,) = first.output
        assert wanted.type == "function_call" and json.loads(wanted.arguments) == {"code": "AB123", "seats": 2}
        result: Any = [{"type": "function_call_output", "call_id": wanted.call_id, "output": "ok"}]
        second = made.responses.create(model="scripted", input=result, previous_response_id=first.id, tools=TOOLS)
        assert second.output_text == "Booked." and second.status == "completed"
        made.responses.create(model="scripted", input="Bye", previous_response_id=second.id, store=False)
        with pytest.raises(openai.NotFoundError):
            made.responses.create(model="scripted", input="x", previous_response_id="resp_0")
    roles = [[message.role for message in request] for request in model.requests]
    assert roles == [
        ["system", "user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "user"],
    ]


def test_the_whole_conversation_may_be_sent() -> None:
    """Items of earlier responses come back as input: one turn of the assistant is one message."""
    model = ScriptedModel(["Done."])
    items: Any = [
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Two."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "So.", "annotations": []}],
        },
        {"type": "function_call", "call_id": "1", "name": "book", "arguments": '{"code": "AB123", "seats": 1}'},
        {"type": "function_call", "call_id": "2", "name": "book", "arguments": "{"},
        {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "ok"}]},
        {"type": "function_call_output", "call_id": "2", "output": "bad"},
    ]
    with client(model) as made:
        assert made.responses.create(model="scripted", input=items, tools=TOOLS).output_text == "Done."
    seen = model.requests[0]
    assert [message.role for message in seen] == ["system", "user", "assistant", "tool", "tool"]
    assert seen[2].text == "So." and seen[2].reasoning == "hm" and len(seen[2].tool_calls) == 2
    assert seen[2].tool_calls[1].error and seen[3].text == "ok" and seen[4].tool_call_id == "2"


def test_tools_are_repeated_as_they_were_sent() -> None:
    """A namespace with its tools under their own names, a custom tool with its format, a function without a type."""
    function = {"type": "function", "name": "find", "parameters": BOOKING, "strict": False}
    custom = {"type": "custom", "name": "sql", "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z]+"}}
    space = {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [function, custom]}
    bare = {"name": "cancel"}
    sent: Any = [space, bare, {"type": "web_search"}, custom]
    with client(ScriptedModel(["Hello."] * 2)) as made:
        answer = made.responses.create(model="scripted", input="x", tools=sent)
        events = list(made.responses.create(model="scripted", input="x", tools=sent, stream=True))
    last: Any = events[-1]
    for response in (answer, last.response):  # the model is not offered a search of the web
        assert response.to_dict()["tools"] == [space, {**bare, "type": "function"}, custom]


def test_formats_are_kept(noisy: openai.OpenAI) -> None:
    """A schema, and the SDK's own parsing of a class."""

    class Part(BaseModel):
        name: str

    form: Any = {"format": {"type": "json_schema", "name": "booking", "schema": BOOKING, "strict": True}}
    answer = noisy.responses.create(model="noise", input="Hello", text=form, max_output_tokens=120)
    VALID.validate(json.loads(answer.output_text))
    with client(ScriptedModel(['{"name": "bell"}'])) as made:
        assert made.responses.parse(model="scripted", input="x", text_format=Part).output_parsed == Part(name="bell")


def test_responses_have_the_types_of_the_sdk(
    noise: Model, thinking: Model, call: Callable[..., Message], http: Callable[..., httpx.Client]
) -> None:
    """Whole responses and every event validate; events are numbered, and deltas join to what the items have."""
    cut = ScriptedModel(lambda messages: call("book", code="AB123", seats=1, extras={"x" * 200: 1}))
    plain = http({"noise": noise, "thinking": thinking, "cut": cut}, defaults=GenerateParams(temperature=1, seed=7))
    for name, extra in (
        ("noise", {}),
        ("noise", {"tools": TOOLS, "tool_choice": "required"}),
        ("thinking", {}),
        ("cut", {"tools": TOOLS, "tool_choice": "required"}),
    ):
        asked = {"model": name, "input": "Hello", "max_output_tokens": 110, **extra}
        whole = Response.model_validate_json(plain.post("/v1/responses", json=asked).content)
        frames = plain.post("/v1/responses", json={**asked, "stream": True}).text.split("\n\n")[:-1]
        events = [EVENTS.validate_json(frame.split("\n")[1].removeprefix("data: ")) for frame in frames]
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
        last = events[-1].response
        assert last.status == whole.status and [item.type for item in last.output] == [i.type for i in whole.output]
        deltas: dict[str, str] = {}
        for event in events:
            if event.type.endswith(".delta"):
                deltas[event.item_id] = deltas.get(event.item_id, "") + event.delta
        texts = [item.arguments if item.type == "function_call" else item.content[0].text for item in last.output]
        assert list(deltas.values()) == texts
        assert [item.status for item in last.output] == [item.status for item in whole.output]
        if whole.output[-1].type != "function_call":  # a call that the budget closed is whole
            assert whole.output[-1].status == whole.status
        assert {item.status for item in whole.output[:-1]} <= {"completed"}
        if name == "cut":
            assert whole.status == "incomplete" and last.toolgrammar["cut"]
            with pytest.raises(ValueError, match="Extra data"):
                json.loads(last.output[0].arguments)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"background": True}, "background"),
        ({"conversation": "c"}, "conversation"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
        ({"reasoning": {"effort": "vast"}}, "reasoning.effort"),
        ({"tools": [{"type": "custom"}]}, "tools[0].name"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"input": []}, "input"),
        ({"input": [{"type": "compaction", "id": "x"}]}, "input[0].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input[0].content[0].type"),
        ({"seeds": 1}, "seeds"),
    ],
)
def test_what_cannot_be_met_is_refused_by_name(noisy: openai.OpenAI, fields: dict[str, Any], named: str) -> None:
    """No constraint is ignored."""
    with pytest.raises(openai.BadRequestError) as caught:
        noisy.post("/responses", body={"model": "noise", "input": "Hello", **fields}, cast_to=Response)
    assert caught.value.param == named


@pytest.mark.parametrize("stream", [False, True])
def test_items_are_referred_to(call: Callable[..., Message], stream: bool) -> None:
    """A reference is the item of an earlier answer: calls, text and reasoning; 404 where its response is gone."""
    model = ScriptedModel([call("book", code="AB123", seats=2), "Booked.", "Bye.", "Unkept."])
    with client(model) as made:

        def respond(items: list[Any], **fields: Any) -> Any:
            asked: Any = {"model": "scripted", "input": items, "tools": TOOLS, **fields}
            if not stream:
                return made.responses.create(**asked)
            return list(made.responses.create(**asked, stream=True))[-1].response

        items: list[Any] = [{"role": "user", "content": "Two."}]
        first = respond(items)
        items.append({"type": "item_reference", "id": first.output[0].id})
        items.append({"type": "function_call_output", "call_id": first.output[0].call_id, "output": "ok"})
        second = respond(items)
        items.append({"type": "item_reference", "id": second.output[0].id})
        items.append({"role": "user", "content": "Bye"})
        unkept = respond(items, store=False)
        assert unkept.output_text == "Bye."
        made.responses.delete(second.id)
        for gone in (second.output[0].id, unkept.output[0].id, "msg_0"):
            with pytest.raises(openai.NotFoundError, match="not stored"):
                respond([{"type": "item_reference", "id": gone}])
    assert [message.role for message in model.requests[-1]] == ["user", "assistant", "tool", "assistant", "user"]
    assert model.requests[-1][1].tool_calls[0].arguments == {"code": "AB123", "seats": 2}
    assert model.requests[-1][3].text == "Booked."


def test_the_memory_is_bounded() -> None:
    """The least recently used conversation goes first; one that is larger than all is not stored."""
    memory = Memory(max_characters=1_000)
    for name in "abc":
        memory.keep(name, Kept((Message("user", "x" * 300),), {}))
        memory.find("a")
    assert memory.find("a") and memory.find("c")
    with pytest.raises(RequestError, match="not stored"):
        memory.find("b")
    memory.forget("a")
    memory.keep("b", Kept((Message("user", "x" * 300),), {}))
    assert memory.find("c")  # what was forgotten made room
    memory.keep("d", Kept((Message("user", "x" * 5_000),), {}))
    for name in "abcd":
        with pytest.raises(RequestError, match="not stored"):
            memory.find(name)


def test_reasoning_that_clients_hand_back_is_read(thinking: Model) -> None:
    """Clients that keep only ``encrypted_content`` of it, whole or streamed, lose nothing; one of others is dropped."""
    with client(thinking) as made:
        asked: Any = {
            "model": "scripted",
            "input": "2 and 2?",
            "include": ["reasoning.encrypted_content"],
            "store": False,
        }
        whole: Any = made.responses.create(**asked).output[0]
        last: Any = list(made.responses.create(**asked, stream=True))[-1]
        assert last.response.output[0].encrypted_content == whole.encrypted_content
        assert made.responses.create(model="scripted", input="x").output[0].encrypted_content is None  # type: ignore[union-attr]
        for sealed, reasoning in ((whole.encrypted_content, "2 and 2"), ("gAAAA_of_another", None)):
            item = {"type": "reasoning", "id": whole.id, "summary": [], "encrypted_content": sealed}
            history: Any = [{"role": "user", "content": "2 and 2?"}, item, {"role": "assistant", "content": "Four."}]
            made.responses.create(model="scripted", input=[*history, {"role": "user", "content": "Sure?"}])
            assert thinking.requests[-1][1].reasoning == reasoning  # type: ignore[attr-defined]


def test_a_kept_response_is_found_and_forgotten() -> None:
    """Whole and streamed ones, as they were; ``store=False`` keeps none, and one that was deleted is gone."""
    with client(ScriptedModel(lambda messages: "Four.")) as made:
        whole = made.responses.create(model="scripted", input="2 and 2?")
        streamed: Any = list(made.responses.create(model="scripted", input="2 and 2?", stream=True))[-1]
        for response in (whole, streamed.response):
            assert made.responses.retrieve(response.id) == response
            made.responses.delete(response.id)
            for use in (
                lambda name=response.id: made.responses.retrieve(name),
                lambda name=response.id: made.responses.delete(name),
                lambda name=response.id: made.responses.create(model="scripted", input="x", previous_response_id=name),
            ):
                with pytest.raises(openai.NotFoundError, match="not stored"):
                    use()
        unkept = made.responses.create(model="scripted", input="2 and 2?", store=False)
        with pytest.raises(openai.NotFoundError):
            made.responses.retrieve(unkept.id)
        with pytest.raises(openai.BadRequestError) as caught:
            made.responses.retrieve(whole.id, stream=True)
        assert caught.value.param == "stream"
