"""The model ``smollm2``, as it is published: its tokens, its prompts, its logits, and right calls."""

from __future__ import annotations

import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from toolgrammar.core import Message, load_model
from toolgrammar.core.models import LocalModel
from toolgrammar.core.models.numpy_llama.gguf_file import GGUFFile
from toolgrammar.core.models.numpy_llama.matrices import dense
from toolgrammar.tools import Tool, ToolSet

TEXTS = [
    "The quick brown fox jumps over the lazy dog, 1234 times; it's 12:30 on 2024-11-22.",
    "  two  spaces\t\ttabs\n\n\nlines \r\n end   ",
    "a\u0000b\u0001\u0004\u0006\u0013\u007f",
    "naïve café, Straße, 你好世界, привет, שלום, 🙂👩\u200d🔬 ½ ² Ⅷ ४२ ٣",
    "don't we'll I'm you're he'd DON'T",
    'json {"a": [1, 22, 333, -4.5e10], "b": "c\\"d"}\n<tool_call>\n{"name": "x"}\n</tool_call>',
    "x" * 300 + " " * 200 + "ab" * 150 + "!?" * 100 + "1" * 90,
    "<|im_start|>user\n<|im_end|> a_b _c\x1c\x85\xa0\u3000z <|endoftext|>",
    "def f(x):\n    return x ** 2  # trailing 1 2  3   4\n",
]


@pytest.fixture(scope="module")
def oracle(smollm2_file: Path) -> Any:
    """The tokenizer as ``tokenizer.json`` of the model has it, built from the tokens and merges of the file."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    with GGUFFile(smollm2_file) as file:
        metadata = file.metadata
    names = metadata["tokenizer.ggml.tokens"]
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            {name: token_id for token_id, name in enumerate(names)},
            [tuple(line.split(" ")) for line in metadata["tokenizer.ggml.merges"]],
        )
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Digits(individual_digits=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    made.decoder = tokenizers.decoders.ByteLevel()
    return made


def random_texts(count: int) -> list[str]:
    """Texts of characters of all kinds, the same each time."""
    draw = random.Random(4)
    alphabets = ["ab c", "aA1 .\n", " \t\r\n\x0b\x0c\x1c\x1d\x85\xa0x", "'sStmre ll", "é你🙂½Ⅷ२ⅷx ", '{}[]":,0 1a']
    every = [chr(code) for code in [*range(0x3000), *range(0x1F300, 0x1F700)] if not 0xD800 <= code < 0xE000]
    texts = ["".join(draw.choices(draw.choice(alphabets), k=draw.randint(1, 60))) for _ in range(count)]
    return texts + ["".join(draw.choices(every, k=20)) for _ in range(count)]


def test_tokens_are_the_models_own(smollm2: LocalModel, oracle: Any) -> None:
    """Every text has the ids that the model's own tokenizer gives it, and they write it, byte for byte."""
    vocabulary = smollm2.vocabulary
    assert vocabulary.size == 49_152 and len(vocabulary.special) == 17
    missing = {byte for byte in range(256) if bytes([byte]) not in set(vocabulary.tokens)}
    for text in [*TEXTS, *random_texts(300)]:
        ids = smollm2.encode(text)
        assert ids == oracle.encode(text, add_special_tokens=False).ids, repr(text)
        data = text.encode()
        assert vocabulary.decode(ids) == bytes(byte for byte in data if byte not in missing)


