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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.shared.engines import Encode, LLGuidance, Ours, XGrammar
from benchmarks.shared.peers import tekken
from benchmarks.shared.tables import show
from toolgrammar.core import Constraint, Vocabulary
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


@dataclass(frozen=True)
class Rows:
    """An engine that masks many rows at once.

    Attributes:
        start: makes the matcher of a row.
        accept: advances a matcher by a token.
        fill: computes the masks of matchers on the host, as `put` takes them; its name in the results is ``fills``.
        put: puts masks on logits; its name in the results is ``puts``.
    """

    start: Callable[[], Any]
    accept: Callable[[Any, int], bool]
    fill: Callable[[list[Any]], Any]
    put: Callable[[Any, Any], Any]
    fills: str
    puts: str = "apply_token_bitmask_inplace"


def ours(vocabulary: Vocabulary, constraint: Constraint, device: str = "cpu") -> Rows:
    """Return this library, with a table of masks on a device."""
    table = MaskTable(vocabulary.size, 4_096, device=None if device == "cpu" else device)
    accept = lambda each, token: bool(each.accept(token))  # noqa: E731 - one of three alike
    return Rows(
        constraint.matcher, accept, table.rows, table.forbid, "MaskTable.rows", "MaskTable.apply (fill included)"
    )


def peers(vocabulary: Vocabulary, encode: Encode, schema: Any, rows: int, threads: int = 0) -> dict[str, Rows]:
    """Return llguidance and xgrammar with a compiled schema.

    Args:
        vocabulary: of the masks.
        encode: its tokenizer.
        schema: is compiled.
        rows: number of rows.
        threads: of their own; 0: as many as they like, and masks that a GPU reads
    """
    import llguidance.torch as llguidance_torch
    import xgrammar
    from llguidance import LLExecutor

    llguidance = LLGuidance(vocabulary, encode).compile(schema)
    executor = LLExecutor(num_threads=threads or None)
    compiled = XGrammar(vocabulary).compile(schema)
    batch = xgrammar.BatchGrammarMatcher(max_threads=threads or "auto")
    shape = (rows, (vocabulary.size + 31) // 32)
    bits = [torch.zeros(shape, dtype=torch.int32, pin_memory=not threads) for _ in range(2)]

    def llguidance_fill(matchers: list[Any]) -> Any:
        numbered = [(matcher, row) for row, matcher in enumerate(matchers)]
        llguidance_torch.fill_next_token_bitmask_par(executor, numbered, bits[0])
        return bits[0]

    def xgrammar_fill(matchers: list[Any]) -> Any:
        batch.batch_fill_next_token_bitmask(matchers, bits[1])
        return bits[1]

    def putting(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda logits, masks: apply(logits, masks.to(logits.device, non_blocking=True))

    return {
        "llguidance": Rows(
            llguidance.deep_copy,
            lambda each, token: each.try_consume_tokens([token]) == 1,
            llguidance_fill,
            putting(llguidance_torch.apply_token_bitmask_inplace),
            "fill_next_token_bitmask_par",
        ),
        "xgrammar": Rows(
            lambda: xgrammar.GrammarMatcher(compiled),
            lambda each, token: bool(each.accept_token(token)),
            xgrammar_fill,
            putting(xgrammar.apply_token_bitmask_inplace),
            "batch_fill_next_token_bitmask",
        ),
    }


def begun(engine: Rows, texts: Sequence[Sequence[int]], places: Sequence[int]) -> list[Any]:
    """Return the matchers of texts, each at a place."""
    matchers = [engine.start() for _ in texts]
    for matcher, text, place in zip(matchers, texts, places, strict=True):
        assert all(engine.accept(matcher, token) for token in text[:place])
    return matchers


def filling(engine: Rows, texts: Sequence[Sequence[int]], steps: int) -> float:
    """Return the microseconds for each mask, warm."""
    spent: list[float] = []
    for is_warm in (False, True):
        places = [(index * 3) % len(text) for index, text in enumerate(texts)]
        matchers = begun(engine, texts, places)
        for _ in range(steps):
            begin = time.perf_counter()
            engine.fill(matchers)
            if is_warm:
                spent.append((time.perf_counter() - begin) * 1e6 / len(texts))
            for index, text in enumerate(texts):
                if places[index] == len(text):
                    matchers[index], places[index] = engine.start(), 0
                else:
                    assert engine.accept(matchers[index], text[places[index]])
                    places[index] += 1
    return statistics.median(spent)


def applying(ways: Mapping[str, Callable[[Any], Any]], logits: Any) -> dict[str, float]:
    """Return the microseconds for each row of logits; the ways take turns, so that they meet the same machine."""
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
    (vocabulary, encode), seed = tekken(), random.Random(0)
    texts = [encode(call(seed)) for _ in range(rows)]
    schema = {"anyOf": [tool(number) for number in range(10)]}
    constraint = Ours(vocabulary, whitespace="flexible").compile(schema)
    out = np.zeros((rows, constraint.words), np.uint32)

    def words(matchers: list[Any]) -> Any:
        fill_masks(matchers, out[: len(matchers)])
        return out[: len(matchers)]

    table = ours(vocabulary, constraint)
    engines = {
        "toolgrammar, table": table,
        "toolgrammar": replace(table, fill=words, put=apply_mask, fills="fill_masks", puts="apply_mask"),
        **peers(vocabulary, encode, schema, rows, threads=1),
    }
    shown = {name: name.partition(",")[0] for name in engines}
    measured: list[list[object]] = [
        [f"{shown[name]}, {engine.fills}", "fill", filling(engine, texts, steps)] for name, engine in engines.items()
    ]
    some = texts[:APPLIED_ROWS]
    matchers = begun(table, some, [index % len(text) for index, text in enumerate(some)])
    given = words(matchers)
    masks = torch.from_numpy(given.view(np.int32))
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        logits = torch.randn((APPLIED_ROWS, vocabulary.size)).to(dtype)
        ways: dict[str, Callable[[Any], Any]] = {
            name: partial(lambda engine, each: engine.put(each, masks), engine) for name, engine in engines.items()
        }
        ways["toolgrammar"] = lambda each: apply_mask(each, given)
        ways["toolgrammar, table"] = lambda each: table.put(each, table.fill(matchers))
        expected = logits.clone()
        apply_mask(expected, given)
        for apply in ways.values():
            trial = logits.clone()
            apply(trial)
            assert torch.equal(expected, trial)
        what = f"apply {str(dtype)[6:]}"
        found = applying(ways, logits)
        measured += [[f"{shown[name]}, {engines[name].puts}", what, micros] for name, micros in found.items()]
    report = {"rows": rows, "steps": steps, "micros_a_row": [list(map(str, row)) for row in measured]}
    show("batch", report, keep=keep)
