"""What is right most often after a repeated call: no further call, another call, or the same again, on BFCL's turns.

    pip download --no-deps bfcl-eval && unzip bfcl_eval-*.whl -d bfcl      # no part of it is changed
    PYTHONPATH=bfcl python -m benchmarks answers/on_repeat --model gguf:PATH --name NAME --sheets FILE [--minutes 30]
    python -m benchmarks answers/on_repeat --sheets FILE --keep

The turns are those of `bfcl_multi_turn.py`, under the grammar of ``tool_choice="auto"``, judged by BFCL's checker; the
conversations with the shortest prompts come first. A turn is played until the model writes calls that were all executed
before, and no result since then was new: `Model.run` calls this a repetition. From there it goes on in three ways:

- *no further call*: nothing more is executed. ``on_repeat="answer"`` asks for text then, ``"stop"`` does not;
- *other call*: the grammar bars these calls (tool and arguments), and all others of the turn that have a result;
- *same again*: ``on_repeat="run"``, the calls are executed.

Each turn is kept in ``--sheets`` as soon as it is played, and a run that was stopped goes on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.answers.bfcl_multi_turn import Play, Turn, bench_of, conversations
from benchmarks.answers.seen_ids import bfcl
from benchmarks.shared.answer_ways import Bench, answered, rows_of
from benchmarks.shared.sheets import Sheet, Sheets
from benchmarks.shared.tables import show
from toolgrammar.core import Grammar, ToolCall
from toolgrammar.tools import ToolSet

ENDED, OTHER, SAME = WAYS = ("no further call", "other call", "same again")


class Barred(ToolSet):
    """Tools without some calls: the prompt describes them as they are, the grammar leaves the calls out."""

    calls: Sequence[ToolCall] = ()

    def grammar(self, *given: Any, **options: Any) -> Grammar:
        """Return the grammar without the calls."""
        described = []
        for tool in self:
            barred = [dict(call.arguments) for call in self.calls if call.name == tool.name]
            schema = {**dict(tool.parameters), "not": {"enum": barred}} if barred else tool.parameters
            if {} not in barred or tool.parameters.get("properties"):  # else no other call of it exists
                described.append({"name": tool.name, "parameters": schema})
        return ToolSet.from_any(described).grammar(*given, **options)


def play(most_steps: int, bench: Bench, turn: Turn) -> Sheet:
    """Return what a turn is worth in each way, or what it is without a repetition."""
    same = Play.begin(turn, f"same:{turn.number}")
    sheet: Sheet = {}
    ended = False
    while len(same.steps) < most_steps and not ended:
        calls = bench.write(same.messages, turn.tools).tool_calls
        if not calls:
            ended = True
        elif not sheet and same.steps and same.repeats(calls):
            sheet[ENDED] = same.sheet(ended=True)
            text = bench.write(same.messages, turn.tools, tool_choice="none").text
            sheet[ENDED]["text"] = text
            sheet[OTHER] = other_call(bench, same, most_steps)
        if calls:
            same.execute(calls)
    return {**sheet, SAME: same.sheet(ended)}


def other_call(bench: Bench, played: Play, most_steps: int) -> Sheet:
    """Return what a turn is worth if calls with a result are barred from now on."""
    other = played.branch(f"other:{played.turn.number}")
    while len(other.steps) < most_steps:
        tools = Barred(other.turn.tools)  # without the calls since whose results nothing new was learnt
        tools.calls = [other.made[text] for text, (_, news) in other.known.items() if news == other.news]
        calls = bench.write(other.messages, tools).tool_calls
        if not calls:
            return other.sheet(ended=True)
        other.execute(calls)
    return other.sheet(ended=False)


def summary(sheets: Sheets) -> list[dict[str, Any]]:
    """Return the counts of each model; those of the ways are over its turns with a repetition."""
    rows = []
    for name in dict.fromkeys(model for model, _ in sheets):
        mine = {turn: sheet for (model, turn), sheet in sheets.items() if model == name}
        errors = sum("error" in sheet for sheet in mine.values())
        repeated = {turn: sheet for turn, sheet in mine.items() if ENDED in sheet}
        silent = sum(not sheet[ENDED]["text"].strip() for sheet in repeated.values())
        played = {way: {turn: sheet[way] for turn, sheet in repeated.items()} for way in WAYS}
        ways = rows_of(played, ENDED, ("right", "ended", "calls"))
        rows.append({"model": name, "turns": len(mine) - errors, "errors": errors, "silent": silent, "ways": ways})
    return rows


def main(
    *,
    sheets: Path,
    model: str = "",
    name: str = "",
    minutes: float = 30,
    most_steps: int = 8,
    max_tokens: int = 200,
    keep: bool = False,
) -> None:
    """Play turns, or show those that were played.

    Args:
        model: as load_model takes it; without it, only the sheets are shown
        minutes: no turn begins after them
    """
    known = Sheets(sheets)
    if model:
        until = time.monotonic() + 60 * minutes
        bench = bench_of(model, max_tokens)
        every = sorted(conversations(bfcl()), key=lambda one: one[-1].size(bench.model))
        for turn in chain.from_iterable(every):
            if time.monotonic() < until:
                known.answer((name, turn.name), answered, partial(play, most_steps), bench, turn)
                print(f"{len(known)} turns, {turn.name}", file=sys.stderr, flush=True)
    show("on_repeat", {"most_steps": most_steps, "models": summary(known)}, keep=keep)
