"""Judge mutants of real schemas by two validators: one schema, its options and its values for each seed.

    python -m tests.core.schema.mutants [--first SEED] [--mutants NUMBER] [--seconds SECONDS] [--workers NUMBER]
        [--faults FOLDER]

Parts of real schemas, which are small, are recombined across drafts: keywords are moved from one to another, taken
away, doubled, negated, put under other keywords. Whatever binds is judged by what it writes and by what it accepts: no
text that it can write is invalid, no valid value is refused unless a narrowed keyword or an order of members says so,
nothing raises an error in mid-text, and nothing takes more than `MAX_SECONDS` of processor time. The schemas are those
of MaskBench where they are beside the repository, else those of the regressions and of the tests.

Each fault is reduced to a small schema, and written to a file of the form that ``tests/regressions`` has.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import functools
import gzip
import json
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from toolgrammar.core import Grammar, LimitError, SchemaError, UnsatisfiableSchemaError
from toolgrammar.core.json import resolve_local
from toolgrammar.core.schema.read.keywords import KEYWORDS, Shape

from ...judges import Judges
from ...schemas import DEFINITIONS as DEFINED
from ...schemas import random_value
from ...whole_masks import MaskError, check_mask
from .writing import EOS, LIKELY, VOCABULARY

REGRESSIONS = Path(__file__).resolve().parents[2] / "regressions"
REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "maskbench-all.jsonl.gz"

DRAFTS = (
    None,
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)

#: Maximum number of characters of a part of a schema that is taken, and of a mutant.
MAX_PART, MAX_MUTANT = 700, 4_000
#: Minimum number of characters of a part that is taken more often.
LARGE = 80
#: Number of values that each mutant is asked of, of walks, and of tokens of a walk.
VALUES, WALKS, MAX_WALK = 16, 3, 40
#: Maximum processor time of one mutant, in seconds.
MAX_SECONDS = 5.0
#: Maximum processor time of the reduction of a fault, in seconds.
MAX_REDUCTION = 10.0
#: Maximum time without an answer before a process is ended, in seconds.
PATIENCE = 180.0

#: Keywords of which a mutant may get one from another schema, and wrappers of one or several schemas.
_MOVED = (
    frozenset(KEYWORDS) - KEYWORDS.definitions - {"$id", "id", "$schema", "$anchor", "$dynamicAnchor", "$dynamicRef"}
)
_LISTS = ("anyOf", "oneOf", "allOf")
_PLACES = (
    "items",
    "additionalProperties",
    "contains",
    "not",
    "propertyNames",
    "if",
    "then",
    "else",
    "unevaluatedItems",
)


#: Names, and values of bounds, that few schemas have.
ODD_NAMES = ("", "a/b", "\\", 'a"b', "\x00", "\n", "é", "😀", "$ref", "a" * 40, "\u2028", "a\\/b")
ODD_BOUNDS = (0, 1, 1.0, -1, 0.1, 1e300, -1e-300, 2**53 + 1, 10**30, 3.5)
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength")


class MutantError(AssertionError):
    """A fault: what is wrong with which mutant, and the text that shows it."""

    def __init__(self, what: str, schema: Any, options: dict[str, Any], text: str = "") -> None:
        self.what, self.schema, self.options, self.text = what, schema, options, text
        super().__init__(f"{what}\ntext: {text!r}\noptions: {options}\nschema: {json.dumps(schema)}")


@dataclass
class Corpus:
    """Parts of schemas, those of more than `LARGE` characters again, the values of each keyword in them, and values of
    JSON."""

    parts: list[dict[str, Any]] = field(default_factory=list)
    large: list[dict[str, Any]] = field(default_factory=list)
    words: dict[str, list[Any]] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)

    def add(self, document: dict[str, Any]) -> None:
        """Add the small parts of a document, each with the definitions that it refers to."""
        for part in KEYWORDS.every_schema(document):
            text = json.dumps(part)
            if len(text) > MAX_PART or len(part) == 0:
                continue
            own = self._with_definitions(dict(part), document)
            if own is not None:
                self.parts.append(own)
                if len(text) > LARGE:
                    self.large.append(own)
            for word, value in part.items():
                if word in _MOVED and '"$ref"' not in json.dumps(value):
                    self.words.setdefault(word, []).append(value)

    def _with_definitions(self, part: dict[str, Any], document: dict[str, Any]) -> dict[str, Any] | None:
        """Return a part whose references lead into ``$defs`` of its own; None if they lead elsewhere, or far."""
        found: dict[str, Any] = {}

        def moved(value: Any) -> Any:
            if isinstance(value, list):
                return [moved(each) for each in value]
            if not isinstance(value, dict):
                return value
            result = {word: value[word] if word in KEYWORDS.data else moved(value[word]) for word in value}
            reference = value.get("$ref")
            if isinstance(reference, str):
                name = reference.replace("/", "_").lstrip("#_") or "root"
                if name not in found:
                    if len(found) > 5:
                        raise LookupError(reference)
                    found[name] = True
                    found[name] = moved(resolve_local(document, reference))
                result["$ref"] = f"#/$defs/{name}"
            return result

        if '"$ref"' not in json.dumps(part):
            return part
        try:
            part = moved(part)
        except (LookupError, ValueError, TypeError, RecursionError):
            return None
        whole = {**part, "$defs": found}
        return whole if len(json.dumps(whole)) <= MAX_PART else None


@functools.lru_cache(maxsize=1)
def corpus(most: int | None = None) -> Corpus:
    """Return the parts of the real schemas, or of those of the tests; of ``most`` documents at most."""
    found = Corpus()
    if REAL.is_file() and most is None:
        with gzip.open(REAL, "rt", encoding="utf-8") as lines:
            for line in lines:
                if len(line) > 40_000:
                    continue
                row = json.loads(line)
                if isinstance(row["schema"], dict):
                    found.add(row["schema"])
                found.values += [test["data"] for test in row["tests"] if len(json.dumps(test["data"])) < 200]
        return found
    from .test_drafts import SCHEMAS

    for path in sorted(REGRESSIONS.glob("*.json")):
        found.add(json.loads(path.read_text(encoding="utf-8"))["schema"])
    for schema in (*SCHEMAS, *({"$defs": DEFINED, **each} for each in DEFINED.values())):
        found.add(schema)
    return found


# -- mutants ---------------------------------------------------------------------------------------------------


def mutant(rng: random.Random, source: Corpus) -> dict[str, Any]:
    """Return a mutant of one part of a schema."""
    schema = copy.deepcopy(rng.choice(source.large if source.large and rng.random() < 0.7 else source.parts))
    for _ in range(rng.choice((0, 1, 2, 3, 4, 5, 6, 8))):
        changed = _changed(rng, schema, source)
        if len(json.dumps(changed)) <= MAX_MUTANT:
            schema = changed
    draft = rng.choice(DRAFTS)
    for part in KEYWORDS.every_schema(schema):
        part.pop("$schema", None)  # type: ignore[attr-defined]
    return schema if draft is None else {"$schema": draft, **schema}


def _changed(rng: random.Random, schema: dict[str, Any], source: Corpus) -> dict[str, Any]:
    """Return a schema with one change at a random place in it."""
    schema = copy.deepcopy(schema)
    definitions = schema.pop("$defs", {})
    places = [each for each in KEYWORDS.every_schema(schema) if isinstance(each, dict)]
    if not places:
        return schema
    place: dict[str, Any] = rng.choice(places)
    other = copy.deepcopy(rng.choice(source.large if source.large and rng.random() < 0.5 else source.parts))
    definitions = {**definitions, **other.pop("$defs", {})}
    kind = rng.randrange(12)
    if kind > 8:
        kind = {9: 3, 10: 4}.get(kind, kind)
    if kind == 0 and place:
        del place[rng.choice(list(place))]
    elif kind == 1:
        for word in rng.sample(list(source.words), rng.randint(1, 3)):
            place[word] = copy.deepcopy(rng.choice(source.words[word]))
    elif kind == 2:
        place.update(other)
    elif kind == 3:
        word, options = rng.choice(_LISTS), [dict(place), other]
        if rng.random() < 0.3:
            options.append(copy.deepcopy(rng.choice(places)))
        place.clear()
        place[word] = options
    elif kind == 4:
        place[rng.choice(_PLACES)] = rng.choice((other, copy.deepcopy(rng.choice(places)), {"$ref": "#"}, True, False))
    elif kind == 5:
        inner = dict(place)
        place.clear()
        place[rng.choice(("not", "items", "contains", "additionalProperties"))] = inner
    elif kind == 6:
        name = rng.choice(("a", "b", *(names[0] if (names := list(other.get("properties", ()))) else "c",)))
        properties = place.setdefault("properties", {})
        if isinstance(properties, dict):
            properties[name] = other
            if rng.random() < 0.5:
                place["required"] = [name]
    elif kind == 7:
        _numbers(rng, place)
    elif kind == 11:
        _odd(rng, place, other)
    else:
        values = [random_value(rng) for _ in range(rng.randint(1, 4))]
        place.update(
            rng.choice(({"enum": values}, {"uniqueItems": True}, {"const": values[0]}, {"not": {"enum": values}}))
        )
    return {**schema, "$defs": definitions} if definitions else schema


def _odd(rng: random.Random, place: dict[str, Any], other: dict[str, Any]) -> None:
    """Give a schema an odd name or bound, or a pattern of real code."""
    kind = rng.randrange(3)
    if kind == 0:
        properties = place.setdefault("properties", {})
        if isinstance(properties, dict):
            properties[rng.choice(ODD_NAMES)] = other
    elif kind == 1:
        place[rng.choice(_BOUNDS)] = rng.choice(ODD_BOUNDS)
    elif rng.random() < 0.7:
        place["pattern"] = rng.choice(code_patterns())
    else:
        place["patternProperties"] = {rng.choice(code_patterns()): other}


@functools.lru_cache(maxsize=1)
def code_patterns() -> tuple[str, ...]:
    """Return the patterns of Python's own modules, and some with the characters that JSON escapes."""
    found = {"^/[a-z]+(/[a-z]*)*$", r"^([a-z]+(\\[a-z]*)*)?$", r'^[^"]+("[a-z]*)*$', r"^[a-z]+([\n\t][a-z]*)*$"}
    for path in sorted(Path(json.__file__).parents[1].glob("*.py")):
        with contextlib.suppress(SyntaxError, UnicodeDecodeError):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                is_compiled = isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile" and node.args
                if is_compiled and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                    found.add(node.args[0].value)
    return tuple(sorted(each for each in found if len(each) < 200))


