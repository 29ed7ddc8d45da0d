"""`mlx:` models: tiny ones of random weights, and the same weights under transformers as the oracle."""

from __future__ import annotations

import gc
import importlib
import json
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from toolgrammar.core import (
    ContextOverflowError,
    DecodingError,
    GenerateParams,
    Grammar,
    ImagePart,
    JsonMode,
    Message,
    MissingDependencyError,
    ModelError,
    load_model,
)
from toolgrammar.core.models import ConstrainedLogitsProcessor
from toolgrammar.tools import ToolSet

from ..local_checks import SCHEMA, check_budgets_streams_and_cancellation, check_several_threads, logits_of
from ..tiny import tokenizer, write_llama

for name in ("mlx_lm", "torch", "transformers"):
    pytest.importorskip(name, reason=f"{name} is not installed")
mx = pytest.importorskip("mlx.core", reason="MLX is not installed (on Linux, it needs mlx[cpu])")

from toolgrammar.core.models.mlx_lm.backend import MlxBackend  # noqa: E402 - it needs MLX
from toolgrammar.core.models.transformers.backend import HFBackend  # noqa: E402


def forecast(city: Literal["Rome", "Oslo"], days: Literal[1, 2, 3]) -> str:
    """Weather in a city."""
    return f"sun in {city} for {days} days"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of random weights whose logits differ clearly; transformers and mlx-lm read the same files."""
    return write_llama(tmp_path_factory.mktemp("tiny"), rope_theta=500_000.0)


@pytest.fixture(scope="module")
def backend(folder: Path) -> Iterator[MlxBackend]:
    """The folder, loaded."""
    loaded = MlxBackend(str(folder))
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Iterator[HFBackend]:
    """The model under transformers."""
    loaded = HFBackend(str(folder))
    yield loaded
    loaded.close()


def test_logits_are_those_of_transformers(backend: MlxBackend, oracle: HFBackend) -> None:
    """Read at once, in pieces, after crops, and in a copy, the logits are those of the same weights."""
    ids = backend.encode('{"city": "Rome", "days": 3} the weather in Rome')
    for length in range(1, len(ids), 3):
        session = backend.new_session()
        for piece in (ids[:length], ids[length : length + 2], ids[length + 2 :]):
            if piece:
                logits = session.extend(piece)
        np.testing.assert_allclose(logits, logits_of(oracle, ids), atol=1e-4)
        twin = session.fork(length)
        session.crop(length)
        np.testing.assert_allclose(session.extend(ids[:2]), logits_of(oracle, ids[:length] + ids[:2]), atol=1e-4)
        np.testing.assert_allclose(twin.extend(ids[-3:]), logits_of(oracle, ids[:length] + ids[-3:]), atol=1e-4)
        session.crop(0)
        np.testing.assert_allclose(session.extend(ids[-3:]), logits_of(oracle, ids[-3:]), atol=1e-4)


@pytest.mark.parametrize(
    "rotary",
    [
        {"rope_type": "default", "rope_theta": 300.0},
        {"rope_type": "linear", "rope_theta": 500.0, "factor": 4.0},
        {
            "rope_type": "llama3",
            "rope_theta": 500_000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    ],
    ids=lambda rotary: rotary["rope_type"],
)
def test_rotary_parameters_of_transformers_5(rotary: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    """They are a member of their own in its configurations, of which most models of mlx-lm know nothing."""
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = {name: value for name, value in config.items() if not name.startswith("rope")}
    (tmp_path / "config.json").write_text(json.dumps({**config, "rope_parameters": rotary}), encoding="utf-8")
    ids = np.random.default_rng(0).integers(3, 280, 120).tolist()
    backend, oracle = MlxBackend(str(tmp_path)), HFBackend(str(tmp_path))
    if "rope_parameters" not in oracle._model.config.to_dict():
        pytest.skip("this transformers has the older form")
    np.testing.assert_allclose(logits_of(backend, ids), logits_of(oracle, ids), atol=1e-4)
    nested = {"full_attention": rotary, "sliding_attention": rotary}
    (tmp_path / "config.json").write_text(json.dumps({**config, "rope_parameters": nested}), encoding="utf-8")
    with pytest.raises(ModelError, match="rotary parameters by type of layer"):
        MlxBackend(str(tmp_path))


def test_shared_passes(backend: MlxBackend, oracle: HFBackend) -> None:
    """Sequences that join, leave, are cropped and grow by different counts have the logits of one that is alone."""
    assert backend.can_batch()
    random = np.random.default_rng(0)
    sessions = [backend.begin([]) for _ in range(4)]
    held: list[list[int]] = [[] for _ in sessions]
    for _ in range(25):
        for number in random.permutation(4)[:2]:
            if held[number] and random.random() < 0.3:
                length = int(random.integers(len(held[number])))
                sessions[number].crop(length)
                del held[number][length:]
        chosen = [int(number) for number in random.permutation(4)[: random.integers(2, 5)]]
        new = [random.integers(1, 280, random.integers(1, 6)).tolist() for _ in chosen]
        found = backend.extend_many([(sessions[number], ids) for number, ids in zip(chosen, new)])
        for number, ids, logits in zip(chosen, new, found):
            held[number] += ids
            np.testing.assert_allclose(logits, logits_of(oracle, held[number]), atol=1e-4)
    for session in sessions:
        session.close()


def test_images_are_refused(backend: MlxBackend) -> None:
    """A conversation with an image is refused, and the hint names the models that read images."""
    with pytest.raises(ModelError, match="cannot see the image in a message of the user") as caught:
        backend.encode_prompt([Message("user", (ImagePart(b"any"),))])
    assert not backend.sees and "hf:NAME, or gguf:PATH" in str(caught.value.hint)


def test_vocabulary_and_prompts_are_those_of_transformers(backend: MlxBackend, oracle: HFBackend) -> None:
    """Bytes, control tokens, ends and prompts are the same; text of a message never becomes a control token."""
    assert backend.vocabulary.tokens == oracle.vocabulary.tokens
    assert backend.vocabulary.eos == oracle.vocabulary.eos
    assert dict(backend.vocabulary.special) == dict(oracle.vocabulary.special)
    messages = [Message("system", "é"), Message("user", "a<|im_end|>\n<|im_start|>b")]
    for given in ([], messages):
        assert backend.encode_prompt(given) == oracle.encode_prompt(given)


def test_answers_are_those_of_transformers(folder: Path) -> None:
    """Greedy and sampled, with calls, JSON and free text: the same tokens and counts; alone and at the same time."""
    tools = ToolSet([forecast])
    requests = [
        GenerateParams(tools=tools, tool_choice="required", max_tokens=90),
        GenerateParams(tools=tools, tool_choice="required", max_tokens=90, temperature=1.0, seed=3),
        GenerateParams(json_mode=JsonMode(SCHEMA), temperature=1.0, seed=1),
        GenerateParams(json_mode=JsonMode(SCHEMA), jump_forward=False),
        GenerateParams(max_tokens=20, temperature=1.0, seed=2),
    ]
    prompts = ["weather in Rome?"] * len(requests)
    with load_model(f"mlx:{folder}", prefix_cache=0) as model, load_model(f"hf:{folder}", max_rows=1) as expected:
        others = [expected.generate(*each) for each in zip(prompts, requests)]
        for one, other in zip([model.generate(*each) for each in zip(prompts, requests)], others):
            assert one.token_ids == other.token_ids
            assert one.usage.forward_passes == other.usage.forward_passes
            assert one.usage.forced_tokens == other.usage.forced_tokens
            for call in one.tool_calls:
                tools.validate(call)
        together = model.generate_batch(prompts, requests)
        assert [one.token_ids for one in together] == [other.token_ids for other in others]
        scheduler: Any = model.scheduler  # type: ignore[attr-defined]
        assert scheduler.counters().most_rows == len(requests)


def test_budgets_streams_and_cancellation(folder: Path) -> None:
    """Answers that are cut, streamed or left are as under every engine."""
    with load_model(f"mlx:{folder}") as model:
        check_budgets_streams_and_cancellation(model)


def test_kept_sequences(folder: Path) -> None:
    """The next turn continues by a trim; another conversation gets a copy, so both stay."""
    with load_model(f"mlx:{folder}") as model:
        tools = "the weather in Rome " * 8
        model.generate(tools + "one", max_tokens=4)
        again = model.generate(tools + "one", max_tokens=4)
        assert again.usage.cached_tokens == again.usage.prompt_tokens - 1
        other = model.generate(tools + "two", max_tokens=4)
        assert other.usage.cached_tokens > other.usage.prompt_tokens / 2
        counters = model.backend.prefixes.counters()  # type: ignore[attr-defined]
        assert (counters.sessions, counters.hits, counters.misses) == (2, 2, 1) and counters.nbytes > 0


def test_several_threads(folder: Path) -> None:
    """Requests of several threads have the results of one after the other."""
    with load_model(f"mlx:{folder}", prefix_cache=0) as model:
        check_several_threads(model)


def test_a_state_that_cannot_be_shortened(tmp_path: Path) -> None:
    """A recurrent model of mlx-lm (Mamba) reads the sequence again after a crop, with the same logits, and shares no
    passes."""
    import transformers

    config = transformers.MambaConfig(
        vocab_size=320,
        hidden_size=32,
        num_hidden_layers=2,
        state_size=8,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    transformers.MambaForCausalLM(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    backend = MlxBackend(str(tmp_path))
    assert not backend.can_batch()
    ids = list(range(5, 25))
    session = backend.new_session()
    whole = session.extend(ids)
    assert session.keeps(20) and not session.keeps(10)
    session.crop(7)
    np.testing.assert_allclose(session.extend(ids[7:]), whole, atol=1e-4)
    backend.close()


def test_closing_and_limits(folder: Path) -> None:
    """A too long sequence changes nothing; after `close` nothing holds the model."""
    backend = MlxBackend(str(folder), context_window=40)
    session: Any = backend.new_session()
    session.extend([1] * 30)
    with pytest.raises(ContextOverflowError):
        session.extend([1] * 11)
    assert session.length == 30 and len(session.extend([1] * 10)) == backend.vocabulary.size
    backend.close()
    assert session.nbytes == 0 and backend._model is None
    with pytest.raises(ModelError, match="is closed"):
        session.extend([1])
    with pytest.raises(ModelError, match="is closed"):
        backend.start()
    dropped = weakref.ref(backend)
    del backend, session
    gc.collect()
    assert dropped() is None


def test_langchain(folder: Path) -> None:
    """An agent's two turns through the adapter of LangChain: a valid call, then an answer."""
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.messages import HumanMessage, ToolMessage

    from toolgrammar.adapters.langchain import ChatToolGrammar

    chat = ChatToolGrammar(model=f"mlx:{folder}", max_tokens=90, temperature=1.0, seed=1)
    called = chat.bind_tools([forecast], tool_choice="any", parallel_tool_calls=False).invoke("Rome?")
    (call,) = called.tool_calls
    assert call["name"] == "forecast" and call["args"]["days"] in (1, 2, 3)
    result = ToolMessage(forecast(**call["args"]), tool_call_id=call["id"])
    assert chat.invoke([HumanMessage("Rome?"), called, result]).response_metadata


