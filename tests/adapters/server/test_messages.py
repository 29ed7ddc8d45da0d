"""Anthropic's messages, through the real SDK: every call valid, every field met or refused by name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx
import pytest
from anthropic.types import Message as TheirMessage
from anthropic.types import RawMessageStreamEvent
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from toolgrammar.adapters.anthropic import async_client, client
from toolgrammar.adapters.server.unused import HEADER
from toolgrammar.core import GenerateParams, Message, Model, Vocabulary
from toolgrammar.core.testing import ScriptedModel

from .conftest import BOOKING

HELLO: Any = [{"role": "user", "content": "Hello"}]
TOOLS: Any = [
    {"name": "book", "description": "Book.", "input_schema": BOOKING},
    {"type": "custom", "name": "cancel", "input_schema": BOOKING, "cache_control": {"type": "ephemeral"}},
]
VALID = Draft202012Validator(BOOKING)


@pytest.fixture(scope="module")
def noisy(noise: Model) -> Iterator[anthropic.Anthropic]:
    """Anthropic's client over the model of noise, which samples."""
    with client({"noise": noise}, defaults=GenerateParams(temperature=1.5)) as made:
        yield made


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"type": "any", "disable_parallel_tool_use": True}, {"book", "cancel"}),
        ({"type": "tool", "name": "cancel", "disable_parallel_tool_use": True}, {"cancel"}),
        ({"type": "none"}, set()),
    ],
)
def test_choices_are_kept_and_calls_are_valid(noise: Model, choice: Any, names: set[str]) -> None:
    """Noise calls what it must, with valid input; the stream of the same seed gives the same message."""
    with client({"noise": noise}, defaults=GenerateParams(temperature=1.5, seed=4)) as made:
        asked: Any = {"model": "noise", "max_tokens": 120, "messages": HELLO, "tools": TOOLS, "tool_choice": choice}
        answer = made.messages.create(**asked)
        calls = [block for block in answer.content if block.type == "tool_use"]
        assert {call.name for call in calls} <= names and bool(calls) == bool(names)
        for call in calls:
            VALID.validate(call.input)
        assert answer.stop_reason == ("tool_use" if names else "max_tokens")
        with made.messages.stream(**asked) as stream:
            final = stream.get_final_message()
        assert [
            (block.type, getattr(block, "input", None), getattr(block, "text", None)) for block in final.content
        ] == [(block.type, getattr(block, "input", None), getattr(block, "text", None)) for block in answer.content]
        assert final.stop_reason == answer.stop_reason
        assert final.usage.output_tokens == answer.usage.output_tokens > 0


def test_a_whole_conversation(call: Callable[..., Message]) -> None:
    """System blocks, calls, results with errors, and an answer."""
    model = ScriptedModel([call("book", code="AB123", seats=2), "Booked."])
    with client(model) as made:
        system: Any = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
        first = made.messages.create(model="scripted", max_tokens=200, system=system, messages=HELLO, tools=TOOLS)
        assert first.stop_reason == "tool_use"
        (block,) = first.content
        assert block.type == "tool_use" and block.input == {"code": "AB123", "seats": 2}
        result: Any = {
            "type": "tool_result",
            "tool_use_id": block.id,
            "content": [{"type": "text", "text": "full"}],
            "is_error": True,
        }
        history: Any = [
            *HELLO,
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result, {"type": "text", "text": "And?"}]},
        ]
        second = made.messages.create(model="scripted", max_tokens=200, messages=history, tools=TOOLS)
    (text,) = second.content
    assert text.type == "text" and text.text == "Booked." and second.stop_reason == "end_turn"
    assert model.requests[0][0] == Message("system", "Be brief.")
    assert [message.role for message in model.requests[1]] == ["user", "assistant", "tool", "user"]
    assert model.requests[1][2].is_error and model.requests[1][2].tool_call_id == block.id


def test_a_prefill_is_continued() -> None:
    """A conversation that ends with the assistant's words goes on from there."""
    with client(ScriptedModel(lambda messages: "Four it is.")) as made:
        history: Any = [*HELLO, {"role": "assistant", "content": "Four"}]
        answer = made.messages.create(model="scripted", max_tokens=50, messages=history)
    assert answer.content[0].text == " it is."  # type: ignore[union-attr]


