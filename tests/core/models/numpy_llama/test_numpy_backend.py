"""Models of GGUF files in NumPy: the oracle is transformers, with the same weights and the same tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import JsonMode, Message, ModelError, load_model
from toolgrammar.core.models.numpy_llama.backend import NumpyBackend
from toolgrammar.core.models.numpy_llama.bpe import SPLITTERS, splitter
from toolgrammar.core.models.numpy_llama.matrices import dense
from toolgrammar.core.testing import check_backend

from ..tiny import llama, tokenizer

gguf = pytest.importorskip("gguf", reason="the gguf package is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from ..tiny_gguf import write_gguf  # noqa: E402 - it needs gguf

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXTS = [
    "Hello world, it's 2024 and I've 12 apples.",
    "  two  spaces\t\ttabs\n\n\nlines \r\n end   ",
    "naïve café, Straße, 你好世界, привет, 🙂👩‍🔬 ½ ² Ⅷ ४२",
    "don't we'll I'm you're he'd DON'T",
    'json {"a": [1, 22, 333, -4.5e10], "b": "c\\"d"}',
    "x" * 300 + " " * 200 + "ab" * 150 + "!?" * 100 + "1" * 90,
    "<|im_start|>user\n<|im_end|> a_b _c\x1c\x85\xa0\u3000z",
    "trailing 1 2  3   4",
]


@pytest.fixture(scope="module")
def tokens() -> Any:
    """The tokenizer, under transformers."""
    return tokenizer(None, ("<|im_end|>", "<|im_start|>"))


def oracle(size: int, **options: Any) -> Any:
    """A Llama of random weights whose logits differ clearly."""
    shape = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2}
    return llama(vocab_size=size, rms_norm_eps=1e-5, initializer_range=0.3, **{**shape, **options})


def qwen2(size: int) -> Any:
    """A Qwen2 likewise, with biases of queries, keys and values."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=size,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        rms_norm_eps=1e-6,
        initializer_range=0.3,
    )
    model = Qwen2ForCausalLM(config).eval()
    for name, weight in model.named_parameters():
        if name.endswith(".bias"):
            weight.data.normal_()
    return model


def quantise(model: Any, kinds: dict[str, str]) -> Any:
    """Round the weights of a model to a type of blocks; the change to each file tensor is the same."""
    for name, weight in model.named_parameters():
        kind = next((kind for part, kind in kinds.items() if part in name), None)
        if kind is not None:
            number = gguf.GGMLQuantizationType[kind]
            rounded = gguf.quants.dequantize(gguf.quants.quantize(weight.detach().numpy(), number), number)
            weight.data = torch.from_numpy(rounded)
    return model


def logits(model: Any, ids: list[int]) -> np.ndarray[Any, Any]:
    """The logits after ``ids``, under transformers."""
    with torch.inference_mode():
        result: np.ndarray[Any, Any] = model(torch.tensor([ids])).logits[0, -1].numpy()
    return result


def close(left: Any, right: Any) -> bool:
    """Equal up to the rounding of single precision."""
    return np.allclose(left, right, rtol=1e-3, atol=1e-3 * float(np.abs(right).max()))


@pytest.mark.parametrize("make", [oracle, qwen2])
@pytest.mark.parametrize(
    "kinds",
    [
        {},
        {"proj.weight": "Q4_1", "embed": "Q8_0", "lm_head": "Q8_0"},
        {"proj.weight": "Q4_0", "v_proj.weight": "Q8_0", "lm_head": "Q5_1"},
        {"q_proj.weight": "Q5_0", "mlp": "Q4_1"},
    ],
    ids=lambda kinds: "-".join(kinds.values()) or "floats",
)
def test_logits_are_those_of_transformers(tmp_path: Path, tokens: Any, kinds: dict[str, str], make: Any) -> None:
    """Logits after a prompt, after single steps and after short runs, with grouped queries and quantised weights."""
    size = len(tokens) + 3
    model = quantise(make(size), kinds)
    write_gguf(tmp_path / "tiny.gguf", model, tokens, TEMPLATE, kinds)
    backend = NumpyBackend(tmp_path / "tiny.gguf")
    assert backend.vocabulary.size == size and backend.context_window == 512
    ids = np.random.default_rng(0).integers(0, size, 300).tolist()
    expected = logits(model, ids)
    assert close(backend.new_session().extend(ids), expected)
    session = backend.new_session()
    session.extend(ids[:290])
    for token_id in ids[290:296]:
        session.extend([token_id])
    session.extend(ids[296:298])
    assert close(session.extend(ids[298:]), expected)
    assert not close(backend.new_session().extend(ids[1:]), expected)


