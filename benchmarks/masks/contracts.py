"""One change in a schema: does the new one take all that the old one took? Ours beside jsonschema-rs's algebra.

    python -m benchmarks masks/contracts [--pairs N] [--draws N] [--seed S] [--sheets FILE] [--keep]

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.shared.data import MASKBENCH_ALL, rows
from benchmarks.shared.results_io import percentile
from benchmarks.shared.tables import show
from benchmarks.shared.workers import Sheet, Worker, gathered
from toolgrammar.core import Grammar, ToolGrammarError
from toolgrammar.core.grammar import edits, random_text
from toolgrammar.core.schema import KEYWORDS
from toolgrammar.core.validation import Validator

#: Seconds of processor time after which a side gives a pair up; half of them are for attacks.
DEADLINE = 60
#: Number of drawn texts from which an inclusion is attacked, of rounds of edits of the values so far, and maximum
#: number of edits of one value.
DRAWN, ROUNDS, MOST_EDITS = 20, 6, 2_000
LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")

#: Changes a subschema of a schema in place; False if the change has no place in it.
Change = Callable[[random.Random, dict[str, Any], dict[str, Any]], bool]


def _add(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """Describe one more property."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return False
    properties["added"] = rng.choice([{"type": "string"}, {"type": "integer", "minimum": 0}, {}])
    return True


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
    """Describe a property, required or not, under another name."""
    required = list(schema.get("required", ()))
    taken = _taken(rng, schema)
    if taken is None:
        return False
    schema["properties"]["renamed"] = taken[1]
    if taken[0] in required:
        schema["required"] = [*schema.get("required", ()), "renamed"]
    return True


