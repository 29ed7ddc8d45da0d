"""Programs of calls: single calls, free Python and well-typed programs of the same model, on tasks of dependent calls.

    pip download --no-deps bfcl-eval && unzip bfcl_eval-*.whl -d bfcl      # no part of it is changed
    pip install --no-deps --target DOJO agentdojo docstring-parser email-validator dnspython deepdiff orderly-set
    PYTHONPATH=bfcl python -m benchmarks answers/programs --dojo DOJO --model gguf:PATH --name NAME --sheets FILE

The tasks (`program_tasks.py`) are first turns of BFCL's ``multi_turn_base`` and tasks of AgentDojo's users, both with
two to four calls in their ground truth, and own ones. A task is *right* if the check of its source says so after the
calls ran: BFCL's of the state and the results that were seen, AgentDojo's of the state and the answer, and for own
tasks the state and the answer of a program that is kept with the task. All is greedy. The ways:

- *single calls*: `Model.run`, whose first turn has to be a call;
- *free Python*: text without a grammar, interpreted (`free_programs.Interpreter`, a large part of Python);
- *program*: one program in a block of code, the format ``program`` of `program_tool`;
- *programs in a run*: ``Model.run(programs=True)``, where the model reads errors and results;
- *program tool*: one call of `program_tool`, in the model's own format of calls.

Programs in a block of code have one and the same prompt. A call that fails ends a program; in runs the model reads
the error. Each
task is kept in ``--sheets`` as soon as it is played, and a run that was stopped goes on.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.shared.answer_ways import answered, rows_of
from benchmarks.shared.free_programs import Interpreter, ProgramError, shown
from benchmarks.shared.program_tasks import Task, World, all_tasks
from benchmarks.shared.sheets import Sheet, Sheets
from benchmarks.shared.tables import show
from toolgrammar.core import Grammar, Message, load_model
from toolgrammar.core.models import Model
from toolgrammar.tools import Tool, ToolSet, program_tool

SINGLE = "single calls"
COUNTED = ("right", "ran", "calls", "passes", "tokens")
#: Longest result that the loop shows to the model, in characters.
LONGEST_SHOWN = 3_000
OPENED, CLOSED = "```python\n", "```"

LOOP = "Use the tools to do what the user asks. When all is done, answer briefly with what the user wants to know."


class Counted:
    """A system that counts the calls that ran."""

    def __init__(self, world: World) -> None:
        self.world, self.calls = world, 0

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Run a call."""
        value = self.world.call(name, arguments)
        self.calls += 1
        return value


def judged(task: Task, text: str) -> Sheet:
    """Return what a program is worth."""
    world, error, answer = Counted(task.begin()), "", ""
    try:
        value = Interpreter(world.call, task.parameters).run(text)
        answer = "" if value is None else shown(value)
    except ProgramError as failed:
        error = str(failed)
    right = not error and world.world.is_right(answer)
    sheet = {"right": int(right), "ran": int(not error), "calls": world.calls, "text": text}
    return {**sheet, "answer": answer[:500], "error_of_program": error[:300]}


def played(model: Model, task: Task, **options: Any) -> Sheet:
    """Play a task by `Model.run`."""
    world = Counted(task.begin())
    programs = "programs" in options  # whose format has a prompt of its own
    messages = [*([] if programs else [Message("system", LOOP)]), Message("user", task.request)]
    tools = ToolSet(functions_of(task, world, shortened=not programs))
    run = model.run(messages, tools=tools, tool_choice="required", **options).result
    made = [[call.name, dict(call.arguments)] for turn in run.turns for call in turn.tool_calls]
    return {
        "right": int(world.world.is_right(run.text)),
        "ran": int(run.ended_by == "answer"),
        "calls": world.calls,
        "text": json.dumps(made, default=str),
        "answer": run.text[:500],
        "passes": run.usage.forward_passes,
        "tokens": run.usage.completion_tokens,
    }


