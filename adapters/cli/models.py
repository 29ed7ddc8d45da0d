"""``toolgrammar models``: the models on this machine, by their addresses."""

from __future__ import annotations

from typing import Annotated

import typer

from .output import console, print_json


def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the models on this machine that an address loads: those that were fetched, the cache of Hugging Face, and
    the stores of Ollama and LM Studio.

    Nothing is fetched, written or asked of a server. Files elsewhere are loaded by their path: gguf:PATH, numpy:PATH,
    hf:PATH, onnx:PATH or mlx:PATH.
    """
    from toolgrammar.core.models import stored_models

    found = stored_models()
    if as_json:
        print_json([{"address": each.address, "path": str(each.path), "bytes": each.size} for each in found])
        return
    shown = console()
    if not found:
        shown.print("no model found: 'toolgrammar model pull' fetches a small one", markup=False, highlight=False)
    width = max((len(each.address) for each in found), default=0)
    for each in found:
        line = f"{each.address:{width}}  {_size(each.size):>8}  {each.path}"
        shown.print(line, markup=False, highlight=False, soft_wrap=True)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