def test_prompt(smollm2: LocalModel) -> None:
    """The prompt is ChatML by the file's own template, with its system turn."""
    ids = smollm2.backend.encode_prompt([Message("user", "Hello")])
    names = {token_id: name for name, token_id in smollm2.vocabulary.special.items()}
    shown = "".join(names.get(i, (smollm2.vocabulary.tokens[i] or b"").decode()) for i in ids)
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    assert (
        shown == f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.slow
def test_logits_are_those_of_transformers(smollm2: LocalModel, smollm2_file: Path) -> None:
    """Logits of the published file are those of transformers with its weights unpacked, up to rounding."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=49_152,
            hidden_size=576,
            intermediate_size=1_536,
            num_hidden_layers=30,
            num_attention_heads=9,
            num_key_value_heads=3,
            max_position_embeddings=8_192,
            rms_norm_eps=1e-5,
            tie_word_embeddings=True,
            rope_theta=100_000.0,
            rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
        )
    ).eval()
    renamed = {
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    }  # fmt: skip
    with GGUFFile(smollm2_file) as file:
        state = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
        state |= {
            f"model.layers.{layer}.{own}.weight": f"blk.{layer}.{name}.weight"
            for layer in range(30)
            for own, name in renamed.items()
        }
        arrays = {own: dense(file.tensor(name)) for own, name in state.items()}
    for own, array in arrays.items():
        if own.endswith(("q_proj.weight", "k_proj.weight")):  # rotary pairs are neighbours in the file
            arrays[own] = array.reshape(len(array) // 64, 32, 2, 576).swapaxes(1, 2).reshape(array.shape)
    tensors = {own: torch.from_numpy(np.ascontiguousarray(array)) for own, array in arrays.items()}
    unexpected = model.load_state_dict({**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"]})
    assert not unexpected.missing_keys and not unexpected.unexpected_keys
    ids = smollm2.encode(" ".join(TEXTS[:1] + TEXTS[3:6]) * 3)
    with torch.inference_mode():
        expected = model(torch.tensor([ids])).logits[0].numpy()
    session = smollm2.backend.start()
    at = 0
    for step in (50, 1, 2, 3, 4, 1, len(ids) - 61):
        logits = session.extend(ids[at : at + step])
        at += step
        assert np.abs(logits - expected[at - 1]).max() < 2e-3
    session.close()


def get_weather(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
    """Current weather.

    Args:
        city: Name of the city.
        unit: Unit of the temperature.
    """
    return f"18 degrees {unit} in {city}"


def test_calls_a_tool(smollm2: LocalModel) -> None:
    """A plain question becomes the right call, which is more than a valid one."""
    answer = smollm2.generate(
        "Weather in Oslo?", tools=ToolSet.from_any([get_weather]), tool_choice="required", parallel_tool_calls=False
    )
    assert [(call.name, dict(call.arguments)) for call in answer.tool_calls] == [
        ("get_weather", {"city": "Oslo", "unit": "celsius"})
    ]


def same_call(address: str, smollm2: LocalModel) -> None:
    """A model of another kind has the same tokens, the same likeliest next token, and makes the same call."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = ToolSet([Tool("get_weather", "Weather in a city.", schema)])
    with load_model(address) as model:
        text = "The capital of France is"
        ids = smollm2.encode(text)
        assert model.encode(text) == ids
        assert model.backend.new_session().extend(ids).argmax() == smollm2.backend.new_session().extend(ids).argmax()
        calls = [
            each.generate("Weather in Oslo?", tools=tools, tool_choice="required", parallel_tool_calls=False).tool_calls
            for each in (model, smollm2)
        ]
    assert calls[0][0].arguments == calls[1][0].arguments == {"city": "Oslo"}


@pytest.mark.llama_cpp
def test_llama_cpp_runs_the_same_file(smollm2: LocalModel, smollm2_file: Path) -> None:
    """`gguf:` with the published file."""
    if find_spec("llama_cpp") is None:
        pytest.importorskip("xllamacpp", reason="neither llama-cpp-python nor xllamacpp is installed")
    same_call(f"gguf:{smollm2_file}", smollm2)


@pytest.mark.slow
def test_transformers_runs_the_same_file(smollm2: LocalModel, smollm2_file: Path) -> None:
    """`hf:` with the published file, which transformers unpacks."""
    pytest.importorskip("accelerate", reason="accelerate is not installed: transformers needs it for GGUF files")
    same_call(f"hf:{smollm2_file}", smollm2)
