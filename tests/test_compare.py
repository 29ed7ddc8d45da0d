"""The comparison of engines on one's own schemas (``benchmarks/masks/compare.py``)."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from benchmarks.masks import compare
from benchmarks.shared import engines
from toolgrammar.core import Vocabulary


def invoke(*arguments: str) -> tuple[int, str, str]:
    """Run the program; return the exit code, the output and the complaints."""
    app = typer.Typer()
    app.command()(compare.compare)
    result = CliRunner().invoke(app, list(arguments), env={"NO_COLOR": "1"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


SCHEMA = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"], "additionalProperties": False}


def test_each_engine_is_reported(tmp_path: Path) -> None:
    """Our engine takes all valid texts and no invalid one, has times, and others are reported or named as missing."""
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    (tmp_path / "values.jsonl").write_text('{"a": "x"}\n{"a": "y"}\n{"a": 1}\n\n{}\n[]\n', encoding="utf-8")
    schema, values = str(tmp_path / "schema.json"), str(tmp_path / "values.jsonl")
    code, out, _ = invoke(schema, "--instances", values, "--json")
    report = json.loads(out)
    assert code == 0
    ours = report["schemas"][schema]["toolgrammar"]
    assert (ours["valid_accepted"], ours["invalid_accepted"]) == ([2, 2], [0, 3])
    assert 0 < ours["mask_us"]["p50"] <= ours["mask_us"]["p99"] <= ours["mask_us"]["worst"]
    assert set(report["versions"]) | set(report["not_installed"]) == set(engines.ENGINES)
    code, out, _ = invoke(schema, "-n", "7")
    assert code == 0 and "toolgrammar" in out and "7/7" in out
    code, _, err = invoke(schema, "--instances", schema + "?")
    assert code == 2 and "cannot be read" in err


class Stubborn:
    """An engine that takes two tokens, whatever they are, and refuses a schema without a type."""

    def compile(self, schema: Any) -> Any:
        """Refuse or return the number of tokens."""
        if "type" not in schema:
            raise ValueError("no type\nat all")
        return 2

    def start(self, compiled: Any) -> list[int]:
        """The tokens that are left."""
        return [compiled]

    def step(self, state: list[int], token: int) -> bool:
        """Take one."""
        state[0] -= 1
        return state[0] >= 0

    def accepts(self, state: list[int]) -> bool:
        """None are left."""
        return state[0] == 0


def test_score_counts_what_is_taken() -> None:
    """A text counts as taken if each token is and the text may end there; a refusal is an error of one line."""
    encode = lambda text: list(text.encode())  # noqa: E731
    found = compare.score(Stubborn(), {"type": "x"}, ["ab", "abc", "a"], ["xy"], encode)
    assert (found.valid, found.invalid, len(found.masks_us)) == ((1, 3), (1, 1), 2 + 3 + 1 + 2)
    assert compare.score(Stubborn(), {}, [], [], encode).to_dict() == {"error": "no type"}


def test_changed_values_are_other_values() -> None:
    """A changed value differs from the value, at every depth."""
    draw = random.Random(1)
    value = {"a": [1, {"b": "x"}], "c": None}
    for _ in range(200):
        assert json.dumps(compare._changed(value, draw)) != json.dumps(value)


def test_vocabulary_of_peers() -> None:
    """Each byte that is a token is found."""
    assert engines.single_bytes(Vocabulary([b"a", b"bc", None], eos=[2])) == {97: 0}
