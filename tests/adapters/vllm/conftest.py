"""A tiny model of noise for whole engines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# GiB of a CPU's memory for keys and values; by default vLLM asks for 92 % of the whole memory, and fails if it is in use.
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Llama of two layers with random weights, and the embedded model's tokens."""
    from benchmarks.engines.engine_models import noise

    path: Path = tmp_path_factory.mktemp("tiny")
    noise(path)
    return str(path)


@pytest.fixture(scope="module")
def start_engine() -> Iterator[Callable[..., Any]]:
    """Starts engines, and ends their processes: vLLM leaves that to the garbage collector, and Python waits for them."""
    made: list[Any] = []

    def start(model: str, **options: Any) -> Any:
        from vllm import LLM

        sizes = {"dtype": "float32", "max_model_len": 512, "max_num_seqs": 8, "enforce_eager": True}
        made.append(LLM(model, structured_outputs_config={"backend": "outlines"}, **sizes, **options))
        return made[-1]

    yield start
    for engine in made:
        engine.llm_engine.engine_core.shutdown()