def functions_of(task: Task, world: Counted, *, shortened: bool = False) -> list[Tool]:
    """Return the tools of a task, which call a system; with ``shortened``, results are short texts, for a model."""

    def call(name: str, /, **arguments: Any) -> Any:
        value = world.call(name, arguments)
        if not shortened:
            return value
        text = shown(value)
        return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + " ..."

    return [one.changed(function=partial(call, one.name)) for one in task.tools]


def free(model: Model, task: Task) -> Sheet:
    """Write a program as free text, up to the end of its block."""
    block = Grammar.text(excluding=[CLOSED]) + Grammar.choice("", CLOSED)
    prompt = ToolSet([program_tool(task.tools)]).prompt("program")
    messages = [Message("system", prompt), Message("user", task.request)]
    answer = model.generate(messages, grammar=block, prefix=OPENED, max_tokens=160)
    text = answer.text.partition(CLOSED)[0]
    usage = answer.usage
    return {**judged(task, text), "passes": usage.forward_passes, "tokens": usage.completion_tokens}


def program(model: Model, task: Task, *, tool_format: str | None = None) -> Sheet:
    """Write a program by the one call of `program_tool`."""
    world = Counted(task.begin())
    tools = ToolSet([program_tool(functions_of(task, world))])
    messages = [Message("user", task.request)]
    answer = model.generate(messages, tools=tools, tool_choice="required", max_tokens=250, tool_format=tool_format)
    usage = {"passes": answer.usage.forward_passes, "tokens": answer.usage.completion_tokens}
    (call,) = answer.tool_calls[:1]
    done = tools.in_conversation(messages).execute(call, allow_cut=True)
    text = "" if done.value is None else shown(done.value)
    right = not done.is_error and world.world.is_right(text)
    sheet = {"right": int(right), "ran": int(not done.is_error), "calls": world.calls, "text": call.arguments["input"]}
    return {**sheet, "answer": text[:500], "error_of_program": (done.error or "")[:300], **usage}


WAYS: dict[str, Callable[[Model, Task], Sheet]] = {
    SINGLE: partial(played, max_turns=6, max_tokens=120),
    "free Python": free,
    "program": partial(program, tool_format="program"),
    "programs in a run": partial(played, programs=True, max_turns=3, max_tokens=250),
    "program tool": program,
}


def summary(sheets: Mapping[Any, Sheet], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the rows of each model, over the tasks that it has played in all ways.

    Args:
        sheets: by model, way and task.
        names: the source of each task.
    """
    models = []
    for model in dict.fromkeys(key[0] for key in sheets):
        played = [name for name in names if all((model, way, name) in sheets for way in WAYS)]
        found = {way: {name: sheets[model, way, name] for name in played} for way in WAYS}
        sources = {}
        for source in dict.fromkeys(names.values()):
            mine = [name for name in played if names[name] == source]
            right = {way: sum(found[way][name].get("right", 0) for name in mine) for way in WAYS}
            sources[source] = {"requests": len(mine), "right": right}
        rows = rows_of(found, SINGLE, COUNTED)
        models.append({"model": model, "tasks": len(names), "ways": rows, "sources": sources})
    return models


def main(
    *,
    sheets: Path,
    dojo: Path | None = None,
    model: str = "",
    name: str = "",
    only: str = "",
    seconds: float = 0.0,
    keep: bool = False,
) -> None:
    """Play the tasks, or without a model show those that were played.

    Args:
        dojo: folder into which agentdojo was installed; without it, its tasks are left out
        model: as load_model takes it; without it, only the sheets are shown
        only: sources of tasks (own,BFCL,AgentDojo); without it, all are played
        seconds: begin no task after this time; 0: play all
    """
    known, tasks = Sheets(sheets), all_tasks(dojo)
    if model:
        started = time.monotonic()
        with load_model(model) as loaded:
            for number, task in enumerate(tasks, 1):
                if seconds and time.monotonic() - started > seconds:
                    break
                for way, play in WAYS.items() if not only or task.source in only.split(",") else ():
                    known.answer((name or model, way, task.name), answered, play, loaded, task)
                print(f"{number} of {len(tasks)}", file=sys.stderr, flush=True)
    models = summary(known, {task.name: task.source for task in tasks})
    show("programs", {"models": models}, keep=keep)
