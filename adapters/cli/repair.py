"""``toolgrammar repair``: the nearest text of a schema, or of the calls of some tools."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from .output import AsJson, complain, print_json, print_text, working
from .output import console as make_console
from .source import FileOption, SchemaArgument, TextArgument, load, text_of


def repair(
    schema: SchemaArgument,
    text: TextArgument = None,
    file: FileOption = None,
    tool_format: Annotated[
        str | None,
        typer.Option("--format", help="Wire format of calls; SCHEMA has tools then, as one list, or as one tool."),
    ] = None,
    invent: Annotated[bool, typer.Option("--invent", help="Invent missing required values.")] = False,
    seconds: Annotated[float, typer.Option(min=0.01, help="Seconds of processor time to search.")] = 2.0,
    as_json: AsJson = False,
) -> None:
    """Write the nearest text of a schema, on standard output; and what was changed, on standard error.

    Spelling is corrected, names and listed values become the nearest that exist, and unknown members are left out.
    Values that the text does not hold are only made up with --invent. Exit code: 0 done (a
    valid text is written as it is), 1 nothing is near, 2 there is no text, or the schema or the format cannot be read.
    """
    from toolgrammar.core.errors import ParseError
    from toolgrammar.core.repair import repair as repair_text
    from toolgrammar.tools import ToolSet

    written = text_of(schema, text, file)
    source = load(schema)
    try:
        with working(f"searching in {source.name}"):
            if tool_format is None:
                grammar = source.grammar(whitespace="flexible", property_order="any")
                repaired = repair_text(written, grammar, invent=invent, seconds=seconds)
            else:
                source.require_schema("--format")
                tools = ToolSet.from_any(source.schema)
                repaired = tools.repair(written, tool_format, invent=invent, seconds=seconds)[1]
    except ParseError as error:
        complain(error.message, error.hint)
        raise typer.Exit(1) from None
    if as_json:
        print_json(asdict(repaired))
        return
    print_text(repaired.text)
    notes = make_console(stderr=True)
    for edit in repaired.edits:
        line = written.count("\n", 0, edit.start) + 1
        column = edit.start - written.rfind("\n", 0, edit.start)
        change = f"{edit.old!r} -> {edit.new!r}"
        if not (edit.old and edit.new):
            change = f"+ {edit.new!r}" if edit.new else f"- {edit.old!r}"
        made_up = ", invented" if edit.is_invented else ""
        notes.print(f"line {line}, column {column}: {change} ({edit.why}{made_up})", markup=False, highlight=False)
    if repaired.is_cut:
        notes.print("the text ended before its value did: the last value may be cut", markup=False)
