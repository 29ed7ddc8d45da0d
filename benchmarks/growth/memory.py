"""What constraints take: counted by the library, and confirmed by the process's resident memory.

    python -m benchmarks growth/memory [--calls N] [--schemas N] [--data FILE] [--keep]

Three questions, each asked in a process of its own, beside the 131,072 tokens of Tekken (prepared before anything is
counted): a union of 10 tools and one of 100 after so many random calls (tools of the BFCL sample, tokens drawn
uniformly from the mask, closed after 40), and so many distinct schemas through one `ConstraintCache` of 256 MiB, with
a text written under each. Memory that the process had free before is given back first, where the C library can.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import random
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.data import BFCL, distinct_tools
from benchmarks.shared.peers import tekken
from benchmarks.shared.pool import alone
from benchmarks.shared.tables import show
from toolgrammar.core import Constraint, ConstraintCache, Grammar, Vocabulary
from toolgrammar.tools import ToolSet

MB = 2**20


def warm_vocabulary() -> Vocabulary:
    """The vocabulary, with everything that all grammars share made."""
    vocabulary, _ = tekken()
    grammar = Grammar.json()
    matcher = grammar.bind(vocabulary).matcher()
    for text in (b"", b'["', b'a", 1'):
        assert matcher.accept_bytes(text)
        matcher.allowed_tokens()
    return vocabulary


def resident() -> int:
    """Bytes of the process that are in memory."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc alone has it
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def write(constraint: Constraint, draw: random.Random, out: Any, most: int) -> None:
    """One text: tokens drawn uniformly from the mask, then the shortest way to end it."""
    matcher = constraint.matcher()
    size = constraint.vocabulary.size
    for _ in range(most):
        matcher.fill_mask(out)
        allowed = np.flatnonzero(np.unpackbits(out.view(np.uint8), count=size, bitorder="little"))
        if not len(allowed):
            return
        matcher.accept(int(allowed[draw.randrange(len(allowed))]))
        if matcher.is_finished:
            return
    assert matcher.accept_bytes(matcher.shortest_completion()) and matcher.is_accepting


def union(data: Path, count: int, calls: int) -> dict[str, Any]:
    """A union of tools after random calls."""
    vocabulary = warm_vocabulary()
    out = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
    chosen = distinct_tools(data, count, variants=False)
    before = resident()
    constraint = ToolSet(chosen).grammar(tool_choice="required").bind(vocabulary)
    draw = random.Random(0)
    for _ in range(calls):
        write(constraint, draw, out, 40)
    return {"counted_bytes": constraint.byte_count(), "resident_bytes": resident() - before, **constraint.counters()}


def distinct(schemas: int) -> dict[str, Any]:
    """Distinct schemas through one cache."""
    vocabulary = warm_vocabulary()
    out = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
    cache = ConstraintCache()
    draw = random.Random(0)
    kinds: list[dict[str, Any]] = [
        {"type": "string"},
        {"type": "integer", "minimum": 0},
        {"type": "number"},
        {"type": "string", "enum": ["red", "green", "blue"]},
        {"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"},
        {"type": "array", "items": {"type": "string", "maxLength": 20}},
    ]
    before = resident()
    most_counted = most_resident = 0
    for number in range(schemas):
        properties = {f"field_{number}_{at}": draw.choice(kinds) for at in range(draw.randint(1, 8))}
        schema = {"type": "object", "properties": properties, "required": list(properties)[:2]}
        constraint = cache.from_json_schema(schema, vocabulary, additional_properties=False)
        write(constraint, draw, out, 20)
        if number % 250 == 249:
            most_counted = max(most_counted, cache.statistics.bytes)
            most_resident = max(most_resident, resident() - before)
    statistics = cache.statistics
    return {
        "counted_bytes": max(most_counted, statistics.bytes),
        "resident_bytes": max(most_resident, resident() - before),
        "entries": statistics.entries,
        "evictions": statistics.evictions,
        "max_bytes": statistics.max_bytes,
    }


def main(calls: int = 1_000, schemas: int = 10_000, data: Path = BFCL, keep: bool = False) -> None:
    """Run the benchmark."""
    report: dict[str, Any] = {"calls": calls, "schemas": schemas}
    for count in (10, 100):
        report[str(count)] = alone(union, data, count, calls)
    report["schemas"] = alone(distinct, schemas)
    show("memory", report, keep=keep)
