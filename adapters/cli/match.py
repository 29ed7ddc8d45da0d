"""``toolgrammar match``: how far a text goes under a schema, and what was expected where it stops."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import AsJson, fail, print_json
from .output import console as make_console
from .source import FileOption, SchemaArgument, TextArgument, load, text_of

if TYPE_CHECKING:
    from toolgrammar.core import Grammar, Matcher

#: Maximum number of continuations that are named, and their length in characters.
MAX_NAMED = 8
MAX_LENGTH = 40

WHITESPACE = ("flexible", "single", "compact")
ORDERS = ("schema", "any")


@dataclass(frozen=True)
class Match:
    """How far a text goes.

    Attributes:
        matches: it is a text of the grammar.
        size: number of its first characters with which a text of the grammar may begin.
        expected: what may come there, in words.
        pointer: JSON pointer of the value there; None if the text is no JSON up to there.
    """

    matches: bool
    size: int
    expected: str = ""
    pointer: str | None = None


def match_text(grammar: Grammar, text: str) -> Match:
    """Return how far a text goes under a grammar."""
    from toolgrammar.core.generation.json_places import Places
    from toolgrammar.core.sampling import single_bytes

    matcher = grammar.bind(single_bytes()).matcher()
    size = 0
    for character in text:
        if not matcher.accept_bytes(character.encode("utf-8", "surrogatepass")):
            break
        size += 1
    if size == len(text) and matcher.is_accepting:
        return Match(True, size)
    pointer = Places(text[:size] + "?").at(size)[0]
    return Match(False, size, _expected(matcher), pointer)


#: White space other than a single one, as it is named in a list of what may come.
_SIGNS = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _expected(matcher: Matcher) -> str:
    """Return what may come next, in words: whole continuations where there are few."""
    from toolgrammar.core.generation.tracer import describe

    allowed = matcher.allowed_tokens()
    ends = ["the end of the text"] if matcher.is_accepting else []
    letters = [token for token in allowed if token < 256]
    if len(letters) > MAX_NAMED:
        return ", or ".join([describe(bytes(letters)), *ends])
    words = []
    for letter in letters:
        matcher.accept(letter)
        data = bytes((letter,)) + matcher.forced_bytes()
        matcher.rollback(1)
        text = data.decode("utf-8", "replace").translate(_SIGNS)
        words.append(f"`{text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH] + '…'}`")
    return " or ".join([*words, *ends])


def match(
    schema: SchemaArgument,
    text: TextArgument = None,
    file: FileOption = None,
    whitespace: Annotated[str, typer.Option(help="White space that is allowed: " + ", ".join(WHITESPACE) + ".")] = (
        "flexible"
    ),
    order: Annotated[str, typer.Option(help="Order of members: as the schema names them, or any.")] = "schema",
    as_json: AsJson = False,
) -> None:
    """Tell if a text is one that a model may write under a schema; if not, how far it goes and what was expected there.

    A text may be valid under the schema and still not be written: with its members in another order, or where the
    schema is narrowed; that is said. Exit code: 0 it matches, 1 it does not, 2 there is nothing to compare.
    """
    from toolgrammar.core import Grammar
    from toolgrammar.core.validation import violations

    for name, value, words in (("whitespace", whitespace, WHITESPACE), ("order", order, ORDERS)):
        if value not in words:
            fail(f"--{name} is {value!r}", f"give one of {', '.join(words)}")
    written = text_of(schema, text, file)
    source = load(schema)
    options: Any = {"whitespace": whitespace, "property_order": order}
    match = match_text(Grammar.from_json_schema(source.schema, **options), written)
    try:
        wrong = list(violations(json.loads(written), source.document))
        valid: bool | None = not wrong
    except ValueError:
        wrong, valid = [], None
    line = written.count("\n", 0, match.size) + 1
    column = match.size - written.rfind("\n", 0, match.size)
    if as_json:
        report: dict[str, Any] = {"matches": match.matches, "characters": match.size, "is_valid_json": valid}
        if not match.matches:
            report |= {"line": line, "column": column, "pointer": match.pointer, "expected": match.expected}
            report["violations"] = wrong
        print_json(report)
    else:
        _show(match, written, line, column, wrong, bool(valid))
    raise typer.Exit(0 if match.matches else 1)


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
        console.print(
            "         The value is valid under the schema, but not written so: see the order of members, "
            "white space, and what `toolgrammar check` says is left out.",
            style="dim",
        )
