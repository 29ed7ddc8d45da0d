"""`Model`: generating text and JSON, streaming, budgets, cancellation, concurrency, faults."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from toolgrammar.core import (
    BudgetError,
    CallEnd,
    CancelledError,
    ContextOverflowError,
    CutAnswerError,
    Finish,
    GenerateParams,
    Grammar,
    InvalidArgumentsError,
    JsonMode,
    Message,
    Model,
    ModelError,
    SchemaError,
    TextDelta,
    TokenWritten,
    UnknownOptionError,
    load_model,
)
from toolgrammar.core.generation import write
from toolgrammar.core.models.numpy_llama.embedded import EmbeddedBackend
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.core.validation import is_valid
from toolgrammar.tools import ToolSet

from ...double_precision import in_double_precision
from ..generation.option_values import UNCHECKED, wrong

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def noise() -> Model:
    """The embedded model: only the grammar makes sense of it."""
    return load_model("embedded")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("jump", [True, False])
def test_noise_writes_valid_json(noise: Model, seed: int, jump: bool) -> None:
    """Whatever a model of noise draws, the text is JSON of the schema."""
    generation = noise.generate(
        "Who?", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=seed, jump_forward=jump, max_tokens=200
    )
    assert is_valid(json.loads(generation.text), SCHEMA)
    assert generation.text == generation.raw == noise.vocabulary.decode(generation.token_ids).decode()
    assert generation.usage.completion_tokens == len(generation.token_ids)


def test_every_budget_gives_a_valid_text_or_says_what_it_needs(noise: Model) -> None:
    """From the minimum on, every max_tokens gives a valid text within it, and names what was cut; below, an error."""
    with pytest.raises(BudgetError, match=r"needs (\d+) tokens") as caught:
        noise.generate("x", json_mode=JsonMode(SCHEMA), max_tokens=3)
    least = int(str(caught.value).split("needs ")[1].split()[0])
    for budget in range(least, least + 25):
        generation = noise.generate("x", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=budget, max_tokens=budget)
        assert is_valid(json.loads(generation.text), SCHEMA)
        assert len(generation.token_ids) <= budget
        assert bool(generation.cut) == (generation.finish_reason == "length")


def test_identity_is_of_one_model() -> None:
    """Two models of one name have different identities, and a copy has that of its original."""
    one, two = ScriptedModel(["a"]), ScriptedModel(["a"])
    assert one.name == two.name and one.identity != two.identity
    assert one.identity == one.identity == copy.deepcopy(one).identity and one.identity.startswith(one.name)


def test_closed_backend_writes_no_prompt() -> None:
    """A closed model is an error also where only its tokenizer is asked for."""
    model = load_model("embedded")
    model.close()
    with pytest.raises(ModelError, match="closed"):
        model.count_tokens("x")


def test_budget_error_on_request(noise: Model) -> None:
    """With on_budget="error" a text that does not fit is an error, not a cut text."""
    with pytest.raises(BudgetError, match="ran out"):
        noise.generate("x", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=1, max_tokens=14, on_budget="error")


def test_jump_forward_saves_passes_and_changes_nothing() -> None:
    """Under greedy decoding the text is the same with and without jumping, with fewer forward passes."""
    reply = '{"name": "Ada", "age": 36}'
    with_jump = ScriptedModel([reply]).generate("x", json_mode=JsonMode(SCHEMA))
    without = ScriptedModel([reply]).generate("x", json_mode=JsonMode(SCHEMA), jump_forward=False)
    assert with_jump.text == without.text == reply
    assert with_jump.usage.forward_passes <= without.usage.forward_passes < without.usage.completion_tokens
    assert with_jump.usage.forced_tokens > 0


def test_stream_equals_generate(noise: Model) -> None:
    """Concatenated deltas are the whole text; the trace is the tokens; Finish comes last, once."""
    params = GenerateParams(json_mode=JsonMode(SCHEMA), temperature=1.0, seed=3, max_tokens=80)
    generation = noise.generate("x", params)
    events = list(noise.stream("x", params, trace=True))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == generation.text
    traced = b"".join(event.data for event in events if isinstance(event, TokenWritten))
    assert traced.decode() == generation.raw
    assert [event for event in events if isinstance(event, Finish)] == [events[-1]]
    assert events[-1].usage == generation.usage


def test_free_text_is_never_empty(noise: Model) -> None:
    """A free answer has at least one character, even if the model would stop at once."""
    assert ScriptedModel([""]).generate("x", max_tokens=5).text
    assert noise.generate("x", max_tokens=1, temperature=1.0, seed=0).finish_reason == "length"


@pytest.mark.parametrize("stop", ["END", ("ND", "zzz"), "one E"])
def test_stop_strings_end_text(stop: Any) -> None:
    """The text ends before a stop string, wherever token borders lie; nothing of it is streamed."""
    events = list(ScriptedModel(["one END two"]).stream("x", stop=stop))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    words = [stop] if isinstance(stop, str) else stop
    assert text == "one END two"[: min("one END two".find(word) for word in words if word in "one END two")]
    assert events[-1].reason == "stop"


def test_stop_strings_do_not_touch_json() -> None:
    """Stop strings are for free text only."""
    text = ScriptedModel(['{"name": "STOP", "age": 1}']).generate("x", json_mode=JsonMode(SCHEMA), stop="STOP").text
    assert json.loads(text)["name"] == "STOP"


def test_custom_grammar() -> None:
    """A grammar of the caller's own is followed."""
    grammar = Grammar.from_regex("(yes|no)!{1,3}")
    assert ScriptedModel(["no!! whatever"]).generate("x", grammar=grammar).text == "no!!"


