"""Streams of the LangChain chat model add up to its answers, and fifty of them at once do not meet."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.core import Grammar, Message, Model, ModelError, ToolCall, Vocabulary
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools.formats import format_names, get_format

from ...shares import share
from .common import joined

Call = Callable[..., Message]


@tool
def set_heat(degrees: int, unit: Literal["celsius", "fahrenheit"] = "celsius", boost: bool = False) -> str:
    """Set the heat."""
    return f"{degrees}"


@tool
def note(text: str) -> str:
    """Write something down."""
    return text


class Level(BaseModel):
    """A level."""

    unit: Literal["celsius", "fahrenheit"]
    on: bool


# -- a stream is the answer, in pieces -----------------------------------------------------------------------------


def counts(message: AIMessage) -> dict[str, Any]:
    """The token counts, but for how much of the prompt was known from the call before."""
    assert message.usage_metadata is not None
    return {name: value for name, value in message.usage_metadata.items() if name != "input_token_details"}


def assert_same(chunks: Sequence[Any], whole: AIMessage) -> None:
    """The chunks add up to the answer, ids apart, and LangChain's rules for chunks hold."""
    total = joined(chunks)
    assert total.text == whole.text
    assert total.additional_kwargs == whole.additional_kwargs
    assert [(each["name"], each["args"]) for each in total.tool_calls] == [
        (each["name"], each["args"]) for each in whole.tool_calls
    ]
    assert all(each["id"] for each in total.tool_calls)
    for streamed, known in zip(total.invalid_tool_calls, whole.invalid_tool_calls, strict=True):
        assert streamed["args"] == f"{known['args']}}} <{known['error']}>"
    assert counts(total) == counts(whole)
    assert {**whole.response_metadata, **total.response_metadata} == whole.response_metadata
    assert chunks[-1].chunk_position == "last"
    assert not any(chunk.content and chunk.tool_call_chunks for chunk in chunks)
    assert sum(chunk.usage_metadata is not None for chunk in chunks) == 1
    assert all(each["index"] is not None for chunk in chunks for each in chunk.tool_call_chunks)


def in_format(name: str, wish: str, **settings: Any) -> ChatToolGrammar:
    """A model that would say this, and has the control tokens of a wire format."""
    special = getattr(get_format(name), "special", ())
    tokens = [bytes((byte,)) for byte in range(256)] + [None] * (len(special) + 1)
    names = {each: 256 + number for number, each in enumerate(special)}
    vocabulary = Vocabulary(tokens, eos=[len(tokens) - 1], special=names)
    model = ScriptedModel(lambda messages: wish, vocabulary=vocabulary)
    return ChatToolGrammar(model=model, tool_format=name, **settings)


@pytest.mark.parametrize("name", share(format_names(), 0, 3))
def test_stream_is_the_answer_in_every_format(name: str) -> None:
    """In every wire format: a call that is whole, one that the budget cut, and text."""
    model = in_format(name, '{"degrees": 20, "unit": "fahrenheit", "boost": true}', max_tokens=1_000)
    bound = model.bind_tools([set_heat, note], tool_choice="set_heat", parallel_tool_calls=False)
    whole = bound.invoke("warm, please")
    assert whole.tool_calls[0]["name"] == "set_heat"
    assert_same(list(bound.stream("warm, please")), whole)

    bound = in_format(name, "x" * 900, max_tokens=300).bind_tools([note], tool_choice="note")
    whole = bound.invoke("note it")
    assert whole.invalid_tool_calls
    assert_same(list(bound.stream("note it")), whole)

    bound = in_format(name, "It is warm.").bind_tools([set_heat])
    whole = bound.invoke("warm?")
    assert_same(list(bound.stream("warm?")), whole)


