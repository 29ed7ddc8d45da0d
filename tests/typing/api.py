"""A user's program: checked by mypy against the installed wheel, never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel
from typing_extensions import assert_type

import toolgrammar
from toolgrammar import (
    Constraint,
    Event,
    Finish,
    GenerateParams,
    Generation,
    Grammar,
    JsonMode,
    Matcher,
    Message,
    Model,
    Partial,
    Run,
    RunResult,
    Stream,
    ToolCall,
    ToolGrammarError,
    ToolSet,
    Vocabulary,
    load_model,
)
from toolgrammar.core import Grammar as CoreGrammar


class Booking(BaseModel):
    """A tool made from a Pydantic class."""

    city: str
    nights: int


def weather(city: str, unit: str = "celsius") -> str:
    """A tool made from a function."""
    return f"{city} {unit}"


assert_type(toolgrammar.__version__, str)
same: type[CoreGrammar] = Grammar
vocabulary = Vocabulary([b"a", b"b", None], eos=[2], special={"<|end|>": 2})
assert_type(vocabulary.tokens, tuple[bytes | None, ...])
assert_type(vocabulary.decode([0, 1]), bytes)

grammar = Grammar.from_json_schema({"type": "integer"}, whitespace="compact")
assert_type(grammar, Grammar)
assert_type(grammar.matches(b"1"), bool)
assert_type(Grammar.from_regex("[ab]+") + Grammar.literal("a") | Grammar.json(), Grammar)

constraint = grammar.bind(vocabulary)
assert_type(constraint, Constraint)
matcher = constraint.matcher()
assert_type(matcher, Matcher)
matcher.fill_mask(np.zeros(1, dtype=np.uint32))
assert_type(matcher.allowed_tokens(), list[int])
assert_type(matcher.accept(0), bool)
assert_type(matcher.fork(), Matcher)
assert_type(matcher.is_finished, bool)
assert_type(matcher.shortest_completion(), bytes)

tools = ToolSet.from_any([Booking, weather])
assert_type(tools.names, tuple[str, ...])
message = tools.parse("")
assert_type(message, Message)
assert_type(message.tool_calls, tuple[ToolCall, ...])

model = load_model("embedded")
assert_type(model, Model)
params = GenerateParams(max_tokens=100, tools=tools, tool_choice="required", json_mode=JsonMode(schema=True))
generation = model.generate("Book a room", params, temperature=0.5)
assert_type(generation, Generation)
assert_type(generation.text, str)
for call in generation.tool_calls:
    assert_type(call.name, str)
    assert_type(call.arguments, Mapping[str, Any])
assert_type(model.generate_json("Book", Booking), Booking)
assert_type(model.generate_json("Book", list[int]), list[int])
assert_type(model.generate_batch(["a", "b"], params, seed=1), list[Generation])
assert_type(model.generate_batch(["a"], return_errors=True), list[Generation | Exception])
events = model.stream([Message("user", "Hello")], tools=tools)
assert_type(events, Stream)
assert_type(events.result, Generation)
for event in events:
    assert_type(event, Event)
    if isinstance(event, Finish):
        assert_type(event.usage.completion_tokens, int)
for partial in model.stream("Book", output_type=Booking).partials():
    assert_type(partial, Partial[Booking])
    assert_type(partial.value, Booking | None)
assert_type(model.generate("Book", output_type=Booking).value, Booking)
assert_type(model.generate("Book", output_type=list[int], seed=1).value, list[int])
assert_type(model.generate("Book", output_type=Booking | None).value, Any)
assert_type(model.generate("Book", output_type={"type": "integer"}), Generation)
assert_type(model.generate_batch(["a"], output_type=Booking)[0].value, Booking)
assert_type(model.stream("Book", output_type=Booking).result.value, Booking)
run = model.run("Book", tools=tools, approve=lambda asked: asked.name == "book")
assert_type(run, Run)
assert_type(run.result, RunResult)
assert_type(run.result.text, str)
assert_type(model.run("Book", tools=tools, output_type=Booking).result.value, Booking)

try:
    model.generate("Hello")
except ToolGrammarError as error:
    assert_type(error.hint, str | None)
    assert_type(error.code, str)


def conversations(model: Model) -> None:
    """Messages and dicts are mixed in a list, as the guide shows."""
    messages = [Message("system", "Be brief."), {"role": "user", "content": "Hi."}]
    assert_type(model.generate(messages), Generation)
    mask = np.zeros(3, np.int32)
    constraint: Constraint = Grammar.json().bind(Vocabulary([b"1"], eos=[]))
    constraint.matcher().fill_mask(mask)


async def answers(model: Model) -> None:
    """The asynchronous forms have the same types."""
    assert_type((await model.agenerate("Book", output_type=Booking)).value, Booking)
    assert_type((await model.agenerate_batch(["a"], output_type=Booking))[0].value, Booking)
    assert_type((await model.astream("Book", output_type=Booking).result()).value, Booking)
    assert_type((await model.arun("Book", tools=[Booking], output_type=Booking).result()).answer.value, Booking)
