"""The public classes around the kernel, given anything in any order: an error, and never the end of the process."""

from __future__ import annotations

import inspect
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import (
    Constraint,
    DecodingError,
    Grammar,
    MaskTable,
    Matcher,
    ToolGrammarError,
    Vocabulary,
    apply_mask,
    fill_masks,
)

from ...vocabularies import BYTES

ROOT = Path(__file__).resolve().parents[3]

#: What a wrong call may raise.
EXPECTED = (ToolGrammarError, TypeError, ValueError)

WORDS = (BYTES.size + 31) // 32


def read_only() -> np.ndarray:
    """An array that cannot be written."""
    array = np.zeros(WORDS, np.uint32)
    array.flags.writeable = False
    return array


class Odd:
    """An object that says that it has five items, and has none."""

    def __len__(self) -> int:
        return 5


def odd_values(rng: random.Random, objects: list[Any]) -> list[Any]:
    """Values of every kind: numbers of any size, texts, containers, arrays of any shape and layout, our own objects."""
    return [
        *(None, True, 0, 1, -1, 5, 256, 257, 10**6, 2**31, 2**63, -(2**70), 1.5, float("nan"), float("inf"), ...),
        *("", "é", "\ud800", b"", b'{"', b"a" * 5_000, bytearray(b"{"), memoryview(b"{")),
        *([], [1], [None], [[]], (), {}, {1, 2}, range(3), object(), Odd(), lambda *given: None, type),
        *(np.int64(3), np.float64(2), np.uint8(200), np.array(5, np.uint32)),
        *(np.zeros(size, np.uint32) for size in (0, 1, WORDS, WORDS + 5)),
        *(np.zeros(WORDS, kind) for kind in (np.int32, np.float32, object, ">u4")),
        *(np.zeros((2, WORDS), np.uint32), np.zeros((WORDS, 2), np.uint32).T, np.zeros(2 * WORDS, np.uint32)[::2]),
        np.frombuffer(bytearray(4 * WORDS + 1), np.uint8)[1:].view(np.uint32),
        *(np.zeros((rows, BYTES.size), kind) for rows in (0, 1, 2) for kind in (np.float32, np.float16)),
        *(read_only(), *objects, [rng.choice(objects)], [*objects[:2], None]),
    ]


def call_anything(seed: int, rounds: int) -> list[str]:
    """Call public methods in random order with random values; return what was raised that should not be."""
    rng = random.Random(seed)
    grammars = [Grammar.from_json_schema({"type": "object"})]
    grammars.append(Grammar.from_json_schema({"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, "a"]}}))
    wrong = []
    for _ in range(rounds):
        grammar = rng.choice(grammars)
        constraint: Constraint = grammar.bind(BYTES)
        matcher: Matcher = constraint.matcher()
        for _ in range(rng.randrange(4)):
            matcher.accept(rng.choice(matcher.allowed_tokens() or [257]))
        objects: list[Any] = [matcher, constraint, MaskTable(BYTES.size, 2), BYTES, grammar, matcher.fork()]
        for _ in range(15):
            owner = rng.choice([*objects, None])
            name = rng.choice([each for each in dir(owner) if not each.startswith("_")] or [""])
            call = rng.choice([fill_masks, apply_mask]) if owner is None else getattr(owner, name)
            if not callable(call) or name in ("warm", "save", "from_tiktoken"):
                continue
            values = odd_values(rng, objects)
            given = [rng.choice(values) for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]
            if "vocabulary" in inspect.signature(call).parameters and rng.random() < 0.3:
                given = given[:1]
            try:
                call(*given)
            except EXPECTED:
                pass
            except Exception as error:
                wrong.append(
                    f"{type(owner).__name__}.{name or call.__name__}{given!r:.200}: {type(error).__name__} {error}"
                )
    return wrong


@pytest.mark.parametrize("seed", range(3))
def test_wrong_calls_are_errors(seed: int) -> None:
    """Methods that get what they do not take raise an error of ours, a TypeError or a ValueError."""
    code = f"from tests.core.masks.test_public_fuzz import call_anything; print(*call_anything({seed}, 150), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "ignore", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("row", [None, b"", [0] * WORDS, read_only(), np.zeros(WORDS, np.int64), np.zeros((2, WORDS))])
@pytest.mark.parametrize("finished", [False, True])
def test_what_is_no_mask_is_refused(row: Any, finished: bool) -> None:
    """A mask is an array that can be written: nothing else is taken, also where the text is over."""
    matcher = Grammar.from_json_schema({"type": "object"}).bind(BYTES).matcher()
    assert matcher.accept_bytes(b"{}" if finished else b'{"')
    if finished:
        assert matcher.accept(next(iter(BYTES.eos)))
    with pytest.raises(DecodingError):
        matcher.fill_mask(row)


def test_what_is_no_vocabulary_is_refused() -> None:
    """A grammar is bound to a vocabulary, and the way out is named."""
    wrong: Any = 5
    with pytest.raises(ToolGrammarError, match="bound to a Vocabulary, not to int"):
        Grammar.from_json_schema({}).bind(wrong)
    with pytest.raises(ToolGrammarError, match="takes a Vocabulary"):
        Grammar.from_lark('start: "a"', vocabulary=wrong)
    assert isinstance(BYTES, Vocabulary)
