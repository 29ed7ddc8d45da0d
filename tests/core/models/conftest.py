"""A tiny model in a folder, as transformers saves one; `DEVICE` is where models are loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...devices import DEVICE
from .tiny import llama, tokenizer

if DEVICE != "cpu":
    from toolgrammar.core.models.transformers.backend import HFBackend

    _NAMES = HFBackend.__init__.__defaults__
    assert _NAMES is not None and _NAMES[0] == "cpu"
    HFBackend.__init__.__defaults__ = (DEVICE, *_NAMES[1:])  # type: ignore[misc]


@pytest.fixture(scope="session")
def hf_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved Llama of random weights, whose output layer is larger than its tokenizer."""
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    path = tmp_path_factory.mktemp("llama")
    tokens = tokenizer()
    tokens.save_pretrained(path)
    llama(eos_token_id=tokens.eos_token_id, max_position_embeddings=4096).save_pretrained(path)
    return path
