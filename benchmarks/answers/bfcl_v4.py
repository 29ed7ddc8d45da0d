"""BFCL v4 by its own checker: single turns of the Berkeley Function Calling Leaderboard, answered by local models.

    pip install --no-deps bfcl-eval
    python -m benchmarks answers/bfcl_v4 --model gguf:PATH --name NAME --sheets FILE [--ask call] [--requests 300]
    python -m benchmarks answers/bfcl_v4 --sheets FILE [--ask call] --keep

The questions, the possible answers and the checker (`ast_checker`) are those of the package ``bfcl-eval``. Its table of
models, which imports the SDK of each provider, is replaced: the checker looks up only if names of functions are
spelled without dots. All answers are greedy.

``--ask turn`` asks under ``tool_choice="auto"``, category by category, in three ways: as free text that is
parsed (`ToolSet.parse`, which reads JSON in a fence, too), under the grammar, and under the grammar without the
spellings of other families. A request of ``irrelevance`` is right if there is no call; so is one of
``text_with_code``, which is ours: questions that ask for JSON or code as text.

``--ask call`` asks for exactly one call (``tool_choice="required"``), over the categories that one call answers, in
every way of `answer_ways.py`; ``--peers`` mask the logits of the same model.

Each answer is kept in ``--sheets`` as soon as it is there, and a run that was stopped goes on; the file may have
several models. Categories take turns, so a part of a run is a fair sample. Requests with longer prompts than
``--most-prompt`` are left out. Intervals are Wilson's at 95%; two ways are compared on the requests that
both answered, by the exact sign test.
"""

from __future__ import annotations

import importlib.util
import json
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

from benchmarks.shared.answer_ways import ONE_CALL, Bench, Case, answered, constrained, free, peer_way, rows_of
from benchmarks.shared.answer_ways import WAYS as CALL_WAYS
from benchmarks.shared.sheets import Sheet, Sheets
from benchmarks.shared.tables import show
from toolgrammar.core import Message, ToolCall, ToolGrammarError, load_model
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
#: The categories that one call answers.
SINGLE = ("simple_python", "multiple", "live_simple", "live_multiple")
Way = Callable[[Bench, Case], Sheet]
TURN_WAYS: dict[str, Way] = {
    "free text, parsed": free,
    "grammar, own spelling only": constrained(other_spellings=False),
    "grammar": constrained(),
}
ASKS: dict[str, tuple[tuple[str, ...], Mapping[str, Way], dict[str, Any]]] = {
    "turn": (CATEGORIES, TURN_WAYS, {}),
    "call": (SINGLE, CALL_WAYS | {"grammar, without reasoning": constrained(thinking=False)}, ONE_CALL),
}
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


def requests(data: Path, category: str) -> Iterator[tuple[Mapping[str, Any], Any, ToolSet]]:
    """Yield the requests of a category in a random order, always the same, with their possible answers and tools."""
    source = "multiple" if category == SHOWN else category
    rows = [json.loads(line) for line in (data / f"BFCL_v4_{source}.json").read_text("utf-8").splitlines() if line]
    answers = data / "possible_answer" / f"BFCL_v4_{category}.json"
    known = {}
    if answers.is_file():
        lines = [json.loads(line) for line in answers.read_text("utf-8").splitlines() if line]
        known = {one["id"]: one["ground_truth"] for one in lines}
    random.Random(0).shuffle(rows)
    for number, row in enumerate(rows):
        try:
            tools = ToolSet.from_any(row["function"])
            tools.grammar()
        except ToolGrammarError:
            continue  # the leaderboard has functions that are no tools: two of one name, types of other languages
        if category == SHOWN:
            question = SHOWN_QUESTIONS[number % len(SHOWN_QUESTIONS)].format(name=tools.names[0])
            row = {**row, "question": [[{"role": "user", "content": question}]]}
        yield row, known.get(row["id"]), tools


