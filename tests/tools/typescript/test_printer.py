"""What is printed as TypeScript is read back as what it was."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from toolgrammar.tools import (
    Tool,
    ToolSet,
    schema_from_typescript,
    schema_to_typescript,
    to_json_schema,
    tools_from_typescript,
    tools_to_harmony,
    tools_to_typescript,
)

from ..schema_equality import spelled
from ..strategies import tools_and_calls
from .test_reader import CASES, TOOL

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"


def round_trip(schema: Any) -> Any:
    """A schema, printed and read."""
    return schema_from_typescript(schema_to_typescript(schema))


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(TOOL)])
def test_corpus(name: str) -> None:
    """Every schema of the corpus is read back as what it was, with its annotations."""
    schema = CASES[name][1]
    assert spelled(round_trip(schema)) == spelled(schema)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(TOOL)])
def test_tools_of_the_corpus(name: str) -> None:
    """Every tool of the corpus is read back with its name, its description and its schema."""
    tools = list(ToolSet.from_typescript(CASES[name][0]))
    back = tools_from_typescript(tools_to_typescript(tools))
    assert [(tool.name, tool.description) for tool in back] == [(tool.name, tool.description) for tool in tools]
    assert [spelled(tool.parameters) for tool in back] == [spelled(tool.parameters) for tool in tools]


SCHEMAS: dict[str, Any] = {
    "all": True,
    "nothing": False,
    "integer": {"type": "integer", "minimum": 0},
    "integer or null": {"type": ["integer", "null"], "minimum": 0},
    "list of types with members": {"type": ["array", "null", "object"], "items": {"type": "string"}, "minItems": 1},
    "values of any kind": {"enum": ["a", 1, None, True, [1], {"a": 1}]},
    "a value": {"const": {"a": [1]}},
    "values that contradict the type": {"type": "boolean", "enum": ["True", "False"]},
    "untyped": {"minimum": 3, "pattern": "^a"},
    "required but not declared": {"type": "object", "properties": {"a": {}}, "required": ["a", "b"]},
    "closed": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
    "open": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
    "others": {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "string"}},
    "others like an optional one": {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 3, "description": "A."}},
        "additionalProperties": {"type": "integer", "minimum": 3, "description": "A."},
    },
    "patterns": {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "propertyNames": {"maxLength": 5}},
    "no properties": {"type": "object", "properties": {}, "minProperties": 1},
    "tuple": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
    "long tuple": {"type": "array", "prefixItems": [{"type": "string"}], "minItems": 3, "items": {"minLength": 2}},
    "short tuple": {"type": "array", "prefixItems": [{"type": "string"}, True], "maxItems": 1},
    "no items": {"type": "array", "items": False},
    "conditions": {"type": "object", "properties": {"a": {}}, "if": {"required": ["a"]}, "then": {"minProperties": 2}},
    "both": {"allOf": [{"type": "string"}, {"minLength": 2}], "description": "Two."},
    "either": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
    "one": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 3}]},
    "one of two equal": {"oneOf": [{"type": "string"}, {"type": "string"}]},
    "one object": {"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "properties": {"b": {}}}]},
    "texts": {"description": "It ends */ here,\n@minimum 3\n  and there. ", "title": " a @pattern b", "default": "*/"},
    "tags in prose": {"type": "string", "description": "Write @default or @minLength 3 @foo"},
    "patterns like comments": {"type": "string", "pattern": "^/a*/$"},
    "defaults": {"type": "string", "default": 5, "examples": ["*/", "@x"]},
    "names": {"type": "object", "properties": {"a b": {}, "abstract": {}, "1": {}, "class": {}, "": {}, "\ud800": {}}},
    "recursive": {"type": "object", "properties": {"x": {"$ref": "#"}}, "additionalProperties": False},
    "definitions": {
        "$defs": {"a.b": {"type": "string"}, "a b": {"type": "array", "items": {"$ref": "#/$defs/a.b"}}, "unused": {}},
        "anyOf": [{"$ref": "#/$defs/a.b", "minLength": 3}, {"$ref": "#/$defs/a b"}],
    },
    "places": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}}},
    "anchors": {"type": "array", "items": {"$anchor": "x", "type": "array", "items": {"$ref": "#x"}}},
    "references in tags": {"$defs": {"a": {"type": "string"}}, "not": {"allOf": [{"$ref": "#/$defs/a"}]}},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_hard_schemas(name: str) -> None:
    """What TypeScript cannot say goes to tags, and comes back."""
    schema = SCHEMAS[name]
    assert spelled(round_trip(schema)) == spelled(schema), schema_to_typescript(schema)


def test_text() -> None:
    """Definitions come first, comments say what types cannot, functions have their parameters one to a line."""
    tools = [
        Tool(
            "book.table",
            "Book a table.",
            {
                "type": "object",
                "properties": {
                    "people": {"type": "integer", "minimum": 1, "description": "How many."},
                    "guests": {"type": "array", "items": {"$ref": "#/$defs/Guest"}},
                },
                "required": ["people"],
                "$defs": {"Guest": {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}}}},
            },
        ),
        Tool("stop", "", {}),
    ]
    assert (
        tools_to_typescript(tools)
        == """\