def test_generate_json_gives_values_and_instances() -> None:
    """A dict schema gives a value, a Pydantic class an instance."""

    class Person(BaseModel):
        name: str = Field(max_length=10)
        age: int

    reply = '{"name": "Ada", "age": 36}'
    assert ScriptedModel([reply]).generate_json("x", SCHEMA) == {"name": "Ada", "age": 36}
    assert ScriptedModel([reply]).generate_json("x", Person) == Person(name="Ada", age=36)


def test_unconstrained_json_is_validated_and_asked_again() -> None:
    """Without constrained decoding, the answer is taken out of the text, validated, and asked for again."""
    mode = JsonMode(SCHEMA, constrained_decoding=False)
    model = ScriptedModel(["no json", 'Sure: ```json\n{"name": "A"}\n```', 'Here: {"name": "A", "age": 1}'])
    assert model.generate_json("x", json_mode=mode) == {"name": "A", "age": 1}
    assert "age" in model.requests[2][-1].text
    with pytest.raises(InvalidArgumentsError, match="not valid JSON"):
        ScriptedModel(["{}"]).generate_json("x", json_mode=JsonMode(SCHEMA, constrained_decoding=False, repair=False))


def test_misuse_is_named() -> None:
    """Tools that are none, bad numbers and empty prompts are clear errors."""
    model = ScriptedModel(["x"] * 9)
    with pytest.raises(SchemaError, match="cannot make a tool"):
        model.generate("x", tools=5)
    for odd in ([], None, 5, {}):
        with pytest.raises(ModelError, match="a prompt is"):
            model.generate(odd)
    with pytest.raises(ModelError, match="params is a dict"):
        model.generate("x", params={"temperature": 1})
    for option in ({"seed": -1}, {"context_window": "x"}, {"context_window": 0}):
        with pytest.raises(ModelError, match=f"{next(iter(option))} is"):
            load_model("embedded", **option)
    with pytest.raises(ModelError, match="there are no tools"):
        model.generate("x", tool_choice="required")
    with pytest.raises(ContextOverflowError, match="prompt is too long"):
        load_model("embedded", context_window=16).generate("a long prompt " * 20)


