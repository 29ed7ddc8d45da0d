"""Contracts of tool sets: which calls and results break when one set takes the place of another."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from toolgrammar.core import Grammar
from toolgrammar.core.grammar import random_text
from toolgrammar.tools import Tool, ToolChange, ToolSet
from toolgrammar.tools.contracts import Contract, compared_contracts
from toolgrammar.tools.mcp import tools_to_mcp

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


PET = {
    "type": "object",
    "properties": {"id": {"type": "integer", "readOnly": True}, "secret": {"type": "string", "writeOnly": True}},
    "required": ["id", "secret"],
}


def api(responses: Any, version: str = "3.1.0", schema: Any = PET) -> ToolSet:
    """Return the one operation of an OpenAPI document with these responses; a schema is that of JSON with status 200."""
    if not all(str(status)[:1] in "2345d" for status in responses):
        responses = {200: {"content": {"application/json": {"schema": responses}}}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}
    operation = {"operationId": "find", "requestBody": body, "responses": responses}
    parts = {"schemas": {"Pet": schema}, "responses": {"Text": {"content": {"text/plain": {}}}}}
    return ToolSet.from_any({"openapi": version, "paths": {"/x": {"post": operation}}, "components": parts})


def given(schema: Any, media: str = "application/json") -> Any:
    """Return a response with a body."""
    return {"content": {media: {"schema": schema}}}


@pytest.mark.parametrize(
    ("old", "new", "verdict", "result"),
    [
        ({"type": ["integer", "null"]}, {"type": "integer"}, "compatible", None),
        ({"type": "integer"}, {"type": ["integer", "null"]}, "breaks", None),
        ({200: given(WORD)}, {200: given(WORD), 404: given(COUNT), "default": given(COUNT)}, "same", None),
        ({200: given(WORD)}, {200: given(WORD), "201": given(COUNT, "application/vnd.x+json")}, "breaks", 0),
        ({"2XX": given(COUNT)}, {"default": given(COUNT)}, "same", None),
        ({200: given(COUNT)}, {200: given(COUNT), 204: {}}, "breaks", ""),
        ({200: given(COUNT)}, {200: given(COUNT), 202: {"description": "Later."}}, "same", None),
        ({200: given(COUNT)}, {200: given(COUNT), 203: {"$ref": "#/components/responses/Text"}}, "breaks", ""),
        ({204: {}}, {200: given(COUNT)}, "same", None),
        ({200: given(COUNT)}, {200: {"description": "Done."}}, "breaks", None),
        ({200: given({})}, {200: given(COUNT)}, "compatible", None),
    ],
)
def test_answers_of_openapi_are_covariant(old: Any, new: Any, verdict: str, result: Any) -> None:
    """The JSON of all responses of success is what a caller receives: it may become less, and not more."""
    (found,) = api(old).compare(api(new))
    assert found.verdict == verdict
    assert [(each.kind, each.value) for each in found.breaks] == ([("result", result)] if verdict == "breaks" else [])


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_one_schema_of_requests_and_answers(version: str) -> None:
    """What is ``readOnly`` counts in answers only, and what is ``writeOnly`` in requests only; ``nullable`` is read."""
    answer = {200: given({"$ref": "#/components/schemas/Pet"})}

    def changed(name: str, schema: Any) -> ToolChange:
        newer = {**PET, "properties": {**PET["properties"], name: schema}}  # type: ignore[dict-item]
        (found,) = api(answer, version).compare(api(answer, version, newer))
        return found

    broken = changed("id", {"type": "integer", "readOnly": True, "nullable": True})
    assert [(each.kind, each.value) for each in broken.breaks] == [("result", {"id": None})]
    broken = changed("secret", {"type": "string", "writeOnly": True, "minLength": 1})
    assert [(each.kind, each.value) for each in broken.breaks] == [("call", {"body": {"secret": ""}})]


def test_answers_of_swagger() -> None:
    """The schema beside a response of Swagger 2 is that of its JSON."""

    def tools(schema: Any) -> ToolSet:
        operation = {"operationId": "find", "responses": {"200": {"description": "A word.", "schema": schema}}}
        return ToolSet.from_any({"swagger": "2.0", "paths": {"/x": {"get": operation}}})

    assert tools({"type": "string"}).compare(tools({"type": "string", "maxLength": 3})).compatible is True
    assert tools({"type": "string", "maxLength": 3}).compare(tools({"type": "string"})).compatible is False


def test_answers_that_cannot_be_read() -> None:
    """A document whose answers cannot be read has its tools, which promise nothing to MCP; what breaks is undecided."""
    bad = api({200: given({"$ref": "#/components/schemas/None"})})
    (found,) = api({200: given(WORD)}).compare(bad)
    assert found.verdict == "undecided"
    assert "components/schemas/None" in str(found.undecided[0])
    assert pickle.loads(pickle.dumps(bad["find"])) == bad["find"]
    assert "outputSchema" not in tools_to_mcp(api({200: given(WORD)}))["tools"][0]


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


def test_a_witness_null_is_not_no_witness() -> None:
    """The value ``null`` is a witness like any other, in JSON too; where there is none, its member is absent."""
    old, new = (Contract("schema", {"type": kinds}) for kinds in (["null", "string"], ["string"]))
    lost, gained = (compared_contracts([one], [other]).to_dict()["tools"][0] for one, other in ((old, new), (new, old)))
    assert lost["breaks"][0]["value"] is None and "gains" not in lost
    assert gained["gains"] is None and gained["breaks"] == []
    (gone,) = compared_contracts([old], []).to_dict()["tools"]
    assert "value" not in gone["breaks"][0]
