"""The comparison with the TypeScript compiler compares something."""

from __future__ import annotations

import importlib
import random
import stat
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest

from toolgrammar.tools import close_objects, schema_from_typescript


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The program as a module."""
    return importlib.import_module("benchmarks.masks.typescript_tsc")


def test_values_of_both_verdicts(script: ModuleType) -> None:
    """For every type of the corpus there are values that follow it and values that do not."""
    cases = list(script.corpus())
    assert len(cases) >= 60
    for name, text in cases:
        schema = schema_from_typescript(text, "T")
        validator = jsonschema.Draft202012Validator(close_objects(schema))
        verdicts = [validator.is_valid(value) for value in script.instances(schema, random.Random(1))]
        assert len(verdicts) >= 10
        assert False in verdicts or name == "recursive JSON value", name
        assert True in verdicts, name


def test_a_difference_is_found(script: ModuleType, tmp_path: Path) -> None:
    """A compiler that complains of nothing, or of the declarations, does not go unnoticed."""
    tsc = tmp_path / "tsc"
    tsc.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    tsc.chmod(tsc.stat().st_mode | stat.S_IXUSR)
    counts, surprises = script.compare(str(tsc), tmp_path, 0)
    assert counts["unexpected"] > 1000
    assert any("accepted by tsc only" in surprise for surprise in surprises)
    tsc.write_text("#!/bin/sh\necho 'case0.ts(1,1): error TS1: no'\n", encoding="utf-8")
    _, surprises = script.compare(str(tsc), tmp_path, 0)
    assert any("do not compile" in surprise for surprise in surprises)