def test_the_stop_sequence_is_named() -> None:
    """Whole and streamed: the reason and the sequence; none where the model came to its own end."""
    with client(ScriptedModel(lambda messages: "one two three")) as made:
        asked: Any = {"model": "scripted", "max_tokens": 50, "messages": HELLO}
        for sequences, expected in ((["three", "two"], ("stop_sequence", "two")), (["four"], ("end_turn", None))):
            answer = made.messages.create(**asked, stop_sequences=sequences)
            assert (answer.stop_reason, answer.stop_sequence) == expected
            with made.messages.stream(**asked, stop_sequences=sequences) as stream:
                final = stream.get_final_message()
            assert (final.stop_reason, final.stop_sequence) == expected
            assert final.content[0].text == answer.content[0].text  # type: ignore[union-attr]


def test_reasoning_is_a_block_of_its_own(thinking: Model) -> None:
    """Whole and streamed, before the text."""
    with client(thinking) as made:
        asked: Any = {"model": "scripted", "max_tokens": 50, "messages": HELLO}
        kinds = [block.type for block in made.messages.create(**asked).content]
        with made.messages.stream(**asked) as stream:
            final = stream.get_final_message()
    assert kinds == ["thinking", "text"] == [block.type for block in final.content]
    assert final.content[0].thinking == "2 and 2" and final.content[1].text == "Four."  # type: ignore[union-attr]


def test_effort_of_a_model_without_reasoning_is_unused(http: Callable[..., httpx.Client]) -> None:
    """Claude Code sends an effort to every model: one without markers of reasoning answers, and the header names it."""
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), None], eos=[256])
    client = http({"plain": ScriptedModel(lambda messages: "Four.", vocabulary=vocabulary)})
    asked = {"model": "plain", "max_tokens": 50, "messages": [{"role": "user", "content": "2 + 2?"}]}
    for kind in ({}, {"thinking": {"type": "adaptive"}}):
        answer = client.post("/v1/messages", json={**asked, **kind, "output_config": {"effort": "high"}})
        assert answer.status_code == 200 and answer.json()["content"] == [{"type": "text", "text": "Four."}], (
            answer.text
        )
        assert answer.headers[HEADER] == "output_config.effort"
    for effort in ("none", "vast"):
        answer = client.post("/v1/messages", json={**asked, "output_config": {"effort": effort}})
        assert answer.status_code == (200 if effort == "none" else 400) and HEADER not in answer.headers


def test_a_cut_call_is_not_passed_on(call: Callable[..., Message], http: Callable[..., httpx.Client]) -> None:
    """Near the budget the call is left out, whole and streamed; what was cut is named."""
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    plain = http({"long": ScriptedModel(lambda messages: call("f", x="long" * 100))})
    asked = {"model": "long", "messages": HELLO, "tools": [{"name": "f", "input_schema": schema}], "max_tokens": 100}
    whole = plain.post("/v1/messages", json=asked).json()
    assert whole["stop_reason"] == "max_tokens" and whole["toolgrammar"] == {"cut": ["f/x"]}
    assert whole["content"] == []
    streamed = plain.post("/v1/messages", json={**asked, "stream": True}).text
    assert "tool_use" not in streamed and '"toolgrammar":{"cut":["f/x"]}' in streamed


def test_responses_have_the_types_of_the_sdk(noise: Model, http: Callable[..., httpx.Client]) -> None:
    """Whole messages and every event validate as the SDK's own types."""
    plain = http({"noise": noise}, defaults=GenerateParams(temperature=1.2, seed=3))
    events: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
    for extra in ({}, {"tools": TOOLS, "tool_choice": {"type": "any"}}):
        asked = {"model": "noise", "messages": HELLO, "max_tokens": 60, **extra}
        TheirMessage.model_validate_json(plain.post("/v1/messages", json=asked).content)
        kinds = []
        for frame in plain.post("/v1/messages", json={**asked, "stream": True}).text.split("\n\n")[:-1]:
            name, data = frame.split("\n")
            kinds.append(name.removeprefix("event: "))
            assert json.loads(data.removeprefix("data: "))["type"] == kinds[-1]
            if kinds[-1] != "ping":
                events.validate_json(data.removeprefix("data: "))
        assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"]
        assert kinds.count("content_block_start") == kinds.count("content_block_stop")
    listed = anthropic.types.ModelInfo.model_validate(
        plain.get("/v1/models", headers={"anthropic-version": "2023-06-01"}).json()["data"][0]
    )
    assert listed.id == "noise"


