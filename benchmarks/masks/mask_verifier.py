"""A verifier of masks that shares nothing with the engine: plain Python and the package `jsonschema`, no toolgrammar.

    python -m benchmarks masks/mask_verifier cases.jsonl.gz

The first line of the file is the vocabulary: ``{"tokens": [hex, ...], "eos": id}``. Each further line is a case: a JSON
Schema of Draft 2020-12, and a text under it, token by token, with the mask before each token::

    {"schema": {...}, "finite": true, "steps": [{"token": id, "mask": [ids], "witnesses": [[ids], ...]}, ...]}

V is the vocabulary, L the set of the valid texts: compact JSON, no name twice in an object, members in any order, valid
under the schema for `jsonschema`. The mask before a token, after the text p, must be

    M(p) = { w in V : p·w begins a text of L }, with the end token if and only if p is in L.

U is the set of the texts of a small universe of values (`universe`): some 3,000 of depth 2.

- In a *finite* case the schema is joined with `BOUND`, so that L is a subset of U. Here L is enumerated: each text of U
  is judged by `jsonschema`. M(p) is compared with the mask in both directions, by brute force.
- Otherwise L may be infinite. Each token of the mask comes with a witness: tokens that complete the text after it. The
  completed text is judged, so no token of the mask is wrong. In the other direction, each text of U in L that begins
  with p shows one token that must not be missing.

The exit code is 1 if a mask differs.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import itertools
import json
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import jsonschema

NAMES = ("a", "b", "ab")
STRINGS = tuple("".join(chars) for size in range(3) for chars in itertools.product("ab", repeat=size))
SCALARS: tuple[Any, ...] = (None, True, False, 1, 2, 3, *STRINGS)

#: Restricts a schema to the values of `universe`, if joined with it by `allOf`.
_SCALAR = {
    "type": ["null", "boolean", "integer", "string"], "minimum": 1, "maximum": 3, "maxLength": 2, "pattern": "^[ab]*$",
}  # fmt: skip
_INNER = {**_SCALAR, "type": [*_SCALAR["type"], "array", "object"], "maxItems": 0, "maxProperties": 0}
BOUND = {
    **_SCALAR,
    "type": [*_SCALAR["type"], "array", "object"],
    "maxItems": 2,
    "items": _INNER,
    "maxProperties": 2,
    "propertyNames": {"enum": list(NAMES)},
    "additionalProperties": _INNER,
}


def universe() -> Iterator[Any]:
    """The scalars, the arrays of at most two inner values, and the objects of at most two members, in each order."""
    inner = (*SCALARS, [], {})
    yield from SCALARS
    for size in range(3):
        for values in itertools.product(inner, repeat=size):
            yield list(values)
            for names in itertools.permutations(NAMES, size):
                yield dict(zip(names, values, strict=True))


def written(value: Any) -> bytes:
    """The text of a value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@functools.cache
def texts() -> tuple[tuple[bytes, Any], ...]:
    """U: each text with its value."""
    return tuple({written(value): value for value in universe()}.items())


def in_python(schema: Any) -> Any:
    """A schema with its patterns for Python's `re`, in which ``$`` and the dot differ from ECMA-262."""

    def translated(pattern: str) -> str:
        if re.search(r"[\\\[][^\]]*[.$]", pattern):  # escaped, or in a class
            raise NotImplementedError(pattern)
        return pattern.replace("$", r"\Z").replace(".", "[^\\n\\r\\u2028\\u2029]")

    if isinstance(schema, list):
        return [in_python(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: in_python(each) for name, each in schema.items()}
    if isinstance(schema.get("pattern"), str):
        found["pattern"] = translated(schema["pattern"])
    if isinstance(schema.get("patternProperties"), dict):
        found["patternProperties"] = {translated(name): each for name, each in found["patternProperties"].items()}
    return found


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; an error if a name repeats."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name repeats")
    return found


def constant(name: str) -> None:
    """Python's reader takes NaN and Infinity, JSON does not."""
    raise ValueError(name)


