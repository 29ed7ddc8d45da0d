"""Turns of BFCL's conversations, played in its simulated systems and judged by its own checker.

    pip download --no-deps bfcl-eval && unzip bfcl_eval-*.whl -d bfcl      # no part of it is changed
    PYTHONPATH=bfcl python -m benchmarks answers/bfcl_multi_turn --model gguf:PATH --sheets FILE [--turns 100] [--keep]

A conversation of ``multi_turn_base`` has several turns: the user says something, and the model calls functions and
reads their results until it answers without a call. Here each turn is played by itself, greedily: the turns before it
are those of BFCL's answers. It is *right* if BFCL's checker says so: the systems are in the state of its answer, and
each result of its answer was seen. A turn *ends* if the model answers without a call within ``--most-steps`` answers,
*in silence* if that answer, after calls, is empty.

The ways are free text whose calls `ToolSet.parse` reads (none, if one is not valid), and the grammar of
``tool_choice="auto"``; ``never empty`` is the grammar with ``empty_answer=False``.

Each turn is kept in ``--sheets`` as soon as it is played, and a run that was stopped goes on. Conversations with longer
prompts than ``--most-prompt`` are left out.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.answers.seen_ids import bfcl, call_of, functions, lines
from benchmarks.shared.answer_ways import Bench, Free, answered, rows_of
from benchmarks.shared.sheets import Sheet, Sheets
from benchmarks.shared.tables import show
from toolgrammar.core import Message, ToolCall, load_model
from toolgrammar.core.models import Model
from toolgrammar.tools import ToolSet

FREE = "free text, parsed"
WAYS: dict[str, dict[str, Any]] = {FREE: {}, "grammar": {}, "grammar, never empty": {"empty_answer": False}}
COUNTED = ("right", "ended", "steps", "calls", "repeated", "tokens")


@dataclass(frozen=True)
class Turn:
    """One turn.

    Attributes:
        entry: the conversation, as BFCL has it.
        number: of the turn, from 0.
        messages: the conversation up to what the user says in it.
        answers: the calls of BFCL's answers, as Python, for each turn up to this one.
        tools: the functions of the systems.
    """

    entry: dict[str, Any]
    number: int
    messages: list[Message]
    answers: list[list[str]]
    tools: ToolSet

    @property
    def name(self) -> str:
        """The conversation, and the number of the turn."""
        return f"{self.entry['id']}:{self.number}"

    def size(self, model: Model) -> int:
        """Return the number of tokens of the prompt."""
        return model.count_tokens(self.messages, self.tools)

    def run(self, calls: Sequence[str], player: str) -> list[str]:
        """Return the results of calls in the systems of a player, which keep their states."""
        from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call

        entry = self.entry
        arguments = (list(calls), entry["initial_config"], entry["involved_classes"], player, entry["id"])
        found: list[str] = execute_multi_turn_func_call(*arguments)[0]
        return found

    def is_right(self, steps: list[list[str]], player: str) -> bool:
        """Return what BFCL's checker says of the calls of each step of this turn, after its own answers of those
        before."""
        from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker

        played = [[calls] for calls in self.answers[:-1]] + [steps]
        found = multi_turn_checker(played, self.answers, self.entry, "multi_turn_base", player)
        return bool(found["valid"])


def as_python(call: ToolCall) -> str:
    """Return a call as BFCL executes it."""
    return f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"


def conversations(package: Path) -> Iterator[list[Turn]]:
    """Yield the turns of each conversation, in a random order of conversations that is always the same."""
    constants = importlib.import_module("bfcl_eval.constants.executable_backend_config")
    entries = list(lines(package, "BFCL_v4_multi_turn_base.json"))
    answers = {one["id"]: one["ground_truth"] for one in lines(package, "possible_answer/BFCL_v4_multi_turn_base.json")}
    random.Random(0).shuffle(entries)
    for entry in entries:
        described = functions(package, entry["involved_classes"], constants.MULTI_TURN_FUNC_DOC_FILE_MAPPING)
        left_out = entry.get("excluded_function", ())
        tools = ToolSet.from_any([one for name, one in described.items() if name not in left_out])
        messages: list[Message] = []
        found = []
        for number, said in enumerate(entry["question"]):
            messages += [Message(one["role"], one["content"]) for one in said]
            done = answers[entry["id"]][: number + 1]
            turn = Turn(entry, number, list(messages), done, tools)
            found.append(turn)
            for index, (text, result) in enumerate(zip(done[-1], turn.run(done[-1], "history"), strict=True)):
                name, arguments = call_of(text, described)
                identity = f"call{number:02}{index:02}x"
                messages.append(Message("assistant", "", tool_calls=(ToolCall(identity, name, arguments),)))
                messages.append(Message("tool", result, tool_call_id=identity, name=name))
        yield found


@dataclass
class Play:
    """A turn, as far as it is played.

    Attributes:
        turn: the turn.
        player: whose systems are used.
        messages: the conversation.
        steps: the calls of each answer, as Python.
        known: by the call as Python, its last result, and the value of `news` then.
        made: the calls, by their texts as Python.
        repeated: number of calls that were made before.
        news: number of results so far that were not those of the same call before.
    """

    turn: Turn
    player: str
    messages: list[Message]
    steps: list[list[str]] = field(default_factory=list)
    known: dict[str, tuple[str, int]] = field(default_factory=dict)
    made: dict[str, ToolCall] = field(default_factory=dict)
    repeated: int = 0
    news: int = 0

    @classmethod
    def begin(cls, turn: Turn, player: str) -> Play:
        """Return the beginning of a turn, after BFCL's answers to those before."""
        for calls in turn.answers[:-1]:
            turn.run(calls, player)
        return cls(turn, player, list(turn.messages))

    def repeats(self, calls: Sequence[ToolCall]) -> bool:
        """Return True if all calls have results, and nothing new was learnt since."""
        return all(self.known.get(as_python(call), ("", -1))[1] == self.news for call in calls)

    def execute(self, calls: Sequence[ToolCall]) -> None:
        """Execute the calls of an answer."""
        texts = [as_python(call) for call in calls]
        self.steps.append(texts)
        self.messages.append(Message("assistant", "", tool_calls=tuple(calls)))
        self.repeated += sum(text in self.known for text in texts)
        for call, text, result in zip(calls, texts, self.turn.run(texts, self.player), strict=True):
            self.messages.append(Message("tool", result, tool_call_id=call.id, name=call.name))
            self.news += self.known.get(text, (None, 0))[0] != result
            self.known[text], self.made[text] = (result, self.news), call

    def branch(self, player: str) -> Play:
        """Return the same turn, played again by another player."""
        other = Play.begin(self.turn, player)
        for texts in self.steps:
            self.turn.run(texts, player)
        other.messages, other.steps, other.news = list(self.messages), list(self.steps), self.news
        other.known, other.made = dict(self.known), dict(self.made)
        return other

    def sheet(self, ended: bool) -> Sheet:
        """Return what it is worth now."""
        right = self.turn.is_right(self.steps, f"{self.player}:checked")
        return {"right": int(right), "ended": int(ended), "calls": sum(map(len, self.steps)), "steps": len(self.steps)}