OPTIONS = [option.name for option in fields(GenerateParams)]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("temprature", "did you mean temperature?"),
        ("tool_chioce", "did you mean tool_choice?"),
        ("Max_Tokens", "did you mean max_tokens?"),
        ("regex", "write grammar=Grammar.from_regex(...)"),
        ("choices", 'write output_type=["...", "..."]'),
        ("response_format", "write output_type=..., a Pydantic class, another Python type or a JSON Schema"),
        ("json_schema", "write output_type=..., a Pydantic class, another Python type or a JSON Schema"),
        ("schema", "write output_type=..., a Pydantic class, another Python type or a JSON Schema"),
        ("guided_json", "write output_type=..., a Pydantic class, another Python type or a JSON Schema"),
        ("max_new_tokens", "write max_tokens=..."),
        ("stop_sequences", "write stop=[...]"),
        ("do_sample", "write temperature=...; 0 is greedy, more samples"),
        ("whitespace", "write json_mode=JsonMode(..., whitespace=...)"),
        (
            "zzz",
            f"known are {', '.join(sorted(OPTIONS)[:8])} and {len(OPTIONS) - 8} more",
        ),
    ],
)
def test_an_unknown_option_names_what_was_meant(name: str, hint: str) -> None:
    """The error says the nearest name, or how to write here what another library calls so; it is a TypeError, too."""
    with pytest.raises(UnknownOptionError, match=f"unknown generation option: {name}") as caught:
        ScriptedModel(["x"]).generate("x", **{name: 1})
    assert caught.value.hint == hint
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ModelError)


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("smolm2", "did you mean 'smollm2'?"),
        ("embeded", "did you mean 'embedded'?"),
        ("./x.gguf", "did you mean 'numpy:./x.gguf' or 'gguf:./x.gguf'?"),
        ("gguff:./x", "did you mean 'gguf:./x'?"),
        ("Qwen/Qwen3-0.6B", "did you mean 'hf:Qwen/Qwen3-0.6B'?"),
        ("claude-sonnet-5", "did you mean 'anthropic:claude-sonnet-5'?"),
        ("gpt-5.1", "did you mean 'openai:gpt-5.1@https://api.openai.com/v1'?"),
        ("http://localhost:8000/v1", "give the model too: 'openai:MODEL@http://localhost:8000/v1'"),
        (
            "qwen3:4b",
            "a model of Ollama is 'gguf:ollama/qwen3:4b' (in this process) or 'ollama:qwen3:4b' (on its server)",
        ),
    ],
)
def test_an_unknown_address_names_what_was_meant(address: str, hint: str) -> None:
    """A misspelt address, a bare file and a bare name of a repository say what to write."""
    with pytest.raises(ModelError, match="unknown model address") as caught:
        load_model(address)
    assert caught.value.hint == hint


def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


class Sum(BaseModel):
    """A sum."""

    a: int


@pytest.mark.parametrize(
    ("tools", "name"),
    [
        ([add], "add"),
        (add, "add"),
        ((add, Sum), "Sum"),
        (Sum, "Sum"),
        (next(iter(ToolSet([add]))), "add"),
        (
            {
                "name": "add",
                "description": "",
                "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
            },
            "add",
        ),
        (ToolSet([add]), "add"),
    ],
    ids=["list", "function", "tuple", "class", "tool", "dict", "set"],
)
@pytest.mark.parametrize("choice", ["required", "any"])
def test_tools_are_whatever_describes_tools(tools: Any, name: str, choice: str) -> None:
    """Every way to ask takes what `ToolSet` takes, and ``"any"`` for ``"required"``."""
    text = f'<tool_call>\n{{"name": "{name}", "arguments": {{"a": 1}}}}\n</tool_call>'
    model = ScriptedModel([text] * 9)
    options: Any = {"tools": tools, "tool_choice": choice}

    async def asynchronous() -> list[Any]:
        streamed = [event async for event in model.astream("x", **options)]
        return [await model.agenerate("x", **options), *await model.agenerate_batch(["x"], **options), streamed]

    answers = [model.generate("x", **options), model.generate("x", GenerateParams(**options))]
    *others, streamed = asyncio.run(asynchronous())
    answers += [*model.generate_batch(["x", "x"], **options), *others]
    assert [[call.name for call in answer.tool_calls] for answer in answers] == [[name]] * 6
    for events in (streamed, list(model.stream("x", **options))):
        assert [event.call.name for event in events if isinstance(event, CallEnd)] == [name]
    assert model.count_tokens("x", tools) > model.count_tokens("x")


