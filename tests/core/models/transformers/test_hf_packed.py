"""Sequences of a transformers model that share forward passes: each is what a session of its own would be."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import ContextOverflowError, GenerateParams, JsonMode, ModelError, load_model

from ....devices import DEVICE

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

SIZE = 300
SHAPE = {"vocab_size": SIZE, "initializer_range": 0.3, "eos_token_id": 256, "bos_token_id": 256, "pad_token_id": 256}
ROTARY = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}


def llama() -> Any:
    """Rotary positions, grouped queries."""
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE, **ROTARY))


def gpt2() -> Any:
    """Learned positions."""
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**SHAPE, n_embd=32, n_layer=2, n_head=4, n_positions=256)
    )


def qwen2() -> Any:
    """Rotary positions, biases."""
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SHAPE, **ROTARY))


def qwen3() -> Any:
    """Rotary positions, normed queries and keys."""
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**SHAPE, **ROTARY, head_dim=16))


def mistral() -> Any:
    """A sliding window."""
    return transformers.MistralForCausalLM(transformers.MistralConfig(**SHAPE, **ROTARY, sliding_window=8))


def mamba() -> Any:
    """A recurrent state and no cache of keys and values: rows apart."""
    config = transformers.MambaConfig(**SHAPE, hidden_size=32, num_hidden_layers=2, state_size=4)
    return transformers.MambaForCausalLM(config)


def gpt_neo() -> Any:
    """Local attention that no cache knows of: rows apart."""
    config = transformers.GPTNeoConfig(
        **SHAPE,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        max_position_embeddings=256,
        window_size=8,
    )
    return transformers.GPTNeoForCausalLM(config)


def jamba() -> Any:
    """Attention beside a recurrent state that can only be continued token by token: rows apart."""
    config = transformers.JambaConfig(
        **SHAPE,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        attn_layer_period=2,
        attn_layer_offset=1,
        num_experts=1,
        mamba_d_state=4,
        use_mamba_kernels=False,
        max_position_embeddings=256,
    )
    return transformers.JambaForCausalLM(config)


# With transformers 4.56, a shared pass of GPT-2 gives other logits: the library warns, and shares none.
SHARED = [llama, *([gpt2] if int(transformers.__version__.split(".")[0]) >= 5 else []), qwen2, qwen3, mistral]
APART = [mamba, gpt_neo, jamba]
Loaded = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny matrices are quicker on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """Save a model of random weights with a byte tokenizer, and load it as any other, once each."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={name: number for number, name in enumerate(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken("<|end|>", special=True)])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|end|>")
    backends: dict[Any, Any] = {}

    def load(make: Callable[[], Any], dtype: str = "float32") -> Any:
        if (make, dtype) not in backends:
            torch.manual_seed(0)
            folder = tmp_path_factory.mktemp(make.__name__)
            make().save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            backends[make, dtype] = load_model(f"hf:{folder}", dtype=dtype)
        return backends[make, dtype]

    return load