@pytest.mark.parametrize(("choice", "seed"), [("auto", 1), ("any", 1), ("any", 2)])
def test_stream_of_noise(noise: Model, choice: str, seed: int) -> None:
    """Noise streams what it says."""
    model = ChatToolGrammar(model=noise, temperature=1.0, seed=seed, max_tokens=40)
    bound = model.bind_tools([set_heat, note], tool_choice=choice)
    assert_same(list(bound.stream("warm, please")), bound.invoke("warm, please"))


REPLIES: list[str | Message] = [
    "It is warm. \u2600\ufe0f",
    Message("assistant", "Warming.", tool_calls=(ToolCall("", "set_heat", {"degrees": 20, "unit": "celsius"}),)),
    Message("assistant", tool_calls=tuple(ToolCall("", "note", {"text": text}) for text in ('a"b\n', "\u4f60"))),
    Message("assistant", tool_calls=(ToolCall("", "note", {"text": "x" * 500}),)),
]


@pytest.mark.parametrize("reply", REPLIES, ids=["text", "text and call", "two calls", "cut"])
@pytest.mark.parametrize("way", ["stream", "astream", "stream=True"])
@pytest.mark.asyncio
async def test_every_way_to_stream(reply: str | Message, way: str) -> None:
    """Text, a call after text, several calls, a cut call: streamed in every way, they are what invoke gives."""
    bound = ChatToolGrammar(model=ScriptedModel(lambda messages: reply), max_tokens=150).bind_tools([set_heat, note])
    whole = bound.invoke("x")
    assert (await bound.ainvoke("x")).text == whole.text
    if way == "stream":
        assert_same(list(bound.stream("x")), whole)
    elif way == "astream":
        assert_same([chunk async for chunk in bound.astream("x")], whole)
    else:
        inside = bound.invoke("x", stream=True)  # streams inside, as LangGraph makes it do
        assert inside.text == whole.text
        assert [each["args"] for each in inside.tool_calls] == [each["args"] for each in whole.tool_calls]
        assert len(inside.invalid_tool_calls) == len(whole.invalid_tool_calls)


@pytest.mark.filterwarnings("ignore:.*beta")
@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["v0", "v1"])
@pytest.mark.parametrize("reply", ["I add.", "", "<think>\nHm.\n</think>\n\n", "<think>\nHm.\n</think>\n\nI add."])
@pytest.mark.parametrize("calls", [0, 1, 2])
async def test_content_blocks_of_a_stream(version: Any, reply: str, calls: int) -> None:
    """Whatever an answer has, the standard blocks of a stream are those of the whole answer, in both versions."""
    made = [ToolCall("", "set_heat", {"degrees": degrees, "unit": "celsius", "boost": False}) for degrees in (1, 2)]
    text = reply + get_format("hermes").render("", made[:calls])
    if not text:
        return
    model = ChatToolGrammar(model=ScriptedModel([text] * 3), output_version=version, thinking="auto")
    bound = model.bind_tools([set_heat])

    def blocks(message: AIMessage) -> list[dict[str, Any]]:
        return [{name: value for name, value in block.items() if name not in ("id", "index")} for block in
                message.content_blocks]  # fmt: skip

    whole = bound.invoke("x")
    total = joined(list(bound.stream("x")))
    atotal = joined([chunk async for chunk in bound.astream("x")])
    kinds = [block["type"] for block in blocks(whole)]
    assert kinds.count("tool_call") == calls and ("text" in kinds) == ("I add." in reply)
    for one in (total, atotal):
        assert blocks(one) == blocks(whole) and one.text == whole.text
        assert [call["args"] for call in one.tool_calls] == [call["args"] for call in whole.tool_calls]


