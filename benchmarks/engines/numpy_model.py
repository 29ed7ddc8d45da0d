"""What a model costs that NumPy runs: loading, reading a prompt, writing tokens, memory.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks engines/numpy_model [--model smollm2] [--keep]

Processor time of the process, so other work on the machine counts little; the best of a few rounds. Each way runs with
the vector instructions of the kernel, where the processor has them, and without.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

from benchmarks.shared.results_io import show
from toolgrammar.core import load_model
from toolgrammar.core.models.numpy_llama import matrices

PROMPT, WRITTEN = 512, 16


def best(rounds: int, run: Callable[[], object]) -> float:
    """Return the least processor time of some rounds, in seconds."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times)


def speeds(address: str) -> dict[str, Any]:
    """Return the tokens a second of reading and of writing."""
    with load_model(address, prefix_cache=0) as model:
        backend: Any = getattr(model, "backend")  # noqa: B009 - only a local model has one
        ids = backend.encode("The quick brown fox jumps over the lazy dog. " * 100)[:PROMPT]

        def read() -> None:
            backend.start().extend(ids)

        session = backend.start()
        session.extend(ids)

        def write() -> None:
            for token in ids[:WRITTEN]:
                session.extend([token])
            session.crop(PROMPT)

        return {"read_per_second": PROMPT / best(3, read), "written_per_second": WRITTEN / best(5, write)}


def main(model: str = "smollm2", keep: bool = False) -> int:
    """Run the benchmark.

    Args:
        model: 'smollm2' or 'numpy:PATH'
    """
    load_model(model).close()  # what is loaded and compiled once in a process
    report: dict[str, Any] = {
        "model": model.rpartition("/")[2],
        "prompt": PROMPT,
        "load_seconds": best(3, lambda: load_model(model).close()),
        "ways": {"vector instructions": speeds(model)} if matrices.VECTORS else {},
    }
    report["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    matrices.VECTORS, matrices.FEW = False, 3
    report["ways"]["plain C"] = speeds(model)
    show("numpy_model", report, keep=keep)
    return 0
