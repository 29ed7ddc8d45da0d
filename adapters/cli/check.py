"""``toolgrammar check``: a JSON Schema as it is enforced."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from .contract_source import tools_or_schema
from .output import AsJson, fail, in_words_of_the_shell, print_json, working, writable, write_page
from .output import console as make_console
from .report import Report, report_of, report_of_tools
from .source import SchemaArgument, Source

if TYPE_CHECKING:
    from rich.console import Console

    from toolgrammar.tools import ToolSet

    from .source import Finding

#: Colours of verdicts.
COLOURS = {"exact": "green", "doubtful": "yellow", "narrowed": "yellow", "refused": "red"}

#: Maximum number of keywords that are listed because they constrain nothing.
MAX_LISTED = 10


def check(
    schema: SchemaArgument,
    html: Annotated[
        Path | None,
        typer.Option(callback=writable, help="Write an HTML page: findings, the marked source, and random outputs."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random outputs.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Tell if a JSON Schema can be enforced: exactly, or with some valid values left out, or not at all, and where.

    Of tools (a file as diff takes it, where Python is executed, or the URL of an MCP server) it tells this of each,
    with parameters that are never given together, and tools that a reader cannot tell apart.

    Exit code: 0 it can (what is written is always valid), 1 it cannot, 2 it cannot be read.
    """
    from rich.text import Text

    source = tools_or_schema(schema)
    if not isinstance(source, Source):
        if html is not None:
            fail(f"{schema} has tools, and a page shows one schema", "pass the schema of one tool")
        _check_tools(schema, source, seed, as_json)
    with working(f"checking {source.name}"):
        report = report_of(source, seed)
    if html is not None:
        from .check_page import check_page

        write_page(html, check_page(report))
    if as_json:
        print_json(report.to_dict())
    else:
        console = make_console()
        _show(console, report)
        if report.samples:
            console.print(Text("random outputs", "bold"))
            for text in report.samples:
                console.print(Text(f"    {text}"))
        if html is not None:
            console.print(Text.assemble(("page     ", "bold"), str(html)))
    raise typer.Exit(1 if report.problems else 0)


def _check_tools(name: str, tools: ToolSet, seed: int, as_json: bool) -> NoReturn:
    """Show how each tool is enforced, and what comparing them shows; end the command."""
    from rich.text import Text

    with working(f"checking {name}"):
        reports, not_compared = report_of_tools(tools, seed)
    if as_json:
        data = [{"tool": report.source.name, **report.to_dict()} for report in reports]
        print_json({"tools": data, "not_compared": not_compared})
    else:
        console = make_console()
        for report in reports:
            _show(console, report)
        more = f", {not_compared} pairs of parameters or tools not compared: there are too many" if not_compared else ""
        console.print(Text(f"{len(reports)} checked{more}", "dim"))
    raise typer.Exit(1 if any(report.problems for report in reports) else 0)


def _show(console: Console, report: Report) -> None:
    """Print a report without its samples."""
    from rich.text import Text

    console.print(Text.assemble((report.source.name, "bold"), ": ", (report.sentence, COLOURS[report.verdict])))
    for narrowing in report.narrowed:
        console.print(Text.assemble((report.source.where(narrowing), "bold"), f": never writes {narrowing.left_out}"))
    findings: list[tuple[str, Finding]] = [("", problem) for problem in report.problems]
    findings += [("warning: ", warning) for warning in report.warnings]
    findings += [("", note) for note in report.notes]
    for kind, finding in findings:
        message = f"{in_words_of_the_shell(finding.message)} [{finding.code}]"
        console.print(Text.assemble((report.source.where(finding), "bold"), ": ", (kind, "yellow"), message))
        if finding.hint:
            console.print(Text(f"    {in_words_of_the_shell(finding.hint)}", "dim"))
    if report.annotations:
        console.print(Text.assemble(("constrain nothing", "bold"), f": {_listed(report)}"))


def _listed(report: Report) -> str:
    """Return the keywords that constrain nothing and look like no other, each with how often it comes."""
    names = Counter(
        f"format {each.message.split()[0]}" if each.code == "unread_format" else str(each.place.keyword)
        for each in report.annotations
    )
    shown = [name if count == 1 else f"{name} ({count} times)" for name, count in names.most_common(MAX_LISTED)]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
