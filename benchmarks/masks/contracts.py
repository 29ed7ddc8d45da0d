"""One change in a schema: does the new one take all that the old one took? Ours beside jsonschema-rs's algebra.

    python -m benchmarks masks/contracts [--pairs N] [--seconds S] [--draws N] [--seed S] [--keep]

Each pair is a schema of MaskBench and the same with one change at a random place: a property is added, dropped,
required or no longer required, a bound or a list is tightened or loosened, a property is renamed, a subschema is moved
into ``anyOf`` or behind a ``$ref``, an object is closed. `Grammar.compare` answers in both directions. Each witness is
judged by ``jsonschema`` and ``jsonschema-rs``; each inclusion is attacked by valid values, judged by ``jsonschema-rs``:
drawn texts of the old grammar, the valid instances of MaskBench, and those of their edits that are still valid. A
verdict counts as wrong where the judges say so, and as unclear where they differ from each other. Formats assert.
"""

from __future__ import annotations

import copy
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.shared.data import MASKBENCH_ALL, rows
from benchmarks.shared.results_io import percentile, show
from toolgrammar.core import Grammar, ToolGrammarError
from toolgrammar.core.grammar import edits, random_text
from toolgrammar.core.schema import KEYWORDS
from toolgrammar.core.validation import Validator

#: Seconds after which a pair is given up, and with it the part that has no answer yet.
DEADLINE = 60
#: Number of drawn texts from which an inclusion is attacked, of rounds of edits of the values so far, and maximum
#: number of edits of one value.
DRAWN, ROUNDS, MOST_EDITS = 20, 6, 2_000
LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")

Change = Callable[[random.Random, dict[str, Any], dict[str, Any]], bool]


