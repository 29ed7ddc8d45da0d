"""The installed engines on your own schemas: time to compile, time of a mask, texts taken.

python -m benchmarks masks/compare schema.json --model smollm2 --instances values.jsonl
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.shared.engines import ENGINES, Encode
from toolgrammar.adapters.cli.output import AsJson, fail, print_json, working
from toolgrammar.adapters.cli.output import console as make_console
from toolgrammar.adapters.cli.source import Source, load

#: Packages of the engines that may be missing.
PACKAGES = {"llguidance": "llguidance", "xgrammar": "xgrammar", "glrmask": "glrmask", "outlines-core": "outlines_core"}


@dataclass
class Score:
    """What one engine did with one schema.

    Attributes:
        compile_ms: time to compile it, its first mask included.
        masks_us: time of each later mask, with the token that followed.
        valid: number of valid texts that it took, of how many.
        invalid: number of invalid texts that it took, of how many.
        error: why it refused the schema.
    """

    compile_ms: float = 0.0
    masks_us: list[float] = field(default_factory=list)
    valid: tuple[int, int] = (0, 0)
    invalid: tuple[int, int] = (0, 0)
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON data."""
        if self.error is not None:
            return {"error": self.error}
        times = sorted(self.masks_us)
        return {
            "compile_ms": round(self.compile_ms, 3),
            "mask_us": {
                "mean": round(sum(times) / len(times), 2) if times else None,
                "p50": _at(times, 0.5),
                "p99": _at(times, 0.99),
                "worst": _at(times, 1.0),
            },
            "valid_accepted": list(self.valid),
            "invalid_accepted": list(self.invalid),
        }


def _at(times: Sequence[float], share: float) -> float | None:
    return round(times[min(len(times) - 1, int(share * len(times)))], 2) if times else None


