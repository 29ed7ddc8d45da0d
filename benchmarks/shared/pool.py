"""Jobs in processes of their own, each of one thread; their progress, what they count, and their report."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields
from multiprocessing import get_context
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from typing_extensions import Self

from benchmarks.shared.results_io import table

#: Maximum number of examples of failures that are shown.
MAX_EXAMPLES = 10


@dataclass
class Counts:
    """Counts of some runs, and what went wrong in them.

    Attributes:
        failures: what went wrong, by kind; empty if all is well.
        examples: the first failures, in words.
    """

    failures: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def fail(self, problem: str, where: str) -> None:
        """Count a problem: its kind, a colon, and the details."""
        self.failures[problem.split(":")[0]] += 1
        self.examples.append(f"{where}: {problem[:300]}")

    def add(self, other: Self) -> None:
        """Count other runs in."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        self.examples = self.examples[:MAX_EXAMPLES]


COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)


def alone(run: Callable[..., Any], *given: Any, **environment: str) -> Any:
    """Return the result of ``run`` in a fresh process, which has these environment variables, too."""
    os.environ.update(environment)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run, *given).result()


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


def count(
    run: Callable[..., Counts], groups: Mapping[Any, Sequence[tuple[Any, ...]]], keys: Sequence[str], workers: int
) -> int:
    """Print what the runs of each group counted, and examples of failures; return the exit code: 1 if anything failed.

    Args:
        run: returns the counts of one job.
        groups: the arguments of the jobs of each group.
        keys: names of the values of a group's key.
        workers: number of processes.
    """
    totals: dict[Any, Any] = {}
    for key, outcome in spread(run, groups, workers):
        totals.setdefault(key, type(outcome)()).add(outcome)
    columns = [one.name for one in fields(next(iter(totals.values()))) if one.name not in ("failures", "examples")]
    rows = []
    for key, total in totals.items():
        values = [getattr(total, name) for name in columns]
        shown = [dict(value) if isinstance(value, Counter) else value for value in values]
        rows.append([*((key,) if isinstance(key, str) else key), *shown, sum(total.failures.values())])
        print(*total.examples, sep="\n", file=sys.stderr)
    print(table([*keys, *(name.replace("_", " ") for name in columns), "failures"], rows))
    return int(any(total.failures for total in totals.values()))
