"""Is a model as often right as it is sure? Probabilities of tools and of finite values, beside the share that is right.

    python -m benchmarks answers/sureness DATA [--model smollm2] [--requests 120] [--keep]

Requests of the Berkeley Function Calling Leaderboard that one call answers, with several tools, greedily, under
``tool_choice="required"`` and ``exact_choice=True``. A tool is right if it is the one that is wanted; a value (of an
``enum``, a boolean, a small integer) of the right tool is right if it is among the accepted ones. ``error`` is the
expected calibration error: the mean distance of probability and share, weighted by the counts of the bins.
"""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from benchmarks.shared.answer_ways import accepts, cases
from benchmarks.shared.tables import show
from toolgrammar.core import load_model

BINS = (0.0, 0.5, 0.7, 0.9, 0.99, 1.0)


def binned(found: list[tuple[float, bool]]) -> dict[str, Any]:
    """Return for each bin its count, mean probability and share of right ones, and the calibration error."""
    rows = []
    error = 0.0
    for low, high in pairwise(BINS):
        inside = [(p, right) for p, right in found if low <= p < high or (high == 1.0 and p == 1.0)]
        if inside:
            mean = sum(p for p, _ in inside) / len(inside)
            share = sum(right for _, right in inside) / len(inside)
            error += abs(mean - share) * len(inside) / len(found)
            rows.append({"from": low, "to": high, "count": len(inside), "mean": mean, "right": share})
    return {"count": len(found), "bins": rows, "error": error}


def main(
    data: Path, model: str = "smollm2", name: str = "", requests: int = 120, most_prompt: int = 900, keep: bool = False
) -> int:
    """Run the benchmark.

    Args:
        most_prompt: leave out requests with longer prompts, in tokens
    """
    loaded = load_model(model)
    tools: list[tuple[float, bool]] = []
    values: list[tuple[float, bool]] = []
    several = (case for case in cases(data, requests) if len(case.tools) > 1)
    fitting = (case for case in several if loaded.count_tokens(case.question, case.tools) <= most_prompt)
    for case in islice(fitting, requests):
        made = loaded.generate(
            case.question,
            tools=case.tools,
            tool_choice="required",
            parallel_tool_calls=False,
            exact_choice=True,
            max_tokens=200,
        )
        if made.finish_reason != "tool_calls" or not made.sureness:
            continue
        (sure,), (call,) = made.sureness, made.tool_calls
        ((right, wanted),) = case.answer.items()
        if sure.tool is not None:
            tools.append((sure.tool, call.name == right))
        if call.name == right:
            for pointer, share in sure.values.items():
                key = pointer[1:]
                if key in wanted and key in call.arguments:  # not nested
                    values.append((share, accepts(wanted[key], call.arguments[key])))
    report = {"model": name or model, "tools": binned(tools), "values": binned(values)}
    show("sureness", report, keep=keep)
