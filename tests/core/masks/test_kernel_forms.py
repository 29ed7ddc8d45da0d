"""Kernel, row table and matcher have two forms, compiled and interpreted, and they agree bit for bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolgrammar.core.masks import COMPILED

SCRIPT = """
import sys
if {block}:
    sys.modules["cython"] = None
import hashlib, json, logging, random
logging.disable(logging.WARNING)
from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.masks import COMPILED
words = ['"', '":', '": ', '", "', '{{"', "}}", "]", "[1", "12", "1.5", "e-3", "true", "null", "ab", "abc", "\\\\u00", "é",
         "😀", "a\\"", "ab\\": \\"", "<x>", "name", '"name": "', " ", "  ", "\\n"]
tokens = [bytes([byte]) for byte in range(256)] + [word.encode() for word in words] + [None, None]
vocabulary = Vocabulary(tokens, eos=[len(tokens) - 1], special={{"<go>": len(tokens) - 2}})
person = {{"type": "object", "properties": {{"name": {{"type": "string", "minLength": 1, "maxLength": 4}},
          "n": {{"type": "number", "minimum": -1.5, "exclusiveMaximum": 20}}, "t": {{"enum": ["a", "ab", 1, None]}}}},
          "required": ["name"]}}
grammars = [
    Grammar.json(), Grammar.json(whitespace="flexible"), Grammar.json(whitespace="compact"),
    Grammar.from_json_schema(person), Grammar.from_json_schema(person, whitespace="flexible"),
    Grammar.from_json_schema({{"$ref": "#/$defs/t", "$defs": {{"t": {{"type": "array", "items": {{"$ref": "#/$defs/t"}}}}}}}}),
    Grammar.from_json_schema({{"type": "string", "pattern": "^[a-cé]+(x|😀)?$", "maxLength": 6}}),
    Grammar.until("<x>") + Grammar.special("<go>") + Grammar.json() | Grammar.text(excluding=["<x>"], min_chars=1),
    Grammar.from_regex("(a|ab|abc){{1,9}}"),
    Grammar.from_json_schema({{"type": "object", "propertyNames": {{"pattern": "^a?b?c?$"}}, "minProperties": 3}}),
    Grammar.from_json_schema({{"type": "array", "items": {{"type": "string", "maxLength": 1}}, "uniqueItems": True}}),
    Grammar.from_json_schema({{"type": "object", "propertyNames": {{"enum": ["a", "ab", "abc"]}}, "minProperties": 3,
                              "additionalProperties": {{"type": "string", "maxLength": 1}}}}, whitespace="compact"),
    Grammar.from_json_schema({{"type": "object", "propertyNames": {{"pattern": "^a[ab]*$"}}, "minProperties": 4,
                              "additionalProperties": {{"const": 1}}}}, whitespace="compact"),
]
digest = hashlib.sha256()
walk = random.Random(0)
for grammar in grammars:
    constraint = grammar.bind(vocabulary)
    for _ in range(6):
        matcher = constraint.matcher()
        for _ in range(14):
            allowed = matcher.allowed_tokens()
            digest.update(repr((allowed, matcher.forced_bytes(), matcher.shortest_completion(),
                                matcher.is_accepting)).encode())
            alive = [token for token in allowed if token != len(tokens) - 1]
            if not alive:
                break
            long = [token for token in alive if tokens[token] is None or len(tokens[token]) > 1]
            assert matcher.accept(walk.choice(long if long and walk.random() < 0.5 else alive))
from toolgrammar.core.compiled import modules
import importlib
forms = {{importlib.import_module("toolgrammar.core." + name).__file__.endswith(".py")
         for name in modules.COMPILED}}
assert forms == {{not COMPILED}}
print(json.dumps({{"compiled": COMPILED, "digest": digest.hexdigest()}}))
"""


def run(*, interpreted: bool, block_cython: bool = False) -> dict[str, object]:
    """Walk the grammars in a fresh process."""
    environment = {**os.environ, "TOOLGRAMMAR_INTERPRETED": "1" if interpreted else "0"}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(block=block_cython)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout))


@pytest.mark.skipif(not COMPILED, reason="the kernel was installed without a C compiler: only one form is here")
def test_both_forms_agree() -> None:
    """Masks, forced bytes and completions along random walks are identical."""
    compiled, interpreted = run(interpreted=False), run(interpreted=True)
    assert compiled["compiled"] is True and interpreted["compiled"] is False
    assert compiled["digest"] == interpreted["digest"]


def test_the_interpreted_form_needs_no_cython() -> None:
    """Where Cython is not installed, a stand-in takes its place."""
    assert run(interpreted=True, block_cython=True)["digest"] == run(interpreted=True)["digest"]


#: Writes over a large vocabulary, whose index is kept in a folder.
LARGE = """
import hashlib, logging, sys
logging.basicConfig()
sys.path.insert(0, sys.argv[1])
import vocabularies
from toolgrammar.core import Grammar, Vocabulary
tokens = vocabularies.tekken().tokens[:20_000]
vocabulary = Vocabulary([*tokens, None], eos=[len(tokens)], cache_dir=sys.argv[2])
schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "code": {"type": "string", "pattern": "^[a-z]{2,5}( [a-z]+)?$"},
        "tags": {"type": "array", "items": {"enum": ["a", "ab", "b"]}, "uniqueItems": True},
        "n": {"type": "integer", "minimum": -5},
    },
    "required": ["name", "code", "tags", "n"],
}
matcher = Grammar.from_json_schema(schema).bind(vocabulary).matcher()
digest = hashlib.sha256()
for byte in b'{"name": "Ada \\\\n", "code": "abc de", "tags": ["ab", "b"], "n": -3, "x": [1.5, {}]}':
    digest.update(repr((matcher.allowed_tokens(), matcher.forced_bytes(), matcher.shortest_completion())).encode())
    assert matcher.accept(tokens.index(bytes([byte])))
print(digest.hexdigest())
"""


def test_both_forms_agree_over_a_large_vocabulary(tmp_path: Path) -> None:
    """Over real tokens, in numbers that get an index, both forms allow the same: first with no index kept, and then
    with the one that was kept by the first."""
    pytest.importorskip("mistral_common")
    found = {}
    for form in ("1", "0"):
        for run_number in (1, 2):
            result = subprocess.run(
                [sys.executable, "-c", LARGE, str(Path(__file__).parents[2]), str(tmp_path / form)],
                env={**os.environ, "TOOLGRAMMAR_INTERPRETED": form},
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
            )
            assert result.returncode == 0, result.stderr
            found[form, run_number] = result.stdout
            # What is slower without a compiler is said once, not at each start.
            assert ("ten times as long" in result.stderr) == (form == "1" and run_number == 1), result.stderr
        assert list((tmp_path / form).rglob("*.*"))
    assert len(set(found.values())) == 1


NARROWED = """
import numpy as np
from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.masks.budget import Budget
vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), b'": ', b"12", None], eos=[258], cache_dir=False)
schema = {"type": "object", "additionalProperties": {"type": "integer"}}
matcher = Grammar.from_json_schema(schema).bind(vocabulary).matcher()
row = np.zeros(9, np.uint32)
for room in (1, 2, 6, 30):
    matcher.fill_mask(row)
    Budget(matcher).narrow(row, [], room)
    print(row.tolist())
"""


def test_masks_of_a_budget_are_the_same_in_both_forms() -> None:
    """A budget narrows a row of NumPy in the interpreted form too."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", NARROWED],
            env={**os.environ, "TOOLGRAMMAR_INTERPRETED": form},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for form in ("0", "1")
    }
    assert len(outputs) == 1