def _numbers(rng: random.Random, place: dict[str, Any]) -> None:
    """Change a number among the keywords of a schema."""
    words = [word for word, value in place.items() if type(value) in (int, float)]
    if words:
        word = rng.choice(words)
        place[word] = rng.choice((0, 1, 2, 3, place[word] + 1, max(0, place[word] - 1), place[word] * 2))


def draw_options(rng: random.Random) -> dict[str, Any]:
    """Return keyword arguments for `Grammar.from_json_schema`."""
    return {
        "whitespace": rng.choice(("single", "compact", "flexible")),
        "property_order": rng.choice(("schema", "any")),
        "additional_properties": rng.random() < 0.8,
        "on_unsupported": rng.choice(("narrow", "narrow", "error")),
    }


def guess(rng: random.Random, schema: Any, root: dict[str, Any], depth: int = 3) -> Any:
    """Return a value that may be valid: of what a schema names and lists."""
    if not isinstance(schema, dict) or depth < 0:
        return random_value(rng, 1)
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return rng.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    inner = [each for word in _LISTS if isinstance(schema.get(word), list) for each in schema[word]]
    inner += [schema[word] for word in ("then", "else") if word in schema]
    if isinstance(schema.get("$ref"), str):
        with contextlib.suppress(LookupError, ValueError, TypeError):
            inner.append(resolve_local(root, schema["$ref"]))
    if inner and rng.random() < 0.7:
        return guess(rng, rng.choice(inner), root, depth - 1)
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        kinds = [*kinds, "object"]
    if "items" in schema or "contains" in schema:
        kinds = [*kinds, "array"]
    kind = rng.choice(kinds) if kinds else None
    if kind == "object":
        declared = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
        names = [name for name in declared if rng.random() < 0.6]
        if isinstance(schema.get("required"), list) and rng.random() < 0.9:
            names += [name for name in schema["required"] if isinstance(name, str) and name not in names]
        others = schema.get("additionalProperties")
        names += [name for name in ("a", "zz") if name not in names and rng.random() < 0.15]
        return {name: guess(rng, declared.get(name, others), root, depth - 1) for name in names[:8]}
    if kind == "array":
        least = schema.get("minItems", 0)
        count = rng.randrange(4) + (least if type(least) is int and least < 4 else 0)
        items = schema.get("items", schema.get("contains"))
        prefix = items if isinstance(items, list) else schema.get("prefixItems", [])
        prefix = prefix if isinstance(prefix, list) else []
        return [guess(rng, prefix[at] if at < len(prefix) else items, root, depth - 1) for at in range(count)]
    if kind in ("integer", "number"):
        bounds = [
            schema[word] for word in ("minimum", "maximum", "multipleOf") if type(schema.get(word)) in (int, float)
        ]
        return rng.choice((0, 1, 2, -1, 12, *bounds))
    if kind == "string":
        return rng.choice(("", "a", "ab", "x" * 12, "2024-02-29", "é", "a1"))
    return {"boolean": rng.random() < 0.5, "null": None}.get(str(kind), random_value(rng, 2))


