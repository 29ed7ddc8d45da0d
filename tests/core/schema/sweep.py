"""Judge what is written under random schemas (see ``writing.py``) for as long as is wanted, one schema for each seed.

    python -m tests.core.schema.sweep [--first SEED] [--seconds SECONDS] [--schemas NUMBER] [--workers NUMBER]

Faults are told as they are found, and each minute how far it is; the last line says what was judged. The exit status is
1 if there are faults, too many refusals, or a process that died (its seed is told). ``nox -s sanitize`` runs it on modules
that are built with the sanitizers of the C compiler.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import multiprocessing
import queue
import sys
import time
from collections.abc import Sequence
from typing import Any

from .writing import MAX_REFUSED, Tally, WritingError, judge_seed

#: Number of schemas after which a worker reports.
REPORT = 20

#: Time between two lines that say how far it is, in seconds.
MINUTE = 60.0

#: Seconds in which one of the workers reports.
PATIENCE = 300.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=10_000_000, help="the first seed")
    parser.add_argument(
        "--seconds", type=float, help="no schema is begun after them; 600 if no number of schemas is given"
    )
    parser.add_argument("--schemas", type=int, help="number of schemas at most")
    parser.add_argument("--workers", type=int, default=1, help="number of processes, which take the seeds in turns")
    options = parser.parse_args(arguments)
    seconds, schemas = options.seconds, options.schemas
    if seconds is None:
        seconds = 600.0 if schemas is None else float("inf")
    if schemas is None:
        schemas = sys.maxsize - options.first
    large = importlib.util.find_spec("mistral_common") is not None
    if not large:
        print("masks of a large vocabulary are not judged: mistral-common is not installed", flush=True)
    begin = time.time()
    context = multiprocessing.get_context("spawn")
    reports: Any = context.Queue()
    workers = []
    for number in range(options.workers):
        at = context.Value("q", -1, lock=False)
        seeds = range(options.first + number, options.first + schemas, options.workers)
        process = context.Process(target=_work, args=(seeds, begin + seconds, large, at, reports), daemon=True)
        process.start()
        workers.append((process, at))
    tally = Tally()
    problems, told, heard, running = 0, begin, begin, len(workers)
    while running:
        try:
            report = reports.get(timeout=1.0)
        except queue.Empty:
            dead = [(process, at) for process, at in workers if process.exitcode]
            late = time.time() > heard + PATIENCE
            for process, at in dead or (workers if late else ()):
                problems += 1
                how = f"ended with {process.exitcode}" if process.exitcode else "does not end"
                print(f"seed {at.value}: the process {how}", flush=True)
            if dead or late:
                break
            continue
        heard = time.time()
        if isinstance(report, Tally):
            tally.add(report)
        elif report is None:
            running -= 1
        else:
            problems += 1
            print(report, flush=True)
        if time.time() - told >= MINUTE:
            told = time.time()
            print(f"{told - begin:,.0f} s: {tally.schemas:,} schemas, {problems} faults", flush=True)
    if tally.refused > MAX_REFUSED * max(100, tally.schemas):
        problems += 1
        print("too many refusals")
    print(f"{tally.schemas:,} schemas, {problems} faults, {tally.refused} refused; {tally}", flush=True)
    return 1 if problems else 0


def _work(seeds: Sequence[int], end: float, large: bool, at: Any, reports: Any) -> None:
    """Judge the schemas of some seeds in a process of its own.

    Args:
        seeds: the seeds.
        end: the time at which no other is begun.
        large: judge masks of a large vocabulary, too.
        at: takes the seed that is being judged.
        reports: a queue that takes faults, tallies of what was judged, and in the end None.
    """
    gc.set_threshold(20_000, 20, 20)
    tally = Tally()
    parent = multiprocessing.parent_process()
    for seed in seeds:
        if time.time() >= end or not (parent is None or parent.is_alive()):  # it may have been killed
            break
        at.value = seed
        try:
            judge_seed(seed, tally, large=large)
        except WritingError as error:
            reports.put(f"seed {seed}: {error}")
        if tally.schemas >= REPORT:
            reports.put(tally)
            tally = Tally()
    reports.put(tally)
    reports.put(None)


if __name__ == "__main__":
    sys.exit(main())
