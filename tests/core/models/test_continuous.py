"""`ContinuousMasks` inside of transformers' own continuous batching."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import Constraint, Grammar, ModelError, Vocabulary

from .tiny import llama

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", minversion="5.19", reason="transformers has no continuous batching")

from transformers import ContinuousBatchingConfig, GenerationConfig  # noqa: E402
from transformers.generation.continuous_batching import RequestState  # noqa: E402

from toolgrammar.core.models.transformers.continuous import ConstrainedText, ContinuousMasks  # noqa: E402

EOS = 256
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 4}, "days": {"enum": [1, 23]}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
LETTERS = {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 2}


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    """A token for each byte, and an end of text."""
    return Vocabulary([*(bytes((byte,)) for byte in range(256)), None, *[None] * 3], eos=[EOS])


@pytest.fixture(scope="module")
def model() -> Any:
    """A Llama of random weights."""
    return llama(vocab_size=260, num_hidden_layers=1, initializer_range=0.5, eos_token_id=EOS, bos_token_id=EOS)


@contextmanager
def serving(model: Any, vocabulary: Vocabulary, **options: Any) -> Iterator[tuple[Any, ContinuousMasks]]:
    """A running manager with masks."""
    settings: dict[str, Any] = {"do_sample": True, "temperature": 1.5, "eos_token_id": EOS, "max_new_tokens": 120}
    settings |= {name: options.pop(name) for name in list(options) if name in ("num_return_sequences", "top_k")}
    manager = model.init_continuous_batching(
        generation_config=GenerationConfig(**settings),
        continuous_batching_config=ContinuousBatchingConfig(
            num_blocks=options.pop("num_blocks", 64), max_batch_tokens=128, use_async_batching=False, **options
        ),
    )
    masks = ContinuousMasks(manager, vocabulary)
    manager.start()
    try:
        yield manager, masks
    finally:
        manager.stop(block=True)
        manager.destroy()


def outputs(manager: Any, count: int) -> dict[str, Any]:
    """The finished requests."""
    found: dict[str, Any] = {}
    while len(found) < count:
        output = manager.get_result(timeout=60)
        assert output is not None, "the loop has ended"
        found[output.request_id] = output
    return found


def text_of(output: Any) -> str:
    """What a request has written."""
    return bytes(token for token in output.generated_tokens if token < 256).decode()


@pytest.mark.parametrize("options", [{}, {"top_k": 5, "per_request_processors": True}])
def test_each_request_obeys_its_own_grammar(model: Any, vocabulary: Vocabulary, options: dict[str, Any]) -> None:
    """Requests with different grammars and without one run together; all are valid and whole, and one call a step
    finds the masks."""
    torch.manual_seed(1)
    schemas = [CITY, LETTERS, {"type": "integer", "minimum": 100, "maximum": 99_999}]
    constraints = [Grammar.from_json_schema(schema).bind(vocabulary) for schema in schemas]
    with serving(model, vocabulary, **options) as (manager, masks):
        calls: list[int] = []
        rows = masks.table.rows
        masks.table.rows = lambda matchers: (calls.append(len(matchers)), rows(matchers))[1]  # type: ignore[method-assign]
        texts = {}
        for number in range(24):
            text = ConstrainedText(constraints[number % 3])
            name = manager.add_request(list(f"prompt {number}".encode()), text=text)
            texts[name] = schemas[number % 3], text
        free = manager.add_request(list(b"free"), max_new_tokens=20)
        found = outputs(manager, 25)
    assert all(0 <= token < 260 for token in found[free].generated_tokens)
    tokens = 0
    for name, (schema, text) in texts.items():
        output = found[name]
        tokens += len(output.generated_tokens)
        assert output.error is None and text.error is None and text.is_whole(output)
        jsonschema.Draft202012Validator(schema).validate(json.loads(text_of(output)))
    assert sum(calls) == tokens  # each token's mask was asked for, and
    assert len(calls) < tokens / 4  # many by one call
    assert masks.table.filled < tokens  # equal states share one


def test_several_answers_to_one_prompt(model: Any, vocabulary: Vocabulary) -> None:
    """Answers that share a prompt are written apart, each of them valid."""
    torch.manual_seed(2)
    city = Grammar.from_json_schema(CITY).bind(vocabulary)
    with serving(model, vocabulary, num_return_sequences=4) as (manager, _):
        text = ConstrainedText(city)
        manager.add_request(list(b"city?"), text=text)
        found = outputs(manager, 4)
    for output in found.values():
        assert text.is_whole(output)
        jsonschema.Draft202012Validator(CITY).validate(json.loads(text_of(output)))
    assert len({text_of(output) for output in found.values()}) > 1


def test_a_request_that_began_anew_goes_on(model: Any, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the cache is too small, requests begin anew behind what they have written, and stay valid."""
    anew: list[str] = []
    begin = RequestState.create_equivalent_initial_request
    monkeypatch.setattr(
        RequestState,
        "create_equivalent_initial_request",
        lambda state: (anew.append(state.request_id), begin(state))[1],
    )
    torch.manual_seed(3)
    array = {"type": "array", "items": {"type": "boolean"}, "minItems": 25, "maxItems": 60}
    constraint = Grammar.from_json_schema(array).bind(vocabulary)
    with serving(model, vocabulary, num_blocks=48, page_size=16) as (manager, _):
        texts = {}
        for number in range(6):
            text = ConstrainedText(constraint)
            texts[manager.add_request(list(b"flags " * (10 + number)), max_new_tokens=450, text=text)] = text
        found = outputs(manager, 6)
    assert anew
    for name, text in texts.items():
        assert text.is_whole(found[name]), (found[name].error, text.error)
        jsonschema.Draft202012Validator(array).validate(json.loads(text_of(found[name])))