# -- the judge -------------------------------------------------------------------------------------------------


def judge_seed(seed: int, tally: Counter[str], source: Corpus, limit: float | None = None) -> None:
    """Draw a mutant, options and values from a seed, and judge them.

    Args:
        seed: of everything that is drawn.
        tally: what is counted.
        source: what mutants are made of.
        limit: maximum processor time, in seconds; None: any.

    Raises:
        MutantError: what is wrong.
    """
    rng = random.Random(seed)
    schema, options = mutant(rng, source), draw_options(rng)
    values = [guess(rng, schema, schema) for _ in range(VALUES - 2)]
    values += [rng.choice(source.values) if source.values else random_value(rng), random_value(rng)]
    begin = time.process_time()
    judge(schema, options, values, random.Random(seed), tally)
    taken = time.process_time() - begin
    if limit is not None and taken > limit:
        raise MutantError(f"slow: {taken:.1f} s", schema, options)


def judge(schema: Any, options: dict[str, Any], values: Sequence[Any], rng: random.Random, tally: Counter[str]) -> None:
    """Judge what is accepted and written under a schema.

    Raises:
        MutantError: what is wrong.
    """
    formats = options.get("formats", True)
    try:
        grammar = Grammar.from_json_schema(schema, **options)
        constraint = grammar.bind(VOCABULARY)
    except UnsatisfiableSchemaError:
        tally["unsatisfiable"] += 1
        if options["additional_properties"]:
            judges = Judges(schema, formats=formats)
            for value in values:
                if judges.verdict(value):
                    raise MutantError(
                        "unsatisfiable, but a value is valid", schema, options, json.dumps(value)
                    ) from None
        return
    except (SchemaError, LimitError) as error:
        tally[type(error).__name__] += 1
        return
    except Exception as error:
        raise MutantError(f"bind raises {type(error).__name__}: {error}", schema, options) from error
    tally["written"] += 1
    judges = Judges(schema, formats=formats)
    text = ""
    try:
        exact = options["additional_properties"] and not grammar.narrowed
        for value in values:
            verdict = judges.verdict(value)
            tally[{True: "valid", False: "invalid", None: "unknown"}[verdict]] += 1
            if verdict is None:
                continue
            text = written(value, options, rng)
            accepted = grammar.matches(text)
            if accepted and not verdict:
                raise MutantError("wrong accept", schema, options, text)
            if verdict and not accepted and exact and _has_one_text(value, options) and not _contains_in_2019(schema):
                raise MutantError("wrong reject", schema, options, text)
        for _ in range(WALKS):
            matcher, done, text = constraint.matcher(), b"", ""
            stop = rng.randrange(MAX_WALK)
            for _ in range(stop):
                choices = np.flatnonzero(check_mask(matcher)).tolist()
                tally["masks"] += 1
                if not choices:
                    if not matcher.is_finished:
                        raise MutantError("a dead end", schema, options, repr(done))
                    break
                likely = [token for token in choices if token in LIKELY]
                token = rng.choice(likely if likely and rng.random() < 0.8 else choices)
                matcher.accept(token)
                if token == EOS:
                    break
                done += VOCABULARY.tokens[token] or b""
                text = repr(done)
                tally["tokens"] += 1
            if not matcher.is_finished:
                done += matcher.shortest_completion()
            text = done.decode()
            if judges.verdict(json.loads(text)) is False:
                raise MutantError("an invalid text is written", schema, options, text)
            if not grammar.matches(text):
                raise MutantError("a written text is refused", schema, options, text)
    except MutantError:
        raise
    except MaskError as error:
        raise MutantError(f"a wrong mask: {error}", schema, options, text) from None
    except Exception as error:
        raise MutantError(f"mid-text {type(error).__name__}: {error}", schema, options, text) from error


