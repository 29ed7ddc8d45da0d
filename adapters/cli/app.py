"""The program: its commands, its version, and errors as one line."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from .bench import bench
from .chat import chat
from .check import check
from .commands import Group, add
from .demo import demo
from .doctor import doctor
from .match import match
from .model import app as model
from .models import models
from .output import complain, located
from .probe import probe
from .repair import repair
from .sample import sample
from .serve import serve
from .vllm import PASSED_ON, vllm

app = typer.Typer(cls=Group, no_args_is_help=True, help="Exact constrained generation of tool calls.")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toolgrammar {version('toolgrammar')}")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Exact constrained generation of tool calls."""


add(app, demo)
add(app, check)
add(app, sample)
add(app, match)
add(app, repair)
app.add_typer(model, name="model")
add(app, models)
add(app, chat)
add(app, bench)
add(app, doctor)
add(app, probe)
add(app, serve)
add(app, vllm, context_settings=PASSED_ON)


def main() -> None:
    """The console script: errors of ours are one line and a hint, never a traceback."""
    from toolgrammar.core import ToolGrammarError

    try:
        app()
    except ToolGrammarError as error:
        complain(located(error), error.hint)
        sys.exit(2)
