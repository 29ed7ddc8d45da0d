"""``toolgrammar check``: a JSON Schema as it is enforced."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .output import AsJson, print_json, writable, write_page
from .output import console as make_console
from .report import report_of
from .source import SchemaArgument, load


def check(
    schema: SchemaArgument,
    html: Annotated[
        Path | None,
        typer.Option(callback=writable, help="Write a page: findings, a railroad diagram, and random outputs."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the random outputs.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Tell if a JSON Schema can be enforced: exactly, or with some valid values left out, or not at all, and where.

    Exit code: 0 it can (what is written is always valid), 1 it cannot, 2 there is no schema to read.
    """
    from rich.text import Text

    source = load(schema)
    report = report_of(source, seed)
    if html is not None:
        from .check_page import check_page

        write_page(html, check_page(report))
    if as_json:
        print_json(report.to_dict())
    else:
        console = make_console()
        colour = {"exact": "green", "narrowed": "yellow", "refused": "red"}[report.verdict]
        console.print(Text.assemble((source.name, "bold"), ": ", (report.sentence, colour)))
        for narrowing in report.narrowed:
            console.print(Text.assemble((source.where(narrowing), "bold"), f": never writes {narrowing.left_out}"))
        for problem in report.problems:
            console.print(Text.assemble((source.where(problem), "bold"), f": {problem.message} [{problem.code}]"))
            if problem.hint:
                console.print(Text(f"    {problem.hint}", "dim"))
        if report.samples:
            console.print(Text("random outputs", "bold"))
            for text in report.samples:
                console.print(Text(f"    {text}"))
        if html is not None:
            console.print(Text.assemble(("page     ", "bold"), str(html)))
    raise typer.Exit(1 if report.problems else 0)
