"""Members whose names match several patterns, against the patterns themselves."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import pytest

from toolgrammar.core import Grammar
from toolgrammar.core.regex import compile

#: What the values of matching names must be: patterns that overlap, exclude each other, or match few names.
PATTERNS: dict[str, dict[str, Any]] = {
    "^a": {"minimum": 2},
    "^ab": {"maximum": 6},
    "b$": {"multipleOf": 2},
    "^(x|y)$": {"maximum": 1},
    "^x(a|b)$": {"minimum": 3},
    "^.$": {"maximum": 5},
    "^y": {"multipleOf": 3},
    "bb": {"const": 4},
    "^[ax]{3}$": {"minimum": 7},
    "^q": {"const": 9},
}


def _fits(schema: Any, value: int) -> bool:
    if isinstance(schema, bool):
        return schema
    return all(
        {
            "minimum": value >= bound,
            "maximum": value <= bound,
            "multipleOf": value % bound == 0,
            "const": value == bound,
        }[keyword]
        for keyword, bound in schema.items()
    )


@pytest.mark.parametrize("additional", [True, False, {"const": 8}], ids=["open", "closed", "of a kind"])
@pytest.mark.parametrize("count", [1, 3, len(PATTERNS)])
@pytest.mark.parametrize("declared", [[], ["x", "y", "abb"]], ids=["undeclared", "declared"])
def test_a_member_satisfies_all_patterns_that_its_name_matches(
    additional: Any, count: int, declared: list[str]
) -> None:
    """For each name, those values are valid that satisfy the schemas of all patterns which it matches."""
    patterns = dict(list(PATTERNS.items())[:count])
    members = {name: {"maximum": 4} for name in declared}
    schema = {"properties": members, "patternProperties": patterns, "additionalProperties": additional}
    grammar = Grammar.from_json_schema({"type": "object", **schema}, whitespace="compact")
    for name in map("".join, (letters for size in range(4) for letters in product("abxy", repeat=size))):
        own = [each for pattern, each in patterns.items() if re.search(pattern, name)]
        own += [members[name]] if name in members else []
        for value in range(10):
            expected = all(_fits(each, value) for each in own or [additional])
            text = json.dumps({name: value}, separators=(",", ":"))
            assert grammar.matches(text) is expected, text


def test_a_pattern_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a schema and its lowering share what they compile, of a thousand patterns too."""
    compiled: list[str] = []

    def counted(pattern: str, *bound: Any) -> Any:
        compiled.append(pattern)
        return parse(pattern, *bound)

    parse = compile.parse
    monkeypatch.setattr(compile, "parse", counted)
    names = [f"once{number}" for number in range(1_000)]
    members = {name: {"type": "string", "pattern": f"^{name}[a-z]{{2}}$"} for name in names}
    grammar = Grammar.from_json_schema({"type": "object", "properties": members, "required": names})
    assert grammar.matches("{" + ", ".join(f'"{name}": "{name}ab"' for name in names) + "}")
    assert len(compiled) == len(names)