def _require(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """Require one of the properties that may be left out."""
    names = [name for name in schema.get("properties") or () if name not in schema.get("required", ())]
    if not names:
        return False
    schema["required"] = [*schema.get("required", ()), rng.choice(names)]
    return True


def _free(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """No longer require the first of the required properties."""
    if not isinstance(schema.get("required"), list) or not schema["required"]:
        return False
    schema["required"] = schema["required"][1:]
    if not schema["required"]:
        del schema["required"]
    return True


def _bounds(step: int) -> Change:
    """Return the change that makes a bound or a list tighter by 1, or looser by 1, or adds or drops one."""

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
    """Make the subschema an alternative, beside null, a short string or itself."""
    if schema is root:
        return False
    inner = dict(schema)
    schema.clear()
    schema["anyOf"] = [inner, rng.choice([{"type": "null"}, {"type": "string", "maxLength": 3}, dict(inner)])]
    return True


def _ref(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """Move the subschema into the definitions of the root."""
    if schema is root or not schema or "$id" in schema or "id" in schema:
        return False
    key = "definitions" if "definitions" in root or "draft" in str(root.get("$schema")) else "$defs"
    root.setdefault(key, {})["moved"] = dict(schema)
    schema.clear()
    schema["$ref"] = f"#/{key}/moved"
    return True


def _close(rng: random.Random, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """Forbid further properties."""
    if not isinstance(schema.get("properties"), dict) or schema.get("additionalProperties") is False:
        return False
    schema["additionalProperties"] = False
    return True


CHANGES: dict[str, Change] = {
    "add a property": _add,
    "drop a property": lambda rng, schema, root: bool(_taken(rng, schema)),
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


def compared(_: Any, case: Mapping[str, Any], draws: int, seed: str) -> Sheet:
    """Return our answer on a pair, and what the judges say of it: ``{"no grammar": error}`` for a schema that is
    refused by itself. Runs in a process of its own."""
    rng, old, new = random.Random(seed), case["old"], case["new"]
    try:
        grammar, other = Grammar.from_json_schema(old), Grammar.from_json_schema(new)
    except ToolGrammarError as error:
        return {"no grammar": type(error).__name__}
    begin = time.process_time()
    found = grammar.compare(other)
    seconds = time.process_time() - begin
    sheet: Sheet = {
        "covers": found.covers,
        "seconds": seconds,
        "why": [each.message.split(": ", 1)[-1][:200] for each in found.undecided],
    }
    try:
        judges = [Judges(old), Judges(new)]
    except Exception as error:
        return {**sheet, "unjudged": type(error).__name__}
    result: Counter[str] = Counter()
    shown: list[Any] = []

    def verdicts(which: int, value: Any) -> tuple[bool | None, ...]:
        """Return what the judges of one schema say, and those of the other."""
        return judges[which].verdict(value), judges[1 - which].verdict(value)

    for which, witness in enumerate((found.lost, found.gained)):
        if witness.text is not None:
            said = verdicts(which, json.loads(witness.text))
            kind = "confirmed" if said == (True, False) else "unclear" if None in said else "wrong"
            result[kind] += 1
            shown += [[kind, which, witness.text[:300]]] * (kind != "confirmed")
        elif witness.is_none:
            result["proved"] += 1
            values = [] if which else [test["data"] for test in case["tests"] if test["valid"]]
            with suppress(ToolGrammarError):
                values += [json.loads(random_text((grammar, other)[which], rng, 80)) for _ in range(DRAWN)]
            for value in _attacks(values, judges[which].fast.is_valid, draws, rng):
                result["attacks"] += 1
                if not judges[1 - which].fast.is_valid(value):
                    kind = "wrong" if verdicts(which, value) == (True, False) else "unclear"
                    result[kind] += 1
                    shown.append([kind, which, json.dumps(value)[:300]])
                if result["wrong"] or result["unclear"] or time.process_time() - begin > DEADLINE / 2:
                    break
    return {**sheet, "judged": dict(result), "shown": shown}


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
        some = rng.sample(found, min(len(found), DRAWN))
        near = [each for value in some for each in islice(edits(value), MOST_EDITS)]
        values = [changed for *_, changed in rng.sample(near, min(len(near), count))]


def covered(_: Any, case: Mapping[str, Any], *__: Any) -> Sheet:
    """Return the answer of jsonschema-rs on a pair. Runs in a process of its own."""
    import jsonschema_rs

    try:
        old, new = (
            jsonschema_rs.canonicalize(case[each], validate_formats=True, offline=True) for each in ("old", "new")
        )
        return {"covers": str(new.covers(old)).rsplit(".", 1)[-1].lower()}
    except BaseException as error:  # also a panic of Rust
        return {"covers": f"error: {type(error).__name__}"}


def changed_schemas(seed: int) -> Iterator[dict[str, Any]]:
    """Yield pairs from all of MaskBench, in a random order, the kinds of changes in turn."""
    rng = random.Random(seed)
    cases = rows(MASKBENCH_ALL)
    rng.shuffle(cases)
    kinds = list(CHANGES)
    for number in range(len(cases) * len(kinds)):
        case = cases[number % len(cases)]
        kind = kinds[(number + number // len(cases)) % len(kinds)]
        new = changed(case["schema"], kind, rng)
        if new is not None:
            yield {**case, "id": f"{case['id']} {kind}", "kind": kind, "old": case["schema"], "new": new}


def _contradicts(ours: Sheet, theirs: Sheet) -> bool:
    """Return True if both sides have an answer, and not the same."""
    said = {"yes": True, "no": False}.get(theirs.get("covers", ""))
    return said is not None and ours.get("covers") is (not said)


def summary(sheets: Sequence[tuple[Sheet, Sheet]]) -> dict[str, Any]:
    """Return the counts of some pairs, by our sheets and theirs, with the times of our comparison."""
    asked = [pair for pair in sheets if "no grammar" not in pair[0]]
    seconds = [ours.get("seconds", float(DEADLINE)) for ours, _ in asked] or [0.0]
    judged: Counter[str] = Counter()
    for ours, _ in asked:
        judged.update(ours.get("judged", {}))
    return {
        "pairs": len(sheets),
        "refused": len(sheets) - len(asked),
        "decided": sum(ours.get("covers") is not None for ours, _ in asked),
        "compatible": sum(ours.get("covers") is True for ours, _ in asked),
        "broken": sum(ours.get("covers") is False for ours, _ in asked),
        **{f"p{share}_ms": 1_000 * percentile(seconds, share / 100) for share in (50, 99)},
        "judged": dict(judged),
        "theirs": dict(Counter(theirs.get("covers", "no answer").split(":")[0] for _, theirs in asked)),
        "contradict": sum(_contradicts(*pair) for pair in asked),
    }


def main(
    pairs: int = 10_000,
    draws: int = 1_000,
    seed: int = 1,
    verbose: bool = False,
    sheets: Path | None = None,
    keep: bool = False,
) -> None:
    """Run the benchmark.

    Args:
        pairs: number of changed schemas
        draws: valid values with which an inclusion is attacked
        verbose: print wrong, unclear and undecided pairs
    """
    cases = list(islice(changed_schemas(seed), pairs))
    jobs = {"ours": "compared", "theirs": "covered"}
    workers = [Worker(name, (__name__, job), engine="builtins:object", deadline=DEADLINE) for name, job in jobs.items()]
    settings = {"pairs": pairs, "draws": draws, "seed": seed}
    found = gathered(workers, cases, lambda case: (case, draws, f"{seed} {case['id']}"), settings, sheets)
    by_kind: dict[str, list[tuple[Sheet, Sheet]]] = {kind: [] for kind in CHANGES}
    undecided: Counter[str] = Counter()
    for case in cases:
        ours, theirs = pair = found["ours"][case["id"]], found["theirs"][case["id"]]
        by_kind[case["kind"]].append(pair)
        is_undecided = "no grammar" not in ours and ours.get("covers") is None
        if is_undecided:
            undecided[(ours.get("why") or [ours.get("refused", "no answer")])[0]] += 1
        if verbose and (ours.get("shown") or is_undecided or _contradicts(*pair)):
            print(json.dumps({"id": case["id"], **ours, "theirs": theirs}, ensure_ascii=False)[:1_000], flush=True)
    report = {
        "all": summary([pair for of_kind in by_kind.values() for pair in of_kind]),
        "kinds": {kind: summary(of_kind) for kind, of_kind in by_kind.items()},
        "undecided": dict(undecided.most_common(12)),
        "draws": draws,
    }
    show("contracts", report, keep=keep)
