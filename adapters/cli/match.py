"""``toolgrammar match``: how far a text goes under a schema, and what was expected where it stops."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import AsJson, fail, print_json, working
from .output import console as make_console
from .source import FileOption, SchemaArgument, Source, TextArgument, load, text_of

if TYPE_CHECKING:
    from toolgrammar.core.generation import Match

#: Maximum number of characters that are shown before and after the place.
MAX_LENGTH = 40

WHITESPACE = ("flexible", "single", "compact")
ORDERS = ("schema", "any")


def match(
    schema: SchemaArgument,
    text: TextArgument = None,
    file: FileOption = None,
    whitespace: Annotated[str, typer.Option(help="White space that is allowed: " + ", ".join(WHITESPACE) + ".")] = (
        "flexible"
    ),
    order: Annotated[str, typer.Option(help="Order of members: that of the schema, or any.")] = "schema",
    as_json: AsJson = False,
) -> None:
    """Tell if a text is one that a model may write under a schema; if not, how far it goes and what was expected there.

    A text may be valid under the schema and still not be written: with its members in another order, or where the
    schema is narrowed; that is said. Exit code: 0 it matches, 1 it does not, 2 there is no text, or
    the schema cannot be read or enforced.
    """
    from toolgrammar.core.generation import Match

    for name, value, words in (("whitespace", whitespace, WHITESPACE), ("order", order, ORDERS)):
        if value not in words:
            fail(f"--{name} is {value!r}", f"give one of {', '.join(words)}")
    written = text_of(schema, text, file)
    source = load(schema)
    options: Any = {"whitespace": whitespace, "property_order": order}
    with working(f"comparing with {source.name}"):
        match = Match.of(source.grammar(**options), written)
        wrong, valid = _validity(source, written)
        others = {} if match.matches or not valid else _matching_options(source, written, options)
    line = written.count("\n", 0, match.size) + 1
    column = match.size - written.rfind("\n", 0, match.size)
    if as_json:
        report: dict[str, Any] = {"matches": match.matches, "characters": match.size, "is_valid_json": valid}
        if not match.matches:
            report |= {"line": line, "column": column, "pointer": match.pointer, "expected": match.expected}
            report["violations"] = wrong
            report["matches_with"] = others
        print_json(report)
    else:
        _show(match, written, line, column, wrong, bool(valid))
        if valid and not match.matches:
            _show_options(others)
    raise typer.Exit(0 if match.matches else 1)


def _validity(source: Source, text: str) -> tuple[list[str], bool | None]:
    """Return the violations of the schema, and whether the text is valid JSON under it; None: it is no JSON, or there
    is no schema."""
    from toolgrammar.core.validation import Validator

    if source.grammar_form is not None:
        return [], None
    try:
        value = json.loads(text)
    except ValueError:
        return [], None
    wrong = list(Validator(source.document).violations(value))
    return wrong, not wrong


def _show(match: Match, text: str, line: int, column: int, wrong: list[str], is_valid: bool) -> None:
    """Print how far a text goes, for people.

    Args:
        match: how far.
        text: the text.
        line: where it stops, from 1.
        column: likewise.
        wrong: violations of the schema.
        is_valid: the text is JSON that is valid under the schema.
    """
    from rich.text import Text

    console = make_console()
    if match.matches:
        console.print(Text("matches", "green"))
        return
    size = match.size
    console.print(Text.assemble(("does not match", "bold red"), f": line {line}, column {column}"))
    rows = [
        ("fits", Text(text[max(0, size - MAX_LENGTH) : size], "green")),
        ("stops", Text(text[size : size + MAX_LENGTH] or "(the text ends)", "red")),
        ("expected", Text(match.expected)),
        ("place", Text(match.pointer or "(root)")),
        *(("invalid", Text(problem)) for problem in wrong[:3]),
    ]
    for title, row in rows:
        console.print(Text.assemble((f"{title:9}", "bold"), row))
    if is_valid:
        console.print("         The value is valid under the schema, but not written so.", style="dim")


def _matching_options(source: Source, text: str, options: dict[str, Any]) -> dict[str, str]:
    """Return the options, as few as possible, with which a valid text matches; none if it matches with none."""
    tried: list[dict[str, str]] = [{"property_order": "any"}, {"whitespace": "flexible"}]
    tried.append({**tried[0], **tried[1]})
    for change in tried:
        if change.items() <= options.items():
            continue
        if source.grammar(**{**options, **change}).matches(text):
            return {"order" if name == "property_order" else name: word for name, word in change.items()}
    return {}


def _show_options(others: dict[str, str]) -> None:
    """Print with which options a valid text would match."""
    console = make_console()
    if others:
        options = " ".join(f"--{name} {word}" for name, word in others.items())
        console.print(f"         It matches with {options}.", style="dim", markup=False)
    else:
        console.print("         See what `toolgrammar check` says is left out.", style="dim", markup=False)
