"""How much two threads do in the time of one: schemas compiled, and masks of texts that were never met.

    python -m benchmarks growth/threads --data FILE --tekken FILE [--limit N]

Each thread has grammars of its own. With a GIL two threads do as much as one. On a free-threaded CPython (PEP 703) they
should do nearly twice as much: what they share is the index of the vocabulary (``core/compiled/gil.py`` has the rule).

``--data`` has lines of JSON with ``schema`` and ``tests`` (MaskBench); ``--tekken`` is a tokenizer's file in Mistral's
format, read here without its package, so that the interpreter needs no more than this library.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.data import rows
from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.compiled.gil import HAS_GIL
from toolgrammar.core.errors import ToolGrammarError

#: Number of control tokens at the beginning of a vocabulary in this format.
CONTROL = 1000


def read_tokens(path: Path, size: int = 131_072) -> list[bytes | None]:
    """Return the tokens of a tokenizer's file."""
    entries = json.loads(path.read_text(encoding="utf-8"))["vocab"]
    return [None] * CONTROL + [base64.b64decode(entry["token_bytes"]) for entry in entries[: size - CONTROL]]


def spell(text: bytes, numbers: dict[bytes, int], longest: int) -> list[int]:
    """Return the tokens of a text, each the longest that fits."""
    tokens: list[int] = []
    at = 0
    while at < len(text):
        size = next(size for size in range(longest, 0, -1) if text[at : at + size] in numbers)
        tokens.append(numbers[text[at : at + size]])
        at += size
    return tokens


def work(cases: Sequence[tuple[Any, list[int]]], vocabulary: Vocabulary) -> int:
    """Compile the schemas, and step through the texts with a mask before each token; return the number of masks."""
    mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
    masks = 0
    for schema, tokens in cases:
        try:
            matcher = Grammar.from_json_schema(schema, property_order="any").bind(vocabulary).matcher()
        except ToolGrammarError:
            continue
        for token in tokens:
            matcher.fill_mask(mask)
            masks += 1
            if not matcher.accept(token):
                break
    return masks


def timed(parts: Sequence[Sequence[tuple[Any, list[int]]]], vocabulary: Vocabulary) -> float:
    """Return the time in seconds that one thread for each part takes."""
    with ThreadPoolExecutor(len(parts)) as pool:
        start = time.perf_counter()
        list(pool.map(work, parts, [vocabulary] * len(parts)))  # an error of a thread is raised here
        return time.perf_counter() - start


def main(*, data: Path, tekken: Path, limit: int = 400) -> None:
    """Measure one thread beside two.

    Args:
        tekken: a tokenizer's file
    """
    tokens = read_tokens(tekken)
    numbers = {token: number for number, token in enumerate(tokens) if token}
    longest = min(24, max(map(len, numbers)))
    vocabulary = Vocabulary(tokens, eos=[2])
    cases = []
    for case in rows(data)[:limit]:
        valid = [test["data"] for test in case["tests"] if test["valid"]][:1]
        text = json.dumps(valid[0], ensure_ascii=False).encode() if valid else b"{"
        cases.append((case["schema"], spell(text, numbers, longest)))
    timed([cases[:40]], vocabulary)  # what the library derives once
    one, two = timed([cases], vocabulary), timed([cases[::2], cases[1::2]], vocabulary)
    print(f"Python {sys.version.split()[0]}, {'with' if HAS_GIL else 'without'} a GIL, {len(cases)} schemas:")
    print(f"one thread {one:.2f} s, two threads {two:.2f} s, {one / two:.2f} times the work")
