"""Faults of a service found by the same number of calls: from `Grammar.examples`, hypothesis-jsonschema, and chance.

    pip install --no-deps hypothesis-jsonschema==0.23.1 hypothesis==6.130.0   # it does not run with 6.170
    python -m benchmarks masks/fuzz_peers [--calls 120] [--seeds 3] [--keep]
    npm install --prefix DIR @modelcontextprotocol/server-{everything,memory,sequential-thinking}@2026.8.31
    python -m benchmarks masks/fuzz_peers --servers DIR [--keep]

The service is that of the tests (``tests/tools/faulty_service.py``), with one of 14 faults at a time; with
``--servers``, copies of MCP's reference servers, each with one of ten faults. Half of the calls are valid, half are
not, and `tools.fuzzing.fuzz` sends and judges them. hypothesis-jsonschema draws the valid ones from the schema, and the
others from objects of the schema's names with any values; chance draws each member with probability 1/2 and a small
value of a random type.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

from benchmarks.shared.tables import show
from toolgrammar.core import Grammar
from toolgrammar.core.grammar import Example
from toolgrammar.core.validation import Validator
from toolgrammar.tools import fuzzing
from toolgrammar.tools.fuzz_targets import HttpTarget, McpTarget, Target
from toolgrammar.tools.mcp import McpServer

WAYS = ("ours", "hypothesis-jsonschema", "chance")


class Fault(NamedTuple):
    """A fault of an MCP server: the tool, what is found, and the edit of a file of the server, first text by second."""

    tool: str
    kind: str
    server: str
    file: str
    right: str
    wrong: str


_KNOWN = json.loads(Path(__file__).with_name("faults.json").read_text(encoding="utf-8"))
#: The faults of the service, and those of the reference servers.
FAULTS: list[str] = _KNOWN["service"]
MCP_FAULTS = {name: Fault(**fault) for name, fault in _KNOWN["servers"].items()}
#: Maximum number of values that are drawn for each one that is kept.
TRIES = 200


class Drawn:
    """Stands in for a grammar: examples of a schema that a peer draws."""

    def __init__(self, draw: Callable[[Any, bool, int, int], Iterator[Any]], schema: Any) -> None:
        self._draw, self._schema = draw, {**schema, "additionalProperties": False}

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Valid values."""
        return self._found(True, n, seed)

    def counterexamples(self, n: int, seed: int = 0) -> list[Example]:
        """Invalid values."""
        return self._found(False, n // 2, seed)  # ours is asked for twice as many, of which it sends half

    def _found(self, valid: bool, n: int, seed: int) -> list[Example]:
        judge, texts = Validator(self._schema), dict[str, None]()
        for value in self._draw(self._schema, valid, n, seed):
            if judge.is_valid(value) is valid:
                texts.setdefault(json.dumps(value))
            if len(texts) == n:
                break
        return [Example(text, "drawn") for text in texts]


def by_hypothesis(schema: Any, valid: bool, n: int, seed: int) -> Iterator[Any]:
    """Values of hypothesis-jsonschema."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis_jsonschema import from_schema

    anything = {"type": "object", "properties": {name: {} for name in schema["properties"]}}
    found: list[Any] = []

    def keep(value: Any) -> None:
        found.append(value)

    options = settings(
        max_examples=n * (1 if valid else 3),
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    seeded(seed)(options(given(from_schema(schema if valid else anything))(keep)))()
    return iter(found)


def by_chance(schema: Any, valid: bool, n: int, seed: int) -> Iterator[Any]:
    """Objects with some of the schema's names and random small values."""
    rng = random.Random(seed)
    leaves: list[Callable[[], Any]] = [
        lambda: rng.randint(-20, 20),
        lambda: "".join(rng.choices("abcCFK019 ", k=rng.randint(0, 10))),
        lambda: rng.choice([True, False]),
        lambda: None,
        lambda: rng.uniform(-20, 20),
    ]
    some = [
        *leaves,
        lambda: [rng.choice(leaves)() for _ in range(rng.randint(0, 4))],
        lambda: {"lat": rng.choice(leaves)()},
    ]
    for _ in range(TRIES * n):
        yield {name: rng.choice(some)() for name in (*schema["properties"], "other") if rng.random() < 0.5}


class Found(Exception):
    """A failure was found."""


def found(target: Target, tool: str, way: str, calls: int, seed: int, kind: str | None = None) -> bool:
    """If a way of drawing calls finds a fault: a failure of a kind, or of any."""
    draw = {"hypothesis-jsonschema": by_hypothesis, "chance": by_chance}.get(way)

    def stand(schema: Any, **options: Any) -> Any:
        is_shrunk = "property_order" in options  # what makes another failure smaller is the same for all
        return Grammar.from_json_schema(schema, **options) if draw is None or is_shrunk else Drawn(draw, schema)

    class Stand:
        """Stands in for `Grammar`."""

        from_json_schema = staticmethod(stand)

    ask = target.ask

    def asked(*arguments: Any) -> Any:
        answer = ask(*arguments)
        if answer[0] is not None and kind in (None, answer[0]):
            raise Found
        return answer

    with patch.object(fuzzing, "Grammar", Stand), patch.object(target, "ask", asked):
        try:
            fuzzing.fuzz(target, names=[tool], calls=calls, seed=seed)
        except Found:
            return True
    return False


@contextmanager
def copied(folder: Path, fault: Fault, *, right: bool = False) -> Iterator[Target]:
    """A copy of a reference server with a fault, or as it is."""
    modules = folder.resolve() / "node_modules"
    with TemporaryDirectory() as name:
        copy = Path(name)
        package = modules / "@modelcontextprotocol" / f"server-{fault.server}"
        shutil.copytree(package / "dist", copy / "dist")
        shutil.copy(package / "package.json", copy)
        (copy / "node_modules").symlink_to(modules)
        path = copy / "dist" / fault.file
        text = path.read_text(encoding="utf-8")
        assert text.count(fault.right) == 1, fault
        path.write_text(text if right else text.replace(fault.right, fault.wrong), encoding="utf-8")
        if fault.kind == "wrong result" and not right:
            path.write_text(path.read_text().replace("temperature: 73,", 'temperature: "73",'), encoding="utf-8")
        arguments = ["DISABLE_THOUGHT_LOGGING=true", f"MEMORY_FILE_PATH={copy}/memory", "node", f"{copy}/dist/index.js"]
        timeout = 1.0 if fault.kind == "hang" else 10.0
        yield McpTarget(partial(McpServer.stdio, "env", arguments, call_timeout=timeout))


def of_servers(folder: Path, calls: int, seeds: int) -> dict[str, dict[str, int]]:
    """How often each way finds each fault of the reference servers."""
    rows: dict[str, dict[str, int]] = {}
    for name, fault in MCP_FAULTS.items():
        rows[name] = row = dict.fromkeys(WAYS, 0)
        for way in WAYS:
            for seed in range(seeds):
                with copied(folder, fault) as target:
                    row[way] += found(target, fault.tool, way, calls, seed, fault.kind)
            with copied(folder, fault, right=True) as target:
                assert not found(target, fault.tool, way, calls, 0, fault.kind), (name, way)
        print(f"{name:25}", *row.values(), flush=True)
    return rows


def of_service(calls: int, seeds: int) -> dict[str, dict[str, int]]:
    """How often each way finds each fault of the service."""
    rows: dict[str, dict[str, int]] = {}
    sys.path.insert(0, str(Path(__file__).parent.parent.parent / "tests" / "tools"))
    faulty = import_module("faulty_service")
    with faulty.running() as (service, url):
        for service.fault in FAULTS:
            tool = "note" if service.fault == "takes any body" else "forecast"
            timeout = 0.7 if service.fault == "hangs" else 10.0
            rows[service.fault] = row = dict.fromkeys(WAYS, 0)
            for way in WAYS:
                for seed in range(seeds):
                    target = HttpTarget(faulty.DOCUMENT, url, timeout)
                    row[way] += found(target, tool, way, calls, seed)
            print(f"{service.fault:25}", *row.values(), flush=True)
    return rows


def main(calls: int = 120, seeds: int = 3, servers: Path | None = None, keep: bool = False) -> None:
    """Compare the ways."""
    rows = of_service(calls, seeds) if servers is None else of_servers(servers, calls, seeds)
    report = {"calls": calls, "seeds": seeds, "theirs": version("hypothesis-jsonschema"), "faults": rows}
    show("fuzz_peers" if servers is None else "fuzz_servers", report, keep=keep)
