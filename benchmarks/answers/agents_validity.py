"""Do agents run tools with valid arguments only? Agents of real frameworks, with a model of noise, are let loose.

    python -m benchmarks answers/agents_validity DATA [--runs 300] [--frameworks langchain]

Each run gives an agent of the framework the question and the tools of one request of the Berkeley Function Calling
Leaderboard (one JSON object a line: ``id``, ``question``, ``functions``) and a model that chooses at random among the
allowed tokens, at temperature 1. Every tool that runs judges its arguments with the ``jsonschema`` library, by the
function's own schema; every other run is streamed. Calls that the token budget cut must not run. An agent may end with
a declared error (a schema that is refused by name, a budget that is too small) and no other. The exit code is 1 if
anything failed.

A framework is a module beside this one, ``agents_NAME.py``, with one function ``run(case)``; see `agents_case.Case`.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.shared.data import lines
from benchmarks.shared.pool import Counts, count

HERE = Path(__file__).resolve().parent
FRAMEWORKS = tuple(sorted(path.stem.removeprefix("agents_") for path in HERE.glob("agents_*.py")))
FRAMEWORKS = tuple(name for name in FRAMEWORKS if name not in ("case", "validity"))


@dataclass
class Outcome(Counts):
    """Counts over some runs.

    Attributes:
        runs: agents that were let loose.
        tools: tools that ran.
        cut: calls that the token budget cut, and that did not run.
        declared: runs that ended with an error that is declared, by its type.
        seconds: time spent.
    """

    runs: int = 0
    tools: int = 0
    cut: int = 0
    declared: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def run(framework: str, line: str, seed: int, max_tokens: int) -> Outcome:
    """Let one agent of one framework run."""
    from benchmarks.answers.agents_case import DECLARED, Case, noise

    let_run = importlib.import_module(f"benchmarks.answers.agents_{framework}").run
    request = json.loads(line)
    question = request["question"][0][-1]["content"]
    case = Case(request["id"], question, request["functions"], seed, max_tokens, noise())
    outcome = Outcome(runs=1)
    started = time.perf_counter()
    try:
        let_run(case)
    except DECLARED as error:
        outcome.declared[type(error).__name__] += 1
    except Exception as error:  # whatever else an agent ends with is a finding
        case.problems.append(f"{type(error).__name__}: {error}")
    outcome.seconds = time.perf_counter() - started
    outcome.tools, outcome.cut = case.ran, case.cut
    for problem in case.problems:
        outcome.fail(problem, f"{framework}, {case.id}, seed {seed}")
    return outcome


def main(
    data: Path,
    runs: int = 300,
    max_tokens: int = 128,
    frameworks: Sequence[str] = FRAMEWORKS,
    workers: int = os.cpu_count() or 1,
) -> int:
    """Run the benchmark; 1 if anything failed.

    Args:
        runs: agents of a framework, spread over the requests
    """
    given = lines(data)
    # Neighbours in the file are alike: walk over all of it, however few the runs.
    chosen = [given[number * len(given) // runs % len(given)] for number in range(runs)]
    # No framework sends anything anywhere, or asks anybody. Read when they are loaded.
    os.environ.update(OTEL_SDK_DISABLED="true", LANGSMITH_TRACING="false")
    os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false")
    jobs = {name: [(name, line, seed, max_tokens) for seed, line in enumerate(chosen)] for name in frameworks}
    return count(run, jobs, ("framework",), workers)
