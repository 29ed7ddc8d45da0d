"""``toolgrammar record``: records of answers and calls."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .commands import Group, add
from .output import AsJson, console, fail, located, print_json
from .serve import key_of

#: Maximum number of problems that people are shown.
MAX_LISTED = 20

app = typer.Typer(cls=Group, no_args_is_help=True, help="Records of answers and calls.")


@app.callback()
def _record() -> None:
    """Records of answers and calls."""


def verify(
    path: Annotated[Path, typer.Argument(help="The newest file of the record; older parts are found beside it.")],
    key: Annotated[str | None, typer.Option(help="The key that it was written with, as env:NAME.")] = None,
    head: Annotated[str | None, typer.Option(help="The hash of an entry that must be there.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell if a record is as it was written: no entry changed, added or removed.

    Entries that are cut off at the end leave no trace in the file: pass the hash that was printed before as --head.

    Exit code: 0 it is, 1 it is not, 2 the record cannot be read.
    """
    from toolgrammar.core import Record
    from toolgrammar.core.errors import ToolGrammarError

    try:
        report = Record.verify(path, key=None if key is None else key_of("--key", key).encode(), head=head)
    except (ToolGrammarError, OSError) as error:
        if isinstance(error, OSError):
            fail(f"{path} cannot be read: {error.strerror}", "give the path of a record")
        fail(located(error), error.hint)
    if as_json:
        print_json({**asdict(report), "ok": report.ok})
    else:
        to = console()
        for each in report.problems[:MAX_LISTED]:
            to.print(each, style="red", markup=False)
        if len(report.problems) > MAX_LISTED:
            to.print(f"and {len(report.problems) - MAX_LISTED} more: --json lists all", style="red")
        for each in report.torn:
            to.print(f"{each}: a process was stopped while it wrote", style="yellow", markup=False)
        begin = f", from entry {report.first}: older parts are not here" if report.first else ""
        to.print(f"{report.entries} entries{begin}", markup=False)
        if report.head is not None:
            to.print(f"since    {report.since}\nuntil    {report.until}\nhead     {report.head}", markup=False)
    raise typer.Exit(0 if report.ok else 1)


add(app, verify, "toolgrammar record verify calls.jsonl --key env:RECORD_KEY")
