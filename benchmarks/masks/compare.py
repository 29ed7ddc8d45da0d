"""The installed engines on your own schemas: time to compile, time of a mask, texts taken.

    python -m benchmarks masks/compare schema.json [--model smollm2] [--instances values.jsonl]

A schema is a file, or ``module:object``, as for ``toolgrammar check``. Texts have one space after a comma and a colon.
With ``--instances``, a file with one JSON value a line, ``jsonschema`` says which are valid; without it, the valid
texts are random outputs of our own grammar, and the invalid ones are these with one change.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from benchmarks.masks.maskbench import percentiles, run
from benchmarks.shared.engines import ENGINES
from benchmarks.shared.tables import Column, records
from benchmarks.shared.workers import installed
from toolgrammar.adapters.cli.source import load
from toolgrammar.core import Grammar, ToolGrammarError, load_model
from toolgrammar.core.grammar import edits, random_text
from toolgrammar.core.validation import is_valid


def texts_of(schema: Any, values: Sequence[Any] | None, count: int, draw: random.Random) -> list[tuple[bool, str]]:
    """Return texts, and whether each is valid: of some values, or drawn ones and changes of these."""
    if values is None:
        try:
            grammar = Grammar.from_json_schema(schema)
            drawn = [json.loads(random_text(grammar, draw)) for _ in range(count)]
        except ToolGrammarError:
            return []
        changes = [list(islice(edits(value), 500)) for value in drawn]
        values = [*drawn, *(draw.choice(some)[-1] for some in changes if some)]
    return [(is_valid(value, schema), json.dumps(value, ensure_ascii=False)) for value in values]


def main(
    schemas: Sequence[str], model: str = "embedded", instances: Path | None = None, count: int = 20, seed: int = 0
) -> None:
    """Compare the engines.

    Args:
        schemas: files, or module:object
        model: address of the model whose vocabulary is used
        instances: a file with values, one JSON a line
        count: number of random outputs of each schema
    """
    values = None
    if instances:
        values = [json.loads(line) for line in instances.read_text(encoding="utf-8").splitlines() if line.strip()]
    with load_model(model) as loaded:
        vocabulary, encode = loaded.vocabulary, loaded.encode
    engines = [ENGINES[name](vocabulary, encode) for name in ("toolgrammar", *installed(",".join([*ENGINES][1:])))]
    columns: dict[str, Column] = {"compile, ms": "compile", "mask, µs: mean": "mean", "p50": "p50", "p99": "p99"}
    columns |= {"worst": "worst", "valid taken": "valid", "invalid taken": "invalid", "refused": "refused"}
    for name in schemas:
        source = load(name)
        source.require_schema("the engines are compared on")
        texts = texts_of(source.document, values, count, random.Random(seed))
        found = {}
        for engine in engines:
            sheet = run(engine, source.document, [(valid, encode(text)) for valid, text in texts], "wall")
            row = found[f"{engine.name} {engine.version}"] = dict.fromkeys(columns.values(), "") | sheet
            if "refused" not in sheet:
                valid = sum(valid for valid, _ in texts)
                row |= percentiles(chain.from_iterable(sheet["token"])) | {"compile": sheet.get("compile", 0) / 1e3}
                row["valid"] = f"{valid - sheet['too_strict']}/{valid}"
                row["invalid"] = f"{sheet['too_lax']}/{len(texts) - valid}"
        print(f"{name}; {model}, {vocabulary.size:,} tokens\n\n{records(found, columns, 'engine')}\n")
