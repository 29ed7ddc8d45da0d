"""The official test suite of Draft 2020-12: a category for every case, which can only get better.

``official_suite.json`` beside this file names every case that is not judged right, with its category: ``refused`` (by
name, before anything is generated), ``narrowed`` (valid, and left out by a keyword that ``grammar.narrowed`` names),
``too strict`` or ``too lax``. Write it anew with ``python -m pytest
tests/core/schema/test_official_suite.py --write-ratchet`` after a look at what changed.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core import Grammar, ToolGrammarError, UnsatisfiableSchemaError

SUITE = Path(__file__).resolve().parents[4] / "shared" / "data" / "json-schema-test-suite-2020-12.json.gz"
RATCHET = Path(__file__).with_name("official_suite.json")


def category(grammar: Grammar | None, satisfiable: bool, test: dict[str, Any]) -> str:
    """How one case is judged."""
    if grammar is None:
        return "refused" if satisfiable else "too strict" if test["valid"] else "right"
    accepted = grammar.matches(json.dumps(test["data"], ensure_ascii=False))
    if accepted == test["valid"]:
        return "right"
    if accepted:
        return "too lax"
    return "narrowed" if grammar.narrowed else "too strict"


def judge(suite: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The category of every case of the required tests and of the format tests, by file."""
    found: dict[str, dict[str, str]] = {}
    for name, groups in suite["tests"].items():
        if name.startswith("optional/") and not name.startswith("optional/format/"):
            continue
        for group in groups:
            satisfiable = True
            grammar: Grammar | None = None
            try:
                # "format" is an annotation in the required tests, as the specification has it by default.
                grammar = Grammar.from_json_schema(
                    group["schema"],
                    whitespace="flexible",
                    property_order="any",
                    registry=suite["remotes"],
                    formats=name.startswith("optional/"),
                )
                grammar.program  # noqa: B018
            except UnsatisfiableSchemaError:
                satisfiable, grammar = False, None
            except ToolGrammarError:
                grammar = None
            for test in group["tests"]:
                key = f"{group['description']} | {test['description']}"
                found.setdefault(name, {})[key] = category(grammar, satisfiable, test)
    return found


def test_official_suite(request: pytest.FixtureRequest) -> None:
    """Every case is in its category; none is too lax or too strict; 90% of the required ones are right."""
    if not SUITE.is_file():
        pytest.skip("the official suite is not beside the repository")
    found = judge(json.loads(gzip.decompress(SUITE.read_bytes())))
    others = {
        name: {key: each for key, each in cases.items() if each != "right"}
        for name, cases in found.items()
        if any(each != "right" for each in cases.values())
    }
    counts = {name: dict(sorted(Counter(cases.values()).items())) for name, cases in found.items()}
    if request.config.getoption("--write-ratchet"):
        RATCHET.write_text(json.dumps({"counts": counts, "not right": others}, indent=1, ensure_ascii=False) + "\n")
    ratchet = json.loads(RATCHET.read_text(encoding="utf-8"))
    assert others == ratchet["not right"]
    assert counts == ratchet["counts"]
    required = Counter(
        each for name, cases in found.items() if not name.startswith("optional/") for each in cases.values()
    )
    assert required["right"] >= 0.9 * sum(required.values())
    assert {each for cases in found.values() for each in cases.values()} <= {"right", "refused", "narrowed"}
