"""A mask and a matcher that contradict each other: nothing more is written, also under ``python -O``."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from toolgrammar.core import Grammar, InternalError
from toolgrammar.core.grammar.sampling import single_bytes
from toolgrammar.core.masks.promised import take

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import numpy as np
from toolgrammar.core import InternalError, JsonMode
from toolgrammar.core.generation import loop
from toolgrammar.core.testing import ScriptedModel

honest, written = loop.mask_of, []

def wrong(matcher, vocabulary):
    mask = honest(matcher, vocabulary).copy()
    mask[ord("!")] = len(written) > 2  # in mid-text
    return mask

loop.mask_of = wrong
SCHEMA = JsonMode({"type": "string", "pattern": "^[a-z]{5,9}$"})
model = ScriptedModel(['"ab!cd"'] * 9)
for options in ({"temperature": 0.0}, {"temperature": 0.001, "top_p": 0.5, "seed": 1}, {"exact_choice": True}):
    for jump_forward in (False, True):
        written = []
        try:
            for event in model.stream("x", json_mode=SCHEMA, max_tokens=40, jump_forward=jump_forward, **options):
                written.append(event)
        except InternalError as error:
            assert "the mask allows the token 33 (b'!'), which the matcher refuses" in str(error), error
            assert "report it" in str(error) and "ab" in str(error), error
            print("refused", __debug__)
"""


@pytest.mark.parametrize("mode", [[], ["-O"]])
def test_nothing_is_written_after_a_disagreement(mode: list[str]) -> None:
    """A token that a mask allows and the matcher refuses ends the generation by an error of ours, with the token."""
    run = subprocess.run(
        [sys.executable, *mode, "-c", PROGRAM], capture_output=True, text=True, timeout=100, check=False
    )
    assert run.stdout.split("\n")[:-1] == [f"refused {not mode}"] * 6, run.stderr


def test_promised_steps_are_taken_or_told() -> None:
    """A step that the matcher refuses is an error with the step and the end of the text, and changes nothing."""
    matcher = Grammar.literal("ab").bind(single_bytes()).matcher()
    take(matcher, b"a")
    for step, told in ((b"c", r"refuses the text b'c', which must follow.*ends_with=b'a'"), (99, r"token 99 \(b'c'\)")):
        with pytest.raises(InternalError, match=told):
            take(matcher, step)
    take(matcher, 98)
    assert matcher.is_accepting


def test_no_assert_has_an_effect() -> None:
    """No assert of the library calls what changes a text, so that ``python -O`` takes the same steps."""
    effects = {"accept", "accept_bytes", "rollback", "add", "append", "pop", "update", "write", "extend"}
    found = []
    for path in sorted(each for room in ("core", "tools", "adapters") for each in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assert):
                calls = [each.func for each in ast.walk(node.test) if isinstance(each, ast.Call)]
                named = {each.attr for each in calls if isinstance(each, ast.Attribute)}
                found += [f"{path.relative_to(ROOT)}:{node.lineno}"] if named & effects else []
    assert found == []
