"""``toolgrammar check``: a JSON Schema as it is enforced."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import AsJson, fail, print_json
from .output import console as make_console

if TYPE_CHECKING:
    from toolgrammar.core import ToolGrammarError, UnsupportedSchemaError


def check(
    path: Annotated[str, typer.Argument(help="A file with a JSON Schema; - is standard input.")],
    as_json: AsJson = False,
) -> None:
    """Tell if a JSON Schema can be enforced: exactly, or with some valid values left out, or not at all, and where.

    Exit code: 0 it can (what is written is always valid), 1 it cannot, 2 there is no schema to read.
    """
    from rich.text import Text

    from toolgrammar.core import Grammar, ToolGrammarError
    from toolgrammar.core.schema import check as find_problems

    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        schema = json.loads(text)
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}", "give a file with a JSON Schema, or - for standard input")
    except ValueError as error:
        fail(f"{path} is not JSON: {error}", "check the file with a JSON editor")
    except RecursionError:
        fail(f"{path} is nested too deeply to be read", "flatten it with $ref")
    problems: list[ToolGrammarError] = list(find_problems(schema)) if isinstance(schema, (dict, bool)) else []
    narrowed: tuple[UnsupportedSchemaError, ...] = ()
    if not problems:
        try:
            grammar = Grammar.from_json_schema(schema)
            grammar.check()
            narrowed = grammar.narrowed
        except ToolGrammarError as error:
            problems = [error]
    if as_json:
        report = {
            "enforceable": not problems,
            "problems": [_finding(problem) for problem in problems],
            "narrowed": [{**_finding(problem), "left_out": problem.left_out} for problem in narrowed],
        }
        print_json(report)
    else:
        console = make_console()
        if narrowed:
            console.print(Text.assemble((path, "bold"), ": can be enforced, but some valid values are never written"))
        elif not problems:
            console.print(Text.assemble((path, "bold"), ": every keyword can be enforced exactly"))
        for narrowing in narrowed:
            console.print(Text.assemble((_where(narrowing), "bold"), f": never writes {narrowing.left_out}"))
        for problem in problems:
            console.print(Text.assemble((_where(problem), "bold"), f": {problem.message} [{problem.code}]"))
            if problem.hint:
                console.print(Text(f"    {problem.hint}", "dim"))
    raise typer.Exit(1 if problems else 0)


def _where(problem: ToolGrammarError) -> str:
    return f"{problem.place.pointer or '(root)'} {problem.place.keyword or ''}".rstrip()


def _finding(problem: ToolGrammarError) -> dict[str, Any]:
    return {
        "code": problem.code,
        "pointer": problem.place.pointer,
        "keyword": problem.place.keyword,
        "message": problem.message,
        "hint": problem.hint,
    }
