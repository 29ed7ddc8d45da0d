"""What every local backend must do with the installed versions of its packages: sample what the model says, read nothing
twice, and share forward passes where it can. Right calls show none of this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import GenerateParams, Message, load_model
from toolgrammar.core.models import LocalModel

from ...devices import DEVICE
from .sampling_law import MOST, deviation
from .tiny import llama, tokenizer
from .tiny_onnx import need_onnx, unpack_gguf, write_onnx

KINDS = ("numpy", "gguf", "hf", "onnx", "mlx")
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>"


def need(kind: str) -> None:
    """Skip where the packages of a backend are not installed."""
    if kind == "gguf" and find_spec("llama_cpp") is None:
        pytest.importorskip("xllamacpp", reason="neither llama-cpp-python nor xllamacpp is installed")
    if kind == "onnx":
        need_onnx()
    for name in ("mlx_lm", "mlx.core") if kind == "mlx" else ():
        pytest.importorskip(name, reason=f"{name} is not installed")
    for name in ("torch", "transformers") if kind == "hf" else ():
        pytest.importorskip(name, reason=f"{name} is not installed")


@pytest.fixture(scope="module")
def network() -> Any:
    """A Llama of random weights, under transformers."""
    need("hf")
    shape = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2}
    own = tokenizer(TEMPLATE, ("<|im_end|>", "<|im_start|>"))
    return own, llama(vocab_size=len(own), rms_norm_eps=1e-5, initializer_range=0.2, **shape)


@pytest.fixture(scope="module")
def load(network: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], LocalModel]:
    """Loads these weights by a backend."""
    own, weights = network
    folder = tmp_path_factory.mktemp("tiny")
    own.save_pretrained(folder)
    weights.save_pretrained(folder)

    def make(kind: str) -> LocalModel:
        need(kind)
        if kind in ("hf", "mlx"):
            return load_model(f"{kind}:{folder}")
        if kind == "onnx":
            if not (folder / "onnx").exists():
                write_onnx(folder, folder / "onnx")
            return load_model(f"onnx:{folder / 'onnx'}", threads=1)
        pytest.importorskip("gguf", reason="the gguf package is not installed")
        from .tiny_gguf import write_gguf

        if not (folder / "tiny.gguf").exists():
            write_gguf(folder / "tiny.gguf", weights, own, TEMPLATE)
        return load_model(f"{kind}:{folder / 'tiny.gguf'}", threads=1)

    return make


def sampled(model: LocalModel, prompt: str, count: int) -> Iterator[tuple[list[int], list[int]]]:
    """The tokens of prompts and of the texts that are sampled after them, ``count`` or more in all."""
    written, seed = 0, 0
    while written < count:
        seed += 1
        answer = model.generate(prompt, max_tokens=40, temperature=1.0, seed=seed)
        before = model.backend.encode_prompt([Message("user", prompt)])
        assert answer.usage.prompt_tokens == len(before)
        yield list(before), list(answer.token_ids)
        written += max(1, len(answer.token_ids))


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_sampled_from_the_model(load: Callable[[str], LocalModel], network: Any, kind: str) -> None:
    """The log-probabilities of sampled tokens, by the same weights under transformers, keep the law of sampling."""
    import torch

    rows, tokens = [], []
    with load(kind) as model:
        for before, after in sampled(model, "the weather in Rome", 400):
            with torch.inference_mode():
                logits = network[1](torch.tensor([before + after], device=DEVICE)).logits[0].cpu().numpy()
            ends = sorted(model.vocabulary.eos)
            for place, token in enumerate(after):
                rows.append(logits[len(before) + place - 1])
                tokens.append(token)
            assert not set(after[:-1]) & set(ends)
    distance, _ = deviation(rows, tokens)
    assert abs(distance) < MOST


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_read_twice(load: Callable[[str], LocalModel], kind: str) -> None:
    """The second of two equal prompts reads its last token alone, and each step of an answer one token."""
    with load(kind) as model:
        for number in range(3):
            answer = model.generate("the weather in Rome " * 4, max_tokens=4, temperature=1.0, seed=1)
            assert answer.usage.cached_tokens == (answer.usage.prompt_tokens - 1 if number else 0)
        if kind == "hf":
            session = model.backend.start()
            session.extend([5, 6, 7, 8])
            read: list[int] = []
            hook = model.backend._model.register_forward_pre_hook(
                lambda module, args, given: read.append(given["input_ids"].shape[1]), with_kwargs=True
            )
            for token in (9, 10, 11):
                session.extend([token])
            hook.remove()
            session.close()
            assert read == [1, 1, 1]


@pytest.mark.parametrize("kind", ["hf", "mlx"])
def test_requests_share_forward_passes(load: Callable[[str], LocalModel], kind: str) -> None:
    """A family that can is not said to be unable: four requests at once take the passes of one."""
    with load(kind) as model:
        assert model.scheduler is not None
        prompts = [f"Rome {number}" for number in range(4)]
        model.generate_batch(prompts, GenerateParams(max_tokens=8, temperature=1.0, seed=1))
        assert model.scheduler.counters().most_rows == 4


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_a_real_model_writes_its_text(smollm2_file: Path, smollm2: Any, kind: str, tmp_path: Path) -> None:
    """SmolLM2 by each backend, judged by that of NumPy: sampled text is likely text, and prompts are read once."""
    need(kind)
    if kind == "hf":
        for name in ("accelerate", "gguf"):  # transformers reads a GGUF file by them
            pytest.importorskip(name, reason=f"{name} is not installed")
    source = smollm2_file
    if kind in ("onnx", "mlx"):
        source = unpack_gguf(smollm2_file, tmp_path / "hf")
    if kind == "onnx":
        source = write_onnx(source, tmp_path / "onnx")
    prompt = "What is the capital of France?"
    rows, tokens = [], []
    with load_model(f"{kind}:{source}", **({} if kind in ("hf", "mlx") else {"threads": 1})) as model:
        for before, after in sampled(model, prompt, 80):
            session = smollm2.backend.start()
            rows.append(session.extend(before))
            for token in after[:-1]:
                rows.append(session.extend([token]))
            session.close()
            tokens += after
            del rows[len(tokens) :]
        again = model.generate(prompt, max_tokens=2)
        assert again.usage.cached_tokens == again.usage.prompt_tokens - 1
        if kind == "hf":
            assert model.scheduler is not None
    distance, mean = deviation(rows, tokens)
    print(f"{kind}: mean log-probability {mean:.2f}, {distance:+.1f} standard deviations, {len(tokens)} tokens")
    assert abs(distance) < MOST and mean > -5.0
    assert np.isfinite(mean)
