"""Contracts of tool sets: which calls and results break when one set takes the place of another."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from toolgrammar.core import Grammar
from toolgrammar.core.grammar import random_text
from toolgrammar.tools import Tool, ToolChange, ToolSet

from ..schemas import random_schema


def tool(name: str = "find", required: tuple[str, ...] = (), output: Any = None, **properties: Any) -> Tool:
    """Return a tool of these parameters."""
    definitions: dict[str, Any] = {}
    for schema in properties.values():
        definitions |= schema.get("$defs", {}) if isinstance(schema, dict) else {}
    parameters = {"type": "object", "properties": properties, "required": list(required), "$defs": definitions}
    return Tool(name, parameters=parameters, output_schema=output)


def change(old: Tool, new: Tool) -> ToolChange:
    """Return what became of a tool."""
    (found,) = ToolSet([old]).compare(ToolSet([new]))
    return found


WORD, COUNT = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("new", "verdict", "call"),
    [
        (tool(q=WORD, n={**COUNT, "description": "How many."}), "same", None),
        (tool(q=WORD, n=COUNT, lang=WORD), "compatible", None),
        (tool(q=WORD, n={"type": "number"}), "compatible", None),
        (tool(q=WORD), "breaks", {"n": 0}),
        (tool(required=("q",), q=WORD, n=COUNT), "breaks", {}),
        (tool(q=WORD, n={**COUNT, "maximum": 9}), "breaks", {"n": 10}),
        (tool(q=WORD, limit=COUNT), "breaks", {"n": 0}),
        (tool(q={"type": "string", "format": "hostname"}, n=COUNT), "breaks", {"q": ""}),
    ],
)
def test_calls_are_contravariant(new: Tool, verdict: str, call: Any) -> None:
    """A new tool may take more than the old one; else the smallest call that it refuses is shown."""
    found = change(tool(q=WORD, n=COUNT), new)
    assert found.verdict == verdict
    assert [each.value for each in found.breaks] == ([] if call is None else [call])
    assert found.to_dict()["verdict"] == verdict


def test_results_are_covariant() -> None:
    """A new tool may promise more of its results than the old one, and not less."""
    text = {"type": "object", "properties": {"text": WORD}, "required": ["text"]}
    maybe = {**text, "properties": {"text": {"type": ["string", "null"]}}}
    assert change(tool(output=maybe), tool(output=text)).verdict == "compatible"
    broken = change(tool(output=text), tool(output=maybe))
    assert broken.verdict == "breaks"
    assert broken.breaks[0].kind == "result"
    assert broken.breaks[0].value == {"text": None}
    assert "/text" in broken.breaks[0].reason
    assert change(tool(output=text), tool()).verdict == "breaks"
    assert change(tool(), tool(output=text)).verdict == "same"


def test_tools_that_come_go_and_are_renamed() -> None:
    """A tool that is gone breaks its callers, and an added one that takes the same calls is named; added ones do not."""
    old = ToolSet([tool("a", q=WORD), tool("b", n=COUNT)])
    new = ToolSet([tool("c", q=WORD), tool("d", n=WORD)])
    found = old.compare(new)
    assert [(each.name, each.verdict, each.renamed) for each in found] == [
        ("a", "removed", "c"),
        ("b", "removed", None),
        ("c", "added", None),
        ("d", "added", None),
    ]
    assert found.compatible is False
    assert ToolSet([]).compare(new).compatible is True


def test_objects_are_read_as_each_set_reads_them() -> None:
    """A set that takes undeclared members takes those of dropped parameters."""
    old = ToolSet([tool(q=WORD, n=COUNT)])
    new = ToolSet([tool(q=WORD)], additional_properties=True)
    assert old.compare(new).compatible is True
    assert new.compare(old).compatible is False


def test_what_is_undecided_has_its_reason() -> None:
    """Nothing is known to break: neither compatible nor broken, with the keyword that stands in the way."""
    host, plain = {"type": "string", "format": "hostname"}, {"type": "string", "not": {"pattern": "^xn--"}}
    found = ToolSet([tool(h=host)]).compare(ToolSet([tool(h=plain)]))
    assert found.compatible is None
    assert found[0].verdict == "undecided"
    assert "format" in str(found[0].undecided[0])
    assert ToolSet([tool(h=host)]).compare(ToolSet([tool(h={**plain, "format": "hostname"})])).compatible is None


def test_verdicts_of_random_tools() -> None:
    """A call that breaks is valid before and not after; where none breaks, drawn calls of the old tool are valid."""
    rng = random.Random(5)
    seen: dict[str, int] = {}
    for _ in range(120):
        properties = {name: random_schema(rng, 1) for name in "abc"}
        old = tool(**properties)
        name = rng.choice("abc")
        fresh = random_schema(rng, 1)
        new = tool(**{**properties, name: rng.choice([fresh, {"anyOf": [properties[name], {"type": "null"}]}, True])})
        sets = [ToolSet([each]) for each in (old, new)]
        (found,) = sets[0].compare(sets[1], formats=False)
        seen[found.verdict] = seen.get(found.verdict, 0) + 1
        before, after = (
            Draft202012Validator(each.to_openai(closed=True)[0]["function"]["parameters"]) for each in sets
        )
        for broken in found.breaks:
            assert before.is_valid(broken.value), (old, new)
            assert not after.is_valid(broken.value), (old, new)
        if found.verdict in ("same", "compatible"):
            grammar = Grammar.from_json_schema(before.schema, formats=False)
            for _ in range(10):
                value = json.loads(random_text(grammar, rng, 60))
                assert after.is_valid(value), (old, new, value)
    assert seen.get("undecided", 0) <= 12
    assert seen["breaks"] >= 20
    assert seen["compatible"] >= 20
