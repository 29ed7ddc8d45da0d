"""``toolgrammar fuzz``: does a server keep its word?"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from .contract_source import openapi_of, server_at
from .output import AsJson, console, fail, located, print_json, show_verdicts, shown_json, working, writable

if TYPE_CHECKING:
    from toolgrammar.tools.fuzz_targets import Target
    from toolgrammar.tools.fuzzing import FuzzedTool, FuzzReport

#: Hosts to which calls are sent without being named.
LOCAL = ("localhost", "127.0.0.1", "::1")

_COLOURS = {"fails": "bold red", "left out": "yellow", "holds": "green"}


def fuzz(
    server: Annotated[
        str,
        typer.Argument(
            help="The command of an MCP server, which is executed, or its URL; or the file of an OpenAPI document. The "
            "command gets PATH, HOME and few other variables; give more before it: 'NAME=VALUE COMMAND'."
        ),
    ],
    url: Annotated[str | None, typer.Option(help="Where the service of an OpenAPI document runs.")] = None,
    tool: Annotated[
        list[str] | None, typer.Option("--tool", help="A tool to call, destructive or not; may be repeated.")
    ] = None,
    destructive: Annotated[bool, typer.Option("--destructive", help="Call tools that may destroy something.")] = False,
    calls: Annotated[int, typer.Option(min=1, help="Maximum number of calls of one tool.")] = 200,
    seconds: Annotated[float, typer.Option(min=0, help="Maximum number of seconds of the run.")] = 120.0,
    timeout: Annotated[float, typer.Option(min=0.1, help="Number of seconds after which a call hangs.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Seed of the choice of calls.")] = 0,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", help="Another host than this machine; may be repeated.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write a report as JUnit XML.")] = None,
    as_json: AsJson = False,
) -> None:
    """Call the tools of an MCP server, or the operations of an HTTP service, at the borders of their schemas: valid
    calls must be answered as their schemas say, and calls just outside must be refused. Each failure is shown by a
    smallest call.

    Tools are called only if they say that they are read-only or not destructive, and operations only if their method
    is safe (GET, HEAD, OPTIONS), unless they are named.

    Exit code: 0 no failure, 1 some failure, 2 no tool was called, or the server does not start.
    """
    from toolgrammar.core.errors import ToolGrammarError
    from toolgrammar.tools.fuzzing import fuzz as fuzzed

    writable(junit)
    try:
        target = _target(server, url, timeout, allow_host or [])
        with working(f"calling the tools of {server}"):
            report = fuzzed(target, names=tool or (), destructive=destructive, calls=calls, seconds=seconds, seed=seed)
    except ToolGrammarError as error:
        fail(f"{server}: {located(error)}", error.hint)
    if junit is not None:
        junit.write_text(report.to_junit(), encoding="utf-8")
    if as_json:
        print_json({"seed": seed, **report.to_dict()})
    else:
        _show(report)
    if not any(each.calls for each in report.tools):
        fail("no tool was called", "name tools by --tool, or call all by --destructive")
    raise typer.Exit(1 if report.failed else 0)


def _target(server: str, url: str | None, timeout: float, allowed: list[str]) -> Target:
    """Return what a user names, if calls may be sent there."""
    from toolgrammar.tools.fuzz_targets import HttpTarget, McpTarget

    document = openapi_of(server)
    hint = "give a file with openapi or swagger, and --url http://127.0.0.1:8000"
    if url is None and document is not None:
        fail(f"{server} is an OpenAPI document", hint)
    if url is not None and document is None:
        fail(f"{server} is no OpenAPI document, and --url says where one is served", hint)
    place = server if url is None else url
    is_url = place.startswith(("http://", "https://"))
    if url is not None and not is_url:
        fail(f"{url} is no URL", "give --url http://127.0.0.1:8000")
    host = urlsplit(place).hostname or ""
    if is_url and host not in (*LOCAL, *allowed):
        fail(f"{host} is not this machine", f"if you may send it calls, --allow-host {host}")
    if document is not None:
        return HttpTarget(document, place, timeout)
    address = server if is_url else shlex.split(server)
    return McpTarget(lambda: server_at(address, timeout))


def _show(report: FuzzReport) -> None:
    """Print the report for people."""
    from rich.text import Text

    to = console()
    verdicts = ("fails" if tool.failures else "left out" if tool.left_out else "holds" for tool in report.tools)
    rows = ((verdict, tool.name, _lines(tool)) for verdict, tool in zip(verdicts, report.tools, strict=True))
    total = show_verdicts(rows, _COLOURS)
    if any(tool.left_out == "it may destroy something" for tool in report.tools):
        to.print(Text("tools that may destroy something are called by --tool NAME, or all by --destructive", "dim"))
    to.print(Text(f"{len(report.tools)} tools: {total}" if total else "the server has no tools", "dim"))


def _lines(tool: FuzzedTool) -> list[str]:
    """Return what is said of a tool, line by line."""
    lines = []
    for each in tool.failures:
        did = "accepts" if each.kind == "accepted" else each.kind
        lines += [f"{did}: {shown_json(each.arguments)}", f"    {each.reason}"]
    if tool.more:
        lines.append(f"and {tool.more} more calls of these kinds")
    if tool.left_out:
        lines.append(tool.left_out)
    if tool.calls:
        said = f", {tool.errors} of them with an error of the tool" if tool.errors else ""
        lines.append(f"{tool.calls} valid calls{said}; {tool.refusable} calls just outside")
    return lines
