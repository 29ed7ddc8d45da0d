"""Engines in processes of their own, each measured on one schema after the other, and stopped when it takes too long.

A process has memory and garbage of its own, may run another Python (another version of the library), and can be killed.
Its arguments and results are plain data. `gathered` asks all processes about every schema and keeps their answers in a
file, so that a run that was stopped can go on.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import resource
import runpy
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.shared.sheets import Sheet, Sheets

ROOT = Path(__file__).resolve().parents[2]
#: One thread for everybody: glrmask compiles with all cores otherwise.
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")


def peak_memory_mb(process: int | str = "self") -> int:
    """Return the peak resident memory of a process, by default this one (not the one that started it)."""
    try:
        with open(f"/proc/{process}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024
    except (OSError, StopIteration):  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def processor_seconds(process: int, *, children: bool = False) -> float:
    """Return the processor time that a process has taken, with all its threads; where that is not known, the time.

    Args:
        process: its number.
        children: with those of its children that have ended.
    """
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            ticks = file.read().rpartition(")")[2].split()[11 : 15 if children else 13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    except OSError:  # not Linux, or the process has ended
        return time.monotonic()


def engines() -> dict[str, Callable[..., Any]]:
    """Return the engines, from their file: an older version of the library that runs here may lack them."""
    found = runpy.run_path(str(Path(__file__).resolve().parent / "engines.py"))
    engines: dict[str, Callable[..., Any]] = found["ENGINES"]
    return engines


def made(name: str, options: dict[str, Any]) -> Any:
    """Return an engine by its name, or what a function ``module:name`` returns."""
    from benchmarks.shared import peers

    module, _, function = name.partition(":")
    if function:
        return getattr(importlib.import_module(module), function)(**options)
    vocabulary, encode = getattr(peers, options.pop("vocabulary", "tekken"))()
    return engines()[name](vocabulary, encode, **options)


def serve(wire: Connection) -> None:
    """Make the engine that the first message names, and answer the jobs that follow."""
    module, function, *named = wire.recv()
    job = getattr(importlib.import_module(module), function)
    engine = made(*named)
    wire.send({"version": getattr(engine, "version", ""), "compiled": getattr(engine, "compiled", True)})
    while (block := wire.recv()) is not None:
        # The tokenizer, the engine and the block stay: otherwise each collection would look at them again, in
        # somebody's mask. What a schema leaves behind is collected, and counted, as in a server.
        gc.collect()
        gc.freeze()
        for arguments in block:
            wire.send({**job(engine, *arguments), "peak_memory_mb": peak_memory_mb()})


class Worker:
    """An engine in a process of its own.

    Args:
        name: of the engine in the results.
        job: ``(module, function)``; the function takes the engine and the arguments of `run`, and returns a dict.
        engine: a key of ``engines.ENGINES``, or a function that returns an engine, as ``module:name``.
        options: keyword arguments of the engine; ``vocabulary`` is the function of `peers` that makes it ("tekken").
        deadline: seconds of processor time that a job may take: on a busy machine as many as on a quiet one.
        python: the interpreter, whose environment has the engine.
    """

    def __init__(
        self,
        name: str,
        job: tuple[str, str],
        *,
        engine: str = "",
        options: Mapping[str, Any] | None = None,
        deadline: float = 60,
        python: str = sys.executable,
    ) -> None:
        self.name, self.deadline = name, deadline
        self._python = python
        self._first = (*job, engine or name, dict(options or {}))
        self.begin()

    def begin(self) -> None:
        """Start the process, and wait until its engine is made."""
        self._wire, theirs = Pipe()
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self.process = subprocess.Popen(
            [self._python, "-m", "benchmarks.shared.workers", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **THREADS, "PYTHONPATH": path},
        )
        theirs.close()
        self._wire.send(self._first)
        try:
            found = self._wire.recv()
        except EOFError:
            raise SystemExit(f"the engine {self.name} did not start") from None
        self.version: str = found["version"]
        self.compiled: bool = found["compiled"]

    def run(self, block: Sequence[tuple[Any, ...]]) -> Iterator[Sheet]:
        """Yield what the job finds for each of some arguments, which the process works through without a pause:
        ``{"refused": reason}`` where it takes too long or its process dies."""
        done = 0
        while done < len(block):
            try:
                self._wire.send(block[done:])
                while done < len(block):
                    if not self._answers():
                        refused = f"no answer in {self.deadline:g} s"
                        break
                    sheet: Sheet = self._wire.recv()
                    done += 1
                    yield sheet
                else:
                    return
            except (EOFError, OSError):
                refused = "crash"
            self.kill()
            self.begin()
            done += 1
            yield {"refused": refused}

    def _answers(self) -> bool:
        """Wait for an answer, until the deadline."""
        begun = processor_seconds(self.process.pid)
        while not self._wire.poll(min(self.deadline / 4, 1)):
            if processor_seconds(self.process.pid) - begun >= self.deadline:
                return False
        return True

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        self._wire.close()

    def end(self) -> None:
        """Let the process end."""
        self._wire.send(None)
        self.process.wait()
        self._wire.close()


def installed(names: str) -> list[str]:
    """Return the peers that are installed, of some names between commas; says which are not."""
    found = []
    for name in filter(None, names.split(",")):
        if importlib.util.find_spec(name.removesuffix("-strict").replace("-", "_")) is None:
            print(f"{name} is not installed: pip install 'toolgrammar[bench]'", file=sys.stderr)
        else:
            found.append(name)
    return found


def dumped(row: Mapping[str, Any]) -> tuple[Any, list[tuple[bool, str]]]:
    """Return the schema of a row of MaskBench, and its instances: if they are valid, and their texts."""
    return row["schema"], [(test["valid"], json.dumps(test["data"], ensure_ascii=False)) for test in row["tests"]]


def gathered(workers: Sequence[Worker], rows: Sequence[Mapping[str, Any]], *given: Any) -> dict[str, dict[str, Sheet]]:
    """Return the sheets of each worker by the id of the row, and end the workers; arguments as for `sheets`."""
    from rich.console import Console  # another Python that only serves need not have it
    from rich.progress import track

    by_worker: dict[str, dict[str, Sheet]] = {worker.name: {} for worker in workers}
    answers = sheets(workers, rows, *given)
    for at, of_row in track(answers, description="schemas", total=len(rows), console=Console(stderr=True)):
        for name, sheet in of_row.items():
            by_worker[name][at] = sheet
    for worker in workers:
        worker.end()
    return by_worker


def sheets(
    workers: Sequence[Worker],
    rows: Sequence[Mapping[str, Any]],
    arguments: Callable[[Mapping[str, Any]], tuple[Any, ...]],
    settings: Mapping[str, Any],
    path: Path | None = None,
    block: int = 1,
) -> Iterator[tuple[str, dict[str, Sheet]]]:
    """Yield the id of each row, and the sheets of its jobs by worker; the workers take turns at going first.

    A process that waits for others finds its caches empty when it goes on. With a ``block`` of one row, each row is
    measured by a process that was woken for it; with many, by a process that is at work.

    Args:
        workers: the engines.
        rows: what is measured, each with an ``id``.
        arguments: of the job, for a row.
        settings: of the run, plain data.
        path: where sheets are kept, one line for each worker and row. What the file has is not measured again; the file
            of other settings or versions is an error.
        block: number of rows that a worker is given at a time.
    """
    known = Sheets(path, {**settings, "versions": {worker.name: worker.version for worker in workers}})
    for number in range(0, len(rows), block):
        some = rows[number : number + block]
        given: dict[str, tuple[Any, ...]] = {}
        turn = number // block % len(workers)
        for worker in (*workers[turn:], *workers[:turn]):
            left = [row for row in some if (row["id"], worker.name) not in known]
            for row in left:
                if row["id"] not in given:
                    given[row["id"]] = arguments(row)
            found = worker.run([given[row["id"]] for row in left])
            for row, sheet in zip(left, found, strict=True):
                known[row["id"], worker.name] = sheet
        for row in some:
            yield row["id"], {worker.name: known[row["id"], worker.name] for worker in workers}


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
