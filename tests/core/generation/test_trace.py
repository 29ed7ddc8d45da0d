"""Traces: each fact against an independent computation, and the same for streams, batches and retries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, field_validator

from toolgrammar.core import (
    Finish,
    GenerateParams,
    Generation,
    Grammar,
    JsonMode,
    Message,
    Model,
    TokenWritten,
    Trace,
    load_model,
)
from toolgrammar.core.generation.json_places import JsonPlaces
from toolgrammar.core.generation.tracer import describe, rule_at
from toolgrammar.core.models.numpy_llama.embedded import EmbeddedBackend
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b", True]}, "minItems": 1, "maxItems": 3},
        "home/~": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
    },
    "required": ["name", "age", "tags", "home/~"],
    "additionalProperties": False,
}


def get_weather(city: str, days: int = 1) -> str:
    """Weather of a city."""
    return f"{city} {days}"


@pytest.fixture(scope="module")
def noise() -> Model:
    """The embedded model: only the grammar makes sense of it."""
    return load_model("embedded")


def scalars(text: str) -> list[tuple[int, int, str]]:
    """Start, end and pointer of each scalar of a JSON text, by a parser of its own."""
    found: list[tuple[int, int, str]] = []
    decoder = json.JSONDecoder()

    def skip(at: int) -> int:
        while at < len(text) and text[at] in " \t\r\n,:":
            at += 1
        return at

    def value(at: int, pointer: str) -> int:
        at = skip(at)
        if text[at] not in "{[":
            _, end = decoder.raw_decode(text, at)
            found.append((at, end, pointer))
            return end
        is_object, at, number = text[at] == "{", skip(at + 1), 0
        while text[at] not in "}]":
            step = str(number)
            if is_object:
                step, at = decoder.raw_decode(text, at)
            at = skip(value(at, f"{pointer}/{step.replace('~', '~0').replace('/', '~1')}"))
            number += 1
        return at + 1

    value(0, "")
    return found


def check_laws(generation: Generation) -> Trace:
    """What holds for every trace."""
    trace = generation.trace
    assert trace is not None
    assert "".join(token.text for token in trace.tokens) == generation.raw
    assert tuple(token.token_id for token in trace.tokens) == generation.token_ids
    assert sum(token.how != "sampled" for token in trace.tokens) == generation.usage.forced_tokens
    assert trace.prompt_tokens == generation.usage.prompt_tokens
    for token in trace.tokens:
        assert (token.allowed is None) == (token.how in ("jumped", "closed"))
        assert token.removed is None or 0 <= token.removed <= 1
        assert sum(each.probability for each in token.forbidden) <= (token.removed or 0) + 1e-9
        assert token.model_seconds >= 0 and token.engine_seconds >= 0
    told = sum(token.model_seconds for token in trace.tokens)
    assert told <= trace.model_seconds * (1 + 1e-9) and trace.prompt_seconds <= trace.model_seconds
    assert sum(token.engine_seconds for token in trace.tokens) <= trace.engine_seconds * (1 + 1e-9)
    assert json.loads(trace.to_json()) == trace.to_dict()
    return trace


@pytest.mark.parametrize("seed", range(3))
def test_masks_and_masses_are_those_of_a_replay(noise: Any, seed: int) -> None:
    """Allowed tokens are the set bits of a fresh matcher's mask; removed mass is 1 - the sum of what is allowed."""
    generation = noise.generate(
        "Who?", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=seed, jump_forward=False, max_tokens=90, trace=True
    )
    trace = check_laws(generation)
    grammar = Grammar.from_json_schema(SCHEMA, plain_integers=True)
    matcher = grammar.bind(noise.vocabulary).matcher()
    session = noise.backend.start()
    logits = session.extend(noise.backend.encode_prompt((Message("user", "Who?"),)))
    sampled = 0
    for token in trace.tokens:
        allowed = matcher.allowed_tokens()
        if token.allowed is not None:
            assert token.allowed == len(allowed)
        if token.how == "sampled":
            sampled += 1
            weights = np.exp(logits.astype(np.float64) - logits.max())
            chances = weights / weights.sum()
            assert token.removed == pytest.approx(1 - chances[allowed].sum(), abs=1e-6)
            assert token.probability == pytest.approx(chances[token.token_id], abs=1e-6)
            forbidden = np.setdiff1d(np.arange(len(chances)), allowed)
            likeliest = sorted(chances[forbidden], reverse=True)[: len(token.forbidden)]
            assert [each.probability for each in token.forbidden] == pytest.approx(likeliest, abs=1e-6)
            assert not {each.token_id for each in token.forbidden} & set(allowed)
        assert matcher.accept(token.token_id)
        logits = session.extend([token.token_id])
    assert sampled > 10
    session.close()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("jump", [True, False])