def compare(
    schemas: Annotated[list[str], typer.Argument(metavar="SCHEMA...", help="Files, or module:object, as for check.")],
    model: Annotated[str, typer.Option(help="Address of the model whose vocabulary is used.")] = "embedded",
    instances: Annotated[
        Path | None,
        typer.Option(help="A file with values, one JSON a line; the jsonschema library says which are valid."),
    ] = None,
    count: Annotated[
        int,
        typer.Option("--count", "-n", min=1, help="Number of random outputs of each schema, without --instances."),
    ] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the random outputs.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compare the engines that are installed: time to compile, time of a mask, and which texts they take.

    Texts are compact in spacing as JSON libraries write them, with one space after a comma and a colon. Without
    --instances the valid ones are random outputs of our own grammar, and the invalid ones are these with one change.

    Exit code: 0 done, 2 a schema cannot be read.
    """
    from importlib.util import find_spec

    from rich.progress import Progress

    from toolgrammar.core import load_model

    sources = [load(name) for name in schemas]
    for source in sources:
        source.require_schema("the engines are compared on")
    given = None if instances is None else _values(instances)
    with working(f"loading {model}"), load_model(model) as loaded:
        vocabulary, encode = loaded.vocabulary, loaded.encode
    names = [name for name in ENGINES if name not in PACKAGES or find_spec(PACKAGES[name]) is not None]
    results: dict[str, dict[str, Score]] = {source.name: {} for source in sources}
    versions: dict[str, str] = {}
    console = make_console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(names) * len(sources))
        texts = []
        for source in sources:
            progress.update(task, description=f"texts of {source.name}")
            texts.append(_texts(source, given, count, seed))
        for name in names:
            engine = ENGINES[name](vocabulary, encode)
            versions[name] = engine.version
            for source, (valid, invalid) in zip(sources, texts, strict=True):
                progress.update(task, description=f"{name}: {source.name}")
                results[source.name][name] = score(engine, source.document, valid, invalid, encode)
                progress.advance(task)
    missing = [name for name in ENGINES if name not in names]
    if as_json:
        print_json(
            {
                "vocabulary": {"model": model, "size": vocabulary.size},
                "versions": versions,
                "schemas": {
                    source: {name: one.to_dict() for name, one in scores.items()} for source, scores in results.items()
                },
                "not_installed": missing,
            }
        )
        return
    _show(results, versions, f"{model}, {vocabulary.size:,} tokens", missing)


def score(engine: Any, schema: Any, valid: Sequence[str], invalid: Sequence[str], encode: Encode) -> Score:
    """Return what an engine does with a schema and texts."""
    begin = time.perf_counter()
    try:
        compiled = engine.compile(schema)
    except Exception as error:  # whatever an engine raises where it refuses a schema
        said = getattr(error, "message", None) or str(error)
        return Score(error=(said.splitlines() or [type(error).__name__])[0][:100])
    result = Score(compile_ms=(time.perf_counter() - begin) * 1e3)
    taken = [[_takes(engine, compiled, encode(text), result.masks_us) for text in texts] for texts in (valid, invalid)]
    result.valid, result.invalid = ((sum(takes), len(takes)) for takes in taken)
    return result


def _takes(engine: Any, compiled: Any, tokens: Sequence[int], times: list[float]) -> bool:
    """Return True if an engine takes a text; the time of each mask is added to ``times``."""
    state = engine.start(compiled)
    for token in tokens:
        begin = time.perf_counter()
        goes_on = engine.step(state, token)
        times.append((time.perf_counter() - begin) * 1e6)
        if not goes_on:
            return False
    return bool(engine.accepts(state))


def _values(path: Path) -> list[Any]:
    """Return the values of a file with one JSON a line, or one JSON array."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{path} cannot be read: {error}")
    try:
        if text.lstrip().startswith("[") and len(text.splitlines()) != 1:
            return list(json.loads(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        fail(f"{path} is not JSON: {error}", "give one JSON value a line")


def _texts(source: Source, given: list[Any] | None, count: int, seed: int) -> tuple[list[str], list[str]]:
    """Return valid and invalid texts of a schema."""
    from toolgrammar.core import Grammar, ToolGrammarError
    from toolgrammar.core.grammar.sampling import random_text
    from toolgrammar.core.validation import is_valid

    schema = source.document
    if given is not None:
        judged = [(_written(value), is_valid(value, schema)) for value in given]
        return [text for text, good in judged if good], [text for text, good in judged if not good]
    draw = random.Random(seed)
    try:
        grammar = Grammar.from_json_schema(schema)
        valid = [random_text(grammar, draw) for _ in range(count)]
    except ToolGrammarError:
        return [], []
    valid = [text for text in valid if is_valid(json.loads(text), schema)]
    changed = [_changed(json.loads(text), draw) for text in valid]
    return valid, [_written(value) for value in changed if not is_valid(value, schema)]


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _changed(value: Any, draw: random.Random) -> Any:
    """Return a value with one of its parts replaced, left out or added."""
    if isinstance(value, dict) and value and draw.random() < 0.8:
        name = draw.choice(list(value))
        if draw.random() < 0.3:
            return {other: part for other, part in value.items() if other != name}
        return {**value, name: _changed(value[name], draw)}
    if isinstance(value, list) and value and draw.random() < 0.6:
        place = draw.randrange(len(value))
        return [*value[:place], _changed(value[place], draw), *value[place + 1 :]]
    others: list[Any] = [None, True, -1, 1e30, "", "?" * 60, [], [None], {}, {"?": 0}]
    return draw.choice([other for other in others if type(other) is not type(value)])


def _show(results: dict[str, dict[str, Score]], versions: dict[str, str], vocabulary: str, missing: list[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    console = make_console()
    for source, scores in results.items():
        table = Table(title=f"{source} ({vocabulary})", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("engine", no_wrap=True)
        headings = ("compile\nms", "mask µs\nmean", "\np50", "\np99", "\nworst", "valid\ntaken", "invalid\ntaken")
        for heading in headings:
            table.add_column(heading, justify="right", no_wrap=True)
        for name, scored in scores.items():
            row = scored.to_dict()
            if scored.error is not None:
                table.add_row(f"{name} {versions[name]}", "refused")
                continue
            figures = [f"{row['compile_ms']:.1f}"]
            figures += ["–" if value is None else f"{value:.1f}" for value in row["mask_us"].values()]
            figures += ["{}/{}".format(*row["valid_accepted"]), "{}/{}".format(*row["invalid_accepted"])]
            table.add_row(f"{name} {versions[name]}", *figures)
        console.print(table)
        for name, scored in scores.items():
            if scored.error is not None:
                console.print(f"{name}: {scored.error}", markup=False)
    words = "p50, p99: median and 99th percentile of the masks; valid, invalid: texts taken, of how many"
    console.print(words, style="dim", markup=False)
    if missing:
        console.print(
            f"not installed: {', '.join(missing)} (pip install 'toolgrammar[bench]')", style="dim", markup=False
        )


def main() -> None:
    """Run the program."""
    typer.run(compare)