class Case:
    """A schema, and the checks of the masks of a text.

    Attributes:
        problems: the differences that were found.
        counts: of masks, of their tokens, and of the texts that were judged.
    """

    def __init__(self, tokens: list[bytes], eos: int, case: dict[str, Any]) -> None:
        self.tokens, self.eos = tokens, eos
        self.schema, self.finite, self.steps = case["schema"], case["finite"], case["steps"]
        self.validator = jsonschema.Draft202012Validator(in_python(self.schema))
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter(cases=1)
        #: The texts of U that are in L, and all their beginnings.
        self.language = {text for text, value in texts() if self.judge(value)}
        self.begun = {text[:size] for text in self.language for size in range(len(text) + 1)}

    def judge(self, value: Any) -> bool:
        """Whether a value is valid."""
        self.counts["texts judged"] += 1
        return self.validator.is_valid(value)

    def is_valid(self, text: bytes) -> bool:
        """Whether a text is in L."""
        try:
            value = json.loads(text, object_pairs_hook=members, parse_constant=constant)
        except ValueError:  # UnicodeDecodeError is one
            return False
        return all(byte not in _outside_strings(text) for byte in b" \t\n\r") and self.judge(value)

    def run(self) -> None:
        """Check each mask of the text."""
        text = b""
        for step in self.steps:
            mask = set(step["mask"])
            self.counts["masks"] += 1
            self.counts["tokens in masks"] += len(mask)
            if (self.eos in mask) != self.is_valid(text):
                self.wrong(text, self.eos, "the end token")
            for token, data in enumerate(self.tokens):
                if not data:
                    if token in mask and token != self.eos:
                        self.wrong(text, token, "a token without text")
                elif text + data in self.begun and token not in mask:
                    self.wrong(text, token, "missing")
                elif self.finite and token in mask and text + data not in self.begun:
                    self.wrong(text, token, "it cannot be completed")
            if not self.finite:
                self.check_witnesses(text, mask - {self.eos}, step["witnesses"])
            if step["token"] not in mask:
                self.wrong(text, step["token"], "written, and not in the mask")
            text += self.tokens[step["token"]]

    def check_witnesses(self, text: bytes, mask: set[int], witnesses: list[list[int]]) -> None:
        """Check that each token of a mask has a witness, and that this makes a valid text."""
        shown = {tokens[0] for tokens in witnesses}
        for token in mask ^ shown:
            self.wrong(text, token, "no witness, or one of a token that is not in the mask")
        for tokens in witnesses:
            whole = text + b"".join(self.tokens[token] for token in tokens)
            if not self.is_valid(whole):
                self.wrong(text, tokens[0], f"the witness {whole!r} is not valid")

    def wrong(self, text: bytes, token: int, why: str) -> None:
        """Record a difference."""
        self.problems.append(f"{json.dumps(self.schema)}\n  after {text!r}, {self.tokens[token]!r}: {why}")


def _outside_strings(text: bytes) -> bytes:
    """The bytes of a JSON text that are not in strings."""
    parts, inside, escaped = bytearray(), False, False
    for byte in text:
        if not inside:
            parts.append(byte)
        if escaped:
            escaped = False
        elif byte == ord("\\"):
            escaped = True
        elif byte == ord('"'):
            inside = not inside
    return bytes(parts)


def verify(lines: Iterator[str]) -> tuple[Counter[str], list[str]]:
    """Check a file of cases; return the counts and the problems."""
    head = json.loads(next(lines))
    tokens = [bytes.fromhex(each) for each in head["tokens"]]
    counts: Counter[str] = Counter()
    problems: list[str] = []
    for line in lines:
        case = Case(tokens, head["eos"], json.loads(line))
        case.run()
        counts["finite cases"] += case.finite
        counts += case.counts
        problems += case.problems
    return counts, problems


def main() -> int:
    """Verify a file; 1 if a mask differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", help="of mask_cases.py; gzip or not")
    parser.add_argument("--json", help="write the counts to this file")
    options = parser.parse_args()
    with (gzip.open if options.cases.endswith(".gz") else open)(options.cases, "rt", encoding="utf-8") as file:
        counts, problems = verify(iter(file))
    counts["differences"] = len(problems)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            versions = {"python": platform.python_version(), "jsonschema": version("jsonschema")}
            file.write(json.dumps({"versions": versions, "counts": counts}, indent=2) + "\n")
    for name, count in counts.items():
        print(f"{count:>12,} {name}")
    for problem in problems[:10]:
        print(problem if len(problem) < 2000 else f"{problem[:1000]} ... {problem[-500:]}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