def test_pointers_are_those_of_the_finished_json(noise: Any, seed: int, jump: bool) -> None:
    """A token inside a scalar has that scalar's pointer, by an own parse of the text; all others are in none."""
    generation = noise.generate(
        "x", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=seed, jump_forward=jump, max_tokens=120, trace=True
    )
    trace = check_laws(generation)
    spans = scalars(generation.text)
    seen = set()
    begin = 0
    for token in trace.tokens:
        blank = len(token.text) - len(token.text.lstrip(" ,:"))
        place, begin = begin + blank, begin + len(token.text)
        if blank == len(token.text):
            continue
        inside = [pointer for start, end, pointer in spans if start <= place < end]
        is_scalar = token.role in ("string", "number", "literal")
        assert [token.pointer] == inside if is_scalar else inside == []
        seen |= set(inside)
    assert seen
    assert {token.schema for token in trace.tokens if token.pointer == "/age"} == {
        json.dumps(SCHEMA["properties"]["age"])
    }


REPLY = 'Let <tool me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo, N", "days": 12}}\n</tool_call>'


def test_places_of_a_call() -> None:
    """In a call, tokens are free text, markup, the tool's name, names, strings and numbers, each with its pointer."""
    tools = ToolSet.from_any([get_weather])
    generation = ScriptedModel([REPLY]).generate("x", tools=tools, trace=True)
    trace = check_laws(generation)
    assert generation.raw == REPLY
    found: dict[str, str] = {}
    for token in trace.tokens:  # one token a byte
        key = f"{token.role} {token.tool} {token.pointer}" if token.pointer is not None else token.role
        found[key] = found.get(key, "") + token.text
    assert found["text"] == "Let <tool me see."
    assert found["tool"] == "get_weather"
    assert found["string get_weather /city"].strip(" :") == '"Oslo, N"'
    assert found["number get_weather /days"].strip(" :") == "12"
    assert '"city"' in found["name get_weather "] and '"days"' in found["name get_weather "]
    assert found["format"].startswith("\n<tool_call>") and found["format"].endswith("</tool_call>")
    (schema,) = {token.schema for token in trace.tokens if token.pointer == "/days"}
    assert json.loads(schema)["type"] == "integer"


def test_places_in_formats_without_json() -> None:
    """Where a format spells arguments in its own way, values still have their pointers."""
    tools = ToolSet.from_any([get_weather])
    reply = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"
    generation = ScriptedModel([reply]).generate(
        "x", tools=tools, tool_format="qwen3-coder", tool_choice="required", trace=True
    )
    trace = check_laws(generation)
    assert generation.tool_calls[0].arguments["city"] == "Oslo"
    city = "".join(token.text for token in trace.tokens if token.pointer == "/city")
    assert city == "Oslo"


def test_forbidden_tokens_say_why() -> None:
    """A forbidden token has its text, and where it stops to fit or that nothing begins with it."""
    trace = ScriptedModel(['"xyz"']).generate("q", json_mode=JsonMode({"enum": ["abc", "abd"]}), trace=True).trace
    assert trace is not None
    (last,) = [token for token in trace.tokens if token.how == "sampled"]
    assert last.allowed == 2 and last.expected == "only `c`, `d`"
    assert last.forbidden == () or {each.why for each in last.forbidden} == {"nothing that is allowed begins with it"}


def test_a_stream_has_the_trace_at_its_end(noise: Model) -> None:
    """`Finish` has the trace of `generate`, its times aside; without the option there is none."""
    params = GenerateParams(json_mode=JsonMode(SCHEMA), temperature=1.0, seed=5, max_tokens=80)
    whole = noise.generate("x", params, trace=True)
    events = list(noise.stream("x", params, trace=True))
    assert isinstance(events[-1], Finish) and events[-1].trace is not None
    assert untimed(events[-1].trace) == untimed(check_laws(whole))
    assert [event.token_id for event in events if isinstance(event, TokenWritten)]
    again = asyncio.run(noise.agenerate("x", params, trace=True))
    # A batch may add up in another order.
    assert as_data(check_laws(again)) == nearly(as_data(check_laws(whole)))
    assert noise.generate("x", params).trace is None
    assert list(noise.stream("x", params))[-1].trace is None  # type: ignore[union-attr]


def untimed(trace: Trace) -> Any:
    """What a trace says but its times."""
    return [replace(token, model_seconds=0, engine_seconds=0) for token in trace.tokens]


def as_data(trace: Trace) -> Any:
    """What a trace says but its times, as JSON data."""
    return [asdict(token) for token in untimed(trace)]


def nearly(value: Any) -> Any:
    """The same data, equal to what differs by a little in its floats."""
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-3)
    if isinstance(value, dict):
        return {name: nearly(inner) for name, inner in value.items()}
    return type(value)(map(nearly, value)) if isinstance(value, (list, tuple)) else value


