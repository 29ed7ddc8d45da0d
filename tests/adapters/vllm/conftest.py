"""A tiny model of noise for whole engines."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

MAKER = Path(__file__).resolve().parents[3] / "benchmarks" / "engine_models.py"


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Llama of two layers with random weights, and the embedded model's tokens."""
    spec = importlib.util.spec_from_file_location("engine_models", MAKER)
    assert spec is not None and spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    path: Path = tmp_path_factory.mktemp("tiny")
    maker.noise(path)
    return str(path)