@pytest.mark.parametrize(
    ("shape", "text", "value"),
    [
        (["red", "blue"], '"blue"', "blue"),
        (("a", 1, None, True), "null", None),
        (Literal["red", "blue"], '"blue"', "blue"),
    ],
)
def test_a_list_of_values_is_a_shape(shape: Any, text: str, value: Any) -> None:
    """One of some values is asked for by a list of them, as by ``Literal``."""
    assert ScriptedModel([text]).generate_json("x", shape) == value
    assert ScriptedModel([text]).generate("x", output_type=shape).text == text
    answer = ScriptedModel(['"green"']).generate("x", output_type=shape, max_tokens=20).text
    assert json.loads(answer) in (*getattr(shape, "__args__", shape),)


@pytest.mark.parametrize(
    "text",
    ['root ::= "yes" | "no"', 'start: "yes" | "no"', '\n  an_answer.x ::=\n "yes"\n | "no"\n root ::= an_answer.x'],
)
def test_a_grammar_as_text_is_a_shape(text: str) -> None:
    """``output_type`` takes the text of a grammar, as ``grammar`` does."""
    assert ScriptedModel(["yes"]).generate("x", output_type=text).text == "yes"


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ('{"type": "object"}', r"json.loads"),
        ("object", "give a Pydantic class"),
        ([{"type": "object"}], "give a Pydantic class"),
        ("root ::= (", "grammar is malformed"),
        pytest.param("\n" * 200_000, "output_type is", id="blank"),
    ],
)
def test_what_is_no_shape_says_how_to_give_one(shape: Any, message: str) -> None:
    """A schema as JSON text, a word and a grammar that is malformed are errors that say what to do."""
    with pytest.raises(ModelError, match=message):
        ScriptedModel(["x"]).generate("x", output_type=shape)


class Plain:
    """A class without fields that are known."""

    def __init__(self, x: int) -> None:
        self.x = x


def test_a_plain_class_is_named_in_one_line() -> None:
    """A class that Pydantic cannot read is one line and one error, with the way out."""
    with pytest.raises(ModelError, match="has no JSON Schema") as caught:
        ScriptedModel(["x"]).generate_json("x", list[Plain])
    assert "\n" not in str(caught.value) and "arbitrary_types_allowed" not in str(caught.value)
    assert caught.value.__suppress_context__ and caught.value.hint


def test_a_model_shows_its_name() -> None:
    """The representation of a model is its class and name."""
    assert repr(ScriptedModel(["x"])) == "ScriptedModel('scripted')"
    assert repr(load_model("embedded")) == "LocalModel('embedded')"


def test_validators_that_object_are_named() -> None:
    """The error after validators that always object says that, and not that the JSON was not valid."""

    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def even(cls, value: int) -> int:
            raise ValueError("must be even")

    with pytest.raises(
        InvalidArgumentsError, match=r"no answer passed the validators of Even, of 3 .*must be even"
    ) as caught:
        ScriptedModel(['{"number": 1}'] * 3).generate_json("x", Even)
    assert "constrained_decoding" not in str(caught.value)


class Story(BaseModel):
    """A text without end."""

    title: str


