"""The comparison of engines on one's own schemas (``benchmarks/masks/compare.py``)."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks.masks import compare
from benchmarks.shared import engines
from toolgrammar.core import Vocabulary

SCHEMA = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"], "additionalProperties": False}


def test_each_engine_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Our engine takes all valid texts and no invalid one, and a schema that an engine refuses has the reason."""
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    (tmp_path / "odd.json").write_text('{"$ref": "https://example.com/a"}', encoding="utf-8")
    (tmp_path / "values.jsonl").write_text('{"a": "x"}\n{"a": "y"}\n{"a": 1}\n\n{}\n[]\n', encoding="utf-8")
    compare.main([str(tmp_path / "schema.json")], instances=tmp_path / "values.jsonl")
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| toolgrammar "))
    assert row.endswith("| 2/2 | 0/3 |  |")
    compare.main([str(tmp_path / "schema.json"), str(tmp_path / "odd.json")], count=7)
    first, second = (line for line in capsys.readouterr().out.splitlines() if line.startswith("| toolgrammar "))
    assert "| 7/7 | 0/7 |  |" in first and "| UnsupportedSchemaError $ref |" in second


def test_changed_values_are_other_values() -> None:
    """Without values, as many texts are drawn as asked, all valid; the others are changes of them."""
    texts = compare.texts_of(SCHEMA, None, 20, random.Random(1))
    assert [valid for valid, _ in texts[:20]] == [True] * 20 and len(texts) == 40
    assert sum(not valid for valid, _ in texts) > 10


def test_vocabulary_of_peers() -> None:
    """Each byte that is a token is found."""
    assert engines.single_bytes(Vocabulary([b"a", b"bc", None], eos=[2])) == {97: 0}
