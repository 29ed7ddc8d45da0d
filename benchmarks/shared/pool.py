"""Jobs spread over processes, each of one thread, with their progress on the standard error stream; their report."""

from __future__ import annotations

import json
import os
import platform
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
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


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    found = {}
    for name in packages:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def end(
    results: Mapping[Any, Any], keys: Sequence[str], table: Table, options: Namespace, packages: Sequence[str]
) -> int:
    """Print the table and the examples of failures, write the report; return the exit code: 1 if anything failed.

    Args:
        results: dataclasses with ``failures`` and ``examples``, by the values of ``keys``.
        keys: names of the values of a key of ``results``.
        table: the summary.
        options: of the program; the report is written to ``options.json``, if it is given.
        packages: whose versions the report has.
    """
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    for outcome in results.values():
        for example in outcome.examples:
            Console(stderr=True).print(example, style="red", markup=False, highlight=False)
    if options.json is not None:
        report = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "versions": versions(packages),
            "options": {key: str(value) if isinstance(value, Path) else value for key, value in vars(options).items()},
            "results": [
                {**dict(zip(keys, (key,) if isinstance(key, str) else key, strict=True)), **asdict(outcome)}
                for key, outcome in results.items()
            ],
        }
        options.json.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    return 1 if any(outcome.failures for outcome in results.values()) else 0
