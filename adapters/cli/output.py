"""Output of the commands: a console for people, JSON for programs, and complaints on standard error.

Colours are left out in pipes and where the environment variable ``NO_COLOR`` is set.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from toolgrammar.core import Trace

#: The option that every command has.
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints text as it is."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def complain(message: str, hint: str | None = None) -> None:
    """Print an error as one line, and a hint."""
    from rich.text import Text

    console(stderr=True).print(
        Text.assemble(("error    ", "bold red"), message, (f"\n    {hint}" if hint else "", "dim"))
    )


def fail(message: str, hint: str | None = None) -> NoReturn:
    """End with one line, a hint, and exit code 2."""
    complain(message, hint)
    raise typer.Exit(2)


def write_trace(trace: Trace | None, path: Path, to: Console) -> None:
    """Write the page of a trace, and say so."""
    if trace is None:
        fail("the model shows no logits, so there is no trace", "take a local model")
    write_page(path, trace.to_html())
    to.print(f"trace    {path}", markup=False)


def write_page(path: Path, document: str) -> None:
    """Write an HTML page to a file."""
    try:
        path.write_text(document, encoding="utf-8")
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}")