class Batching(EmbeddedBackend):
    """The embedded model with batches."""

    def can_batch(self) -> bool:
        """It can."""
        return True

    def begin(self, prompt: Sequence[int]) -> Any:
        """A sequence."""
        return self.start()

    def extend_many(self, rows: Sequence[tuple[Any, Sequence[int]]]) -> list[Any]:
        """One pass."""
        return [session.extend(ids) for session, ids in rows]


def test_each_of_a_batch_has_its_trace(noise: Model) -> None:
    """The traces of a batch are those of single answers, and its forward passes have a time."""
    with Model(Batching()) as model:
        params = [
            GenerateParams(json_mode=JsonMode(SCHEMA), temperature=1.0, seed=seed, max_tokens=60) for seed in range(3)
        ]
        many = model.generate_batch(["x"] * 3, params, trace=True)
    for one, each in zip(params, many):
        alone = noise.generate("x", one, trace=True)
        assert [token.token_id for token in check_laws(each).tokens] == [
            token.token_id for token in check_laws(alone).tokens
        ]
        assert each.trace is not None and each.trace.model_seconds > 0


class Even(BaseModel):
    """An even number, which no JSON Schema here says."""

    n: int

    @field_validator("n")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


def test_retries_keep_the_traces_of_what_was_refused() -> None:
    """An answer that was asked for again has the earlier traces, each with its problems."""
    seen: list[Generation] = []
    model = ScriptedModel(['{"n": 3}', '{"n": 4}'])
    original = model._whole
    model._whole = lambda asked: seen.append(original(asked)) or seen[-1]  # type: ignore[method-assign, func-returns-value]
    assert model.generate_json("x", Even, trace=True) == Even(n=4)
    (generation,) = seen
    assert generation.trace is not None
    (earlier,) = generation.trace.earlier
    assert "".join(token.text for token in earlier.tokens) == '{"n": 3}'
    assert "odd" in earlier.problems[0]
    assert "".join(token.text for token in generation.trace.tokens) == '{"n": 4}'


def test_budget_and_healing_are_traced(noise: Model) -> None:
    """Tokens that the budget wrote are called so; a prefix that is written again is no part of the trace's text."""
    generation = noise.generate("x", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=1, max_tokens=40, trace=True)
    assert generation.finish_reason == "length"
    assert "closed" in {token.how for token in check_laws(generation).tokens}
    for prefix in ("The answer is ", "He said: “", "ab"):
        check_laws(noise.generate("x", prefix=prefix, temperature=1.0, seed=2, max_tokens=20, trace=True))


def test_texts_of_halves_of_characters() -> None:
    """A character of several tokens is the text of the one that completes it."""
    generation = ScriptedModel(['"né漢"']).generate("x", json_mode=JsonMode({"type": "string"}), trace=True)
    trace = check_laws(generation)
    assert [token.text for token in trace.tokens] == ['"', "n", "", "é", "", "", "漢", '"']


def test_unfinished_json_has_places() -> None:
    """A text that breaks off anywhere still gives each character a place."""
    text = '{"a": {"b\\"c": [1, "x\\\\", tru'
    for end in range(len(text) + 1):
        places = JsonPlaces(text[:end])
        assert all(isinstance(places.at(offset)[0], str) for offset in range(end + 2))
    assert JsonPlaces(text).at(text.index("tru")) == ('/a/b"c/2', "literal")
    assert JsonPlaces(text).at(text.index('"b')) == ("/a", "name")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (bytes(range(32, 256)), "any character"),
        (b"0123456789", "a digit"),
        (b"123456789-", "1-9, -"),
        (b'"', '"'),
        (b" \n", "white space"),
        (b"abcdefghijklmnopqrstuvwxyz", "a small letter"),
        (b"ABCDEF", "A-F"),
        (b"", "nothing"),
    ],
)
def test_sets_of_bytes_in_words(data: bytes, words: str) -> None:
    """Which bytes may come next is said in words."""
    assert describe(bytes(sorted(data))) == words


def test_what_a_schema_says_at_a_place() -> None:
    """References, items, unions and other properties are followed; broken ones say nothing."""
    schema = {
        "$defs": {"T": {"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}, "v": {"const": 1}}}},
        "properties": {
            "t": {"$ref": "#/$defs/T"},
            "list": {"prefixItems": [{"type": "null"}], "items": {"type": "boolean"}},
            "u": {"anyOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": 2}}}]},
            "bad": {"$ref": "#/nowhere"},
        },
        "additionalProperties": {"type": "number", "description": "left out"},
    }
    assert rule_at(schema, "/t/next/next/v") == '{"const": 1}'
    assert rule_at(schema, "/list/0") == '{"type": "null"}'
    assert rule_at(schema, "/list/7") == '{"type": "boolean"}'
    assert rule_at(schema, "/u/a") == '{"const": 1} or {"const": 2}'
    assert rule_at(schema, "/other") == '{"type": "number"}'
    assert rule_at(schema, "/bad/x") == ""
    assert rule_at(True, "/x") == ""
    assert rule_at({"enum": ["x" * 500]}, "").endswith("…")
