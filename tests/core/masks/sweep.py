r"""Compare whole masks with the matcher along texts under every schema of MaskBench, and under mutants of them.

    python -m tests.core.masks.sweep [--vocabularies bytes,smollm2,tekken] [--first NUMBER] [--schemas NUMBER]
        [--every NUMBER] [--mutants NUMBER] [--seconds SECONDS] [--data FILE]

The texts are the instances of each schema, valid or not, as far as they are accepted, with each character spelled in
any way that JSON has (``/`` as ``\/``, ``é`` as ``\u00E9`` or ``\u00e9``), and random walks that prefer quotes, slashes
and backslashes. After each step, the mask must have the tokens that the matcher accepts and no other
(`tests.whole_masks`). Under mutants (`tests.core.schema.mutants`) the verdicts of two validators count as well.

Faults are told as they are found; the exit status is 1 if there are any. The vocabulary ``smollm2`` is read from the
cache of the models, ``tekken`` is that of ``mistral-common``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toolgrammar.core import Grammar, LimitError, Matcher, SchemaError, Vocabulary
from toolgrammar.core.automaton.escapes import SHORT_ESCAPES

from ...vocabularies import BYTES, smollm2, tekken
from ...whole_masks import MaskError, Steps, check_mask
from ..schema.mutants import REAL, MutantError, corpus, judge_seed

VOCABULARIES = {"bytes": lambda: BYTES, "smollm2": smollm2, "tekken": tekken}

#: Maximum number of instances, of steps along each, of walks and of their steps, under each schema.
INSTANCES, STEPS, WALKS, WALK = 4, 120, 2, 30
#: Maximum number of masks of a large vocabulary under each schema.
LARGE = 24

_SHORT = {chr(code): bytes((0x5C, letter)) for letter, code in SHORT_ESCAPES.items()}
_LIKELY = frozenset(rb'\/"')


class Judge:
    """The masks of one vocabulary, under many schemas.

    Attributes:
        tally: numbers of masks, of their states, of schemas and of refusals.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._is_large = vocabulary.size > 2_000
        self._steps = Steps()
        self._seen: set[Any] = set()
        self.tally: Counter[str] = Counter()

    def schema(self, schema: Any, instances: Sequence[Any], rng: random.Random) -> None:
        """Compare masks along instances of a schema, and along walks.

        Raises:
            MaskError: they differ; the message has the text and the options.
        """
        options: dict[str, Any] = {
            "whitespace": rng.choice(("single", "compact", "flexible")),
            "property_order": rng.choice(("schema", "any")),
        }
        try:
            constraint = Grammar.from_json_schema(schema, **options).bind(self._vocabulary)
        except (SchemaError, LimitError) as error:
            self.tally[type(error).__name__] += 1
            return
        self.tally["schemas"] += 1
        self._seen.clear()
        self._steps = Steps()
        matcher = constraint.matcher()
        try:
            for value in rng.sample(list(instances), min(INSTANCES, len(instances))):
                matcher = constraint.matcher()
                self._instance(matcher, value, options["whitespace"], rng)
            for _ in range(WALKS):
                matcher = constraint.matcher()
                self._walk(matcher, rng)
        except MaskError as error:
            raise MaskError(f"{error}\n  options: {options}") from error
        finally:
            self.tally["distinct"] += self._steps.distinct if self._is_large else len(self._seen)

    def _check(self, matcher: Matcher) -> Any:
        """Compare one mask; return it, or None if it is one of too many of a large vocabulary."""
        engine, state = matcher._place
        key = id(engine), state
        if self._is_large and (len(self._seen) >= LARGE or key in self._seen):
            return None
        self._seen.add(key)
        self.tally["masks"] += 1
        return check_mask(matcher, self._steps)

    def _instance(self, matcher: Matcher, value: Any, whitespace: str, rng: random.Random) -> None:
        """Write a value as far as it is accepted."""
        self._check(matcher)
        steps = 0
        for spellings in pieces(value, whitespace, rng):
            for spelling in spellings:
                if self._taken(matcher, spelling):
                    steps += len(spelling)
                    break
            else:
                return
            if steps > STEPS:
                return

    def _taken(self, matcher: Matcher, data: bytes) -> bool:
        """Write some bytes, one by one; return False, and change nothing, if one of them is not accepted."""
        for at, byte in enumerate(data):
            if not matcher.accept_bytes(bytes((byte,))):
                matcher.rollback(at)
                return False
            self._check(matcher)
        return True

    def _walk(self, matcher: Matcher, rng: random.Random) -> None:
        """Write tokens at random."""
        for step in range(WALK):
            mask = self._check(matcher)
            choices = list(matcher.allowed_tokens()) if mask is None else np.flatnonzero(mask).tolist()
            if not choices:
                return
            likely = [token for token in choices if _LIKELY.intersection(self._vocabulary.tokens[token] or b"")]
            token = rng.choice(likely if likely and step % 2 else choices)
            if not matcher.accept(token):
                raise MaskError(f"the mask allows {self._vocabulary.tokens[token]!r}, accept refuses")


