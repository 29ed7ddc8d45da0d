"""What preparing a vocabulary of 131,072 tokens costs: computed, and read from disk by a second process.

    python -m benchmarks growth/vocabulary_cost [--rounds N] [--keep]

The vocabulary is Tekken, which `mistral-common` ships. Each round is a process of its own that has the vocabulary ready
and measures, once: the content hash, then the first bind of a grammar (trie, sets of free strings, counts), by the
clock and in processor time. Reading the tokenizer is not counted: it is the tokenizer library's own time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.shared.results_io import show

ROUND = """
import json, sys, time
from pathlib import Path
import mistral_common
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.masks import COMPILED
tokenizer = Tekkenizer.from_file(Path(mistral_common.__file__).parent / "data" / "tekken_240911.json")
vocabulary = Vocabulary.from_mistral(tokenizer)
Grammar.json().bind(Vocabulary([b"1", None], eos=[1])).matcher().allowed_tokens()  # imports and first calls
grammar = Grammar.json()
clock, cpu = time.perf_counter(), time.process_time()
vocabulary.content_hash
hashed = time.perf_counter() - clock
grammar.bind(vocabulary)
print(json.dumps([vocabulary.size, COMPILED, hashed, time.perf_counter() - clock, time.process_time() - cpu]))
"""


def once(folder: str) -> list[float]:
    """One process."""
    environment = {**os.environ, "TOOLGRAMMAR_CACHE_DIR": folder}
    result = subprocess.run([sys.executable, "-c", ROUND], env=environment, capture_output=True, text=True, check=True)
    return list(json.loads(result.stdout))


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/vocabulary_cost.json")
    options = parser.parse_args()
    rounds = options.rounds
    report: dict[str, object] = {"rounds": rounds}
    with tempfile.TemporaryDirectory() as folder:
        computed = [once("off") for _ in range(rounds)]
        first = once(folder)
        read = [once(folder) for _ in range(rounds)]
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    for name, found in (("computed, kept nowhere", computed), ("computed and written", [first]), ("read", read)):
        hashed, clock, cpu = (sorted(each[at] * 1e3 for each in found) for at in (2, 3, 4))
        report[name] = {"clock_ms": clock, "processor_ms": cpu, "of_that_hash_ms": hashed}
    report.update(tokens=int(computed[0][0]), compiled=bool(computed[0][1]), file_bytes=size)
    show("vocabulary_cost", report, keep=options.keep)
    return 0