def _add(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return False
    properties["added"] = rng.choice([{"type": "string"}, {"type": "integer", "minimum": 0}, {}])
    return True


def _drop(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    return bool(_taken(rng, schema))


def _taken(rng: random.Random, schema: dict[str, Any]) -> tuple[str, Any] | None:
    """Remove a property, also from the required ones, and return it."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return None
    name = rng.choice(list(properties))
    if name in schema.get("required", ()):
        schema["required"] = [each for each in schema["required"] if each != name]
        if not schema["required"]:
            del schema["required"]  # Draft 4 has no empty list
    return name, properties.pop(name)


def _rename(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    required = list(schema.get("required", ()))
    taken = _taken(rng, schema)
    if taken is None:
        return False
    schema["properties"]["renamed"] = taken[1]
    if taken[0] in required:
        schema["required"] = [*schema.get("required", ()), "renamed"]
    return True


def _require(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    names = [name for name in schema.get("properties") or () if name not in schema.get("required", ())]
    if not names:
        return False
    schema["required"] = [*schema.get("required", ()), rng.choice(names)]
    return True


def _free(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if not isinstance(schema.get("required"), list) or not schema["required"]:
        return False
    schema["required"] = schema["required"][1:]
    if not schema["required"]:
        del schema["required"]
    return True


def _bounds(step: int) -> Change:
    def change(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
        kinds = schema.get("type")
        places = [key for key in (*LOWER, *UPPER) if type(schema.get(key)) in (int, float)]
        if isinstance(schema.get("enum"), list) and len(schema["enum"]) > 1:
            places.append("enum")
        if step < 0:
            places += [key for key in ("pattern", "format", "multipleOf", "uniqueItems", "const") if key in schema]
            if isinstance(kinds, str):
                places.append("type")
        elif kinds == "string":
            places += ["maxLength"] * ("maxLength" not in schema) + ["pattern"] * ("pattern" not in schema)
        elif kinds in ("integer", "number"):
            places += ["minimum"] * ("minimum" not in schema)
        elif kinds == "array":
            places += ["maxItems"] * ("maxItems" not in schema)
        if not places:
            return False
        key = rng.choice(places)
        if key == "enum":
            schema[key] = schema[key][:-1] if step > 0 else [*schema[key], "another"]
        elif key == "type":
            schema[key] = [kinds, "null" if kinds != "null" else "string"]
        elif step < 0 and (key in ("pattern", "format", "multipleOf", "uniqueItems", "const") or rng.random() < 0.5):
            del schema[key]
        elif key not in schema:
            schema[key] = {"maxLength": 40, "pattern": "^[a-z]", "minimum": 1, "maxItems": 3}[key]
        else:
            schema[key] = max(0, schema[key] + (step if key in LOWER else -step))
        return True

    return change


def _any_of(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if schema is root:
        return False
    inner = dict(schema)
    schema.clear()
    schema["anyOf"] = [inner, rng.choice([{"type": "null"}, {"type": "string", "maxLength": 3}, dict(inner)])]
    return True


def _ref(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if schema is root or not schema or "$id" in schema or "id" in schema:
        return False
    key = "definitions" if "definitions" in root or "draft" in str(root.get("$schema")) else "$defs"
    root.setdefault(key, {})["moved"] = dict(schema)
    schema.clear()
    schema["$ref"] = f"#/{key}/moved"
    return True


def _close(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if not isinstance(schema.get("properties"), dict) or schema.get("additionalProperties") is False:
        return False
    schema["additionalProperties"] = False
    return True


CHANGES: dict[str, Change] = {
    "add a property": _add,
    "drop a property": _drop,
    "rename a property": _rename,
    "require a property": _require,
    "no longer require it": _free,
    "tighten a bound or list": _bounds(1),
    "loosen a bound or list": _bounds(-1),
    "move into anyOf": _any_of,
    "move behind $ref": _ref,
    "close an object": _close,
}


def changed(schema: Any, kind: str, rng: random.Random) -> dict[str, Any] | None:
    """Return a schema with one change of a kind at a random place; None if it has no such place."""
    if not isinstance(schema, dict):
        return None
    for _ in range(4):
        made = copy.deepcopy(schema)
        places = [each for each in KEYWORDS.every_schema(made) if isinstance(each, dict)]
        for place in rng.sample(places, min(8, len(places))):
            if CHANGES[kind](rng, place, made):
                return made
    return None


class Judges:
    """Verdicts of two validators on the values of a schema."""

    def __init__(self, schema: Any) -> None:
        import jsonschema_rs

        dialect = {} if "$schema" in schema else {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        self.fast = jsonschema_rs.validator_for({**dialect, **schema}, validate_formats=True, offline=True)
        self._other = Validator(schema, formats=True)

    def verdict(self, value: Any) -> bool | None:
        """Return True if a value is valid, False if it is not; None: the two differ."""
        fast, other = self.fast.is_valid(value), self._other.is_valid(value)
        return fast if fast == other else None


def judged(case: dict[str, Any], draws: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield the answer of each side on a pair, and what the judges say of ours. Runs in a process of its own."""
    old, new = case["old"], case["new"]
    begin = time.process_time()
    try:
        grammar, other = Grammar.from_json_schema(old), Grammar.from_json_schema(new)
    except ToolGrammarError as error:
        yield {"refused": type(error).__name__}
        return
    ready = time.process_time()
    found = grammar.compare(other)
    seconds = time.process_time() - ready
    yield {
        "covers": found.covers,
        "relation": found.relation,
        "seconds": seconds,
        "ready": ready - begin,
        "why": [each.message.split(": ", 1)[-1][:200] for each in found.undecided],
        "decided": [each.undecided is None for each in (found.lost, found.gained)],
    }
    try:
        judges = [Judges(old), Judges(new)]
    except Exception as error:
        yield {"unjudged": type(error).__name__}
        return
    result: Counter[str] = Counter()
    wrong: list[Any] = []
    for which, witness in enumerate((found.lost, found.gained)):
        if witness.text is not None:
            value = json.loads(witness.text)
            verdicts = judges[which].verdict(value), judges[1 - which].verdict(value)
            kind = "confirmed" if verdicts == (True, False) else "unclear" if None in verdicts else "wrong"
            result[kind] += 1
            if kind != "confirmed":
                wrong.append([kind, which, witness.text[:300], verdicts])
        elif witness.is_none:
            result["proved"] += 1
            values = [] if which else [test["data"] for test in case["tests"] if test["valid"]]
            with suppress(ToolGrammarError):
                values += [json.loads(random_text((grammar, other)[which], rng, 80)) for _ in range(DRAWN)]
            for value in _attacks(values, judges[which].fast.is_valid, draws, rng):
                result["attacks"] += 1
                if not judges[1 - which].fast.is_valid(value):
                    is_wrong = judges[which].verdict(value) is True and judges[1 - which].verdict(value) is False
                    result["wrong" if is_wrong else "unclear"] += 1
                    wrong.append(["wrong" if is_wrong else "unclear", which, json.dumps(value)[:300], None])
                    break
    yield {"judged": dict(result), "shown": wrong}
    yield {"theirs": _theirs(old, new)}


def _attacks(values: list[Any], is_valid: Callable[[Any], bool], count: int, rng: random.Random) -> Iterator[Any]:
    """Yield valid values: some that are given, and others a few edits away from them."""
    seen = set()
    for _ in range(ROUNDS):
        found = []
        for value in values:
            text = json.dumps(value, sort_keys=True)
            if text not in seen and is_valid(value):
                seen.add(text)
                found.append(value)
                yield value
                if len(seen) >= count:
                    return
        near = [
            each for value in rng.sample(found, min(len(found), DRAWN)) for each in islice(edits(value), MOST_EDITS)
        ]
        values = [changed for *_, changed in rng.sample(near, min(len(near), count))]


def _theirs(old: Any, new: Any) -> str:
    import jsonschema_rs

    begin = time.process_time()
    try:
        made = [jsonschema_rs.canonicalize(each, validate_formats=True, offline=True) for each in (old, new)]
        answer = str(made[1].covers(made[0])).rsplit(".", 1)[-1].lower()
    except Exception as error:
        answer = f"error: {type(error).__name__}"
    except BaseException as error:  # a panic of Rust
        answer = f"error: {type(error).__name__}"
    return f"{answer} {time.process_time() - begin:.4f}"


def _serve(wire: Connection, draws: int, seed: int) -> None:
    while (case := wire.recv()) is not None:
        rng = random.Random(f"{seed} {case['id']}")
        try:
            for part in judged(case, draws, rng):
                wire.send(part)
        except Exception as error:
            wire.send({"failed": f"{type(error).__name__}: {error}"[:300]})
        wire.send({"end": True})


class _Process:
    """The process that judges pairs; a new one after a pair that took too long."""

    def __init__(self, draws: int, seed: int) -> None:
        self._arguments = draws, seed
        self._begin()

    def _begin(self) -> None:
        context = get_context("spawn")
        self._wire, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """Return all that is known of a pair."""
        sheet: dict[str, Any] = {}
        try:
            self._wire.send(case)
            while "end" not in sheet:
                if not self._wire.poll(DEADLINE):
                    raise EOFError
                sheet |= self._wire.recv()
        except (EOFError, OSError):
            self._process.kill()
            self._process.join()
            self._begin()
        return sheet

    def end(self) -> None:
        """End the process."""
        self._process.kill()


def changed_schemas(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield pairs from all of MaskBench, in a random order, the kinds of changes in turn."""
    rng = random.Random(seed)
    cases = rows(MASKBENCH_ALL)
    rng.shuffle(cases)
    kinds, made = list(CHANGES), 0
    for number in range(len(cases) * len(kinds)):
        case = cases[number % len(cases)]
        kind = kinds[(number + number // len(cases)) % len(kinds)]
        new = changed(case["schema"], kind, rng)
        if new is not None:
            yield {
                "id": f"{case['id']} {kind}",
                "kind": kind,
                "old": case["schema"],
                "new": new,
                "tests": case["tests"],
            }
            made += 1
            if made == count:
                return


def _contradicts(sheet: dict[str, Any]) -> bool:
    """Return True if both sides have an answer, and not the same."""
    said = {"yes": True, "no": False}.get(str(sheet.get("theirs")).split()[0])
    return said is not None and sheet.get("covers") is (not said)


def summary(sheets: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the counts of some pairs, with the times of their comparison."""
    asked = [sheet for sheet in sheets if "refused" not in sheet]
    seconds = sorted(sheet.get("seconds", float(DEADLINE)) for sheet in asked) or [0.0]
    judged: Counter[str] = Counter()
    for sheet in asked:
        judged.update(sheet.get("judged", {}))
    theirs = Counter(str(sheet.get("theirs", "no answer")).split()[0].rstrip(":") for sheet in asked)
    return {
        "pairs": len(sheets),
        "refused": len(sheets) - len(asked),
        "decided": sum(sheet.get("covers") is not None for sheet in asked),
        "decided_both_ways": sum(all(sheet.get("decided", [False])) for sheet in asked),
        "compatible": sum(sheet.get("covers") is True for sheet in asked),
        "broken": sum(sheet.get("covers") is False for sheet in asked),
        "p50_ms": 1_000 * percentile(seconds, 0.5),
        "p99_ms": 1_000 * percentile(seconds, 0.99),
        "worst_ms": 1_000 * seconds[-1],
        "judged": dict(judged),
        "theirs": dict(theirs),
        "contradict": sum(map(_contradicts, asked)),
    }


def main(
    pairs: int = 10_000,
    seconds: float = float("inf"),
    draws: int = 1_000,
    seed: int = 1,
    verbose: bool = False,
    keep: bool = False,
) -> None:
    """Run the benchmark.

    Args:
        pairs: number of changed schemas
        draws: valid values with which an inclusion is attacked
        verbose: print wrong, unclear and undecided pairs
    """
    process = _Process(draws, seed)
    end = time.monotonic() + seconds
    by_kind: dict[str, list[dict[str, Any]]] = {kind: [] for kind in CHANGES}
    undecided: Counter[str] = Counter()
    for case in changed_schemas(seed, pairs):
        if time.monotonic() > end:
            break
        sheet = process.run(case)
        by_kind[case["kind"]].append(sheet)
        if "refused" not in sheet and sheet.get("covers") is None:
            undecided[(sheet.get("why") or [sheet.get("failed", "no answer")])[0]] += 1
        noted = sheet.get("shown") or sheet.get("failed") or ("refused" not in sheet and sheet.get("covers") is None)
        if verbose and (noted or _contradicts(sheet)):
            print(json.dumps({"id": case["id"], **sheet}, ensure_ascii=False)[:1_000], flush=True)
    process.end()
    every = [sheet for sheets in by_kind.values() for sheet in sheets]
    report = {
        "all": summary(every),
        "kinds": {kind: summary(sheets) for kind, sheets in by_kind.items()},
        "undecided": dict(undecided.most_common(12)),
        "draws": draws,
    }
    show("contracts", report, keep=keep)
