"""The support table of ``docs/json-schema.md``, made from what the tests find.

For each keyword: whether `check` refuses a schema that uses it, the cases of the official suite that are judged right
(``official_suite.json``), and the share of real schemas that use it (``keyword_shares.json``, counted over the public
schemas of MaskBench).
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from toolgrammar.core.schema import every_problem

HERE = Path(__file__).parent
MASKBENCH = Path(__file__).resolve().parents[4] / "shared" / "data" / "maskbench-dev.jsonl.gz"
SHARES = HERE / "keyword_shares.json"

#: For each keyword a schema in which it asserts something, the suite's file, and what is to be known of it.
KEYWORDS: dict[str, tuple[Any, str, str]] = {
    "type": ({"type": ["string", "null"]}, "type", "`integer` is any whole number; OpenAPI's `nullable` too"),
    "enum": ({"enum": [1, "a", {"b": None}]}, "enum", "values of any kind"),
    "const": ({"const": {"a": [1]}}, "const", "values of any kind"),
    "properties": ({"properties": {"a": {"type": "string"}}}, "properties", ""),
    "required": ({"required": ["a"]}, "required", ""),
    "additionalProperties": (
        {"properties": {"a": True}, "additionalProperties": {"type": "integer"}},
        "additionalProperties",
        "no name is written twice",
    ),
    "patternProperties": ({"patternProperties": {"^a": {"type": "string"}}}, "patternProperties", "overlapping too"),
    "propertyNames": ({"propertyNames": {"maxLength": 3}}, "propertyNames", ""),
    "minProperties": ({"minProperties": 1}, "minProperties", ""),
    "maxProperties": ({"maxProperties": 1}, "maxProperties", ""),
    "unevaluatedProperties": (
        {"unevaluatedProperties": False},
        "unevaluatedProperties",
        "below an `anyOf` of at most 10",
    ),
    "items": ({"items": {"type": "integer"}}, "items", "the list form of older drafts, with `additionalItems`, too"),
    "prefixItems": ({"prefixItems": [{"type": "integer"}]}, "prefixItems", ""),
    "minItems": ({"minItems": 2}, "minItems", "at most 10,000"),
    "maxItems": ({"maxItems": 2}, "maxItems", ""),
    "contains": ({"contains": {"type": "string"}}, "contains", ""),
    "minContains": ({"contains": {"type": "string"}, "minContains": 2}, "minContains", ""),
    "maxContains": ({"contains": {"type": "string"}, "maxContains": 2}, "maxContains", ""),
    "uniqueItems": (
        {"uniqueItems": True},
        "uniqueItems",
        "narrowed where it is negated: arrays that repeat a simple value",
    ),
    "unevaluatedItems": ({"unevaluatedItems": False}, "unevaluatedItems", "below an `anyOf` of at most 10"),
    "minLength": ({"minLength": 2}, "minLength", "counts characters, not bytes; at most 100,000"),
    "maxLength": ({"maxLength": 2}, "maxLength", ""),
    "pattern": (
        {"pattern": "^a+$"},
        "pattern",
        "ECMA-262 with `u`, look-arounds included; back-references to groups of at most 64 words; narrowed beyond",
    ),
    "format": ({"format": "date"}, "format", "see below"),
    "x-grammar": (
        {"x-grammar": {"syntax": "regex", "definition": "a?b"}},
        "",
        "ours: [a string of a grammar](text-grammars.md#strings-in-json)",
    ),
    "minimum": ({"minimum": 1}, "minimum", "exact on the number that is read"),
    "maximum": ({"maximum": 1}, "maximum", "exact on the number that is read"),
    "exclusiveMinimum": ({"exclusiveMinimum": 1}, "exclusiveMinimum", "the flag of Draft 4 too"),
    "exclusiveMaximum": ({"exclusiveMaximum": 1}, "exclusiveMaximum", "the flag of Draft 4 too"),
    "multipleOf": (
        {"multipleOf": 3},
        "multipleOf",
        "decimals too; no exponents; fractions of at most 15 digits, unless the step is a power of ten, or 0.5, 0.25 and so on; narrowed "
        "beyond 1,000,000 residues: multiples near zero",
    ),
    "allOf": ({"allOf": [{"minimum": 1}, {"maximum": 5}]}, "allOf", ""),
    "anyOf": ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "anyOf", ""),
    "oneOf": ({"oneOf": [{"minimum": 1}, {"maximum": 5}]}, "oneOf", "overlapping too"),
    "not": ({"not": {"type": "string"}}, "not", ""),
    "if": ({"if": {"type": "string"}, "then": {"minLength": 1}}, "if-then-else", "with `then` and `else`"),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, "dependentRequired", ""),
    "dependentSchemas": ({"dependentSchemas": {"a": {"required": ["b"]}}}, "dependentSchemas", ""),
    "dependencies": ({"dependencies": {"a": ["b"]}}, "", "of older drafts, and taken in any"),
    "$ref": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}},
        "ref",
        "recursive, with siblings, through `$id` and `$anchor`; other documents from `registry=`",
    ),
    "$dynamicRef": ({"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a"}}}, "dynamicRef", ""),
    "$recursiveRef": (
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#", "type": "null"},
        "",
        "of Draft 2019-09",
    ),
}


def shares() -> dict[str, float]:
    """The share of the public schemas of MaskBench that use each keyword, in percent; from the data if it is there."""
    if not MASKBENCH.is_file():
        found: dict[str, float] = json.loads(SHARES.read_text(encoding="utf-8"))
        return found
    counts: Counter[str] = Counter()
    lines = gzip.decompress(MASKBENCH.read_bytes()).splitlines()
    for line in lines:
        used: set[str] = set()
        stack = [json.loads(line)["schema"]]
        while stack:
            value = stack.pop()
            if isinstance(value, dict):
                used.update(value)
                stack.extend(value.values())
            elif isinstance(value, list):
                stack.extend(value)
        counts.update(used & KEYWORDS.keys())
    return {keyword: round(100 * counts[keyword] / len(lines), 1) for keyword in KEYWORDS}


def table() -> str:
    """The rows of the table, as Markdown."""
    counts = json.loads((HERE / "official_suite.json").read_text(encoding="utf-8"))["counts"]
    used = shares()
    rows = ["| keyword | | official suite | real schemas | notes |", "|---|---|---|---|---|"]
    for keyword, (schema, name, note) in KEYWORDS.items():
        verdict = "refused" if every_problem(schema) else "exact"
        cases = counts.get(name, {})
        judged = f"{cases.get('right', 0)} of {sum(cases.values())}" if cases else ""
        rows.append(f"| `{keyword}` | {verdict} | {judged} | {used[keyword]}% | {note} |")
    return "\n".join(rows) + "\n"


def write() -> None:
    """Write down the shares."""
    SHARES.write_text(json.dumps(shares(), indent=1) + "\n", encoding="utf-8")