def test_tokens_are_counted_as_the_model_counts(noisy: anthropic.Anthropic) -> None:
    """The count is that of the prompt of the same request, tools included."""
    asked: Any = {"model": "noise", "messages": HELLO, "tools": TOOLS}
    counted = noisy.messages.count_tokens(**asked).input_tokens
    used = noisy.messages.create(**asked, max_tokens=50).usage
    assert counted == used.input_tokens + (used.cache_read_input_tokens or 0) > 100


def test_output_follows_its_schema(noisy: anthropic.Anthropic) -> None:
    """``output_config.format`` is a schema of the answer."""
    config: Any = {"format": {"type": "json_schema", "schema": BOOKING}}
    answer = noisy.messages.create(model="noise", max_tokens=120, messages=HELLO, output_config=config)
    VALID.validate(json.loads(answer.content[0].text))  # type: ignore[union-attr]
    earlier: Any = {"output_format": config["format"]}
    answer = noisy.messages.create(model="noise", max_tokens=120, messages=HELLO, extra_body=earlier)
    VALID.validate(json.loads(answer.content[0].text))  # type: ignore[union-attr]
    with pytest.raises(anthropic.BadRequestError, match="leave out output_format"):
        noisy.messages.create(model="noise", max_tokens=9, messages=HELLO, output_config=config, extra_body=earlier)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"frequency_penalty": 0}, "frequency_penalty"),
    ({"max_tokens": None}, "max_tokens"),
    ({"tools": [{"name": "f"}]}, "tools[0].input_schema"),
    ({"tool_choice": {"type": "any"}}, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": {"type": "tool", "name": "fly"}}, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": {"type": "tool"}}, "tool_choice.name"),
    ({"thinking": {"type": "enabled", "budget_tokens": 100}}, "thinking.budget_tokens"),
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "messages[0].content[0].type"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}]},
        "no images",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "*"}}]}]},
        "base64",
    ),
]


@pytest.mark.parametrize(("fields", "named"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_be_met_is_refused_by_name(
    noise: Model, http: Callable[..., httpx.Client], fields: dict[str, Any], named: str
) -> None:
    """No constraint is ignored: the error is Anthropic's, and says which."""
    asked = {"model": "noise", "max_tokens": 50, "messages": HELLO, **fields}
    refused = http({"noise": noise}).post("/v1/messages", json=asked)
    assert refused.status_code == 400
    assert refused.json()["type"] == "error" and refused.json()["error"]["type"] == "invalid_request_error"
    assert named in refused.json()["error"]["message"]


def test_a_thread_is_refused_as_the_sdk_reads_it(noise: Model, http: Callable[..., httpx.Client]) -> None:
    """The SDK goes on without a thread when an error has these details; see its ``lib/threads``."""
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        asked = {"model": "noise", "max_tokens": 50, "messages": HELLO, "thread": {"type": "create"}}
        refused = http({"noise": noise}).post(path, json=asked)
        assert refused.status_code == 400 and "thread" in refused.json()["error"]["message"]
        wanted = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
        assert refused.json()["error"]["details"] == wanted


@pytest.mark.parametrize("stream", [False, True])
def test_the_tool_runner(call: Callable[..., Message], stream: bool) -> None:
    """The SDK's loop over tools runs each call and ends with the text."""

    @anthropic.beta_tool
    def book(code: str, seats: int) -> str:
        """Book seats."""
        return f"{seats} in {code}"

    model = ScriptedModel([call("book", code="A1", seats=2), call("book", code="B2", seats=1), "Booked."])
    with client({"m": model}) as made:
        asked: Any = {"model": "m", "max_tokens": 300, "tools": [book], "messages": HELLO, "stream": stream}
        answers = list(made.beta.messages.tool_runner(**asked))
        last = answers[-1].get_final_message() if stream else answers[-1]
    assert last.content[0].text == "Booked." and len(answers) == 3
    assert [message.role for message in model.requests[-1]] == ["user", "assistant", "tool", "assistant", "tool"]


def test_unknown_models_and_the_asynchronous_client(noise: Model) -> None:
    """404 in the SDK's own class; many requests at a time."""

    async def main() -> list[Any]:
        async with async_client(noise) as made:
            with pytest.raises(anthropic.NotFoundError):
                await made.messages.create(model="claude", max_tokens=5, messages=HELLO)
            return await asyncio.gather(
                *(made.messages.create(model="embedded", max_tokens=8, messages=HELLO) for _ in range(6))
            )

    answers = asyncio.run(main())
    assert len({answer.content[0].text for answer in answers}) == 1
