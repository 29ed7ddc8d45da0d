"""vLLM with the plug-in and no drafts: what it samples without a grammar is what the model says, and is kept.

Start-up takes one to two minutes; `nox -s engines` runs this. The model is SmolLM2 where it can be had, else
one of noise.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: nox -s engines runs these tests where it is")

from toolgrammar.adapters.vllm import start
from toolgrammar.core import ModelError

from ...core.models.sampling_law import MOST, deviation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def folder(model_path: str, tmp_path_factory: pytest.TempPathFactory, request: Any) -> str:
    """The folder of the model."""
    if importlib.util.find_spec("accelerate") is None or importlib.util.find_spec("gguf") is None:
        return model_path
    request.getfixturevalue("smollm2_file")
    from benchmarks.engines.engine_models import smollm2

    path: Path = tmp_path_factory.mktemp("smollm2")
    try:
        smollm2(path)
    except ModelError as error:
        print(f"noise instead of SmolLM2: {error}")
        return model_path
    return str(path)


def test_text_is_sampled_from_the_model(folder: str, start_engine: Callable[..., Any]) -> None:
    """At temperature 1 the log-probabilities of the tokens, by transformers, keep the law of sampling; seeds reproduce,
    and the second of two equal prompts is read from the cache."""
    import torch
    from transformers import AutoModelForCausalLM
    from vllm import SamplingParams

    command = start.server_command(folder, environment={})
    assert "--speculative-config" not in command or start.installed_distribution()[0] == "vllm"
    engine = start_engine(folder)
    prompt = "The history of Norway began " * 40  # more than a block of the cache, which has 128 tokens on a CPU
    params = [SamplingParams(temperature=1.0, seed=seed, max_tokens=60) for seed in (0, 1, 2, 3, 0)]
    outputs = engine.generate([prompt] * len(params), params, use_tqdm=False)
    assert outputs[0].outputs[0].token_ids == outputs[4].outputs[0].token_ids
    again = engine.generate([prompt], params[:1], use_tqdm=False)[0]
    assert again.num_cached_tokens and again.outputs[0].token_ids == outputs[0].outputs[0].token_ids
    oracle = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    rows, tokens = [], []
    for output in outputs[:4]:
        before, after = list(output.prompt_token_ids), list(output.outputs[0].token_ids)
        with torch.inference_mode():
            logits = oracle(torch.tensor([before + after])).logits[0].numpy()
        rows += [logits[len(before) + place - 1] for place in range(len(after))]
        tokens += after
    distance, mean = deviation(rows, tokens)
    print(f"vllm: mean log-probability {mean:.2f}, {distance:+.1f} standard deviations, {len(tokens)} tokens")
    assert abs(distance) < MOST