def cases(check: Any, data: Path, category: str) -> Iterator[Case]:
    """Yield the requests of a category as `answer_ways.py` has them, judged by the leaderboard."""
    for row, possible, tools in requests(data, category):

        def is_right(calls: Sequence[ToolCall], row: Any = row, possible: Any = possible) -> bool:
            read = [{call.name: dict(call.arguments)} for call in calls]
            return not read if possible is None else check(row["function"], read, possible, category)

        question = [Message(one["role"], one["content"]) for one in row["question"][0]]
        answer = {name: one[name] for one in possible or () for name in one}
        yield Case(row["id"], question, tools, answer, is_right)


# -- the run -------------------------------------------------------------------------------------------------------


COUNTED = ("called", "valid", "cut", "function", "right", "tokens", "passes", "forced", "seconds")


def summary(sheets: Sequence[Sheet]) -> dict[str, Any]:
    """Return for each model the rows of the ways: of one call, and for each category of a turn."""
    models: dict[str, Any] = {}
    for sheet in sheets:
        found = models.setdefault(sheet["model"], {"categories": {}, "ways": {}})
        ways = found["ways"] if sheet["ask"] == "call" else found["categories"].setdefault(sheet["category"], {})
        ways.setdefault(sheet["way"], {})[sheet["id"]] = sheet
    for found in models.values():
        for category, ways in found["categories"].items():
            ids = set.intersection(*map(set, ways.values()))  # only the requests that every way answered
            asked = {name: {at: ways[name][at] for at in ids} for name in TURN_WAYS if name in ways}
            found["categories"][category] = rows_of(asked, "grammar", COUNTED)
        ways = found["ways"]
        ordered = {name: ways[name] for name in dict.fromkeys([*CALL_WAYS, *ways]) if name in ways}
        found["ways"] = rows_of(ordered, "grammar", COUNTED)
    return models


def main(
    *,
    sheets: Path,
    model: str = "",
    name: str = "",
    ask: Literal["turn", "call"] = "turn",
    requests: int = 20,
    categories: str = "",
    ways: str = "",
    peers: str = "",
    max_tokens: int = 200,
    most_prompt: int = 1500,
    keep: bool = False,
) -> None:
    """Answer requests, or show the answers that are kept.

    Args:
        model: as load_model takes it; without it, only the sheets are shown
        requests: of each category, or of all with --ask call
        ways: only ways whose name is or contains one of these; separated by ;
        peers: of xgrammar and llguidance, which need torch
    """
    known = Sheets(sheets)
    if model:
        loaded, (check, data), (every, choices, options) = load_model(model), checker(), ASKS[ask]
        wanted = ways.split(";")
        chosen = {way: write for way, write in choices.items()
                  if any(way == text if text in choices else text in way for text in wanted)}  # fmt: skip
        for peer in filter(None, peers.split(",")):
            chosen[f"{peer}'s masks"] = peer_way(peer, loaded)
        bench = Bench(loaded, max_tokens, options)
        of = categories.split(",") if categories else every
        each = requests if ask == "turn" else math.ceil(requests / len(of))
        label = name or model.rpartition("/")[2]
        fitting = {
            category: islice(
                (
                    case
                    for case in cases(check, data, category)
                    if loaded.count_tokens(case.question, case.tools) <= most_prompt
                ),
                each,
            )
            for category in of
        }
        for number, some in enumerate(zip_longest(*fitting.values()), 1):
            for category, case in zip(of, some, strict=True):
                for way, write in chosen.items() if case else ():
                    known.answer((label, ask, category, way, case.id), answered, write, bench, case)
            print(f"{number} of {each} a category", file=sys.stderr, flush=True)
    labels = ("model", "ask", "category", "way", "id")
    every_sheet = [{**dict(zip(labels, key, strict=True)), **sheet} for key, sheet in known.items()]
    report = {"models": summary([one for one in every_sheet if one["ask"] == ask])}
    show("bfcl_v4" if ask == "turn" else "bfcl_calls", report, keep=keep)
