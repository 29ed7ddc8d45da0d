"""What preparing a vocabulary of 131,072 tokens costs: computed, and read from disk by a second process.

    python -m benchmarks growth/vocabulary_cost [--rounds N] [--keep]

The vocabulary is Tekken, which `mistral-common` ships. Each round is a process of its own that has the vocabulary ready
and measures, once: the content hash, then the first bind of a grammar (trie, sets of free strings, counts), by the
clock and in processor time. Reading the tokenizer is not counted: it is the tokenizer library's own time.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.shared.peers import tekken_file
from benchmarks.shared.pool import alone
from benchmarks.shared.tables import show
from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.masks import COMPILED


def once() -> tuple[int, bool, float, float, float]:
    """Return the size, if the kernel is compiled, and the seconds: of the hash, of all, of the processor."""
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    vocabulary = Vocabulary.from_mistral(Tekkenizer.from_file(tekken_file()))
    Grammar.json().bind(Vocabulary([b"1", None], eos=[1])).matcher().allowed_tokens()  # imports and first calls
    grammar = Grammar.json()
    clock, cpu = time.perf_counter(), time.process_time()
    vocabulary.content_hash  # noqa: B018 - computed once
    hashed = time.perf_counter() - clock
    grammar.bind(vocabulary)
    return vocabulary.size, COMPILED, hashed, time.perf_counter() - clock, time.process_time() - cpu


def main(rounds: int = 5, keep: bool = False) -> None:
    """Run the benchmark."""
    report: dict[str, object] = {"rounds": rounds}
    with tempfile.TemporaryDirectory() as folder:
        computed = [alone(once, TOOLGRAMMAR_CACHE_DIR="off") for _ in range(rounds)]
        first = alone(once, TOOLGRAMMAR_CACHE_DIR=folder)
        read = [alone(once, TOOLGRAMMAR_CACHE_DIR=folder) for _ in range(rounds)]
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    for name, found in (("computed, kept nowhere", computed), ("computed and written", [first]), ("read", read)):
        hashed, clock, cpu = (sorted(each[at] * 1e3 for each in found) for at in (2, 3, 4))
        report[name] = {"clock_ms": clock, "processor_ms": cpu, "of_that_hash_ms": hashed}
    report.update(tokens=computed[0][0], compiled=computed[0][1], file_bytes=size)
    show("vocabulary_cost", report, keep=keep)