def written(value: Any, options: dict[str, Any], rng: random.Random) -> str:
    """Return a text of a value in the spacing of the options."""
    style = options["whitespace"]
    if style != "flexible":
        return json.dumps(value, ensure_ascii=False, separators=(",", ":") if style == "compact" else (", ", ": "))

    def space() -> str:
        return rng.choice(("", "", " ", "\n", "\t", "\n  "))

    def text(part: Any) -> str:
        if isinstance(part, dict):
            members = [f"{space()}{text(name)}{space()}:{space()}{text(each)}{space()}" for name, each in part.items()]
            return "{" + (",".join(members) or space()) + "}"
        if isinstance(part, (list, tuple)):
            return "[" + (",".join(f"{space()}{text(each)}{space()}" for each in part) or space()) + "]"
        return json.dumps(part, ensure_ascii=False)

    return text(value)


def _contains_in_2019(schema: Any) -> bool:
    """Return True if the judges may be wrong to accept: Draft 2019-09, section 9.3.1.3, has no annotation of
    ``contains``, and both libraries read ``unevaluatedItems`` there as Draft 2020-12 does."""
    text = json.dumps(schema)
    return all(each in text for each in ("2019-09", '"contains"', '"unevaluatedItems"'))


def _has_one_text(value: Any, options: dict[str, Any]) -> bool:
    """Return True if the text that ``json.dumps`` writes of a value is one that the options allow."""
    if isinstance(value, dict):
        if len(value) > 1 and options["property_order"] == "schema":
            return False
        return all(_has_one_text(each, options) for each in (*value, *value.values()))
    if isinstance(value, list):
        return all(_has_one_text(each, options) for each in value)
    if isinstance(value, float) and options["whitespace"] != "flexible":
        return not value.is_integer() and "e" not in repr(value)
    return True


