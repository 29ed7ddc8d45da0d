"""The program: its commands and its version."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from .batch import batch
from .chat import chat
from .check import check
from .commands import Group, add
from .demo import demo
from .diff import diff
from .doctor import doctor
from .fuzz import fuzz
from .match import match
from .model import app as model
from .models import models
from .policy import app as policy
from .probe import probe
from .record import app as record
from .repair import repair
from .sample import sample
from .serve import serve
from .vllm import PASSED_ON, vllm

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Exact constrained generation of tool calls.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toolgrammar {version('toolgrammar')}")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
) -> None:
    """Exact constrained generation of tool calls."""


TRY, SCHEMAS, SERVERS, MACHINE = "Try", "Schemas and grammars", "Servers and batches", "This machine"

add(app, demo, "toolgrammar demo", "toolgrammar demo --trace trace.html", rich_help_panel=TRY)
add(
    app,
    chat,
    "toolgrammar chat smollm2 --tools tools.py",
    'toolgrammar chat openai:MODEL@http://127.0.0.1:8000/v1 -m "Hello" --json',
    rich_help_panel=TRY,
)
add(
    app,
    check,
    "toolgrammar check schema.json --html report.html",
    """toolgrammar check '{"type": "string", "minLenght": 2}'""",
    "toolgrammar check mymodule:Order",
    rich_help_panel=SCHEMAS,
)
add(
    app,
    diff,
    "toolgrammar diff HEAD~1:tools.json tools.json",
    'toolgrammar diff "npx -y my-mcp-server@1.2.0" "node dist/index.js" --json',
    rich_help_panel=SCHEMAS,
)
add(
    app,
    fuzz,
    'toolgrammar fuzz "node dist/index.js" --junit fuzz.xml',
    "toolgrammar fuzz http://127.0.0.1:8000/mcp --tool create_note",
    rich_help_panel=SCHEMAS,
)
add(app, sample, "toolgrammar sample schema.json -n 10 --seed 3", rich_help_panel=SCHEMAS)
add(app, match, """toolgrammar match schema.json '{"city": "Oslo", "unit": "kelvin"}'""", rich_help_panel=SCHEMAS)
add(app, repair, """toolgrammar repair schema.json "{city: 'Oslo'," """.strip(), rich_help_panel=SCHEMAS)
add(
    app,
    serve,
    "toolgrammar serve smollm2",
    "toolgrammar serve small=hf:Qwen/Qwen2.5-1.5B-Instruct --port 9000 --api-key env:KEY",
    rich_help_panel=SERVERS,
)
add(app, batch, "toolgrammar batch requests.jsonl -o answers.jsonl --model smollm2", rich_help_panel=SERVERS)
add(app, probe, "toolgrammar probe http://127.0.0.1:8000/v1 --model MODEL", rich_help_panel=SERVERS)
add(app, vllm, "toolgrammar vllm Qwen/Qwen2.5-7B-Instruct", context_settings=PASSED_ON, rich_help_panel=SERVERS)
app.add_typer(record, name="record", rich_help_panel=SERVERS)
app.add_typer(policy, name="policy", rich_help_panel=SCHEMAS)
add(app, models, "toolgrammar models --json", rich_help_panel=MACHINE)
app.add_typer(model, name="model", rich_help_panel=MACHINE)
add(app, doctor, "toolgrammar doctor", rich_help_panel=MACHINE)
