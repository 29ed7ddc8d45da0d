"""The command line: ``toolgrammar demo`` shows a guaranteed call, ``toolgrammar check`` judges a schema."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import BaseModel, Field
from rich.console import Console
from rich.text import Text

from toolgrammar.core import (
    CallEnd,
    Finish,
    GenerateParams,
    Grammar,
    Model,
    ToolGrammarError,
    UnsupportedSchemaError,
    load_model,
)
from toolgrammar.core.conversation import TokenWritten
from toolgrammar.core.models import LocalModel
from toolgrammar.core.models.embedded.model import EmbeddedBackend
from toolgrammar.tools import ToolSet

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Exact constrained generation of tool calls.")


def get_weather(
    city: Annotated[str, Field(min_length=2, max_length=14, pattern="^[A-Z][a-z]+$")],
    unit: Literal["celsius", "fahrenheit"],
    days: Annotated[int, Field(ge=1, le=7)] = 1,
) -> str:
    """Weather forecast for a city.

    Args:
        city: Name of the city.
        unit: Unit of the temperatures.
        days: How many days ahead.
    """
    return f"{city}: 18 degrees {unit}, for {days} day(s)"


def convert_currency(
    amount: Annotated[float, Field(ge=0, le=1_000_000)],
    source: Literal["EUR", "USD", "JPY"],
    target: Literal["EUR", "USD"],
) -> str:
    """Convert an amount of money.

    Args:
        amount: How much.
        source: From this currency.
        target: Into this currency.
    """
    return f"{amount:g} {source} in {target}"


class BookTable(BaseModel):
    """Book a table in a restaurant."""

    people: int = Field(ge=1, le=12, description="For how many")
    time: str = Field(pattern="^(1[89]|2[0-2]):[0-5]0$", description="When, for example 19:30")
    outside: bool = Field(description="Outside, if there is room")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toolgrammar {version('toolgrammar')}")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Exact constrained generation of tool calls."""


@app.command()
def demo(
    prompt: Annotated[str, typer.Argument(help="What to ask.")] = "What will the weather be in Oslo?",
    model: Annotated[
        str, typer.Option(help="Its address: 'embedded', 'hf:NAME-OR-PATH', 'gguf:PATH', or 'openai:MODEL@URL'.")
    ] = "embedded",
    seed: Annotated[int, typer.Option(help="Of the random draw.")] = 1,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 1.0,
    max_tokens: Annotated[int, typer.Option(help="Token budget; the call is valid whatever it is.")] = 120,
) -> None:
    """Let a model call one of three tools, and show each token as it is written."""
    console = Console(highlight=False, soft_wrap=True)
    tools = ToolSet.from_any([get_weather, convert_currency, BookTable])
    loaded = load_model(model)
    embedded = loaded.backend if isinstance(loaded, LocalModel) else None
    embedded = embedded if isinstance(embedded, EmbeddedBackend) else None
    description = loaded.name if embedded is None else embedded.description
    console.print(Text.assemble(("model    ", "bold"), f"{loaded.name}: {description}"))
    console.print(Text.assemble(("tools    ", "bold"), ", ".join(tools.names)))
    console.print(Text.assemble(("request  ", "bold"), prompt))
    if embedded is not None and not embedded.trained:
        console.print(
            "         The weights are noise: what is chosen is random. That it is a valid call is guaranteed.",
            style="dim",
        )
    console.print()
    params = GenerateParams(
        tools=tools,
        tool_choice="required",
        parallel_tool_calls=False,
        temperature=temperature,
        seed=seed,
        max_tokens=max_tokens,
        trace=loaded.capabilities.logits,  # a server shows no tokens
    )
    _show(console, loaded, prompt, params, tools)


def _show(console: Console, model: Model, prompt: str, params: GenerateParams, tools: ToolSet) -> None:
    """Write the tokens as they come, then the result."""
    begin = time.perf_counter()
    call = None
    for event in model.stream(prompt, params):
        if isinstance(event, TokenWritten):
            text = event.data.decode("utf-8", "replace")
            # Readable without colour too: what the model chose stands in guillemets.
            console.print(Text(text, "dim") if event.forced else Text(f"«{text}»", "bold cyan"), end="")
        elif isinstance(event, CallEnd):
            call = event.call
        elif isinstance(event, Finish):
            usage = event.usage
    seconds = time.perf_counter() - begin
    console.print("\n")
    console.print(
        "         plain = fixed by the grammar, the model was not asked; «token» = chosen by the model", style="dim"
    )
    assert call is not None, "tool_choice='required' gives a call"
    valid = tools.validate(call)
    arguments = json.dumps(dict(valid.arguments), ensure_ascii=False)
    console.print(Text.assemble(("call     ", "bold"), (f"{valid.name}({arguments})", "green")))
    cut = "; cut short by the budget" if call.cut else ""
    console.print(Text.assemble(("valid    ", "bold"), f"yes, checked against the tool's JSON Schema{cut}"))
    if not call.cut:
        result = tools.call(call)
        console.print(Text.assemble(("result   ", "bold"), str(result)))
    share = usage.forced_tokens / max(1, usage.completion_tokens)
    console.print(
        Text.assemble(
            ("cost     ", "bold"),
            f"{usage.completion_tokens} tokens, {usage.forced_tokens} of them forced ({share:.0%});"
            f" {usage.forward_passes} forward passes; {seconds:.2f} s",
        )
    )


@app.command()
def check(
    path: Annotated[str, typer.Argument(help="A file with a JSON Schema; - is standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Tell if a JSON Schema can be enforced: exactly, or with some valid values left out, or not at all, and where.

    Exit code: 0 it can (what is written is always valid), 1 it cannot, 2 there is no schema to read.
    """
    from toolgrammar.core.schema import check as find_problems

    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        schema = json.loads(text)
    except OSError as error:
        _fail(f"{path} cannot be read: {error.strerror}", "give a file with a JSON Schema, or - for standard input")
    except ValueError as error:
        _fail(f"{path} is not JSON: {error}", "check the file with a JSON editor")
    except RecursionError:
        _fail(f"{path} is nested too deeply to be read", "flatten it with $ref")
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
        typer.echo(json.dumps(report, indent=2))
    else:
        console = Console(highlight=False, soft_wrap=True)
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


def _fail(message: str, hint: str) -> None:
    """End with one clean line."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        Text.assemble(("error    ", "bold red"), message, (f"\n    {hint}", "dim"))
    )
    raise typer.Exit(2)


def main() -> None:
    """The console script: errors of ours are one line and a hint, never a traceback."""
    try:
        app()
    except ToolGrammarError as error:
        where = f" ({error.place})" if str(error.place) else ""
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            Text.assemble(
                ("error    ", "bold red"), error.message + where, (f"\n    {error.hint}" if error.hint else "", "dim")
            )
        )
        sys.exit(2)
