"""Many prompts with different grammars, one forward pass a step."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from toolgrammar.core import (
    BudgetError,
    CancelledError,
    GenerateParams,
    Generation,
    Grammar,
    JsonMode,
    Model,
    ModelError,
    load_model,
)
from toolgrammar.core.models.numpy_llama.embedded import EmbeddedBackend
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.core.validation import is_valid

from ...double_precision import in_double_precision

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


class Batching(EmbeddedBackend):
    """The embedded model with sequences that advance together: what a backend with true batches offers."""

    def __init__(self) -> None:
        super().__init__(prefix_cache=0)
        self.passes: list[int] = []
        self.rows: set[Any] = set()
        self.fail_at = -1

    def can_batch(self) -> bool:
        """It can."""
        return True

    def begin(self, prompt: Sequence[int]) -> Any:
        """A sequence that is counted while it is open."""
        session = self.start()
        close = session.close
        self.rows.add(session)

        def closed() -> None:
            self.rows.discard(session)
            close()

        session.close = closed  # type: ignore[method-assign]
        return session

    def extend_many(self, rows: Sequence[tuple[Any, Sequence[int]]]) -> list[Any]:
        """One pass, which is counted with its rows."""
        if len(self.passes) == self.fail_at:
            raise RuntimeError("the accelerator caught fire")
        assert len({id(session) for session, _ in rows}) == len(rows) and all(ids for _, ids in rows)
        self.passes.append(len(rows))
        return [session.extend(ids) for session, ids in rows]


def requests(temperature: float) -> tuple[list[str], list[GenerateParams]]:
    """Eight prompts of different lengths, and a different language for each answer."""
    grammars: list[dict[str, Any]] = [
        {"json_mode": JsonMode(PERSON)},
        {"grammar": Grammar.from_regex("(yes|no)!{1,3}")},
        {"max_tokens": 5},
        {"json_mode": JsonMode({"type": "array", "items": {"type": "number"}, "minItems": 3})},
        {"json_mode": JsonMode(PERSON), "max_tokens": 14},
        {"stop": ("e", "a")},
        {"json_mode": JsonMode(PERSON), "jump_forward": False},
        {"json_mode": JsonMode({"enum": ["one", "two"]}), "top_k": 3},
    ]
    params = [
        GenerateParams(temperature=temperature, seed=number, **{"max_tokens": 60, **options})
        for number, options in enumerate(grammars)
    ]
    return [f"{number}: " + "a longer prompt, " * number + "please" for number in range(8)], params


def same(generations: Sequence[Generation]) -> list[Generation]:
    """Without what depends on what was computed before."""
    return [replace(each, usage=replace(each.usage, cached_tokens=0)) for each in generations]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("max_rows", [1, 3, 32])
def test_a_batch_equals_one_by_one(temperature: float, max_rows: int) -> None:
    """Greedy or with seeds, in rows that come and go, each result is what the prompt alone would have got."""
    prompts, params = requests(temperature)
    backend = Batching()
    model, alone = Model(backend), Model(EmbeddedBackend(prefix_cache=0))
    expected = [alone.generate(prompt, each) for prompt, each in zip(prompts, params, strict=True)]
    assert same(model.generate_batch(prompts, params, max_rows=max_rows)) == same(expected)
    assert not backend.rows and max(backend.passes) <= max_rows
    assert sum(backend.passes) == sum(each.usage.forward_passes for each in expected)
    if max_rows == 32:
        assert len(backend.passes) == max(each.usage.forward_passes for each in expected)


def test_a_backend_without_batches_is_driven_one_by_one() -> None:
    """A scripted model answers a batch in order."""
    assert [each.text for each in ScriptedModel(["one", "two"]).generate_batch(["a", "b"])] == ["one", "two"]


def test_retries_happen_inside_the_batch() -> None:
    """An answer that must be asked for again does so in its row, while the others go on."""
    backend = Batching()
    mode = JsonMode({"type": "string"}, constrained_decoding=False)
    outcomes = Model(backend).generate_batch(
        ["x", "y"], [GenerateParams(json_mode=mode, stop=("e", " ")), GenerateParams(json_mode=JsonMode(PERSON))],
        return_errors=True, temperature=1.0, seed=0,
    )  # fmt: skip
    assert isinstance(outcomes[1], Generation) and is_valid(json.loads(outcomes[1].text), PERSON)
    assert "not valid JSON" in str(outcomes[0])
    assert not backend.rows


def test_an_error_of_one_row_leaves_the_others_alone() -> None:
    """One prompt's error takes its place in the list, or is raised when all are over."""
    backend = Batching()
    model = Model(backend)
    params = [
        GenerateParams(json_mode=JsonMode(PERSON)),
        GenerateParams(json_mode=JsonMode(PERSON), max_tokens=2),
        GenerateParams(cancel=lambda: True),
    ]
    outcomes = model.generate_batch(["a", "b", "c"], params, return_errors=True)
    assert same(outcomes[:1]) == same([model.generate("a", params[0])])
    assert isinstance(outcomes[1], BudgetError) and isinstance(outcomes[2], CancelledError)
    with pytest.raises(BudgetError):
        model.generate_batch(["a", "b", "c"], params)
    assert not backend.rows