@pytest.mark.parametrize("shape", [Story, Story.model_json_schema(), Grammar.from_json_schema(Story)], ids=str)
def test_a_cut_value_is_an_error_that_has_it(shape: Any) -> None:
    """`generate_json` returns no value that the budget cut, unless that is allowed; the error has the value."""
    text = '{"title": "A long story of a short budget"}'

    def ask(*, asynchronous: bool, **options: Any) -> Any:
        model = ScriptedModel([text])
        if asynchronous:
            return asyncio.run(model.agenerate_json("x", shape, **options))
        return model.generate_json("x", shape, **options)

    for asynchronous in (False, True):
        whole = ask(asynchronous=asynchronous)
        with pytest.raises(CutAnswerError, match="the token budget ended inside the answer") as caught:
            ask(asynchronous=asynchronous, max_tokens=24)
        value = ask(asynchronous=asynchronous, max_tokens=24, allow_cut=True)
        assert caught.value.value == value != whole and type(value) is type(whole)
        assert caught.value.cut == ("/title",) and isinstance(caught.value, BudgetError)


def test_a_repeated_value_is_cut() -> None:
    """A string that was closed since the model repeated itself counts as cut, and the error says so."""
    model = ScriptedModel(['{"title": "' + "ab" * 999 + '"}'])
    with pytest.raises(CutAnswerError, match=r"the model repeated '(ab|ba)'"):
        model.generate_json("x", Story, max_repetition=100)


