"""``toolgrammar policy``: what a policy lets reach the arguments of tools, and the schema of its file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from .commands import Group, add
from .contract_source import contracts_of
from .json_input import read_json
from .output import AsJson, console, fail, located, print_json, working

app = typer.Typer(cls=Group, no_args_is_help=True, help="Policies of what may flow into which argument.")


@app.callback()
def _policy() -> None:
    """Policies of what may flow into which argument."""


def check(
    policy: Annotated[Path, typer.Argument(help="The file of the policy (JSON, or YAML).")],
    tools: Annotated[
        str, typer.Argument(help="The tools, as `diff` takes them. Python files and commands are executed.")
    ],
    role: Annotated[str | None, typer.Option(help="The role, if the policy has several.")] = None,
    never: Annotated[
        str | None,
        typer.Option(
            help="A JSON Schema of calls, {name, arguments}, that must be impossible: a file, or JSON itself."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what may reach each argument of the tools, what is open first; with --never, prove that calls of a schema
    cannot be written in any conversation, or show a smallest one.

    Exit code: 0 as wanted, 1 a call of --never can be written, 2 the policy, the tools or --never cannot be read,
    3 that is not decided.
    """
    from toolgrammar.core.errors import ToolGrammarError
    from toolgrammar.tools import Policy, ToolSet

    found = contracts_of(tools)
    if not isinstance(found, ToolSet):
        fail(f"{tools} is a JSON Schema", "give tools")
    try:
        with working(f"checking {policy}"):
            read = Policy(policy, role)
            rows = read.reach(found)
            answer = None if never is None else read.possible(found, _schema(never))
    except ToolGrammarError as error:
        fail(located(error), error.hint)
    if as_json:
        data: dict[str, Any] = {"hash": read.hash, "reach": [asdict(row) for row in rows]}
        print_json(data if answer is None else {**data, "never": asdict(answer)})
    else:
        _show(rows, answer)
    if answer is None or (answer.call is None and answer.undecided is None):
        raise typer.Exit(0)
    raise typer.Exit(1 if answer.call is not None else 3)


def schema() -> None:
    """Print the JSON Schema of a policy's file, for editors."""
    from toolgrammar.tools.policy import SCHEMA

    print_json(SCHEMA)


def _schema(given: str) -> Any:
    try:
        text = given if given.lstrip()[:1] == "{" else Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        fail(f"{given} cannot be read: {error}", "give a file, or JSON itself")
    return read_json("--never", text, "give a JSON Schema")


def _show(rows: Any, answer: Any) -> None:
    """Print the rows for people, and the answer."""
    from rich.text import Text

    to = console()
    opened = sum(row.is_open for row in rows)
    to.print(Text(f"{opened} of {len(rows)} arguments are open: a value of any origin may stand there", "bold"))
    for row in rows:
        colour = "yellow" if row.is_open else "red" if row.sources == ("never",) else "green"
        name = Text.assemble((f"{row.tool}{row.argument}", "bold"), "  ", (" and ".join(row.sources), colour))
        to.print(name)
    if answer is not None:
        verdict = "cannot be written in any conversation"
        if answer.call is not None:
            verdict = f"can be written: {answer.call}"
        elif answer.undecided is not None:
            verdict = f"is not decided: {answer.undecided}"
        to.print(Text(f"a call of --never {verdict}", "bold"))


add(
    app,
    check,
    'toolgrammar policy check policy.json tools.json --never \'{"properties": {"name": {"const": "wipe"}}}\'',
)
add(app, schema, "toolgrammar policy schema")
