"""Output of the commands: a console for people, JSON for programs, and complaints on standard error.

Colours are left out in pipes and where the environment variable ``NO_COLOR`` is set.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from toolgrammar.core.conversation import Trace
    from toolgrammar.core.errors import ToolGrammarError
    from toolgrammar.core.models import Model

#: Exit code of a wrong request, and of an error that the library raises on purpose.
EXIT_USAGE = 2

#: Seconds of silence after which a command says what it does.
PATIENCE = 2.0

#: Maximum number of characters of a value in a report.
MAX_SHOWN = 300

_STYLES = {"error": "bold red", "warning": "bold yellow"}

#: The option that every command has.
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints text as it is."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def show_verdicts(rows: Iterable[tuple[str, str, list[str]]], colours: Mapping[str, str]) -> str:
    """Print verdicts with names and lines about them, and return how often there is each verdict.

    Args:
        rows: verdict, name, lines.
        colours: of the verdicts; others are only counted.
    """
    from rich.text import Text

    to, counts = console(), Counter[str]()
    for verdict, name, lines in rows:
        counts[verdict] += 1
        if verdict in colours:
            to.print(Text.assemble((f"{verdict:11}", colours[verdict]), (name, "bold")))
            for line in lines:
                to.print(Text(f"    {line}"))
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on standard error what is done, in a terminal, if it takes longer than `PATIENCE`."""
    to = console(stderr=True)
    if not to.is_terminal:
        yield
        return
    status = to.status(f"[dim]{what.replace('[', chr(92) + '[')}")
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def print_text(text: str) -> None:
    """Print a text that programs read, as it is."""
    print(text, flush=True)


def shown_json(value: Any) -> str:
    """Return a value as JSON in one line, cut after `MAX_SHOWN` characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text):,} characters)"


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print_text(json.dumps(value, indent=2, ensure_ascii=False))


#: What a hint says to somebody who writes Python, and what to say at the shell.
_WORDS = (
    (re.compile(r"give a dict, or a Pydantic class"), "give a file with a JSON Schema, or module:object"),
    (re.compile(r",? (?:or )?allow that with on_unsupported='narrow'"), ""),
    (re.compile(r" with on_unsupported='validate'"), " (in Python: on_unsupported='validate')"),
    (re.compile(r"\bproperty_order=[\"'](\w+)[\"']"), r"--order \1"),
    (re.compile(r"\b(whitespace|tool_choice)=[\"'](\w+)[\"']"), lambda found: f"{_option(found[1])} {found[2]}"),
    (re.compile(r",? or None$"), ""),
    (re.compile(r"^raise start_timeout$"), "try its command in a terminal"),
    (re.compile(r"pass it with registry="), "put it into a .json file in the same folder or below"),
    (re.compile(r"\b(invent)=True"), lambda found: _option(found[1])),
    (re.compile(r"\b(max_tokens|tool_choice)\b"), lambda found: _option(found[1])),
)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def in_words_of_the_shell(text: str) -> str:
    """Return an error or a hint with the options of the command line for those of Python."""
    for pattern, said in _WORDS:
        text = pattern.sub(said, text)
    return text


def located(error: ToolGrammarError) -> str:
    """Return the message of an error and its location, without the hint."""
    return f"{error.message} ({error.place})" if str(error.place) else error.message


def complain(message: str, hint: str | None = None, level: Literal["error", "warning"] = "error") -> None:
    """Print an error or a warning as one line, and a hint."""
    from rich.text import Text

    message, hint = in_words_of_the_shell(message), hint and in_words_of_the_shell(hint)
    with suppress(OSError):  # a full disk, or nobody who reads: the exit code says the rest
        console(stderr=True).print(
            Text.assemble((f"{level:9}", _STYLES[level]), message, (f"\n    {hint}" if hint else "", "dim"))
        )


def fail(message: str, hint: str | None = None) -> NoReturn:
    """End with one line, a hint, and `EXIT_USAGE`."""
    complain(message, hint)
    raise typer.Exit(EXIT_USAGE)


def ended(error: SystemExit) -> str:
    """Return the call of ``sys.exit`` that an exception came from."""
    return f"sys.exit({'' if error.code is None else repr(error.code)})"


def writable(path: Path | None) -> Path | None:
    """Return the path of a page, for an option; where it cannot be written the command ends before its work begins."""
    if path is not None and (path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)):
        fail(f"{path} cannot be written", "choose a file in an existing folder")
    return path


def traced(path: Path | None, model: Model) -> bool:
    """Return True if the page of a trace is asked for; the command ends if the model can have none."""
    if path is not None and not model.capabilities.logits:
        fail("the model shows no logits, so there is no trace", "take a local model")
    return path is not None


def write_trace(trace: Trace, path: Path, to: Console) -> None:
    """Write the page of a trace, and say so."""
    write_page(path, trace.to_html())
    to.print(f"trace    {path}", markup=False)


def write_page(path: Path, document: str) -> None:
    """Write an HTML page to a file."""
    try:
        path.write_text(document, encoding="utf-8")
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}")