def test_a_long_answer_gives_signs_of_life(caplog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While an answer is written, the log says at intervals how far it is."""
    monkeypatch.setattr(write, "SECONDS_OF_SILENCE", 0)
    with caplog.at_level("INFO", "toolgrammar.models"):
        ScriptedModel(['{"title": "A long story"}']).generate_json("x", Story)
    told = [record.getMessage() for record in caplog.records if " tokens in " in record.getMessage()]
    assert len(told) > 5 and told[0].startswith("scripted: ")


def test_json_mode_true_is_any_json() -> None:
    """``json_mode=True`` asks for some JSON."""
    assert ScriptedModel(['{"a": [1]}']).generate("x", json_mode=True).text == '{"a": [1]}'


@pytest.mark.parametrize("name", sorted({*OPTIONS} - UNCHECKED))
def test_wrong_values_are_named(name: str) -> None:
    """A value of the wrong type or out of range is an error that names the option and the value."""
    for value in wrong(name):
        with pytest.raises(ModelError, match=f"{name} is ") as caught:
            ScriptedModel(["x"]).generate("x", **{name: value})
        assert caught.value.hint


def test_cancelling_stops_within_a_step(noise: Model) -> None:
    """The flag is polled at each step: a stream ends with reason "cancelled", generate raises."""
    polls = iter([False, False, False, True])
    events = list(noise.stream("x", max_tokens=500, temperature=1.0, seed=0, cancel=lambda: next(polls)))
    assert events[-1].reason == "cancelled" and events[-1].usage.completion_tokens == 3
    with pytest.raises(CancelledError):
        noise.generate("x", cancel=lambda: True)
    with pytest.raises(CancelledError, match="timeout"):
        noise.generate("x", timeout=0.0)


class CountingBackend(EmbeddedBackend):
    """The embedded model, counting open sessions; fails when told to."""

    open = 0
    fail_after = 10**9

    def start(self) -> Any:
        """A session that counts."""
        session = super().start()
        backend = self
        backend.open += 1
        close, extend = session.close, session.extend

        class Counted:
            length = property(lambda _: session.length)
            cached_tokens = property(lambda _: session.cached_tokens)

            def extend(self, ids: Sequence[int]) -> Any:
                backend.fail_after -= 1
                if backend.fail_after < 0:
                    raise RuntimeError("the accelerator caught fire")
                return extend(ids)

            def crop(self, length: int) -> None:
                session.crop(length)

            def close(self) -> None:
                backend.open -= 1
                close()

        return Counted()


def test_faults_free_the_session_and_the_next_request_is_fine() -> None:
    """An exception inside the model passes through untouched; nothing leaks; the model goes on working."""
    backend = CountingBackend()
    model = Model(backend, max_rows=1)
    backend.fail_after = 3
    with pytest.raises(RuntimeError, match="caught fire"):
        model.generate("x", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=0)
    assert backend.open == 0
    backend.fail_after = 10**9
    stream = model.stream("x", max_tokens=50, temperature=1.0, seed=0)
    next(stream)
    assert backend.open == 1
    stream.close()
    assert backend.open == 0
    assert is_valid(json.loads(model.generate("x", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=0).text), SCHEMA)


def test_threads_share_a_model() -> None:
    """Eight threads at once get what each would get alone."""
    params = [
        GenerateParams(json_mode=JsonMode(SCHEMA), temperature=1.0, seed=seed, max_tokens=60) for seed in range(8)
    ]
    with Model(in_double_precision()) as model:
        alone = [model.generate("x", each).text for each in params]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda each: model.generate("x", each).text, params))
    assert together == alone


def test_async_forms_equal_the_sync_ones(noise: Model) -> None:
    """agenerate and astream give the same; cancelling the task frees the session."""
    backend = CountingBackend()
    model = Model(backend, max_rows=1)
    params = GenerateParams(json_mode=JsonMode(SCHEMA), temperature=1.0, seed=5, max_tokens=60)

    async def main() -> None:
        expected = noise.generate("x", params)
        assert (await model.agenerate("x", params)).text == expected.text
        pieces = [event.text async for event in model.astream("x", params) if isinstance(event, TextDelta)]
        assert "".join(pieces) == expected.text
        task = asyncio.create_task(model.agenerate("x", max_tokens=3000, temperature=1.0, seed=1))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(BudgetError):
            await model.agenerate("x", params, max_tokens=1)

    asyncio.run(main())
    assert backend.open == 0


def test_count_tokens(noise: Model) -> None:
    """A longer conversation takes more tokens."""
    one = noise.count_tokens("hello")
    assert 0 < one < noise.count_tokens([Message("user", "hello"), Message("assistant", "hello")])


def test_out_of_vocabulary_logits_are_named() -> None:
    """A backend whose logits are too short for its vocabulary is a clear error."""

    class Short(EmbeddedBackend):
        def start(self) -> Any:
            session = super().start()
            extend = session.extend

            class Cut:
                length = cached_tokens = 0

                def extend(self, ids: Sequence[int]) -> Any:
                    return extend(ids)[:10]

                def close(self) -> None:
                    session.close()

            return Cut()

    from toolgrammar.core import DecodingError

    with pytest.raises(DecodingError, match=r"10,. for 4096 tokens"):
        Model(Short(), max_rows=1).generate("x", max_tokens=5)


def test_what_is_given_as_options_by_place_is_told_apart() -> None:
    """A shape or tools after the prompt are options by name: the hint says which."""

    def add(a: int) -> int:
        return a

    model: Any = ScriptedModel(["x"])
    for given, hint in (
        (int, "output_type=int"),
        ({"type": "object"}, "output_type=..."),
        (["a", "b"], "output_type=..."),
        ([add], "tools=[...]"),
        (add, "tools=[...]"),
        (5, "GenerateParams(...)"),
    ):
        with pytest.raises(ModelError) as caught:
            model.generate("hi", given)
        assert hint in str(caught.value.hint)


def test_a_model_is_not_pickled() -> None:
    """The error says what to send instead; copies are the model itself."""
    for model in (load_model("embedded"), load_model("openai:x@http://127.0.0.1:9/v1"), ScriptedModel(["x"])):
        with pytest.raises(TypeError, match=r"send its address, and load it there by load_model"):
            pickle.dumps(model)
        assert copy.copy(model) is model and copy.deepcopy(model) is model