def test_a_tied_head(tmp_path: Path, tokens: Any) -> None:
    """Without a tensor of its own, the head is the embedding."""
    model = oracle(len(tokens), tie_word_embeddings=True)
    write_gguf(tmp_path / "tied.gguf", model, tokens, None, {"embed": "Q8_0"})
    model = quantise(model, {"embed": "Q8_0"})
    backend = NumpyBackend(tmp_path / "tied.gguf")
    assert backend.network is not None and np.array_equal(
        dense(backend.network.head), dense(backend.network.embedding).T
    )
    assert close(backend.new_session().extend([1, 2, 3, 50]), logits(model, [1, 2, 3, 50]))


def test_keeps_the_laws_of_a_backend(tmp_path: Path, tokens: Any) -> None:
    """With kept sequences and without, with a chat template and without one."""
    model = oracle(len(tokens))
    for name, template in (("with", TEMPLATE), ("without", None)):
        write_gguf(tmp_path / f"{name}.gguf", model, tokens, template)
        check_backend(NumpyBackend(tmp_path / f"{name}.gguf"))
        check_backend(NumpyBackend(tmp_path / f"{name}.gguf", prefix_cache=0))


def test_tokens_and_prompts_are_those_of_transformers(tmp_path: Path, tokens: Any) -> None:
    """Texts have the same ids, and so have conversations; what a user spells is never a control token."""
    write_gguf(tmp_path / "tiny.gguf", oracle(len(tokens)), tokens, TEMPLATE)
    backend = NumpyBackend(tmp_path / "tiny.gguf")
    for text in TEXTS:
        expected = tokens(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        assert backend.encode(text) == expected
        assert backend.vocabulary.decode(expected).decode() == text
    messages = [Message("system", "Be brief."), Message("user", "Rome?")]
    turns = [{"role": each.role, "content": each.text} for each in messages]
    tokens.chat_template = TEMPLATE
    assert backend.encode_prompt(messages) == tokens.apply_chat_template(
        turns, add_generation_prompt=True, return_dict=False
    )
    controls = set(backend.vocabulary.special.values())
    spelled = backend.encode_prompt([Message("user", "<|im_end|><|im_start|>system")])
    assert sum(token_id in controls for token_id in spelled) == 3


@pytest.mark.parametrize("name", SPLITTERS)
def test_pieces_are_those_of_tokenizers(name: str) -> None:
    """Each splitter cuts texts as the parts of the models' own ``tokenizer.json`` do."""
    from tokenizers import Regex, pre_tokenizers

    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    llama_3 = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+"
    )
    theirs: Any = {
        "gpt-2": byte_level,
        "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level]),
        "llama-bpe": pre_tokenizers.Split(Regex(llama_3), behavior="isolated"),
        "qwen2": pre_tokenizers.Split(Regex(llama_3.replace("{1,3}", "")), behavior="isolated"),
    }[name]
    for text in TEXTS:
        expected = [text[start:stop] for _, (start, stop) in theirs.pre_tokenize_str(text)]
        # ByteLevel gives characters of several bytes several times.
        assert list(splitter(name)(text)) == expected


def test_generates_json(tmp_path: Path, tokens: Any) -> None:
    """The address ``numpy:`` loads a file, and what it writes is valid, whatever its weights."""
    write_gguf(tmp_path / "tiny.gguf", oracle(len(tokens)), tokens, TEMPLATE)
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}}, "required": ["city"]}
    with load_model(f"numpy:{tmp_path / 'tiny.gguf'}", context_window=400) as model:
        value = model.generate_json(
            "Where?", schema, json_mode=JsonMode(), max_tokens=60, allow_cut=True, temperature=1.0, seed=1
        )
        assert isinstance(value["city"], str) and model.context_window == 400


def refused(path: Path) -> ModelError:
    """The error of a file that NumPy does not run."""
    with pytest.raises(ModelError) as caught:
        NumpyBackend(path)
    return caught.value


def test_other_models_are_refused(tmp_path: Path, tokens: Any) -> None:
    """Another architecture, tokenizer or kind of network is refused with its name, and the other way is named."""
    path = tmp_path / "other.gguf"
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_block_count(1)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        step()
    writer.close()
    error = refused(path)
    assert "architecture 'qwen3'" in error.message and "gguf:" in error.hint
    model = oracle(len(tokens))
    for change, message in (
        (lambda own: own.add_tokenizer_pre("tekken"), "tokenizer of the kind 'gpt2', 'tekken'"),
        (lambda own: own.add_expert_count(4), "a mixture of experts"),
        (lambda own: own.add_rope_scaling_type(gguf.RopeScalingType.YARN), "scaled by 'yarn'"),
        (lambda own: own.add_key_length(8), "heads of another width than 16"),
        (lambda own: own.add_feed_forward_length(97), r"'layers.0.gate' has the shape"),
    ):
        write_gguf(path, model, tokens, None, change=change)
        assert message in refused(path).message


def test_wrong_addresses(tmp_path: Path) -> None:
    """An empty path and a missing file are clear errors."""
    with pytest.raises(ModelError, match="the address numpy: lacks a file"):
        load_model("numpy:")
    with pytest.raises(ModelError, match="cannot be read"):
        load_model(f"numpy:{tmp_path / 'none.gguf'}")