# -- reduction -------------------------------------------------------------------------------------------------


def reduced(schema: Any, fails: Callable[[Any], bool], tries: int = 300) -> Any:
    """Return a smaller schema that fails in the same way."""
    progress = True
    while progress and tries > 0:
        progress = False
        for smaller in _smaller(schema):
            tries -= 1
            if tries <= 0:
                break
            if fails(smaller):
                schema, progress = smaller, True
                break
    return schema


def _smaller(schema: Any) -> Iterator[Any]:
    """Yield a schema with one part left out, or put in the place of the schema."""
    if isinstance(schema, dict):
        for word, value in schema.items():
            if isinstance(value, dict) and word not in KEYWORDS.definitions and word not in KEYWORDS.data:
                yield value if "$schema" not in schema else {"$schema": schema["$schema"], **value}
        for word in schema:
            yield {key: value for key, value in schema.items() if key != word}
        for word, value in schema.items():
            if word not in KEYWORDS.data or isinstance(value, list):
                for inner in _smaller(value):
                    if KEYWORDS.get(word) is None or KEYWORDS[word].shape != Shape.ALTERNATIVES or inner:
                        yield {**schema, word: inner}
    elif isinstance(schema, list):
        for at, value in enumerate(schema):
            yield schema[:at] + schema[at + 1 :]
            for inner in _smaller(value):
                yield [*schema[:at], inner, *schema[at + 1 :]]