def play(most_steps: int, way: str, bench: Bench, turn: Turn) -> Sheet:
    """Return what a turn is worth that a model plays."""
    playing, is_free = Play.begin(turn, f"{way}:{turn.number}"), way == FREE
    tokens, ended = 0, False
    while len(playing.steps) < most_steps and not ended:
        answer = bench.write(playing.messages, Free(turn.tools) if is_free else turn.tools, **WAYS[way])
        calls: Sequence[ToolCall] = answer.tool_calls
        if is_free:
            read, error = bench.read(answer.text, turn.tools)
            calls = () if error else read
        tokens += answer.usage.completion_tokens
        ended = not calls
        if calls:
            playing.execute(calls)
    sheet = {**playing.sheet(ended), "repeated": playing.repeated, "tokens": tokens}
    return {**sheet, "text": answer.raw, "played": playing.steps}


def bench_of(model: str, max_tokens: int) -> Bench:
    """Return a model that answers with calls or a text."""
    return Bench(load_model(model), max_tokens, {"tool_choice": "auto"})


def summary(sheets: Sheets, model: str) -> dict[str, Any]:
    """Return the rows of the ways, each over its own turns; compared with free text over those that both have."""
    ways = {
        way: {name: sheet for (of, each, name), sheet in sheets.items() if (of, each) == (model, way)} for way in WAYS
    }
    rows = rows_of(ways, FREE, COUNTED)
    for way, row in rows.items():
        called = [one for one in ways[way].values() if one.get("steps")]
        row["silent"] = sum(one["ended"] > 0 and one["text"] == "" for one in called)
        row["no_call"] = row["requests"] - len(called)
    return {"model": model, "ways": rows}


def main(
    *,
    sheets: Path,
    name: str,
    model: str = "",
    turns: int = 100,
    most_prompt: int = 4_000,
    most_steps: int = 10,
    max_tokens: int = 200,
    keep: bool = False,
) -> None:
    """Play turns, or show those that were played.

    Args:
        model: as load_model takes it; without it, only the sheets are shown
        turns: number of turns
    """
    known, count = Sheets(sheets), 0
    if model:
        bench = bench_of(model, max_tokens)
        short = (each for each in conversations(bfcl()) if each[-1].size(bench.model) <= most_prompt)
        for turn in chain.from_iterable(short):
            for way in WAYS:
                known.answer((name, way, turn.name), answered, partial(play, most_steps, way), bench, turn)
            count += 1
            print(f"{count} of {turns} turns", file=sys.stderr, flush=True)
            if count >= turns:
                break
    show("bfcl_multi_turn", {"most_steps": most_steps, **summary(known, name)}, keep=keep)