@pytest.mark.skipif(not hasattr(ChatToolGrammar, "stream_events"), reason="LangChain's events of a model came later")
def test_events_of_calls() -> None:
    """LangChain's events end with the same calls, and a cut call is none there either."""
    for reply in REPLIES[1:]:
        bound = ChatToolGrammar(model=ScriptedModel(lambda messages, reply=reply: reply), max_tokens=150).bind_tools(
            [set_heat, note]
        )
        whole, output = bound.invoke("x"), bound.stream_events("x", version="v3").output
        assert output.text == whole.text
        assert [each["args"] for each in output.tool_calls] == [each["args"] for each in whole.tool_calls]
        assert len(output.invalid_tool_calls) == len(whole.invalid_tool_calls)


@pytest.mark.parametrize(
    "schema", [Level, {"title": "L", "type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3}]
)
@pytest.mark.parametrize("tools", [[], [set_heat]])
def test_stream_of_a_structured_answer(schema: Any, tools: Any, noise: Model) -> None:
    """Constrained text streams as what invoke gives, beside tools too."""
    model = ChatToolGrammar(model=noise, temperature=1.0, seed=1, max_tokens=60)
    bound = model.bind_tools(tools, response_format=schema, allow_cut=True)
    assert_same(list(bound.stream("choose")), bound.invoke("choose"))


def test_stream_of_thinking(thinking: Model) -> None:
    """Thinking streams apart from the text, and adds up."""
    model = ChatToolGrammar(model=thinking)
    assert_same(list(model.stream("2 and 2?")), model.invoke("2 and 2?"))


@pytest.mark.parametrize("settings", [{}, {"response_format": Level}, {"tools": [set_heat], "tool_choice": "any"}])
def test_noise_thinks_first(settings: Any, noise: Model) -> None:
    """Asked to think, a model does so within its budget, and its answer is held all the same, streamed or not."""
    model = ChatToolGrammar(model=noise, temperature=1.0, seed=2, max_tokens=90, thinking=20)
    whole = model.invoke("warm?", **settings)
    thought = whole.additional_kwargs["reasoning_content"]
    assert thought
    assert whole.content_blocks[0] == {"type": "reasoning", "reasoning": thought}
    assert whole.usage_metadata is not None
    assert 0 < whole.usage_metadata["output_token_details"]["reasoning"] <= 20
    if "response_format" in settings:
        Level.model_validate_json(whole.text)
    if "tools" in settings:
        assert whole.tool_calls[0]["name"] == "set_heat"
    assert_same(list(model.stream("warm?", **settings)), whole)
    assert "reasoning_content" not in model.invoke("warm?", thinking=False, max_tokens=5).additional_kwargs


def test_prefix_and_bias(noise: Model) -> None:
    """A prefix and a bias are of one call: what was said already is left out, and a banned token does not come."""
    model = ChatToolGrammar(model=noise, temperature=1.0, seed=2, max_tokens=12)
    first = model.invoke("x")
    banned = model.get_token_ids(first.text)[0]
    assert model.invoke("x", logit_bias={banned: -100.0}).text != first.text
    number = Grammar.from_regex("[0-9]{4}")
    assert number.matches(model.invoke("x", prefix="The number is ", grammar=number).text)


# -- many at once ----------------------------------------------------------------------------------------------------


class Counted(ScriptedModel):
    """A scripted model that knows which of its sequences are still open."""

    def __init__(self, replies: Any) -> None:
        super().__init__(replies)
        self.started: list[weakref.ref[Any]] = []
        self.closed = 0
        start = self.backend.start

        def counting() -> Any:
            session: Any = start()
            close = session.close

            def closing() -> None:
                self.closed += 1
                close()

            session.close = closing
            self.started.append(weakref.ref(session))
            return session

        self.backend.start = counting  # type: ignore[method-assign]

    def assert_nothing_is_left(self, at_least: int) -> None:
        """Every sequence was closed, and none is alive."""
        gc.collect()
        assert len(self.started) >= at_least
        assert self.closed == len(self.started)
        assert [each for each in self.started if each() is not None] == []


def echo(messages: Sequence[Message]) -> Message | str:
    """A call with the number of the conversation, then a text with it."""
    number = next(message.text for message in messages if message.role == "user")
    if messages[-1].role == "tool":
        return f"{number} has {messages[-1].text}, " + "and so on " * 5
    return Message("assistant", tool_calls=(ToolCall("", "set_heat", {"degrees": int(number)}),))


CONVERSATIONS = 50


@pytest.mark.asyncio
async def test_conversations_do_not_mix() -> None:
    """Fifty conversations of two turns at once, streamed or not, a fifth of them cancelled midway.

    Each gets its own answers, and nothing of the cancelled ones is left.
    """
    engine = Counted(echo)
    model = ChatToolGrammar(model=engine).bind_tools([set_heat])
    texts: dict[int, str] = {}

    async def answer(messages: list[Any], streamed: bool) -> AIMessage:
        if streamed:
            return joined([chunk async for chunk in model.astream(messages)])
        return await model.ainvoke(messages)

    async def converse(number: int) -> None:
        messages: list[Any] = [("user", str(number))]
        first = await answer(messages, number % 2 == 0)
        (call,) = first.tool_calls
        assert call["args"] == {"degrees": number}
        result = await set_heat.ainvoke(call)
        last = await answer([*messages, first, result], number % 3 == 0)
        texts[number] = last.text

    tasks = [asyncio.create_task(converse(number)) for number in range(CONVERSATIONS)]
    cancelled = set(range(0, CONVERSATIONS, 5))
    while not engine.started:
        await asyncio.sleep(0)
    for number in cancelled:
        tasks[number].cancel()
        await asyncio.sleep(0.01)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for number, result in enumerate(results):
        if result is not None:
            assert number in cancelled
            assert isinstance(result, asyncio.CancelledError)
    assert set(range(CONVERSATIONS)) - cancelled <= set(texts)
    assert sum(result is not None for result in results) > 0
    for number, text in texts.items():
        assert text.startswith(f"{number} has {number}, and so on")
    del tasks, results
    engine.assert_nothing_is_left(at_least=2 * (CONVERSATIONS - len(cancelled)))


def test_threads_do_not_mix() -> None:
    """The same from threads, a fifth of whose streams nobody reads to the end."""
    engine = Counted(echo)
    model = ChatToolGrammar(model=engine).bind_tools([set_heat])

    def converse(number: int) -> None:
        stream = model.stream(str(number))
        if number % 5 == 0:
            next(stream)
            return
        assert joined(list(stream)).tool_calls[0]["args"] == {"degrees": number}

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(converse, range(CONVERSATIONS)))
    engine.assert_nothing_is_left(at_least=CONVERSATIONS)


@pytest.mark.asyncio
async def test_a_stream_left_early_ends() -> None:
    """Leaving an asynchronous stream stops the model within a step, and frees its sequence."""
    engine = Counted(lambda messages: "word " * 5_000)
    async for _ in ChatToolGrammar(model=engine).astream("x"):
        break
    for _ in range(100):
        if engine.closed:
            break
        await asyncio.sleep(0.01)
    engine.assert_nothing_is_left(at_least=1)


@pytest.mark.parametrize("stream", [False, True])
def test_failures_leave_nothing(stream: bool) -> None:
    """A model that fails in the middle of an answer raises its error, and its sequence is freed."""
    engine = Counted(lambda messages: "one two")
    start = engine.backend.start

    def failing() -> Any:
        session = start()
        extend, seen = session.extend, []

        def fail(ids: Sequence[int]) -> Any:
            seen.append(ids)
            if len(seen) > 3:
                raise ModelError("the machine is gone")
            return extend(ids)

        session.extend = fail  # type: ignore[method-assign]
        return session

    engine.backend.start = failing  # type: ignore[method-assign]
    model = ChatToolGrammar(model=engine)
    with pytest.raises(ModelError, match="gone"):
        assert list(model.stream("x")) if stream else model.invoke("x")
    engine.assert_nothing_is_left(at_least=1)
