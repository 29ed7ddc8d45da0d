"""How the cost of a token grows: with the vocabulary, the properties of a schema, its depth, the tools of a set.

    python -m benchmarks growth/growth [--sweeps NAME,...] [--peers llguidance] [--clock cpu|wall] [--data FILE]

For every point of a sweep, grammars that were never met before are compiled and give their first mask; then texts
under them are written by the vocabulary's own tokenizer, one mask and one accept for each token: *first*, when nothing
of the grammar is known yet, and *again*, three times the same texts. Every text must be accepted to its end, by every
engine, or the point says so. All engines allow the same texts: one space after `,` and `:`, properties in the order of
the schema.

- ``vocabulary``: a schema of 20 properties under 32,768 tokens (the first of Tekken, single bytes among them), 131,072
  (Tekken), and 262,144 (each token once more, with a tilde behind it).
- ``properties``: 1 to 1,000 properties of eight kinds, every other one required; texts write most of the others.
- ``depth``: objects in objects, 1 to 64 deep, a string and a number on each level.
- ``tools``: sets of 1 to 1,000 tools in the Hermes format, at least one call; the tools of the BFCL sample where it
  is, in the order of a shuffle, else tools that are made. Each text calls another tool.

Each point runs in a process of its own (a fork: it needs a system that has it) with a prepared vocabulary, after one
text under no schema. Small grammars are drawn several times, until at least 24 texts were written. By default times
are of the thread's own processor time; about 0.3 us of each first time is the clock's own.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import jsonschema

from benchmarks.masks.tool_sets import LLGuidance, Ours
from benchmarks.shared.data import BFCL, distinct_tools
from benchmarks.shared.engines import Encode
from benchmarks.shared.peers import tekken, tekken_file
from benchmarks.shared.results_io import percentile
from benchmarks.shared.tables import show
from benchmarks.shared.workers import installed
from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.masks import COMPILED
from toolgrammar.tools import Tool
from toolgrammar.tools.closed_schema import close_objects

SWEEPS: dict[str, tuple[int, ...]] = {
    "vocabulary": (32_768, 131_072, 262_144),
    "properties": (1, 3, 10, 30, 100, 300, 1_000),
    "depth": (1, 2, 4, 8, 16, 32, 64),
    "tools": (1, 3, 10, 30, 100, 300, 1_000),
}
TEKKEN = 131_072
TEXTS = 24
#: Behind each token of the doubled vocabulary: common in no token, and ordinary for every engine (llguidance's sets of
#: tokens that stay in strings leave out 0x7F, which would make it look twenty times as slow).
MARKER = b"~"
WORDS = ("harbour", "Zürich", "blue", "42nd street", "tomorrow", "naïve", "a window seat", "東京", "fast", "refund")
Case = tuple[Any, list[str]]


def vocabulary_of(size: int) -> tuple[Vocabulary, Encode]:
    """A vocabulary of so many tokens, and its tokenizer: byte pairs in Tekken's order, as far as it has them."""
    import tiktoken

    whole, _ = tekken()
    pattern = json.loads(tekken_file().read_text(encoding="utf-8"))["config"]["pattern"]
    controls = next(index for index, token in enumerate(whole.tokens) if token is not None)
    ranks = {token: rank for rank, token in enumerate(whole.tokens[controls:size]) if token is not None}
    encoding = tiktoken.Encoding("growth", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    tokens = list(whole.tokens[:size])
    tokens += [None if token is None else token + MARKER for token in whole.tokens[: max(0, size - TEKKEN)]]
    vocabulary = Vocabulary(tokens, eos=whole.eos)
    return vocabulary, lambda text: [controls + rank for rank in encoding.encode_ordinary(text)]


# -- what is compiled and written ----------------------------------------------------------------------------------


def properties(count: int, draw: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema of so many properties, names of its own, and an instance."""
    kinds: tuple[dict[str, Any], ...] = (
        {"type": "string"},
        {"type": "integer", "minimum": 0, "maximum": 1_000},
        {"enum": ["economy", "business", "first"]},
        {"type": "boolean"},
        {"type": "number"},
        {"type": "array", "items": {"type": "string"}, "maxItems": 5},
        {"type": "string", "maxLength": 60},
        {"type": "string", "pattern": "^[a-z]{2,8}$"},
    )
    values: tuple[Callable[[], Any], ...] = (
        lambda: " ".join(draw.sample(WORDS, 3)),
        lambda: draw.randint(0, 1_000),
        lambda: draw.choice(["economy", "business", "first"]),
        lambda: draw.random() < 0.5,
        lambda: round(draw.uniform(-100, 100), 3),
        lambda: draw.sample(WORDS, draw.randint(1, 4)),
        lambda: " ".join(draw.sample(WORDS, 2)),
        lambda: "".join(draw.choices("abcdefgh", k=draw.randint(2, 8))),
    )
    first = draw.randrange(len(kinds))
    members = {
        f"{draw.choice(['max', 'is', 'new', 'old', 'my'])}_{draw.randrange(16**5):05x}_{at}": (first + at) % len(kinds)
        for at in range(count)
    }
    schema = {
        "type": "object",
        "properties": {name: kinds[kind] for name, kind in members.items()},
        "required": list(members)[::2],
        "additionalProperties": False,
    }
    written = {
        name: values[kind]() for at, (name, kind) in enumerate(members.items()) if at % 2 == 0 or draw.random() < 0.7
    }
    return schema, written


def nested(depth: int, draw: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Objects so deep in objects, names of their own, and an instance."""
    schema: dict[str, Any] = {}
    instance: dict[str, Any] = {}
    label, count, child = (f"{word}_{draw.randrange(16**4):04x}" for word in ("label", "count", "child"))
    for level in range(depth):
        members = {label: {"type": "string"}, count: {"type": "integer"}}
        value = {label: " ".join(draw.sample(WORDS, 2)), count: draw.randint(-500, 5_000)}
        if level:
            members[child], value[child] = schema, instance
        schema = {
            "type": "object",
            "properties": members,
            "required": [name for name in members if name != count],
            "additionalProperties": False,
        }
        instance = value
    return schema, instance


def example(schema: Any, draw: random.Random) -> Any:
    """A value that common schemas of tools allow; whoever asks checks it."""
    if not isinstance(schema, dict):
        return " ".join(draw.sample(WORDS, 2))
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else draw.choice(schema["enum"])
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return example(draw.choice(schema[keyword]), draw)
    kind = schema.get("type", "string")
    kind = draw.choice(kind) if isinstance(kind, list) else kind
    if kind == "object":
        required = schema.get("required", ())
        members = schema.get("properties", {}).items()
        return {name: example(each, draw) for name, each in members if name in required or draw.random() < 0.5}
    if kind == "array":
        least = schema.get("minItems", 0)
        size = draw.randint(max(least, 1), max(least, 1) + 2)
        return [example(schema.get("items", {"type": "string"}), draw) for _ in range(size)]
    if kind in ("integer", "number"):
        low = schema.get("minimum", 0)
        value = draw.randint(int(low), max(int(low), int(schema.get("maximum", int(low) + 500))))
        return value if kind == "integer" or draw.random() < 0.5 else value + 0.5
    return {"boolean": draw.random() < 0.5, "null": None}.get(kind, " ".join(draw.sample(WORDS, draw.randint(1, 3))))


def call(tool: Tool, draw: random.Random) -> str | None:
    """The text of a call that ``jsonschema`` finds valid, if one is found."""
    schema = close_objects(tool.parameters)
    for _ in range(20):
        arguments = example(schema, draw)
        if jsonschema.Draft202012Validator(schema).is_valid(arguments):
            body = json.dumps({"name": tool.name, "arguments": arguments}, ensure_ascii=False)
            return f"<tool_call>\n{body}\n</tool_call>"
    return None


def tool_pool(data: Path, count: int) -> tuple[list[Tool], int]:
    """So many tools, shuffled, and how many of them are from the sample: the others are made."""
    found = distinct_tools(data, count) if data.is_file() else []
    draw = random.Random(0)
    made = []
    for at in range(count - len(found)):
        schema, _ = properties(draw.randint(1, 6), draw)
        made.append(Tool(name=f"made_tool_{at}", description="", parameters=schema))
    pool = found + made
    draw.shuffle(pool)
    return pool, len(found)


def cases(sweep: str, at: int, pool: Sequence[Tool]) -> list[Case]:
    """Grammars that were never met, each with texts: at least `TEXTS` texts together."""
    draw = random.Random(sweep if sweep == "vocabulary" else f"{sweep} {at}")  # there, all sizes get the same texts
    if sweep == "tools":
        found: list[Case] = []
        for begin in range(0, len(pool) - at + 1, at):
            chosen = list(pool[begin : begin + at])
            callees = draw.sample(chosen, len(chosen))
            texts = [text for tool in callees if (text := call(tool, draw)) is not None]
            if texts:
                found.append((chosen, texts[:TEXTS]))
            if sum(len(each) for _, each in found) >= TEXTS:
                break
        return found
    made = []
    for _ in range(TEXTS if at <= 100 or sweep != "properties" else 3):
        size = 20 if sweep == "vocabulary" else at
        schema, instance = nested(size, draw) if sweep == "depth" else properties(size, draw)
        made.append((schema, [json.dumps(instance, ensure_ascii=False)]))
    return made


# -- measuring -----------------------------------------------------------------------------------------------------


def measure(engine: Any, given: Sequence[Case], encode: Encode, now: Callable[[], int]) -> dict[str, Any]:
    """Times of one engine at one point, in microseconds; or why there are none."""
    compiling: list[float] = []
    first: list[float] = []
    again = 0.0
    for subject, texts in given:
        handed = engine.prepare(subject)
        gc.collect()
        gc.disable()  # as `timeit` does: when Python looks for garbage depends on what was written before
        begin = now()
        try:
            compiled = engine.compile(handed)
        except Exception as error:  # a peer may raise anything; a refusal is a result
            return {"refused": f"{type(error).__name__}: {error}"[:160]}
        compiling.append((now() - begin) / 1e3)
        gc.enable()
        encoded = [encode(text) for text in texts]
        for tokens in encoded:
            matcher = engine.start(compiled)
            for token in tokens:
                begin = now()
                accepted = engine.step(matcher, token)
                first.append((now() - begin) / 1e3)
                if not accepted:
                    return {"refused": "a valid text"}
            if not engine.accepts(matcher):
                return {"refused": "the end of a valid text"}
        for tokens in encoded:
            passes = []
            for _ in range(3):
                matcher = engine.start(compiled)
                begin = now()
                for token in tokens:
                    engine.step(matcher, token)
                passes.append((now() - begin) / 1e3)
            again += statistics.median(passes)
    return {
        "compile_and_first_mask_us": {"p50": percentile(compiling, 0.5), "worst": max(compiling)},
        "first_us": {
            "mean": statistics.fmean(first),
            "p50": percentile(first, 0.5),
            "p99": percentile(first, 0.99),
            "worst": max(first),
        },
        "again_us": {"mean": again / len(first)},
        "grammars": len(compiling),
        "tokens": len(first),
    }


def child(engines: Sequence[Any], given: list[Case], encode: Encode, now: Callable[[], int], out: Any) -> None:
    """One point, in a process of its own."""
    for engine in engines:
        text = '{"a": ["b", 1.5, true, null, {}]}'
        warm = measure(engine, [({"type": "object"}, [text])], encode, now)
        assert "refused" not in warm, warm
    gc.collect()
    gc.freeze()
    out.send({engine.name: measure(engine, given, encode, now) for engine in engines})


def main(
    sweeps: str = ",".join(SWEEPS),
    peers: str = "llguidance",
    clock: Literal["cpu", "wall"] = "cpu",
    data: Path = BFCL,
    keep: bool = False,
) -> int:
    """Run the benchmark.

    Args:
        clock: cpu: of this thread alone, for a machine that is busy
        data: the BFCL sample, for its tools
    """
    chosen = sweeps.split(",")
    if unknown := set(chosen) - set(SWEEPS):
        raise SystemExit(f"no such sweep: {unknown.pop()}; there are {', '.join(SWEEPS)}")
    now = time.thread_time_ns if clock == "cpu" else time.perf_counter_ns
    pool, sampled = tool_pool(data, max(SWEEPS["tools"]))
    forks = multiprocessing.get_context("fork")
    report: dict[str, Any] = {
        "clock": clock,
        "compiled": COMPILED,
        "tools_of_bfcl": sampled,
        "sweeps": {name: {} for name in chosen},
    }
    sizes = SWEEPS["vocabulary"] if "vocabulary" in chosen else (TEKKEN,)
    for size in sizes:
        vocabulary, encode = vocabulary_of(size)
        engines: list[Any] = [Ours(vocabulary)]
        engines += [LLGuidance(vocabulary, encode) for _ in installed(peers)]
        Grammar.json().bind(vocabulary).matcher().fill_mask(engines[0].mask)  # the vocabulary's own tables
        points = [
            (sweep, at)
            for sweep in chosen
            for at in SWEEPS[sweep]
            if (at == size if sweep == "vocabulary" else size == TEKKEN)
        ]
        for sweep, at in points:
            given = cases(sweep, at, pool)
            receive, send = forks.Pipe(duplex=False)
            process = forks.Process(target=child, args=(engines, given, encode, now, send))
            process.start()
            report["sweeps"][sweep][str(at)] = receive.recv()
            process.join()
            print(f"{sweep} {at:,} is measured", flush=True)
    show("growth", report, keep=keep)
    every = [found for of_sweep in report["sweeps"].values() for found in of_sweep.values()]
    return int(any("refused" in found["toolgrammar"] for found in every))
