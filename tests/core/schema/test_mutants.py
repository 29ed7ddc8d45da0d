"""Mutants of schemas: what is written and what is accepted under them, by the verdict of two validators."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from toolgrammar.core import Grammar

from . import mutants
from .mutants import MutantError, corpus, judge, judge_seed

OPTIONS = {"whitespace": "compact", "property_order": "any", "additional_properties": True, "on_unsupported": "narrow"}
SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, [2]]}}, "required": ["a"]}
VALUES = [{"a": 1}, {"a": [2]}, {"a": 2}, []]


def test_mutants_of_the_schemas_of_the_tests() -> None:
    """Whatever binds writes valid texts, and accepts what is valid and nothing else; most mutants bind."""
    tally: Counter[str] = Counter()
    source = corpus(0)
    faults = []
    for seed in range(400):
        try:
            judge_seed(seed, tally, source)
        except MutantError as error:
            faults.append(f"seed {seed}: {error}")
    assert not faults, "\n\n".join(faults[:5])
    assert tally["written"] > 250 and tally["valid"] > 1_000 and tally["invalid"] > 1_000, tally
    assert tally["unknown"] < tally["valid"] / 5 and tally["LimitError"] < 20, tally


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        ({"type": "object"}, "wrong accept"),
        ({**SCHEMA, "maxProperties": 0}, "unsatisfiable"),
        ({**SCHEMA, "properties": {"a": {"const": 1}}}, "wrong reject"),
    ],
)
def test_a_planted_fault_is_found_and_reduced(
    other: dict[str, Any], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grammar of another schema is caught by what it accepts; the schema of the report is no larger."""
    judge(SCHEMA, OPTIONS, VALUES, random.Random(1), Counter())
    honest = Grammar.from_json_schema
    monkeypatch.setattr(
        Grammar,
        "from_json_schema",
        lambda schema, **options: honest(other if "required" in schema else schema, **options),
    )
    with pytest.raises(MutantError, match=complaint) as caught:
        judge({**SCHEMA, "title": "more"}, OPTIONS, VALUES, random.Random(1), Counter())
    small = mutants.reduce_fault(caught.value)
    assert complaint in small.what and "title" not in small.schema and "required" in small.schema


def test_the_command_judges_each_seed_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process judges is added up, and a fault is told by its seed and written to a file."""
    sent: list[Any] = []
    monkeypatch.setattr(mutants, "corpus", lambda: corpus(0))

    class Reports:
        send = staticmethod(sent.append)

    mutants._work(range(30, 40), float("inf"), Reports())
    assert [report[0] for report in sent[:-1]] == list(range(30, 40)) and sent[-1] == "end"
    assert all(report[1]["mutants"] == 1 and report[2] is None for report in sent[:-1])
    assert mutants.main(["--mutants", "0"]) == 0
    assert "0 mutants, 0 faults" in capsys.readouterr().out
