"""Masks of 256 sequences of one tool set, and putting them on logits, beside llguidance and xgrammar.

    python -m benchmarks masks/batch [--rows 256] [--steps 40] [--keep]

Ten tools, a JSON call each, written over and over by as many sequences at once, each at another place of another call;
the real 131,072-token Tekken vocabulary, one thread, the Python API. Filling is measured warm: in a second pass over
the same texts. Applying is measured on the masks of one step, on the host, in place; medians of many runs.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.shared.engines import LLGuidance, Ours, XGrammar
from benchmarks.shared.peers import tekken
from benchmarks.shared.results_io import show
from toolgrammar.core.masks.batch import MaskTable, apply_mask, fill_masks

APPLIED_ROWS = 32


def tool(number: int) -> dict[str, Any]:
    """The schema of a call."""
    arguments = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 40},
            "days": {"type": "integer", "minimum": 1, "maximum": 99},
            "unit": {"enum": ["celsius", "fahrenheit", f"unit_{number}"]},
        },
        "required": ["city", "days", "unit"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"name": {"const": f"get_forecast_{number}"}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def call(seed: random.Random) -> str:
    """The text of a call."""
    number = seed.randrange(10)
    city = " ".join(seed.choice(["Oslo", "New York", "San José", "Bad Homburg", "Ouagadougou"]) for _ in range(2))
    unit = seed.choice(["celsius", "fahrenheit", f"unit_{number}"])
    arguments = {"city": city, "days": seed.randrange(1, 99), "unit": unit}
    return json.dumps({"name": f"get_forecast_{number}", "arguments": arguments}, ensure_ascii=False)


def filling(
    start: Callable[[], Any],
    accept: Callable[[Any, int], bool],
    fill: Callable[[list[Any]], Any],
    texts: Sequence[Sequence[int]],
    steps: int,
) -> float:
    """Microseconds for each mask, warm."""
    spent: list[float] = []
    for is_warm in (False, True):
        places = [(index * 3) % len(text) for index, text in enumerate(texts)]
        matchers = [start() for _ in texts]
        for matcher, text, place in zip(matchers, texts, places, strict=True):
            for token in text[:place]:
                assert accept(matcher, token)
        for _ in range(steps):
            begin = time.perf_counter()
            fill(matchers)
            if is_warm:
                spent.append((time.perf_counter() - begin) * 1e6 / len(texts))
            for index, text in enumerate(texts):
                if places[index] == len(text):
                    matchers[index] = start()
                    places[index] = 0
                else:
                    assert accept(matchers[index], text[places[index]])
                    places[index] += 1
    return statistics.median(spent)


def applying(ways: dict[str, Callable[[Any], Any]], logits: Any) -> dict[str, float]:
    """Microseconds for each row of logits; the ways take turns, so that they meet the same machine."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(30):
        for name, apply in ways.items():
            fresh = logits.clone()
            begin = time.perf_counter()
            apply(fresh)
            spent[name].append((time.perf_counter() - begin) * 1e6 / len(logits))
    return {name: statistics.median(each) for name, each in spent.items()}


def main(rows: int = 256, steps: int = 40, keep: bool = False) -> None:
    """Run, and print a table."""
    torch.set_num_threads(1)
    import llguidance.numpy as llguidance_numpy
    import llguidance.torch as llguidance_torch
    import xgrammar
    from llguidance import LLExecutor

    vocabulary, encode = tekken()
    seed = random.Random(0)
    texts = [encode(call(seed)) for _ in range(rows)]
    schema = {"anyOf": [tool(number) for number in range(10)]}
    words = (vocabulary.size + 31) // 32

    ours = Ours(vocabulary, whitespace="flexible")
    constraint = ours.compile(schema)
    out = np.zeros((rows, words), np.uint32)
    masks = MaskTable(vocabulary.size, 4_096)
    accept = lambda matcher, token: bool(matcher.accept(token))  # noqa: E731 - one of four alike
    fills = {
        "toolgrammar, MaskTable.rows": filling(constraint.matcher, accept, masks.rows, texts, steps),
        "toolgrammar, fill_masks": filling(
            constraint.matcher, accept, lambda each: fill_masks(each, out), texts, steps
        ),
    }
    llguidance = LLGuidance(vocabulary, encode)
    compiled = llguidance.compile(schema)
    executor = LLExecutor(num_threads=1)
    signed = out.view(np.int32)
    fills["llguidance, fill_next_token_bitmask_par"] = filling(
        compiled.deep_copy,
        lambda matcher, token: matcher.try_consume_tokens([token]) == 1,
        lambda each: llguidance_numpy.fill_next_token_bitmask_par(
            executor, [(matcher, row) for row, matcher in enumerate(each)], signed
        ),
        texts,
        steps,
    )
    peer = XGrammar(vocabulary)
    grammar = peer.compile(schema)
    batch = xgrammar.BatchGrammarMatcher(max_threads=1)
    bitmask = xgrammar.allocate_token_bitmask(rows, vocabulary.size)
    fills["xgrammar, batch_fill_next_token_bitmask"] = filling(
        lambda: xgrammar.GrammarMatcher(grammar),
        lambda matcher, token: bool(matcher.accept_token(token)),
        lambda each: batch.batch_fill_next_token_bitmask(each, bitmask),
        texts,
        steps,
    )
    measured: list[list[object]] = [[name, "fill", micros] for name, micros in fills.items()]

    matchers = [constraint.matcher() for _ in range(APPLIED_ROWS)]
    for index, (matcher, text) in enumerate(zip(matchers, texts, strict=False)):
        for token in text[: index % len(text)]:
            assert matcher.accept(token)
    given = np.zeros((APPLIED_ROWS, words), np.uint32)
    fill_masks(matchers, given)
    as_tensor = torch.from_numpy(given.view(np.int32))
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        logits = torch.randn((APPLIED_ROWS, vocabulary.size)).to(dtype)
        ways: dict[str, Callable[[Any], Any]] = {
            "toolgrammar, apply_mask": lambda each: apply_mask(each, given),
            "toolgrammar, MaskTable.apply (fill included)": lambda each: masks.apply(each, matchers),
            "llguidance, apply_token_bitmask_inplace": lambda each: llguidance_torch.apply_token_bitmask_inplace(
                each, as_tensor
            ),
            "xgrammar, apply_token_bitmask_inplace": lambda each: xgrammar.apply_token_bitmask_inplace(each, as_tensor),
        }
        expected = logits.clone()
        apply_mask(expected, given)
        for apply in ways.values():
            trial = logits.clone()
            apply(trial)
            assert torch.equal(expected, trial)
        what = f"apply {str(dtype)[6:]}"
        measured += [[name, what, micros] for name, micros in applying(ways, logits).items()]
    report = {"rows": rows, "steps": steps, "micros_a_row": [list(map(str, row)) for row in measured]}
    show("batch", report, keep=keep)