def test_a_cut_text_is_told(model: Any, vocabulary: Vocabulary) -> None:
    """A text that ``max_new_tokens`` has cut is not whole."""
    with serving(model, vocabulary) as (manager, _):
        text = ConstrainedText(Grammar.from_json_schema(CITY).bind(vocabulary))
        manager.add_request(list(b"city?"), max_new_tokens=5, text=text)
        (output,) = outputs(manager, 1).values()
    assert len(output.generated_tokens) == 5 and not text.is_whole(output)


def test_a_limit_ends_its_own_request(model: Any, vocabulary: Vocabulary) -> None:
    """A grammar that fails while its masks are computed ends its request with an error; others go on."""
    city = Grammar.from_json_schema(CITY).bind(vocabulary)
    with serving(model, vocabulary) as (manager, _):
        good, bad = ConstrainedText(city), ConstrainedText(_Failing(city))
        names = [manager.add_request(list(b"city?"), text=text) for text in (good, bad)]
        found = outputs(manager, 2)
    assert good.is_whole(found[names[0]]) and found[names[0]].error is None
    assert "a limit" in found[names[1]].error and str(bad.error) == found[names[1]].error
    assert len(found[names[1]].generated_tokens) == 3


class _Failing:
    """A constraint whose fourth mask fails."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self.vocabulary = constraint.vocabulary

    def matcher(self) -> Any:
        """A matcher that fails."""
        return _FailingMatcher(self._constraint.matcher())


class _FailingMatcher:
    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher
        self._count = 0
        self.constraint = matcher.constraint

    def accept(self, token: int) -> bool:
        self._count += 1
        return bool(self._matcher.accept(token))

    def fill_mask(self, out: Any) -> None:
        if self._count >= 3:
            raise ModelError("a limit was met", hint="none")
        self._matcher.fill_mask(out)

    @property
    def _place(self) -> Any:
        return self._matcher._place[0], -1 - self._count  # its states are its own

    @property
    def is_finished(self) -> bool:
        return False


def test_what_cannot_be_masked_is_refused(model: Any, vocabulary: Vocabulary) -> None:
    """Asynchronous batches, a vocabulary of another size, a manager that runs, and a text of another kind."""

    def manager(**options: Any) -> Any:
        return model.init_continuous_batching(
            generation_config=GenerationConfig(eos_token_id=EOS, max_new_tokens=4),
            continuous_batching_config=ContinuousBatchingConfig(num_blocks=16, max_batch_tokens=64, **options),
        )

    with pytest.raises(ModelError, match="use_async_batching"):
        ContinuousMasks(manager(use_async_batching=True), vocabulary)
    with pytest.raises(ModelError, match="260 scores for 1 tokens"):
        ContinuousMasks(manager(use_async_batching=False), Vocabulary([b"a"], eos=[]))
    with serving(model, vocabulary) as (running, _):
        with pytest.raises(ModelError, match="is running"):
            ContinuousMasks(running, vocabulary)
        running.add_request(list(b"x"), text="a text")
        (output,) = outputs(running, 1).values()
        assert "expected ConstrainedText" in output.error