def test_an_error_of_the_model_ends_the_batch_and_frees_it() -> None:
    """What the model itself raises passes through; no row stays, and the next batch is fine."""
    backend = Batching()
    model = Model(backend)
    backend.fail_at = 2
    with pytest.raises(RuntimeError, match="caught fire"):
        model.generate_batch(["a", "b"], json_mode=JsonMode(PERSON), temperature=1.0, seed=0)
    assert not backend.rows
    backend.fail_at = -1
    assert len(model.generate_batch(["a", "b"], json_mode=JsonMode(PERSON))) == 2


def test_misuse_of_a_batch_is_named() -> None:
    """A single prompt, and parameters that do not match the prompts, are clear errors; no prompts are no results."""
    model = ScriptedModel(["x"])
    with pytest.raises(ModelError, match="a batch is a sequence"):
        model.generate_batch("x")
    with pytest.raises(ModelError, match="got 2 prompts but 1 params"):
        model.generate_batch(["a", "b"], [GenerateParams()])
    with pytest.raises(ModelError, match="max_rows is 0"):
        model.generate_batch(["a"], max_rows=0)
    assert model.generate_batch([]) == []


def test_async_batch_is_the_sync_one() -> None:
    """Awaited, a batch has the same results and errors; wrong requests are told at once."""
    prompts, params = requests(1.0)
    backend = Batching()
    model = Model(backend)
    expected = model.generate_batch(prompts, params)
    params[1] = replace(params[1], max_tokens=1)

    async def main() -> None:
        outcomes = await model.agenerate_batch(prompts, params, return_errors=True, max_rows=3)
        assert isinstance(outcomes.pop(1), BudgetError)
        assert same(outcomes) == same([expected[0], *expected[2:]])
        with pytest.raises(BudgetError):
            await model.agenerate_batch(prompts, params)
        with pytest.raises(ModelError, match="a batch is a sequence"):
            await model.agenerate_batch("x")
        given = replace(params[0], cancel=lambda: True)
        (outcome,) = await model.agenerate_batch(["x"], given, return_errors=True)
        assert isinstance(outcome, CancelledError)

    asyncio.run(main())
    assert not backend.rows


@pytest.mark.parametrize("together", [True, False])
def test_cancelling_an_async_batch_stops_every_row(together: bool) -> None:
    """The event loop stays free, all prompts stop within a step, nothing is left, and the next batch is fine."""
    backend = Batching() if together else EmbeddedBackend(prefix_cache=0)
    model = Model(backend)

    async def main() -> None:
        task = asyncio.create_task(model.agenerate_batch(["x"] * 4, max_tokens=3000, temperature=1.0, seed=1))
        for _ in range(5):
            await asyncio.sleep(0.01)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begun < 5.0
        assert len(await model.agenerate_batch(["a", "b"], json_mode=JsonMode(PERSON))) == 2

    asyncio.run(main())
    if isinstance(backend, Batching):
        assert not backend.rows


def test_usage_counts_what_was_not_computed_again() -> None:
    """The second turn of a conversation reports the tokens that the first one left."""
    model = load_model("embedded")
    first = model.generate("Tell me a story, please, a long one.", max_tokens=5)
    second = model.generate("Tell me a story, please, a long one.", max_tokens=5)
    assert first.usage.cached_tokens == 0
    assert 0 < second.usage.cached_tokens <= second.usage.prompt_tokens
    assert second.text == first.text


#: A shape of a few dozen tokens.
SHAPE = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "sizes": {"type": "array", "maxItems": 4}},
    "required": ["name", "sizes"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("count", [3, 16])
def test_sequences_of_the_embedded_model_share_passes(count: int) -> None:
    """Prompts of different lengths, greedy and drawn, get together what each gets alone, in fewer passes."""
    asked = [
        ("ask " * (7 * number + 1), GenerateParams(json_mode=JsonMode(SHAPE), temperature=number % 2, seed=number))
        for number in range(count)
    ]
    with Model(in_double_precision(), max_rows=1) as plain:
        assert plain.scheduler is None
        alone = [plain.generate(*each) for each in asked]
    with Model(in_double_precision()) as model:
        together = model.generate_batch([prompt for prompt, _ in asked], [params for _, params in asked])
        assert model.scheduler is not None
        assert model.scheduler.counters().passes < 0.7 * sum(each.usage.forward_passes for each in alone)
    assert [each.token_ids for each in together] == [each.token_ids for each in alone]
