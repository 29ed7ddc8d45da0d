"""The program: its commands and its version."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from .chat import chat
from .check import check
from .commands import Group, add
from .demo import demo
from .doctor import doctor
from .match import match
from .model import app as model
from .models import models
from .probe import probe
from .repair import repair
from .sample import sample
from .serve import serve
from .vllm import PASSED_ON, vllm

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Exact constrained generation of tool calls.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toolgrammar {version('toolgrammar')}")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
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
add(app, doctor)
add(app, probe)
add(app, serve)
add(app, vllm, context_settings=PASSED_ON)
