"""The backend behind vLLM's own manager of structured output, without a model: drafts, rollback, batches, budgets."""

from __future__ import annotations

import inspect
import json
import random
import sys
from concurrent.futures import wait
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: .ci/engines runs these tests where it is")

from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager, backend_types

from toolgrammar.adapters.vllm import envelope, register, sequence
from toolgrammar.adapters.vllm.plugin import PLACE
from toolgrammar.core.models import load_model
from toolgrammar.core.vocabulary.token_bytes import byte_alphabet

EOS = 4093
WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["city", "days"],
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """The embedded model's tokenizer, as transformers has it."""
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    vocabulary = load_model("embedded").vocabulary
    shown = {byte: character for character, byte in byte_alphabet().items()}
    tokens = {
        "".join(shown[byte] for byte in data) if data else f"<|{number}|>": number
        for number, data in enumerate(vocabulary.tokens)
    }
    made = Tokenizer(models.BPE(vocab=tokens, merges=[]))
    made.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token=f"<|{EOS}|>")


@pytest.fixture
def manager(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """vLLM's manager, its configuration reduced to what it reads."""
    register()
    monkeypatch.setattr("vllm.v1.structured_output.cached_tokenizer_from_config", lambda model_config: tokenizer)
    made = []

    def make(drafts: int = 0, rows: int = 8) -> Any:
        speculative = SimpleNamespace(method="ngram", model=None) if drafts else None
        config = SimpleNamespace(
            parallel_config=SimpleNamespace(distributed_executor_backend="uni"),
            scheduler_config=SimpleNamespace(max_num_seqs=rows),
            model_config=SimpleNamespace(
                skip_tokenizer_init=False, get_vocab_size=lambda: 4096, max_model_len=512, is_diffusion=False
            ),
            structured_outputs_config=SimpleNamespace(
                reasoning_parser_plugin="", reasoning_parser="", enable_in_reasoning=False
            ),
            speculative_config=speculative,
            num_speculative_tokens=drafts,
        )
        made.append(StructuredOutputManager(config))
        return made[-1]

    yield make
    for one in made:
        one.clear_backend()


def request(number: int, max_tokens: int = 200, **asked: Any) -> Request:
    """A request of vLLM."""
    params = SamplingParams(max_tokens=max_tokens, structured_outputs=StructuredOutputsParams(**asked))
    params.structured_outputs._backend = "outlines"
    params._eos_token_id = EOS
    params._all_stop_token_ids = {EOS}
    return Request(f"r{number}", prompt_token_ids=[1, 2, 3], sampling_params=params, pooling_params=None)


def started(manager: Any, requests: list[Request]) -> dict[str, Request]:
    """The requests, compiled."""
    for one in requests:
        manager.grammar_init(one)
    wait([one.structured_output_request._grammar for one in requests])
    assert all(one.structured_output_request.is_grammar_ready for one in requests)
    return {one.request_id: one for one in requests}


def choices(row: Any) -> list[int]:
    """The tokens of a row."""
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def run(manager: Any, requests: list[Request], seed: int, drafts: int = 0) -> dict[str, str]:
    """Write all requests together, random tokens under the masks, with random drafts; return their texts."""
    rng = random.Random(seed)
    by_id, tokens = started(manager, requests), load_model("embedded").vocabulary.tokens
    active = list(by_id)
    while active:
        scheduled = {}
        for name in active if drafts else ():
            grammar = by_id[name].structured_output_request.grammar
            proposed, many = [], rng.randrange(drafts + 1)
            for _ in range(many):  # drafts that are valid, and at times one that is not
                proposed = grammar.validate_tokens([*proposed, rng.randrange(4096)])
            valid = manager.validate_tokens(by_id[name], proposed)
            scheduled[name] = valid + [-1] * (many - len(valid))
        rows = manager.grammar_bitmask(by_id, active, scheduled)
        at = 0
        for name in list(active):
            one, kept = by_id[name], []
            planned = scheduled.get(name, [])
            for number in range(len(planned) + 1):
                token = rng.choice(choices(rows[at + number]))
                kept.append(token)
                if number == len(planned) or planned[number] != token:
                    break
            at += len(planned) + 1
            for place, token in enumerate(kept):
                one.append_output_token_ids(token)
                if token == EOS or one.num_output_tokens >= one.max_tokens:
                    one.status = (
                        RequestStatus.FINISHED_STOPPED if token == EOS else RequestStatus.FINISHED_LENGTH_CAPPED
                    )
                    kept = kept[: place + 1]
                    break
            assert manager.accept_tokens(one, kept)
            if one.is_finished():
                active.remove(name)
    return {
        name: b"".join(tokens[token] or b"" for token in one.output_token_ids).decode() for name, one in by_id.items()
    }


def test_the_classes_fulfil_the_installed_contract() -> None:
    """Each abstract method is there, and takes the arguments of the version that is installed."""
    register()
    from toolgrammar.adapters.vllm.backend import ToolGrammarBackend, ToolGrammarSequence

    for ours, theirs in (
        (ToolGrammarBackend, backend_types.StructuredOutputBackend),
        (ToolGrammarSequence, backend_types.StructuredOutputGrammar),
    ):
        assert not inspect.isabstract(ours)
        for name in theirs.__abstractmethods__:
            wanted = list(inspect.signature(getattr(theirs, name)).parameters)
            found = list(inspect.signature(getattr(ours, name)).parameters)
            assert len(found) == len(wanted), name


def test_registering_twice_changes_nothing() -> None:
    """The entry point is called in each process, and perhaps more than once."""
    register()
    place, create = sys.modules[PLACE], StructuredOutputManager._create_grammar
    register()
    assert sys.modules[PLACE] is place and StructuredOutputManager._create_grammar is create


@pytest.mark.parametrize("drafts", [0, 4])
@pytest.mark.parametrize("seed", range(4))
def test_batches_of_requests_are_valid(manager: Any, drafts: int, seed: int) -> None:
    """Whatever is drafted and chosen under the masks, each answer is what its request asks for."""
    schema = {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "not": {"maxItems": 1}}
    asked = [
        request(0, json=schema),
        request(1, regex="[ab]{3}c"),
        request(2, choice=["yes", "no"]),
        request(3, json=json.dumps(WEATHER)),
        request(4, grammar=envelope(TOOLS, tool_choice="required", format="llama-json", parallel_tool_calls=False)),
    ]
    texts = run(manager(drafts), asked, seed, drafts)
    jsonschema.validate(json.loads(texts["r0"]), schema)
    assert len(texts["r1"]) == 4 and texts["r2"] in ("yes", "no")
    jsonschema.validate(json.loads(texts["r3"]), WEATHER)
    jsonschema.validate(json.loads(texts["r4"])["parameters"], WEATHER)


@pytest.mark.parametrize("drafts", [0, 3])
@pytest.mark.parametrize("max_tokens", [20, 30, 60])
def test_the_budget_of_a_request_closes_it(manager: Any, max_tokens: int, drafts: int) -> None:
    """Answers are whole within ``max_tokens``; those that the budget closed are finished by length, with the places."""
    schema = {"type": "array", "items": {"type": "string"}}
    made = manager(drafts)
    asked = [request(number, max_tokens, json=schema) for number in range(8)]
    for text in run(made, asked, max_tokens, drafts).values():
        jsonschema.validate(json.loads(text), schema)
    for one in asked:
        if one.structured_output_request.grammar.closed_at is not None and one.stop_reason is not None:
            assert json.loads(one.stop_reason)["toolgrammar"]["cut"]
            assert one.status == RequestStatus.FINISHED_LENGTH_CAPPED


@pytest.mark.parametrize("asked", [{"json": WEATHER}, {"regex": "[a-z]{40}"}, {"choice": ["x" * 80]}])
def test_an_answer_that_is_cut_open_is_named(manager: Any, asked: dict[str, Any]) -> None:
    """A budget below the shortest answer is reported as such, also where no mask left a choice to the model."""
    (one,) = started(manager(), [request(0, 3, **asked)]).values()
    grammar = one.structured_output_request.grammar
    for number in range(3):
        row = np.zeros(128, np.uint32)
        grammar.fill(row)
        # The least that any of these needs is a byte for each token.
        token = min(choices(row), key=lambda token: len(load_model("embedded").vocabulary.tokens[token] or b""))
        one.append_output_token_ids(token)
        if number == 2:
            one.status = RequestStatus.FINISHED_LENGTH_CAPPED
        assert grammar.accept_tokens(one.request_id, [token])
    assert json.loads(one.stop_reason) == {"toolgrammar": {"cut": [""]}}


def test_a_batch_is_filled_by_one_call(manager: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each step one call of ours finds the masks of all rows, and they are those of the grammars row by row."""
    calls: list[int] = []
    fill = sequence.fill_known
    monkeypatch.setattr(
        sequence, "fill_known", lambda matchers, rows: (calls.append(len(matchers)), fill(matchers, rows))[1]
    )
    made, rng = manager(rows=40), random.Random(3)
    asked: list[dict[str, Any]] = [{"json": WEATHER}, {"grammar": envelope(TOOLS, format="hermes")}, {"regex": "a*"}]
    by_id = started(made, [request(number, 60, **asked[number % 3]) for number in range(36)])
    grammars = {name: one.structured_output_request.grammar for name, one in by_id.items()}
    for step in range(30):
        rows = made.grammar_bitmask(by_id, list(by_id), {}).copy()
        assert len(calls) == step + 1 and calls[-1] <= 36
        for (name, grammar), row in zip(grammars.items(), rows, strict=True):
            if grammar.is_terminated():
                assert (row == -1).all()
                continue
            alone = np.zeros_like(row)
            grammar.fill(alone.view(np.uint32))
            np.testing.assert_array_equal(row, alone)
            token = rng.choice(choices(row))
            by_id[name].append_output_token_ids(token)
            assert made.accept_tokens(by_id[name], [token])
    assert any(grammar.is_terminated() for grammar in grammars.values())


def test_an_error_is_that_of_one_request(manager: Any) -> None:
    """What cannot be compiled fails alone."""
    made = manager()
    good, bad = request(0, choice=["a"]), request(1, regex="(a")
    started(made, [good, bad])
    assert isinstance(bad.structured_output_request.grammar, Exception)
    assert not isinstance(good.structured_output_request.grammar, Exception)


def test_requests_share_what_is_compiled(manager: Any) -> None:
    """Equal tools are compiled once, and a thousand changing tool sets stay within the cache's bound."""
    made = manager()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    for number in range(300):
        tools = [{"type": "function", "function": {"name": f"tool_{number % 100}", "parameters": schema}}]
        one = request(number, grammar=envelope(tools, tool_choice="required", format="hermes"))
        by_id = started(made, [one])
        made.grammar_bitmask(by_id, [one.request_id], {})
    seen = made.backend._cache.statistics
    assert (seen.misses, seen.hits) == (100, 200) and seen.bytes <= seen.max_bytes


def test_requests_that_no_model_can_meet_are_refused_before_the_engine() -> None:
    """The frontend answers with an error of the request."""
    from vllm.exceptions import VLLMValidationError

    register()
    validate = sys.modules[PLACE].validate_structured_output_request_outlines
    validate(SamplingParams(structured_outputs=StructuredOutputsParams(json={"type": "string"})))
    for params in (
        SamplingParams(structured_outputs=StructuredOutputsParams(json={"type": "colour"})),
        SamplingParams(structured_outputs=StructuredOutputsParams(grammar='{"toolgrammar": 0}')),
        SamplingParams(min_tokens=3, structured_outputs=StructuredOutputsParams(json={"type": "string"})),
    ):
        with pytest.raises(VLLMValidationError, match="toolgrammar"):
            validate(params)
