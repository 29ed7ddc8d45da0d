"""Jobs spread over processes, each of one thread, with their progress on the standard error stream; their report."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)


def spread(
    run: Callable[..., Any], groups: Mapping[Any, Sequence[tuple[Any, ...]]], workers: int
) -> Iterator[tuple[Any, Any]]:
    """Yield the result of ``run`` for the arguments of each group, with the group's key, in order."""
    # The models are small, and their threads would only wait for each other. Read when NumPy is loaded.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    with pool, Progress(*COLUMNS, console=Console(stderr=True)) as progress:
        for key, jobs in groups.items():
            task = progress.add_task(key if isinstance(key, str) else " ".join(key), total=len(jobs))
            for job in [pool.submit(run, *arguments) for arguments in jobs]:
                yield key, job.result()
                progress.advance(task)


def end(results: Mapping[Any, Any], table: Table, report: Mapping[str, Any], path: Path | None) -> int:
    """Print the table and the examples of failures, write the report; return the exit code: 1 if anything failed."""
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    for outcome in results.values():
        for example in outcome.examples:
            Console(stderr=True).print(example, style="red", markup=False, highlight=False)
    if path is not None:
        path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    return 1 if any(outcome.failures for outcome in results.values()) else 0
