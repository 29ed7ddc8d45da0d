"""Tables with typed columns: CSV (RFC 4180) and Markdown (GitHub Flavored Markdown, section 4.10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ..basics.argument_checks import checked_bounds
from ..errors import GrammarError
from ..schema.scalars.value_syntax import QuotedSyntax
from ..text_grammars.expressions import EMPTY_TEXT, Expression, Repeat, choice, pattern, sequence
from ..text_grammars.expressions import Literal as Text
from ..text_grammars.rules import ReadGrammar
from .typed import TypedValues, columns_of, table_schema

#: Characters of a CSV field: TEXTDATA of RFC 4180, and those beyond ASCII.
_FIELD = ((0x20, 0x21), (0x23, 0x2B), (0x2D, 0x7E), (0xA0, 0x10FFFF))
_QUOTED_FIELD = ((0x0A, 0x0A), (0x0D, 0x0D), (0x20, 0x21), (0x23, 0x7E), (0xA0, 0x10FFFF))
#: Characters of a cell in Markdown: no line break, no ``|`` and no backslash unless escaped.
_CELL = ((0x20, 0x5B), (0x5D, 0x7B), (0x7D, 0x7E), (0xA0, 0x2027), (0x202A, 0x10FFFF))


def csv_grammar(
    columns: Any, *, header: bool, newline: Literal["\r\n", "\n"], min_rows: int, max_rows: int | None
) -> ReadGrammar:
    """Return the CSV texts of a table."""
    if newline not in ("\r\n", "\n"):
        raise GrammarError(f"lines of CSV end with CR LF or LF, not {newline!r}", hint=r"pass newline='\n'")
    checked_bounds(min_rows, max_rows, "rows")
    schema = table_schema(columns)
    values = TypedValues(schema)
    names = columns_of(schema)
    alone = len(names) == 1  # an empty line would be no record
    syntax = QuotedSyntax(
        _QUOTED_FIELD, (('"', '""'),), '"', bare=_FIELD, bare_least=int(alone), null=b'""' if alone else b""
    )
    fields = [part for cell in _cells(values, names, syntax) for part in (Text(","), cell)]
    record = sequence(*fields[1:])  # no comma before the first
    next_record = sequence(Text(newline), record)
    end = Repeat(Text(newline), 0, 1)
    if header:
        head = Text(",".join(map(_csv_field, names)))
        whole: Expression = sequence(head, Repeat(next_record, min_rows, max_rows), end)
    elif max_rows == 0:
        whole = EMPTY_TEXT
    else:
        more = None if max_rows is None else max_rows - 1
        some = sequence(record, Repeat(next_record, max(min_rows - 1, 0), more), end)
        whole = some if min_rows else choice(EMPTY_TEXT, some)
    arguments = {"columns": schema, "header": header, "newline": newline, "min_rows": min_rows, "max_rows": max_rows}
    return values.read("csv", arguments, {"root": whole})


def _csv_field(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set('",\r\n') or not name else name


def _cells(values: TypedValues, columns: Mapping[str, str], syntax: QuotedSyntax) -> list[Expression]:
    """Return the cell of each column of a table, given the pointers of the columns; that of a column that is not
    required may be empty."""
    required = values.schema.get("required", columns)
    cells = {name: values.value(pointer, syntax) for name, pointer in columns.items()}
    empty = Text(syntax.null.decode())
    return [cell if name in required else choice(cell, empty) for name, cell in cells.items()]


def markdown_grammar(columns: Any, *, min_rows: int, max_rows: int | None) -> ReadGrammar:
    """Return the Markdown tables with these columns."""
    checked_bounds(min_rows, max_rows, "rows")
    schema = table_schema(columns)
    values = TypedValues(schema)
    names = columns_of(schema)
    for name in names:
        if set(name) & set("\r\n"):
            raise GrammarError(f"the column {name!r} has a line break", hint="rename it")
    syntax = QuotedSyntax(_CELL, (("|", "\\|"), ("\\", "\\\\")), null=b"")
    header = "|".join(f" {_markdown_cell(name)} " for name in names)
    cells = [part for cell in _cells(values, names, syntax) for part in (Text(" "), cell, Text(" |"))]
    delimiters = sequence(*(pattern(" (?::?-{3,40}:?) \\|") for _ in names))
    row = sequence(Text("\n|"), *cells)
    table = sequence(Text(f"|{header}|\n|"), delimiters, Repeat(row, min_rows, max_rows), Repeat(Text("\n"), 0, 1))
    arguments = {"columns": schema, "min_rows": min_rows, "max_rows": max_rows}
    return values.read("markdown_table", arguments, {"root": table})


def _markdown_cell(name: str) -> str:
    return name.replace("\\", "\\\\").replace("|", "\\|")
