"""``toolgrammar probe``: what a server drops, mangles or ignores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .output import AsJson, fail, print_json, working
from .output import console as make_console

if TYPE_CHECKING:
    from .prober import Report

_STYLES = {"works": "green", "ignored": "bold red", "mangled": "bold red", "refused": "yellow"}


def probe(
    url: Annotated[str, typer.Argument(help="Address of the server's API: http://HOST:PORT/v1.")],
    model: Annotated[str | None, typer.Option(help="Name of the model; by default the first that is listed.")] = None,
    api_key: Annotated[str | None, typer.Option(help="The key, as env:NAME.")] = None,
    seconds: Annotated[float, typer.Option(help="Maximum time of the probe.", min=1)] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Ask a server with OpenAI's chat completions for what it may drop, mangle or ignore: tool choice, keywords of JSON
    Schema, calls in streams, parallel calls, token budgets. Each row that does not work has the result of the same
    request through this library.

    Some twenty small requests are sent, within the time. Exit code: 0 nothing is ignored or mangled, 1 something is,
    2 the server cannot be asked.
    """
    from toolgrammar.core.models.remote import PlainServer

    from .prober import Prober

    if not url.startswith(("http://", "https://")):
        fail(f"{url!r} is not a URL of a server", "give http://HOST:PORT/v1, without the name of the model")
    base_url, headers, secrets = PlainServer.address(url, api_key)
    with working(f"asking {url}"):
        report = Prober(base_url, model, headers, secrets, seconds).run()
    if as_json:
        print_json(report.to_json())
    else:
        _show(report)
    raise typer.Exit(0 if report.is_sound else 1)


def _show(report: Report) -> None:
    """Print the table for people."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False)
    for title in ("asked for", "the server", "seen", "through toolgrammar"):
        shown.add_column(title)
    for row in report.rows:
        outcome = Text(row.outcome, _STYLES.get(row.outcome, "dim"))
        shown.add_row(Text(row.check), outcome, Text(row.detail), Text(row.through_us))
    console = make_console()
    console.print(Text(f"{report.model} at {report.url} ({report.kind}), {report.seconds} s"))
    console.print(shown)
    if not report.is_sound:
        advice = f"toolgrammar serve {report.kind}:{report.model}@{report.url}"
        console.print(Text(f"a proxy that validates, repairs and asks again: {advice}"))
