"""A second set of schemas, on which no engine was tuned: JSON Schemas and tools inside of packages.

    pip download --no-deps cfn-lint check-jsonschema ...    # and npm pack; each package unpacked into FOLDER/NAME
    python -m benchmarks masks/package_schemas FOLDER schemas.jsonl.gz
    python -m benchmarks masks/maskbench --data schemas.jsonl.gz

It writes the form of MaskBench: a schema with instances, and whether each is valid. The schemas are JSON files with a
``$schema`` of json-schema.org, or with ``type: object`` and ``properties``, and the arguments of the operations of
OpenAPI documents. Left out are schemas of MaskBench, schemas with a ``$ref`` to another file, and repeated ones.
The instances are examples of our grammar, and texts one edit outside of it; `jsonschema` says which are valid. So the
set measures speed, and what peers refuse; it is no proof of our own verdicts.
"""

from __future__ import annotations

import gzip
import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema.validators import validator_for

from benchmarks.shared.data import MASKBENCH_ALL, rows, spread
from toolgrammar.core import Grammar, ToolGrammarError
from toolgrammar.tools import ToolSet

#: Maximum size of a file, and seconds for the instances of a schema.
MAX_BYTES, SECONDS = 20_000_000, 10


def is_schema(value: Any) -> bool:
    """Return True if the value of a file is a JSON Schema."""
    if not isinstance(value, dict) or "openapi" in value:
        return False
    named = isinstance(value.get("$schema"), str) and "json-schema.org" in value["$schema"]
    return named or (value.get("type") == "object" and isinstance(value.get("properties"), dict))


def is_whole(schema: Any) -> bool:
    """Return True if no ``$ref`` leads out of a schema."""
    if isinstance(schema, list):
        return all(map(is_whole, schema))
    if not isinstance(schema, dict):
        return True
    target = schema.get("$ref")
    return not (isinstance(target, str) and not target.startswith("#")) and all(map(is_whole, schema.values()))


def schemas(package: Path) -> Iterator[tuple[str, Any]]:
    """Yield the schemas of a package, with their names."""
    for path in sorted(package.rglob("*.json")):
        if path.stat().st_size > MAX_BYTES:
            continue
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            continue
        name = path.relative_to(package.parent).as_posix()
        if is_schema(value) and is_whole(value):
            yield name, value
        elif isinstance(value, dict) and "openapi" in value:
            try:
                tools = list(ToolSet.from_any(value))
            except ToolGrammarError:
                continue
            yield from ((f"{name}#{tool.name}", dict(tool.parameters)) for tool in tools)


def instances(schema: Any, count: int) -> list[dict[str, Any]]:
    """Return values with the verdict of `jsonschema`; none if our grammar refuses the schema, or time is up."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        grammar = Grammar.from_json_schema(schema)
        texts = [one.text for one in (*grammar.examples(count), *grammar.counterexamples(count // 2))]
        judge = validator_for(schema)(schema)
        return [{"valid": judge.is_valid(value), "data": value} for value in map(json.loads, texts)]
    except (ToolGrammarError, TimeoutError, ValueError, RecursionError):
        return []
    except Exception as error:  # the judge may raise anything on a broken schema
        print(f"{type(error).__name__}: {error}"[:120], file=sys.stderr)
        return []
    finally:
        signal.alarm(0)


def main(folder: Path, out: Path, most: int = 60, texts: int = 4) -> None:
    """Write the set.

    Args:
        most: schemas of a package
        texts: valid instances of a schema
    """
    of_maskbench = rows(MASKBENCH_ALL) if MASKBENCH_ALL.exists() else []
    known = {json.dumps(row["schema"], sort_keys=True) for row in of_maskbench}
    counts: Counter[str] = Counter()
    with gzip.open(out, "wt", encoding="utf-8") as file:
        for package in sorted(one for one in folder.iterdir() if one.is_dir()):
            found: list[tuple[str, Any]] = []
            for name, schema in schemas(package):
                text = json.dumps(schema, sort_keys=True)
                if text not in known:
                    known.add(text)
                    found.append((name, schema))
            for name, schema in spread(found, min(most, len(found))):
                tests = instances(schema, texts)
                file.write(json.dumps({"id": name, "schema": schema, "tests": tests}) + "\n")
                counts["schemas"] += 1
                counts["instances"] += len(tests)
                counts["without instances"] += not tests
            print(f"{package.name}: {min(most, len(found))} of {len(found)}", flush=True)
    print(dict(counts))
