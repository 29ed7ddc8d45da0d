"""Writes masks of random schemas to a file, for `mask_verifier.py`.

    python -m benchmarks masks/mask_cases cases.jsonl.gz [--cases 2000] [--first 0]

Schemas are those of the tests' generator, one for each seed; every second one is joined with the verifier's `BOUND`. A
schema that cannot be bound, or that is narrowed, is left out and counted.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.masks.mask_verifier import BOUND
from toolgrammar.core import DecodingError, Grammar, LimitError, Matcher, SchemaError, Vocabulary
from toolgrammar.core.masks.budget import Budget

#: The module of the tests' generator.
_SPEC = importlib.util.spec_from_file_location("schemas", Path(__file__).resolve().parents[2] / "tests" / "schemas.py")
assert _SPEC is not None and _SPEC.loader is not None
_SCHEMAS = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_SCHEMAS)

#: The tokens: every byte, and tokens across the joints of JSON.
TOKENS: list[bytes] = [
    *(bytes((byte,)) for byte in range(256)), b"\xc3\xa9", b'":', b'{"', b'{"a":', b'","', b'"]',
    b'"}', b"}]", b"[[", b"]]", b"[]", b"{}", b"],[", b"},{", b"[{", b"0,", b"1,1", b"12", b"0.0", b"1e", b"true",
    b"false,", b"null", b'"a"', b'a","a"', b'"a":1,"a"', b"ab", b"aa", b'"b":', b'","b":', b':["', b"]}", b"e1", b'""',
    b"a\xc3", b"\\u00", b"",
]  # fmt: skip
EOS = len(TOKENS) - 1
VOCABULARY = Vocabulary([token or None for token in TOKENS], eos=[EOS])

#: Tokens that texts prefer: letters and digits alone would never end a string.
ALL = range(len(TOKENS))
LIKELY = frozenset((*range(256, EOS), *b'"]},0:1ab'))
NESTED = frozenset(token for token in ALL if TOKENS[token][:1] in (b"[", b"{"))

#: Maximum number of tokens of a text.
LONGEST = 14


def case(seed: int) -> dict[str, Any]:
    """Return the case of a seed.

    Raises:
        SchemaError, LimitError, DecodingError: there is none.
        ValueError: the schema is narrowed.
    """
    rng = random.Random(seed)
    schema: Any = _SCHEMAS.random_schema(rng)
    finite = seed % 2 == 0
    if finite:
        schema = {"allOf": [schema, BOUND], **({"$defs": schema.pop("$defs")} if "$defs" in schema else {})}
    grammar = Grammar.from_json_schema(schema, property_order="any", whitespace="compact", formats=False)
    matcher = grammar.bind(VOCABULARY).matcher()
    steps = list(_steps(matcher, rng, finite))
    if grammar.narrowed:
        raise ValueError("narrowed")
    return {"schema": schema, "finite": finite, "steps": steps}


def _steps(matcher: Matcher, rng: random.Random, finite: bool) -> Iterator[dict[str, Any]]:
    """Write a text at random; yield its tokens with their masks."""
    row = np.zeros(-(-len(TOKENS) // 32), dtype=np.uint32)
    for step in range(LONGEST):
        matcher.fill_mask(row)
        mask = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
        going_on = [token for token in mask if token != EOS]
        if not going_on:
            token = EOS
        else:
            likely = NESTED if not step and rng.random() < 0.8 else LIKELY if rng.random() < 0.9 else ALL
            token = rng.choice([each for each in going_on if each in likely] or going_on)
        witnesses = [] if finite else [_witness(matcher, each) for each in going_on]
        yield {"token": token, "mask": mask, "witnesses": witnesses}
        if token == EOS:
            return
        assert matcher.accept(token)


def _witness(matcher: Matcher, token: int) -> list[int]:
    """Return the tokens of a whole text after the present one, of which the first is given."""
    assert matcher.accept(token)
    rest = [] if matcher.is_accepting else Budget(matcher).completion([])
    matcher.rollback(1)
    return [token, *rest]


def lines(seeds: Iterable[int], left_out: Counter[str]) -> Iterator[str]:
    """Yield the lines of a file; count the seeds without a case, by error."""
    yield json.dumps({"tokens": [token.hex() for token in TOKENS], "eos": EOS})
    for seed in seeds:
        try:
            yield json.dumps(case(seed))
        except (SchemaError, LimitError, DecodingError, ValueError) as error:
            left_out[type(error).__name__] += 1


def main(out: Path, cases: int = 2000, first: int = 0) -> int:
    """Write the file.

    Args:
        out: the file to write; with the suffix .gz compressed
        cases: number of seeds
        first: first seed
    """
    left_out: Counter[str] = Counter()
    opener = gzip.open if out.suffix == ".gz" else open
    with opener(out, "wt", encoding="utf-8") as file:
        for line in lines(range(first, first + cases), left_out):
            file.write(line + "\n")
    print(f"{cases - left_out.total()} cases; left out: {dict(left_out)}")
    return 0
