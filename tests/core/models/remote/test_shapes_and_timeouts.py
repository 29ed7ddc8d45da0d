"""What models of both kinds have in common: ``output_type``, typed options, and one meaning of ``timeout``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter, field_validator
from typing_extensions import TypedDict

from toolgrammar.core import (
    GenerateParams,
    Generation,
    GenerationTimeoutError,
    Grammar,
    InvalidArgumentsError,
    JsonMode,
    Model,
    ModelError,
    TextDelta,
    load_model,
)
from toolgrammar.core.generation import deadline
from toolgrammar.core.models import LocalModel
from toolgrammar.core.models.numpy_llama.embedded import EmbeddedBackend
from toolgrammar.core.models.remote import RemoteModel
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet


class Person(BaseModel):
    """A Pydantic class."""

    name: str
    age: int


@dataclass
class Point:
    """A dataclass."""

    x: int
    y: int


class Entry(TypedDict):
    """A typed dict."""

    key: str


SHAPES: list[tuple[Any, str, Any]] = [
    (Person, '{"name": "Ada", "age": 36}', Person(name="Ada", age=36)),
    (Point, '{"x": 1, "y": 2}', Point(1, 2)),
    (Entry, '{"key": "k"}', {"key": "k"}),
    (list[int], "[1, 2]", [1, 2]),
    (Literal["a", "b"], '"b"', "b"),
    (int | None, "null", None),
    (int, "7", 7),
    (TypeAdapter(tuple[int, str]), '[1, "a"]', (1, "a")),
    ({"type": "array", "items": {"const": 1}}, "[1, 1]", [1, 1]),
    (True, '{"any": 1}', {"any": 1}),
    (Grammar.from_json_schema({"enum": ["x", "y"]}), '"y"', "y"),
]


@pytest.mark.parametrize(("shape", "text", "value"), SHAPES, ids=lambda each: str(each)[:20])
def test_output_type_asks_for_a_shape(serve: Any, complete: Any, shape: Any, text: str, value: Any) -> None:
    """A class, a Python type, a schema and a grammar are taken in the same place by every method of both kinds."""
    for make in (lambda: ScriptedModel([text]), lambda: serve(complete(text)).model()):
        assert make().generate("x", output_type=shape).text == text
        assert make().generate("x", GenerateParams(output_type=shape)).text == text
        assert asyncio.run(make().agenerate("x", output_type=shape)).text == text
        streamed = make().stream("x", output_type=shape)
        assert "".join(event.text for event in streamed if isinstance(event, TextDelta)) == text
        assert make().generate_batch(["x"], output_type=shape)[0].text == text
        assert make().generate_json("x", shape) == value
        assert make().generate_json("x", output_type=shape) == value
        assert asyncio.run(make().agenerate_json("x", output_type=shape)) == value


def test_a_local_model_is_held_to_the_shape() -> None:
    """Noise under an output type writes values of it."""
    model = load_model("embedded")
    for seed in range(4):
        value = model.generate_json("x", list[Literal["a", "b"]], temperature=1.0, seed=seed, max_tokens=40)
        assert set(value) <= {"a", "b"}
        text = model.generate("x", output_type=Grammar.from_regex("[ab]{3}"), temperature=1.0, seed=seed).text
        assert len(text) == 3 and set(text) <= {"a", "b"}


def test_beside_tools_the_shape_is_that_of_a_text_answer() -> None:
    """With tools a call may be written, or text of the shape."""
    tools = ToolSet.from_any([Person])
    answer = ScriptedModel(['{"x": 1, "y": 2}']).generate("x", tools=tools, output_type=Point)
    assert json.loads(answer.text) == {"x": 1, "y": 2} and not answer.tool_calls


def test_two_shapes_exclude_each_other() -> None:
    """``output_type`` beside another spelling of the same is an error, and so is what is no shape or has no schema."""
    model = ScriptedModel(lambda messages: "1")
    others: list[dict[str, Any]] = [
        {"json_mode": JsonMode()},
        {"grammar": Grammar.literal("a")},
    ]
    for other in others:
        with pytest.raises(ModelError, match=r"output_type and .* exclude each other"):
            model.generate("x", output_type=int, **other)
    with pytest.raises(ModelError, match="schema and output_type exclude"):
        model.generate_json("x", int, output_type=int)
    with pytest.raises(ModelError, match="has no JSON Schema"):
        model.generate("x", output_type=type(Callable))
    with pytest.raises(InvalidArgumentsError, match="not JSON"):
        ScriptedModel(["ab"]).generate_json("x", Grammar.literal("ab"))


def test_validators_of_a_type_are_asked() -> None:
    """Where a validator objects the model is asked again, for generic types too."""

    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("odd")
            return n

    model = ScriptedModel(['[{"n": 1}]', '[{"n": 2}]'])
    assert model.generate_json("x", list[Even]) == [Even(n=2)]
    assert "odd" in model.requests[1][-1].text


def test_local_and_remote_are_siblings() -> None:
    """Both are a `Model`, neither is the other; ``Model(backend)`` is a local one."""
    remote = RemoteModel("m@http://model.test/v1")
    local = Model(EmbeddedBackend())
    assert isinstance(local, LocalModel) and isinstance(remote, Model) and not isinstance(remote, LocalModel)
    assert not hasattr(remote, "backend")
    with pytest.raises(TypeError):
        type("Half", (Model,), {})()


# -- timeouts --------------------------------------------------------------------------------------------------------


def test_a_timeout_is_the_same_error_everywhere(serve: Any, complete: Any) -> None:
    """Local or remote, streamed or not, awaited or not: `GenerationTimeoutError`, which is a `TimeoutError`."""

    async def drain(model: Model) -> None:
        async for _ in model.astream("x", timeout=0.0):
            pass

    for make in (lambda: ScriptedModel(["abc"]), lambda: serve(complete("abc")).model()):
        asked: list[Callable[[], Any]] = [
            lambda make=make: make().generate("x", timeout=0.0),
            lambda make=make: list(make().stream("x", timeout=0.0)),
            lambda make=make: make().generate_json("x", int, timeout=0.0),
            lambda make=make: make().generate_batch(["x"], timeout=0.0),
            lambda make=make: asyncio.run(make().agenerate("x", timeout=0.0)),
            lambda make=make: asyncio.run(drain(make())),
        ]
        for ask in asked:
            with pytest.raises(GenerationTimeoutError, match=r"timeout of 0\.0 s passed") as caught:
                ask()
            assert isinstance(caught.value, TimeoutError)
        (error,) = make().generate_batch(["x"], timeout=0.0, return_errors=True)
        assert isinstance(error, GenerationTimeoutError)


def test_a_timeout_spans_all_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is asked again for better JSON gets no new time."""
    now = [0.0]
    monkeypatch.setattr(deadline.time, "monotonic", lambda: now[0])

    def reply(messages: Any) -> str:
        now[0] += 10
        return "no JSON"

    model = ScriptedModel(reply)
    with pytest.raises(GenerationTimeoutError, match=r"timeout of 15\.0 s"):
        model.generate_json("x", json_mode=JsonMode({"type": "array"}, constrained_decoding=False), timeout=15.0)
    assert len(model.requests) == 2


def test_a_generation_is_the_last_item_of_a_batch() -> None:
    """Results of a batch without ``return_errors`` are generations."""
    assert all(isinstance(each, Generation) for each in ScriptedModel(["a", "b"]).generate_batch(["x", "y"]))