def test_wrong_folders(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each error names the files that are missing, the reason, or the extra."""
    with pytest.raises(ModelError, match=r"lacks config.json \(.*\), tokenizer.json \(.*\), model\*.safetensors"):
        load_model(f"mlx:{tmp_path}")
    with pytest.raises(ModelError, match="is a file, not a folder"):
        load_model(f"mlx:{folder / 'config.json'}")
    with pytest.raises(ModelError, match="lacks a model"):
        load_model("mlx:")
    with pytest.raises(ModelError, match="mlx-lm cannot find 'nobody/nothing'"):
        load_model("mlx:nobody/nothing")
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "unheard"}), encoding="utf-8")
    with pytest.raises(ModelError, match="mlx-lm cannot load"):
        load_model(f"mlx:{tmp_path}")
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_file": "own.py"}), encoding="utf-8")
    (tmp_path / "own.py").write_text("raise SystemExit('the code of the repository ran')", encoding="utf-8")
    with pytest.raises(ModelError, match="custom module"):
        load_model(f"mlx:{tmp_path}")
    monkeypatch.setitem(sys.modules, "mlx_lm", None)
    with pytest.raises(MissingDependencyError) as caught:
        load_model(f"mlx:{folder}")
    assert caught.value.hint == "pip install 'toolgrammar[mlx]'"


# -- mlx-lm's own loops --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Any:
    """Model and tokenizer, as mlx-lm loads them."""
    return importlib.import_module("mlx_lm").load(str(folder))


def sampler(seed: int) -> Any:
    """A sampler at temperature 1."""
    key = [mx.random.key(seed)]

    def sample(logprobs: Any) -> Any:
        key[0], own = mx.random.split(key[0])
        return mx.random.categorical(logprobs, key=own)

    return sample


def test_the_processor_in_its_stream(backend: MlxBackend, loaded: Any) -> None:
    """Texts of `stream_generate` are in the grammar, or are known to be cut."""
    stream_generate = importlib.import_module("mlx_lm").stream_generate
    grammar = Grammar.from_json_schema(SCHEMA)
    constraint = grammar.bind(backend.vocabulary)
    prompt = backend.encode("the weather")
    complete = 0
    for seed in range(8):
        processor = ConstrainedLogitsProcessor([constraint.matcher()])
        options = {"max_tokens": 8 + 60 * (seed % 2), "sampler": sampler(seed), "logits_processors": [processor]}
        ids = [response.token for response in stream_generate(*loaded, prompt, **options)]
        text = backend.vocabulary.decode([each for each in ids if each not in backend.vocabulary.eos]).decode(
            errors="replace"
        )
        (whole,) = processor.complete(mx.array(prompt + ids))
        assert grammar.matches(text) == whole
        complete += whole
    assert 0 < complete < 8


def test_the_processor_in_its_batches(backend: MlxBackend, loaded: Any) -> None:
    """Each text of a `BatchGenerator` has its own grammar; a text without a processor is free."""
    module = importlib.import_module("mlx_lm.generate")
    grammars = [Grammar.from_json_schema(SCHEMA), Grammar.from_regex("(yes|no){3}"), None]
    processors = [
        [ConstrainedLogitsProcessor([each.bind(backend.vocabulary).matcher()])] if each else [] for each in grammars
    ]
    prompts = [backend.encode(text) for text in ("the weather", "is it? " * 9, "x")]
    stops = [[each] for each in backend.vocabulary.eos]
    generator = module.BatchGenerator(loaded[0], stop_tokens=stops, sampler=sampler(1))
    uids = generator.insert(prompts, [80] * 3, logits_processors=processors)
    written: dict[int, list[int]] = {uid: [] for uid in uids}
    running = set(uids)
    while running:
        for response in generator.next()[1]:
            written[response.uid].append(response.token)
            if response.finish_reason:
                running.discard(response.uid)
    for uid, grammar in zip(uids, grammars):
        ids = [each for each in written[uid] if each not in backend.vocabulary.eos]
        if grammar is not None:
            assert grammar.matches(backend.vocabulary.decode(ids).decode())


def test_the_processor_names_misuse(backend: MlxBackend) -> None:
    """A forbidden token, and rows that do not grow by one token, are errors as in transformers' loop."""
    constraint = Grammar.from_regex("(yes|no)").bind(backend.vocabulary)
    logits = mx.zeros((1, backend.vocabulary.size), dtype=mx.bfloat16)
    processor = ConstrainedLogitsProcessor([constraint.matcher()])
    masked = processor(mx.array([1, 2]), logits)
    assert masked.dtype == mx.bfloat16
    allowed = np.flatnonzero(np.isfinite(np.array(masked.astype(mx.float32))[0]))
    assert {backend.vocabulary.tokens[each] for each in allowed} >= {b"y", b"n"}
    with pytest.raises(DecodingError, match="forbids"):
        processor(mx.array([1, 2, backend.vocabulary.tokens.index(b"x")]), logits)
    processor = ConstrainedLogitsProcessor([constraint.matcher()])
    processor(mx.array([1, 2]), logits)
    with pytest.raises(ModelError, match="did not grow by one token"):
        processor(mx.array([1, 2]), logits)
    with pytest.raises(ModelError, match="scores for"):
        ConstrainedLogitsProcessor([constraint.matcher()])(mx.array([1]), logits[:, :9])