def pieces(value: Any, whitespace: str, rng: random.Random) -> Iterator[tuple[bytes, ...]]:
    """Yield the text of a value, piece by piece, each in its admissible spellings."""
    comma, colon = ((b",", b", "), (b":", b": ")) if whitespace == "flexible" else ((b", ", b","), (b": ", b":"))
    if isinstance(value, str):
        yield (b'"',)
        for char in value:
            yield spellings(char, rng)
        yield (b'"',)
    elif isinstance(value, (dict, list)):
        yield (b"{" if isinstance(value, dict) else b"[",)
        for at, each in enumerate(value):
            if at:
                yield comma
            if isinstance(value, dict):
                yield from pieces(each, whitespace, rng)
                yield colon
                each = value[each]
            yield from pieces(each, whitespace, rng)
        yield (b"}" if isinstance(value, dict) else b"]",)
    else:
        yield (json.dumps(value).encode(),)


def spellings(char: str, rng: random.Random) -> tuple[bytes, ...]:
    """Return the spellings of a character in a JSON string: all of one that has an escape, in any order."""
    raw = json.dumps(char, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    if " " <= char <= "~" and char not in _SHORT and rng.random() < 0.97:
        return (raw,)
    units = char.encode("utf-16-be", "surrogatepass")
    digits = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    found = {raw, *(b"".join(b"\\u" + way(each).encode() for each in digits) for way in (str.upper, str.lower))}
    found.add(_SHORT.get(char, raw))
    return tuple(rng.sample(sorted(found), len(found)))


def rows(data: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of MaskBench's file."""
    with gzip.open(data, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vocabularies", default="bytes,smollm2,tekken")
    parser.add_argument("--first", type=int, default=0, help="number of the first schema, and seed of the first mutant")
    parser.add_argument("--schemas", type=int, default=sys.maxsize, help="number of schemas")
    parser.add_argument("--every", type=int, default=1, help="take one of so many schemas")
    parser.add_argument("--mutants", type=int, default=0, help="number of mutants after the schemas")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no schema is begun after them")
    parser.add_argument("--data", type=Path, default=REAL)
    options = parser.parse_args(arguments)
    judges = {name: Judge(VOCABULARIES[name]()) for name in options.vocabularies.split(",")}
    mutants: Counter[str] = Counter()
    begin = told = time.time()
    faults = 0

    def told_so_far() -> str:
        lines = [f"{name}: {dict(judge.tally)}" for name, judge in judges.items()]
        return f"{time.time() - begin:,.0f} s, {faults} faults\n  " + "\n  ".join([*lines, f"mutants: {dict(mutants)}"])

    for number, row in enumerate(rows(options.data)):
        at = number - options.first
        if at < 0 or at % options.every or at // options.every >= options.schemas:
            continue
        for name, judge in judges.items():
            if time.time() > begin + options.seconds:
                break
            try:
                judge.schema(row["schema"], [test["data"] for test in row["tests"]], random.Random(number))
            except MaskError as error:
                faults += 1
                print(f"schema {number} ({row['id']}), {name}: {error}", flush=True)
        if time.time() > told + 60:
            told = time.time()
            print(f"schema {number}: {told_so_far()}", flush=True)
    source = corpus() if options.mutants else None
    for seed in range(options.first, options.first + options.mutants):
        if source is None or time.time() > begin + options.seconds:
            break
        mutants["mutants"] += 1
        try:
            judge_seed(seed, mutants, source)
        except MutantError as error:
            faults += 1
            print(f"mutant {seed}: {error}", flush=True)
        if time.time() > told + 60:
            told = time.time()
            print(told_so_far(), flush=True)
    print(told_so_far(), flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
