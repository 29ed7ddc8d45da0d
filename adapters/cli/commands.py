"""Commands as their help shows them: paragraphs wrapped to the screen, and no type for flags, which take no value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return _without_types_of_flags(super().get_params(ctx))


class Group(TyperGroup):
    """A program, or a group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return _without_types_of_flags(super().get_params(ctx))


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


def add(app: typer.Typer, command: Callable[..., None], *examples: str, **options: Any) -> None:
    """Add a function as a command; its docstring is the help, and the examples stand below it."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    shown = "\n\n".join(("Examples:", *(f"  {example}" for example in examples))) if examples else None
    text = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    app.command(cls=Command, help=text, epilog=shown, **options)(command)
