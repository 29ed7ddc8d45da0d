"""``toolgrammar models``: what lies on the machine, as lines and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolgrammar.adapters import cli
from toolgrammar.core import models
from toolgrammar.core.models.stores import StoredModel


def invoke(*arguments: str) -> str:
    """Run the command; return its output."""
    result = CliRunner().invoke(cli.app, ["models", *arguments], env={"NO_COLOR": "1"})
    assert result.exit_code == 0
    return result.stdout


def test_models_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each model has its address, size and path; ``--json`` has the same."""
    found = [
        StoredModel("gguf:ollama/qwen3:0.6b", Path("/store/blobs/sha256-0"), 522_000_000),
        StoredModel("hf:Qwen/Qwen3-8B", Path("/hub/models--Qwen--Qwen3-8B"), 16_400_000_000),
    ]
    monkeypatch.setattr(models, "stored_models", lambda: found)
    assert invoke().splitlines() == [
        "gguf:ollama/qwen3:0.6b    522 MB  /store/blobs/sha256-0",
        "hf:Qwen/Qwen3-8B         16.4 GB  /hub/models--Qwen--Qwen3-8B",
    ]
    assert json.loads(invoke("--json")) == [
        {"address": each.address, "path": str(each.path), "bytes": each.size} for each in found
    ]


def test_a_machine_without_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none, the command that fetches one is named."""
    monkeypatch.setattr(models, "stored_models", list)
    assert "toolgrammar model pull" in invoke()
    assert json.loads(invoke("--json")) == []