def reduce_fault(fault: MutantError) -> MutantError:
    """Return a fault of the same kind with a smaller schema."""
    kind = fault.what.split(":")[0]
    last = fault
    end = time.process_time() + MAX_REDUCTION

    def fails(schema: Any) -> bool:
        nonlocal last
        if time.process_time() > end:
            return False
        values = []
        if fault.what.startswith(("wrong", "unsatisfiable")):
            values = [json.loads(fault.text)]
        for seed in range(1 if values else 4):
            try:
                judge(schema, fault.options, values, random.Random(seed), Counter())
            except MutantError as error:
                if error.what.split(":")[0] == kind:
                    last = error
                    return True
            except Exception:
                return False
        return False

    reduced(fault.schema, fails)
    return last


# -- the command -----------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--mutants", type=int, default=1_000, help="number of mutants")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no mutant is begun after them")
    parser.add_argument("--workers", type=int, default=1, help="number of processes, which take the seeds in turns")
    parser.add_argument("--faults", type=Path, help="folder for the files of faults")
    options = parser.parse_args(arguments)
    end = time.time() + options.seconds
    context = multiprocessing.get_context("spawn")
    tally: Counter[str] = Counter()
    faults = 0
    running: dict[int, tuple[Any, Any, float]] = {}

    def start(number: int, first: int) -> None:
        ours, theirs = context.Pipe(duplex=False)
        seeds = range(first, options.first + options.mutants, options.workers)
        process = context.Process(target=_work, args=(seeds, end, theirs), daemon=True)
        process.start()
        theirs.close()
        running[number] = (process, ours, time.time())

    at = {number: options.first + number for number in range(options.workers)}
    for number, first in at.items():
        start(number, first)
    told = time.time()
    while running:
        for number, (process, reports, heard) in list(running.items()):
            try:
                report = reports.recv() if reports.poll(0.2) else None
            except EOFError:
                report = "end" if not process.exitcode else None
                process.join()
                if process.exitcode:
                    faults += 1
                    print(f"seed {at[number]}: the process ended with {process.exitcode}", flush=True)
                    start(number, at[number] + options.workers)
                    continue
            if report == "end":
                del running[number]
            elif report is None:
                if time.time() > heard + PATIENCE:
                    faults += 1
                    print(f"seed {at[number]}: no answer", flush=True)
                    process.kill()
                    start(number, at[number] + options.workers)
            else:
                running[number] = (process, reports, time.time())
                seed, counts, fault = report
                at[number] = seed + options.workers
                tally.update(counts)
                if fault is not None:
                    faults += 1
                    print(f"seed {seed}: {fault['why']}\n  {json.dumps(fault['text'])[:300]}", flush=True)
                    print(f"  {json.dumps(fault['options'])}\n  {json.dumps(fault['schema'])[:1_500]}", flush=True)
                    if options.faults is not None:
                        options.faults.mkdir(parents=True, exist_ok=True)
                        path = options.faults / f"mutant_{seed}.json"
                        path.write_text(json.dumps(fault, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        if time.time() > told + 60:
            told = time.time()
            print(f"{tally['mutants']:,} mutants, {faults} faults; {dict(tally)}", flush=True)
    print(f"{tally['mutants']:,} mutants, {faults} faults; {dict(tally)}", flush=True)
    return 1 if faults else 0


def _work(seeds: Sequence[int], end: float, reports: Any) -> None:
    """Judge the mutants of some seeds in a process of its own, and send what came of each."""
    source = corpus()
    parent = multiprocessing.parent_process()
    for seed in seeds:
        if time.time() > end or (parent is not None and not parent.is_alive()):
            break
        tally: Counter[str] = Counter(mutants=1)
        found = None
        try:
            judge_seed(seed, tally, source, MAX_SECONDS)
        except MutantError as error:
            small = error if error.what.startswith("slow") else reduce_fault(error)
            found = {"why": small.what, "schema": small.schema, "options": small.options, "text": small.text}
        reports.send((seed, tally, found))
    reports.send("end")


if __name__ == "__main__":
    sys.exit(main())
