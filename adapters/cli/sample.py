"""``toolgrammar sample``: random outputs of a schema."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from .output import AsJson, print_json, print_text, working
from .samples import samples_of
from .source import SchemaArgument, load


def sample(
    schema: SchemaArgument,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of outputs.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the random draw; equal seeds draw equally.")] = 0,
    length: Annotated[
        int, typer.Option(min=0, help="Number of bytes after which an output ends as soon as possible.")
    ] = 400,
    as_json: AsJson = False,
) -> None:
    """Write random outputs of a schema or a grammar, one a line, with most of the optional members.

    Exit code: 0 done, 2 the schema cannot be read or enforced.
    """
    texts = samples_of(load(schema), count, seed, length)
    with working(f"drawing outputs of {schema}") if as_json or not sys.stdout.isatty() else nullcontext():
        if as_json:
            print_json({"seed": seed, "samples": list(texts)})
        else:
            for text in texts:
                print_text(text)