interface Guest {
  /** @minLength 1 */
  name?: string;
}

/** Book a table. @name book.table */
declare function book_table(
  /** How many. @integer @minimum 1 */
  people: number,
  guests?: Guest[],
): unknown;

declare function stop(): unknown;
"""
    )


def test_definitions_of_two_tools() -> None:
    """Equal definitions of two tools are one type; different ones of one name are two."""
    same, other = {"type": "string"}, {"type": "integer"}
    tools = [
        Tool(name, "", {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": definition}})
        for name, definition in (("a", same), ("b", same), ("c", other))
    ]
    text = tools_to_typescript(tools)
    assert re.findall(r"^type (\w+)", text, re.MULTILINE) == ["X", "X_2"]
    assert [spelled(t.parameters) for t in tools_from_typescript(text)] == [spelled(t.parameters) for t in tools]


@given(tools_and_calls())
def test_random_tools(drawn: Any) -> None:
    """Random tools, with names and properties of any characters, are read back as they were."""
    tools = drawn[0]
    back = tools_from_typescript(tools_to_typescript(tools))
    assert [(tool.name, spelled(tool.parameters)) for tool in back] == [
        (tool.name, spelled(tool.parameters)) for tool in tools
    ]


def test_harmony() -> None:
    """Harmony's notation: line comments, defaults behind the type, references written out; it is read back."""
    tools = ToolSet.from_typescript("""
        interface Place { /** Its name. */ name: string; in?: Place }
        /** Weather.
         * Now. */
        declare function get_weather(
            at: Place,
            /** The unit. @default celsius */ unit?: "celsius" | "fahrenheit",
            /** @integer @minimum 1 @default 3 */ days?: number,
            when?: (string | null)[],
        ): void;
        declare function stop(): void;
    """)
    text = tools_to_harmony(tools)
    assert (
        text
        == """\
namespace functions {

// Weather.
// Now.
type get_weather = (_: {
at: {
// Its name.
name: string,
in?: any,
},
// The unit.
unit?: "celsius" | "fahrenheit", // default: celsius
days?: number, // default: 3
when?: (string | null)[],
}) => any;

type stop = () => any;

} // namespace functions"""
    )
    back = ToolSet.from_typescript(text)
    assert back.names == tools.names
    assert [tool.description for tool in back] == [tool.description for tool in tools]
    found = back["get_weather"].parameters
    assert list(found["properties"]) == ["at", "unit", "days", "when"]
    assert found["required"] == ["at"]
    assert found["properties"]["unit"] == tools["get_weather"].parameters["properties"]["unit"]


@pytest.mark.skipif(not (DATA / "bfcl-dev.jsonl.gz").exists(), reason="needs the data of BFCL")
def test_real_tools() -> None:
    """Every tool set of BFCL is read back with the same names, descriptions, order and schemas."""
    with gzip.open(DATA / "bfcl-dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        sets = [ToolSet.from_any(json.loads(line)["functions"]) for line in lines]
    assert len(sets) == 873
    for tools in sets[::3]:
        back = tools_from_typescript(tools_to_typescript(tools))
        for mine, yours in zip(tools, back, strict=True):
            assert (mine.name, mine.description) == (yours.name, yours.description)
            assert list(mine.parameters["properties"]) == list(yours.parameters["properties"])
            assert spelled(mine.parameters) == spelled(yours.parameters)


@pytest.mark.skipif(not (DATA / "maskbench-dev.jsonl.gz").exists(), reason="needs the data of MaskBench")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_real_schemas(request: pytest.FixtureRequest) -> None:
    """The instances of real schemas get the same verdict from the schema that was printed and read."""
    step = 1 if request.config.getoption("--slow") else 20
    judged = 0
    with gzip.open(DATA / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for index, line in enumerate(lines) if index % step == 0 and len(line) < 100_000]
    for case in cases:
        schema = to_json_schema(case["schema"])
        before, after = (jsonschema.Draft202012Validator(each) for each in (schema, round_trip(schema)))
        for test in case["tests"]:
            assert after.is_valid(test["data"]) == before.is_valid(test["data"]), case["id"]
            judged += 1
    assert judged > 300


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_harmony_of_definitions_without_a_type(name: str) -> None:
    """A reference that leads to itself, or to a schema that is a bool, is any value."""
    definitions = {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/a"}, "c": True}
    reference = {"$ref": f"#/$defs/{name}"}
    parameters = {"type": "object", "properties": {"x": reference}, "$defs": definitions}
    assert "x?: any," in tools_to_harmony([Tool("f", "", parameters)])
    assert "type f = (_: any) => any;" in tools_to_harmony([Tool("f", "", {**reference, "$defs": definitions})])
