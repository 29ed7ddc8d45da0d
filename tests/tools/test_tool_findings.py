"""Findings about one set: parameters that exclude each other, and tools that a reader cannot tell apart."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from toolgrammar.core import Grammar
from toolgrammar.core.grammar import random_text
from toolgrammar.tools import Tool, ToolSet, close_objects, tool_findings
from toolgrammar.tools.tool_findings import SetFindings

WORD, COUNT = {"type": "string"}, {"type": "integer"}


def tool(name: str, about: str = "", properties: Any = None, **more: Any) -> Tool:
    """Return a tool of these parameters."""
    return Tool(name, about, {"type": "object", "properties": properties or {}, **more})


def alike(*tools: Tool) -> list[str | None]:
    """Return the names of the tools that are like an earlier one."""
    return [each.place.tool for each in SetFindings(ToolSet(tools)).found if each.code == "alike_tools"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (tool("a", "Get it.", {"q": WORD}), tool("b", "get  it", {"q": {"anyOf": [WORD, {"const": ""}]}}), True),
        (tool("get_user", "", {"q": WORD}), tool("getUser", "", {"q": WORD}), True),
        (tool("a", "Get it.", {"q": WORD}), tool("b", "Get it.", {"q": COUNT}), False),
        (tool("a", "Get a user.", {"q": WORD}), tool("b", "Get an order.", {"q": WORD}), False),
        (tool("add", "", {"q": WORD}), tool("subtract", "", {"q": WORD}), False),
        (tool("a", "Get it.", {"q": {**WORD, "description": "A user."}}), tool("b", "Get it.", {"q": WORD}), False),
        (tool("ping", "Do it."), tool("pong", "Do it."), False),
        (tool("a", "Get it.", {"q": WORD}, required=["q"]), tool("b", "Get it.", {"q": WORD}), False),
    ],
)
def test_tools_that_look_the_same(one: Tool, other: Tool, expected: bool) -> None:
    """Two tools are alike if they take the same calls, have parameters, and no description or name tells them apart."""
    assert alike(one, other) == ([other.name] if expected else [])


def excluded(parameters: Any) -> dict[str, str]:
    """Return the messages about excluded parameters, by their pointers."""
    found = SetFindings([Tool("f", "", parameters)]).found
    assert all(each.code == "excluded_parameters" for each in found)
    return {str(each.place.pointer): each.message for each in found}


def test_parameters_that_exclude_each_other() -> None:
    """Pairs of parameters that no call has are found wherever the reason is; those never given at all are no pairs."""
    three = {"type": "object", "properties": {"a": WORD, "b": WORD, "c/d": WORD, "never": {"allOf": [WORD, COUNT]}}}
    assert excluded(three) == {}
    assert excluded({**three, "oneOf": [{"required": [name]} for name in ("a", "b", "c/d")]}) == {
        "/properties/a": "is never given together with b, c/d",
        "/properties/b": "is never given together with c/d",
    }
    assert excluded({**three, "dependentSchemas": {"c/d": {"properties": {"a": False}}}}) == {
        "/properties/a": "is never given together with c/d"
    }
    assert excluded({**three, "maxProperties": 2}) == {}


def test_random_exclusions() -> None:
    """Of random rules about presence, exactly those pairs are found that no set of parameters has by the standard."""
    rng, pairs = random.Random(7), 0
    for _ in range(60):
        names = ["a", "b", "c", "d"]
        rules = [
            rng.choice(
                [
                    {"not": {"required": rng.sample(names, 2)}},
                    {"oneOf": [{"required": [name]} for name in rng.sample(names, 2)]},
                    {"dependentRequired": {rng.choice(names): [rng.choice(names)]}},
                    {"if": {"required": [rng.choice(names)]}, "then": {"maxProperties": rng.randint(1, 3)}},
                ]
            )
            for _ in range(rng.randint(1, 3))
        ]
        parameters = {"type": "object", "properties": dict.fromkeys(names, COUNT), "allOf": rules}
        closed = Draft202012Validator(close_objects(parameters))
        sets = [set(each) for size in range(5) for each in itertools.combinations(names, size)]
        valid = [each for each in sets if closed.is_valid(dict.fromkeys(each, 0))]
        alone = [name for name in names if any(name in each for each in valid)]
        expected: dict[str, list[str]] = {}
        for one, other in itertools.combinations(alone, 2):
            if not any({one, other} <= each for each in valid):
                expected.setdefault(f"/properties/{one}", []).append(other)
        said = {at: f"is never given together with {', '.join(others)}" for at, others in expected.items()}
        assert excluded(parameters) == said, parameters
        pairs += len(said)
        if valid and any(valid):
            given = set(json.loads(random_text(Grammar.from_json_schema(closed.schema), rng, 60)))
            assert given in valid
    assert pairs >= 20


def test_pairs_that_are_not_compared_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit nothing is compared, and how much is said."""
    names = [f"p{number}" for number in range(8)]
    parameters = {"type": "object", "properties": dict.fromkeys(names, COUNT), "maxProperties": 1}
    assert SetFindings([Tool("f", "", parameters)]).left == 0
    monkeypatch.setattr(tool_findings, "MAX_COMPARISONS", 20)
    findings = SetFindings([Tool("f", "", parameters)])
    assert findings.left == 28 - (20 - 1 - 8)
    assert findings.found
