"""Jobs spread over processes, each of one thread, with their progress on the standard error stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)


def spread(
    run: Callable[..., Any], groups: dict[Any, Sequence[tuple[Any, ...]]], workers: int
) -> Iterator[tuple[Any, Any]]:
    """What ``run`` gives for the arguments of each group, with the group's key, in order."""
    # The models are small, and their threads would only wait for each other. Read when NumPy is loaded.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    with pool, Progress(*COLUMNS, console=Console(stderr=True)) as progress:
        for key, jobs in groups.items():
            task = progress.add_task(key if isinstance(key, str) else " ".join(key), total=len(jobs))
            for job in [pool.submit(run, *arguments) for arguments in jobs]:
                yield key, job.result()
                progress.advance(task)
