"""BFCL v4 by its own checker: single turns of the Berkeley Function Calling Leaderboard, answered by a local model.

    pip install --no-deps bfcl-eval
    python benchmarks/bfcl_v4.py [--model smollm2] [--requests 20] [--categories simple_python,irrelevance] [--keep]

The questions, the possible answers and the checker (`ast_checker`) are those of the package ``bfcl-eval``. Its table of
models, which imports the SDK of each provider, is replaced: the checker looks up only if names of functions are
spelled without dots. Each request is answered greedily under ``tool_choice="auto"`` in three ways: as free text that is
parsed (`ToolSet.parse`, which reads JSON in a fence, too), under the grammar, and under the grammar without the
spellings of other families. A request of ``irrelevance`` is right if there is no call; so is one of
``text_with_code``, which is ours: questions that ask for JSON or code as text. ``cut`` are answers that the
budget ended; intervals are Wilson's at 95%.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from real_model import Free
from report import bfcl_v4
from results_io import show

from toolgrammar.core import Message, ToolGrammarError, load_model
from toolgrammar.core.models import Model
from toolgrammar.tools import ToolSet

#: A category of ours: questions that ask for text with JSON or code, beside tools of the leaderboard.
SHOWN = "text_with_code"
SHOWN_QUESTIONS = (
    "Write an example of a JSON object that describes a person.",
    "Explain in one sentence what the tool {name} does. Do not call it.",
    "Show me the JSON Schema of the arguments of {name}, as text.",
    "Write a Python function that adds two numbers.",
    "What is JSON? Give a short example.",
    "Write a bash command that lists files.",
    "Give me a JSON list of three colours.",
    "Write package.json for a project named demo.",
    "Which tools do you have? Answer in words.",
    "Write an SQL query that counts the rows of the table users.",
)
CATEGORIES = (
    *("simple_python", "multiple", "parallel", "parallel_multiple"),
    *("live_simple", "live_multiple", "irrelevance", "live_irrelevance", SHOWN),
)
WAYS = ("free text, parsed", "grammar, own spelling only", "grammar")
NAME = "toolgrammar"


def checker() -> tuple[Any, Path]:
    """Return the leaderboard's checker, and the folder of its data."""
    found = importlib.util.find_spec("bfcl_eval")
    if found is None or found.origin is None:
        raise SystemExit("bfcl-eval is not installed: pip install --no-deps bfcl-eval")
    models: Any = ModuleType("bfcl_eval.constants.model_config")
    models.MODEL_CONFIG_MAPPING = {NAME: SimpleNamespace(underscore_to_dot=False)}
    sys.modules[models.__name__] = models
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def check(functions: Any, calls: Any, possible: Any, category: str) -> bool:
        return bool(ast_checker(functions, calls, possible, Language.PYTHON, category, NAME)["valid"])

    return check, Path(found.origin).parent / "data"


def requests(data: Path, category: str, count: int) -> Iterator[tuple[Mapping[str, Any], Any, ToolSet]]:
    """Yield requests spread over a category, with their possible answers and tools."""
    source = "multiple" if category == SHOWN else category
    rows = [json.loads(line) for line in (data / f"BFCL_v4_{source}.json").read_text("utf-8").splitlines() if line]
    answers = data / "possible_answer" / f"BFCL_v4_{category}.json"
    known = {}
    if answers.is_file():
        lines = [json.loads(line) for line in answers.read_text("utf-8").splitlines() if line]
        known = {one["id"]: one["ground_truth"] for one in lines}
    yielded = 0
    for row in rows[:: max(1, len(rows) // count)]:
        try:
            tools = ToolSet.from_any(row["function"])
            tools.grammar()
        except ToolGrammarError:
            continue  # the leaderboard has functions that are no tools: two of one name, types of other languages
        if category == SHOWN:
            question = SHOWN_QUESTIONS[yielded % len(SHOWN_QUESTIONS)].format(name=tools.names[0])
            row = {**row, "question": [[{"role": "user", "content": question}]]}
        yield row, known.get(row["id"]), tools
        yielded += 1
        if yielded == count:
            return


def answered(model: Model, way: str, row: Mapping[str, Any], tools: ToolSet, most: int) -> tuple[list[Any], bool]:
    """Return the calls of an answer as the checker reads them, and True if the budget ended it."""
    conversation = [Message(one["role"], one["content"]) for one in row["question"][0]]
    if way == WAYS[0]:
        made = model.generate(conversation, tools=Free(tools), max_tokens=most, temperature=0)
        calls = tools.parse(made.text).tool_calls
    else:
        others = way == WAYS[2]
        made = model.generate(conversation, tools=tools, max_tokens=most, temperature=0, other_spellings=others)
        calls = made.message.tool_calls
    whole = [{call.name: dict(call.arguments)} for call in calls if call.error is None or way == WAYS[0]]
    return whole, made.finish_reason == "length"


def interval(right: int, count: int) -> tuple[float, float]:
    """Return Wilson's interval at 95% of a share."""
    if not count:
        return 0.0, 1.0
    z, share = 1.96, right / count
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - half) / (1 + z * z / count), (middle + half) / (1 + z * z / count)


def main() -> int:
    """Run the categories."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--name", help="the model's name in the results")
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--categories", default=",".join(CATEGORIES))
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/bfcl_v4.{json,md}")
    options = parser.parse_args()
    check, data = checker()
    model = load_model(options.model)
    found: dict[str, dict[str, Any]] = {}
    for category in options.categories.split(","):
        found[category] = {way: {"requests": 0, "called": 0, "right": 0, "cut": 0} for way in WAYS}
        began = time.process_time()
        for row, possible, tools in requests(data, category, options.requests):
            for way, counts in found[category].items():
                calls, cut = answered(model, way, row, tools, options.max_tokens)
                counts["requests"] += 1
                counts["called"] += bool(calls)
                counts["cut"] += cut
                counts["right"] += not calls if possible is None else check(row["function"], calls, possible, category)
        for counts in found[category].values():
            counts["interval"] = interval(counts["right"], counts["requests"])
        print(f"{category}: {found[category]}, {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)
    report = {"model": options.name or options.model, "categories": found}
    show("bfcl_v4", report, bfcl_v4(report), keep=options.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