@contextmanager
def counted_passes(backend: Any) -> Iterator[list[int]]:
    """How many tokens each forward pass of the model has."""
    passes: list[int] = []
    handle = backend._model.register_forward_pre_hook(
        lambda module, args, kwargs: passes.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    try:
        yield passes
    finally:
        handle.remove()


class Rows:
    """Sequences of a backend, each under a key."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.sessions: dict[int, Any] = {}

    def extend(self, rows: Sequence[tuple[int, Sequence[int]]]) -> list[Any]:
        """Append tokens to some of them in one pass; a new key begins a sequence."""
        asked = []
        for key, ids in rows:
            if key not in self.sessions:
                self.sessions[key] = self.backend.begin(ids)
                ids = ids[self.sessions[key].length :]
            asked.append((self.sessions[key], ids))
        return list(self.backend.extend_many(asked))

    def drop(self, key: int) -> None:
        """End a sequence."""
        self.sessions.pop(key).close()


@pytest.mark.parametrize("make", SHARED, ids=lambda make: make.__name__)
def test_rows_are_those_of_single_sessions(loaded: Loaded, make: Callable[[], Any]) -> None:
    """Whatever rows begin, advance, shrink and leave at each step, their logits are those of the tokens alone."""
    backend = loaded(make).backend
    assert backend.can_batch()
    random = np.random.default_rng(0)
    texts: dict[int, list[int]] = {}
    fresh = checked = 0
    batch = Rows(backend)
    for _ in range(16):
        for key in [key for key in texts if random.random() < 0.1]:
            batch.drop(key)
            del texts[key]
        for key in [key for key in texts if random.random() < 0.3]:
            length = int(random.integers(0, len(texts[key]) + 1))
            batch.sessions[key].crop(length)
            del texts[key][length:]
        rows = []
        shared = random.integers(0, 256, 20).tolist()
        for _ in range(int(random.integers(0, 4)) if len(texts) < 6 else 0):
            rows.append((fresh, [*shared, *random.integers(0, 256, random.integers(1, 12)).tolist()]))
            fresh += 1
        for key in texts:
            if random.random() < 0.8:
                rows.append((key, random.integers(0, 256, random.integers(1, 5)).tolist()))
        random.shuffle(rows)
        if not rows:
            continue
        results = batch.extend(rows)
        for (key, ids), logits in zip(rows, results):
            texts.setdefault(key, []).extend(ids)
            assert batch.sessions[key].length == len(texts[key])
            with torch.inference_mode():
                expected = (
                    backend._model(input_ids=torch.tensor([texts[key]], device=DEVICE)).logits[0, -1].cpu().numpy()
                )
            np.testing.assert_allclose(logits, expected, atol=1e-4)
            checked += 1
    assert checked > 40
    for session in batch.sessions.values():
        session.close()


@pytest.mark.parametrize("make", APART, ids=lambda make: make.__name__)
def test_models_that_cannot_share_passes_say_so(loaded: Loaded, make: Callable[[], Any]) -> None:
    """They are found out by trial, and their requests run one after another, with the same results; where a model has
    attention, a warning names what is lost."""
    model = loaded(make)
    expected = (
        contextlib.nullcontext() if make is mamba else pytest.warns(RuntimeWarning, match="share no forward pass")
    )
    with expected:
        assert not model.backend.can_batch()
    assert model.scheduler is None
    params = GenerateParams(json_mode=JsonMode({"enum": ["red", "green"]}), max_tokens=20)
    assert [each.text for each in model.generate_batch(["x", "y"], params)] == [
        model.generate(prompt, params).text for prompt in "xy"
    ]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("make", SHARED, ids=lambda make: make.__name__)
def test_batch_of_generations_is_the_single_ones(loaded: Loaded, make: Callable[[], Any], temperature: float) -> None:
    """Different grammars, prompts and budgets in one batch give the tokens of one-by-one runs, greedy and by seed, with
    as many forward passes as the longest of them takes.

    A batch adds in another order; in double precision this changes no draw.
    """
    model = loaded(make, "float64")
    requests: list[dict[str, Any]] = [
        {"json_mode": JsonMode({"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}})},
        {"json_mode": JsonMode({"type": "integer", "minimum": 10, "maximum": 10**6})},
        {"json_mode": JsonMode({"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 1, "maxItems": 4})},
        {"json_mode": JsonMode({"type": "string", "pattern": "^[a-f]{3,30}$"}), "top_k": 4},
        {"stop": ("e",), "top_p": 0.9},
    ]
    prompts = ["x", "a longer prompt than the others have", "hm", "tell me", "anything"]
    params = [
        GenerateParams(**each, max_tokens=24 + 3 * number, temperature=temperature, seed=number)
        for number, each in enumerate(requests)
    ]
    expected = [model.generate(prompt, each) for prompt, each in zip(prompts, params)]
    with counted_passes(model.backend) as passes:
        together = model.generate_batch(prompts, params)
    assert [each.token_ids for each in together] == [each.token_ids for each in expected]
    assert [each.message for each in together] == [each.message for each in expected]
    assert [each.finish_reason for each in together] == [each.finish_reason for each in expected]
    for one, other in zip(together, expected):
        assert one.usage.forward_passes == other.usage.forward_passes
        assert one.usage.forced_tokens == other.usage.forced_tokens
    # All begin at once, so that each step is one pass, over the rows that are not over.
    assert len(passes) == max(each.usage.forward_passes for each in expected)
    for generation in together[:4]:
        json.loads(generation.text)


def test_one_forward_pass_a_step(loaded: Loaded) -> None:
    """A step is one forward pass over the new tokens of all rows and no others, whatever their lengths."""
    backend = loaded(llama).backend
    assert backend.can_batch()
    widths: list[tuple[int, ...]] = []
    handle = backend._model.model.layers[0].register_forward_hook(
        lambda module, inputs, output: widths.append(tuple(inputs[0].shape[:2]))
    )
    prompt = list(range(200, 240))
    batch = Rows(backend)
    batch.extend([(0, prompt), (1, [9])])
    batch.extend([(0, [1]), (1, [2, 3, 4])])
    batch.extend([(1, [5]), (9, [1, 2, 3])])
    assert widths == [(1, 41), (1, 4), (1, 4)]
    # A row that is being written gives its beginning to another; both go on apart.
    batch.extend([(10, [*prompt, 7, 8]), (0, [2])])
    assert widths[-1] == (1, 3) and batch.sessions[10].cached_tokens == 40
    with torch.inference_mode():
        for key, ids in ((0, [*prompt, 1, 2, 3]), (10, [*prompt, 7, 8, 3])):
            expected = backend._model(input_ids=torch.tensor([ids], device=DEVICE)).logits[0, -1].cpu().numpy()
            np.testing.assert_allclose(batch.extend([(key, [3])])[0], expected, atol=1e-4)
    handle.remove()
    for session in batch.sessions.values():
        session.close()


def test_faults_change_nothing(loaded: Loaded) -> None:
    """Wrong requests and errors inside the model are told, and the rows go on as if nothing had happened."""
    backend = loaded(llama).backend
    assert backend.can_batch()
    batch, plain = Rows(backend), Rows(backend)
    for each in (batch, plain):
        each.extend([(0, [1, 2, 3]), (1, [4, 5])])
    window = backend.context_window
    for wrong, error in (([1] * window, ContextOverflowError), ([], ModelError), ([SIZE], ModelError)):
        with pytest.raises(error):
            batch.extend([(0, [1]), (1, wrong)])

    def fail(*_: Any) -> None:
        raise RuntimeError("device lost")

    layers = backend._model.model.layers
    handle = layers[1].register_forward_pre_hook(fail)  # the first layer has read the tokens by then
    with pytest.raises(RuntimeError, match="device lost"):
        batch.extend([(0, [6]), (1, [7])])
    handle.remove()
    assert backend._model.config._attn_implementation == "sdpa"
    for step in ([(1, [9]), (0, [8, 7])], [(0, [5, 6]), (1, [1])]):
        for one, other in zip(batch.extend(step), plain.extend(step)):
            np.testing.assert_allclose(one, other, atol=1e-4)
    for each in (batch, plain):
        closed = each.sessions[0]
        each.drop(0)
        each.drop(1)
        closed.close()
        with pytest.raises(ModelError, match="session is closed"):
            backend.extend_many([(closed, [1])])
