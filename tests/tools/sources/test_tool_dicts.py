"""Tool dicts of every provider are read right or refused; nothing that they say of parameters is lost in silence."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core import SchemaError, SchemaWarning, ToolGrammarError
from toolgrammar.tools import Tool, ToolSet, to_json_schema, tools_from_openapi
from toolgrammar.tools import tool as tool_module

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Which."}, "days": {"type": "integer"}},
    "required": ["city"],
}
CITY, DAYS = {"type": "string", "description": "Which."}, {"type": "integer"}


def gemini(**more: Any) -> dict[str, Any]:
    """The schema as genai's ``model_dump()`` writes it: everything that was not given is None."""
    absent = dict.fromkeys(
        (
            "additional_properties", "defs", "ref", "any_of", "default", "enum", "example", "format", "items", "max_items",
            "max_length", "max_properties", "maximum", "min_items", "min_length", "min_properties", "minimum", "nullable",
            "pattern", "property_ordering", "title", "properties", "required", "description",
        )
    )  # fmt: skip
    return {
        **absent,
        "type": "OBJECT",
        "properties": {
            "city": {**absent, "type": "STRING", "description": "Which."},
            "days": {**absent, "type": "INTEGER", **more},
        },
        "required": ["city"],
    }


def proto(kind: Any, **more: Any) -> dict[str, Any]:
    """A schema as proto-plus's ``to_dict`` writes it: what was not given is zero."""
    zeros = {
        "format_": "", "title": "", "description": "", "nullable": False, "enum": [], "max_items": "0", "min_items": "0",
        "properties": {}, "required": [], "min_properties": "0", "max_properties": "0", "min_length": "0",
        "max_length": "0", "pattern": "", "any_of": [], "property_ordering": [],
    }  # fmt: skip
    return {"type_": kind, **zeros, **more}


#: Where each form is documented, or the package whose objects were dumped.
FORMS: dict[str, Any] = {
    "OpenAI, chat": {"type": "function", "function": {"name": "w", "description": "d", "parameters": SCHEMA, "strict": True}},
    "OpenAI, responses and realtime": {"type": "function", "name": "w", "description": "d", "parameters": SCHEMA, "strict": False},
    "OpenAI, functions of 2023": {"functions": [{"name": "w", "description": "d", "parameters": SCHEMA}]},
    "a request to OpenAI": {"model": "m", "messages": [], "tools": [{"type": "function", "function": {"name": "w", "description": "d", "parameters": SCHEMA}}]},
    "Anthropic": {"name": "w", "description": "d", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}},
    "Anthropic, typed": {"type": "custom", "name": "w", "description": "d", "input_schema": SCHEMA},
    "MCP": {"name": "w", "title": "W", "description": "d", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}, "_meta": {}},
    "MCP, mcp 1 model_dump()": {"name": "w", "title": None, "description": "d", "inputSchema": SCHEMA, "outputSchema": None, "icons": None, "annotations": None, "meta": None, "execution": None},
    "Gemini": {"functionDeclarations": [{"name": "w", "description": "d", "parameters": {**SCHEMA, "type": "OBJECT", "properties": {"city": {**CITY, "type": "STRING"}, "days": {"type": "INTEGER"}}}}]},
    "Gemini, JSON Schema": {"name": "w", "description": "d", "parametersJsonSchema": SCHEMA},
    "genai 3.4, FunctionDeclaration.model_dump()": {"name": "w", "description": "d", "parameters": gemini(), "parameters_json_schema": None, "response": None, "response_json_schema": None, "behavior": None},
    "genai 3.4, Tool.model_dump()": {"function_declarations": [{"name": "w", "description": "d", "parameters": gemini()}], "google_search": None, "code_execution": None},
    "generativelanguage, numbers for types": {"name": "w", "description": "d", "behavior": 0, "parameters": proto(6, properties={"city": proto(1, description="Which."), "days": proto(3)}, required=["city"])},
    "Vertex, names for types": {"name": "w", "description": "d", "parameters": proto("OBJECT", properties={"city": proto("STRING", description="Which."), "days": proto("INTEGER")}, required=["city"])},
    "Cohere 1": {"name": "w", "description": "d", "parameter_definitions": {"city": {"description": "Which.", "type": "str", "required": True}, "days": {"type": "int"}}},
    "Cohere 1, model_dump()": {"name": "w", "description": "d", "parameter_definitions": {"city": {"description": "Which.", "type": "str", "required": True}, "days": {"description": None, "type": "int", "required": None}}},
    "Cohere 2, Mistral, watsonx": {"type": "function", "function": {"name": "w", "description": "d", "parameters": SCHEMA}},
    "Bedrock": {"toolConfig": {"tools": [{"toolSpec": {"name": "w", "description": "d", "inputSchema": {"json": SCHEMA}}}, {"cachePoint": {"type": "default"}}], "toolChoice": {"auto": {}}}},
    "Ollama, model_dump()": {"type": "function", "function": {"name": "w", "description": "d", "parameters": {"type": "object", "defs": None, "items": None, "required": ["city"], "properties": {"city": {**CITY, "items": None, "enum": None}, "days": {"type": "integer", "items": None, "description": None, "enum": None}}}}},
    "xLAM": {"name": "w", "description": "d", "parameters": {"city": {"description": "Which.", "type": "str"}, "days": {"type": "int, optional"}}},
    "xLAM, a default": {"name": "w", "description": "d", "parameters": {"city": {"description": "Which.", "type": "str"}, "days": {"type": "int", "default": 3}}},
    "Llama 3.1": {"name": "w", "description": "d", "parameters": {"city": {"param_type": "string", "description": "Which.", "required": True}, "days": {"param_type": "int", "required": False}}},
    "Llama, ToolDefinition": {"tool_name": "w", "description": "d", "parameters": {"city": {"param_type": "string", "description": "Which.", "required": True, "default": None}, "days": {"param_type": "int", "description": None, "required": False, "default": None}}},
    "Llama Stack": {"name": "w", "description": "d", "parameters": [{"name": "city", "parameter_type": "string", "description": "Which."}, {"name": "days", "parameter_type": "integer", "required": False}]},
    "Qwen-Agent": {"name": "w", "description": "d", "parameters": [{"name": "city", "type": "string", "description": "Which.", "required": True}, {"name": "days", "type": "int"}]},
    "BFCL": {"name": "w", "description": "d", "parameters": {**SCHEMA, "type": "dict"}, "response": {"type": "dict"}},
    "Transformers, get_json_schema()": {"type": "function", "function": {"name": "w", "description": "d", "parameters": SCHEMA, "return": {"type": "string"}}},
    "smolagents": {"name": "w", "description": "d", "inputs": {"city": CITY, "days": {"type": "integer", "optional": True}}, "output_type": "string"},
    "LangChain, tool.args": {"name": "w", "description": "d", "args": {"city": CITY, "days": {"type": "integer", "default": 3}}},
    "required beside the parameters": {"name": "w", "description": "d", "parameters": {"type": "object", "properties": SCHEMA["properties"]}, "required": ["city"]},
    "required beside a map": {"name": "w", "description": "d", "parameters": {"city": CITY, "days": {"type": "integer"}}, "required": ["city"]},
    "the schema beside the name": {"name": "w", "description": "d", **SCHEMA},
    "JSON Schema": {"title": "w", "description": "d", **SCHEMA},
    "pages of MCP": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "w", "description": "d", "inputSchema": SCHEMA}], "nextCursor": None}},
}  # fmt: skip


@pytest.mark.parametrize("source", FORMS.values(), ids=FORMS.keys())
def test_every_form_is_the_same_tool(source: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Parameters, their types, descriptions and which are required: the same of every provider, and nothing unread."""
    (tool,) = ToolSet.from_any(source)
    days = tool.parameters["properties"].get("days", {})
    assert tool.description == "d"
    assert {
        **tool.parameters,
        "properties": {**tool.parameters["properties"], "days": {k: v for k, v in days.items() if k != "default"}},
    } == SCHEMA
    assert ToolSet.from_any(source) == ToolSet([Tool("w", "", SCHEMA)])
    assert caplog.records == []


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"name": "w", "params": {"city": CITY}}, "no known key for parameters, but params"),
    ({"name": "w", "parameters": SCHEMA, "input_schema": SCHEMA}, "parameters under parameters and input_schema"),
    ({"name": "w", "parameters": {"type": "object", "city": CITY}}, "'city' is not a keyword"),
    ({"name": "w", "parameters": {"city": "string"}}, "neither a JSON Schema nor a map"),
    ({"name": "w", "parameters": {"city": CITY, "days": 3}}, "neither a JSON Schema nor a map"),
    ({"name": "w", "parameters": [{"type": "string"}]}, "dicts with a name"),
    ({"name": "w", "parameters": "{}"}, "not str"),
    ({"name": "w", "inputs": {"image": {"type": "image"}}}, "unknown type 'image'"),
    ({"name": "w", "parameters": {"f": {"type": "Callable[[float], float]"}}}, "unknown type 'Callable"),
    ({"function_declarations": [{"name": "w"}], "google_search": {}}, "google_search: tools that run at the provider"),
    ({"google_search": {}}, "not a tool"),
    ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "w"}]}, "a choice between tools"),
    ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}, "a choice between tools"),
]


@pytest.mark.parametrize(
    "source",
    [
        {
            "type": "namespace",
            "name": "n",
            "description": "N.",
            "tools": [{"type": "function", "name": "w", "parameters": SCHEMA}],
        },
        {"identifier": "w", "description": "d", "parameters": SCHEMA},
        {
            "identifier": "w",
            "parameters": [
                {"name": "city", "parameter_type": "string", "description": "Which.", "required": True},
                {"name": "days", "parameter_type": "integer", "required": False},
            ],
        },
        {"name": "w", "description": "d", "schema": SCHEMA},
        {"w": {"description": "d", "inputSchema": SCHEMA}},
        {"w": {"description": "d", "inputSchema": {"jsonSchema": SCHEMA}}},
        {"w": {"parameters": SCHEMA}},
    ],
    ids=[
        "OpenAI's namespace",
        "Llama Stack",
        "Llama Stack's list",
        "LangChain.js",
        "Vercel",
        "Vercel, wrapped",
        "Vercel 4",
    ],
)
def test_forms_around_a_schema(source: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """Forms whose meaning is clear are taken, without a warning."""
    assert ToolSet.from_any(source) == ToolSet.from_any([source]) == ToolSet([Tool("w", "", SCHEMA)])
    assert caplog.records == []


def test_several_tools_by_name() -> None:
    """A map of tools keeps their names, their order, and what they say of themselves."""
    tools = ToolSet.from_any(
        {"w": {"description": "d", "inputSchema": SCHEMA}, "v": {"inputSchema": {"type": "object"}}}
    )
    assert tools.names == ("w", "v") and tools["w"].description == "d"


@pytest.mark.parametrize(
    ("kind", "text", "default"),
    [
        ("int", "3", 3), ("integer", "x", "x"), ("integer", "3.5", "3.5"), ("float", "0.5", 0.5), ("bool", "False", False),
        ("bool", "0", "0"), ("int", "true", "true"), ("number", "NaN", "NaN"), ("str", "3", "3"), ("List[int]", "3", "3"),
    ],
)  # fmt: skip
def test_defaults_written_as_text(kind: str, text: str, default: Any) -> None:
    """xLAM writes each default as text: it gets the type of its parameter where it spells a value of it."""
    source = {"name": "w", "parameters": {"n": {"type": kind, "description": "N.", "default": text}}}
    tool = ToolSet.from_any([source])["w"]
    found = tool.parameters["properties"]["n"]["default"]
    assert (found, type(found)) == (default, type(default)) and "required" not in tool.parameters


@pytest.mark.parametrize(("source", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_refused(source: dict[str, Any], said: str) -> None:
    """What is not read right is refused, with the tool and a way out."""
    with pytest.raises(SchemaError, match=said) as caught:
        ToolSet.from_any([source])
    assert caught.value.hint
    assert caught.value.place.tool == source.get("name")


@pytest.mark.parametrize("source", FORMS.values(), ids=FORMS.keys())
def test_equal_dicts_are_read_once(source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dict that was read before is not converted again, and its tool shares nothing with the first one's."""
    (first,) = ToolSet.from_any(source)
    read = copy.deepcopy({name: getattr(first, name) for name in Tool.__dataclass_fields__})
    first.parameters["properties"].clear()  # a caller's own
    first.annotations["x"] = 1  # type: ignore[index]
    with monkeypatch.context() as patched:
        patched.setattr(tool_module, "to_json_schema", None)
        (again,) = ToolSet.from_any(copy.deepcopy(source))
    assert {name: getattr(again, name) for name in read} == read


def test_data_that_is_not_plain_is_read_each_time() -> None:
    """What other data would stand for is not kept: a number of NumPy is a number the second time, too."""
    for _ in range(2):
        source = {"name": "w", "parameters": {"type": "object", "properties": {"a": {"minimum": np.float64(2)}}}}
        assert ToolSet.from_any([source])["w"].parameters["properties"]["a"]["minimum"] == 2.0


def test_unknown_keys_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """A key that nobody knows, beside keys that are read, is in a warning with the tool's name."""
    for _ in range(2):  # each time
        ToolSet.from_any([{"name": "w", "parameters": SCHEMA, "paramters": {}, "strict": True}])
        ToolSet.from_any([{"type": "function", "extra": 1, "function": {"name": "v"}}])
    assert [record.message for record in caplog.records] == [
        "tool 'w': keys without effect: paramters",
        "tool 'v': keys without effect: extra",
    ] * 2


def test_unknown_keywords_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """A keyword that no dialect knows constrains nothing: the log says where it stands; those that are marked are left."""
    inner = {"type": "string", "remark": ["x"], "x-order": 1, "examples": ["x"]}
    schema = {"type": "object", "properties": {"remark": {"anyOf": [inner]}, "a/b": {"type": "array", "thing": {}}}}
    ToolSet.from_any([{"name": "w", "parameters": schema}])
    (record,) = caplog.records
    assert sorted(record.getMessage().partition(": keywords without effect: ")[2].split(", ")) == [
        "/properties/a~1b/thing",
        "/properties/remark/anyOf/0/remark",
    ]


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"properties": {"a": {"type": "string", "minLenght": 3}}}, "did you mean 'minLength'"),
        ({"properties": {"a": {"type": "string", "format": "emial"}}}, "did you mean 'email'"),
        ({"properties": {"a": {"type": "string"}}, "requried": ["a"]}, "did you mean 'required'"),
        ({"properties": {"a": {"choices": ["x"]}}}, "did you mean 'enum'"),
    ],
)
def test_misspelt_keywords_are_a_warning(schema: dict[str, object], hint: str) -> None:
    """A keyword or a format that looks like another is a warning that a user sees, with the tool and what is meant."""
    with pytest.warns(SchemaWarning, match=f"^tool 'w': .*{hint}") as caught:
        ToolSet.from_any([{"name": "w", "parameters": {"type": "object", **schema}}])
    assert len(caught) == 1


@pytest.mark.parametrize("key", ["property", "params", "fields"])
def test_parameters_under_an_unknown_keyword_are_not_lost(key: str) -> None:
    """Such a schema would take no arguments at all."""
    with pytest.raises(SchemaError, match=f"{key}.*is not a keyword"):
        ToolSet.from_any([{"name": "w", "parameters": {"type": "object", key: {"a": {"type": "integer"}}}}])


@pytest.mark.parametrize(
    ("source", "properties", "required"),
    [
        # Bedrock wraps a schema in {"json": ...}; a parameter may be called so, too.
        ({"name": "w", "inputSchema": {"json": {"json": {"type": "string"}}}}, ["json"], ["json"]),
        ({"name": "w", "parameters": {"json": {"type": "string"}}}, ["json"], ["json"]),
        ({"toolSpec": {"name": "w", "inputSchema": {"json": None}}}, [], []),
        (
            {
                "name": "w",
                "requireConfirmation": "DISABLED",
                "parameters": {"a": {"type": "string", "required": True}, "b": {"type": "integer"}},
            },
            ["a", "b"],
            ["a"],
        ),
    ],
)
def test_what_bedrock_writes(source: Any, properties: list[str], required: list[str]) -> None:
    """Schemas in a wrapper, and maps of parameters that are optional unless they say otherwise."""
    parameters = ToolSet.from_any([source])["w"].parameters
    assert (list(parameters["properties"]), parameters.get("required", [])) == (properties, required)
    assert set(parameters) <= {"type", "properties", "required"}


def test_definitions_of_gemini_are_found() -> None:
    """Its Python package writes ``defs`` and ``ref``."""
    schema = {"type": "OBJECT", "properties": {"x": {"ref": "#/defs/P"}}, "defs": {"P": {"type": "STRING"}}}
    tools = ToolSet.from_any([{"name": "w", "parameters": schema}])
    tools.grammar()
    assert tools["w"].parameters["properties"]["x"] == {"$ref": "#/$defs/P"}


def test_required_that_is_no_list_is_not_dropped() -> None:
    """``"required": "a"`` of an object is an error."""
    tools = ToolSet.from_any([{"name": "w", "parameters": {"properties": {"a": {"type": "string"}}, "required": "a"}}])
    with pytest.raises(SchemaError, match="required"):
        tools.grammar()


def test_a_map_may_have_parameters_called_like_keywords() -> None:
    """Parameters called ``type``, ``properties``, ``required`` or ``description`` are parameters in a map."""
    entries = {name: {"type": "str"} for name in ("type", "properties", "required", "description", "items", "title")}
    (tool,) = ToolSet.from_any([{"name": "w", "parameters": entries}])
    assert tool.parameters["required"] == list(entries)
    assert tool.parameters["properties"] == {name: {"type": "string"} for name in entries}


#: Types as tool descriptions write them (xLAM, ToolACE, Cohere 1), and what they are.
TYPES: list[tuple[str, Any]] = [
    ("str", {"type": "string"}),
    ("str, optional", {"type": "string"}),
    ("List[int]", {"type": "array", "items": {"type": "integer"}}),
    ("list[str]", {"type": "array", "items": {"type": "string"}}),
    ("typing.List[float], optional", {"type": "array", "items": {"type": "number"}}),
    ("Dict[str, Any]", {"type": "object", "additionalProperties": {}}),
    ("Dict[str, List[bool]]", {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}}),
    ("Optional[str]", {"type": ["string", "null"]}),
    ("int | None", {"type": ["integer", "null"]}),
    ("Union[int, str]", {"type": ["integer", "string"]}),
    ("int or str", {"type": ["integer", "string"]}),
    ("List[Union[int, List[str]]]", {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}}),
    ("Optional[List[int]]", {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}),
    ("Tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
    ("Tuple[int, str]", {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False, "minItems": 2}),
    ("Literal['a', 1, None]", {"enum": ["a", 1, None]}),
    ("set", {"type": "array"}),
    ("Any", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "schema"), TYPES, ids=[name for name, _ in TYPES])
def test_types(name: str, schema: dict[str, Any]) -> None:
    """A type in Python's words is the schema that it stands for; reading it again changes nothing."""
    assert to_json_schema({"type": name, "description": "d"}) == {**schema, "description": "d"}
    assert to_json_schema(schema) == schema


def test_what_a_schema_says_itself_wins_over_its_type() -> None:
    """Of ``List[str]`` beside ``items`` the ``items`` count; a union in words and ``anyOf`` exclude each other."""
    assert to_json_schema({"type": "List[str]", "items": {"enum": ["a"]}}) == {
        "type": "array",
        "items": {"enum": ["a"]},
    }
    with pytest.raises(SchemaError, match="and anyOf are in one schema"):
        to_json_schema({"type": "Union[int, List[str]]", "anyOf": [{}]})


@pytest.mark.parametrize(
    "text",
    [
        "(" * 900,
        "[" * 900,
        "List[" * 150 + "int" + "]" * 150,
        "a.b.c",
        "f(x)",
        "1",
        "x if y else z",
        "List[int",
        "lambda: 0",
        "\x00",
        "List[()]",
    ],
)
def test_no_type(text: str) -> None:
    """A text that is no type is refused or read, and never run."""
    try:
        to_json_schema({"type": text})
    except SchemaError:
        assert "List[int]" not in text
    else:
        assert text.startswith("List[List[")


KEYS = st.integers(0, 2) | st.sampled_from(
    [
        "name", "type", "type_", "description", "parameters", "properties", "required", "optional", "input_schema", "inputs",
        "args", "function", "toolSpec", "tools", "default", "enum", "items", "anyOf", "nullable", "title", "$ref", "in",
        "schema", "style", "content", "requestBody", "operationId", "application/json", "multipart/form-data", "consumes",
        "encoding", "collectionFormat", "/x/{id}", "post", "readOnly",
    ]
)  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.binary(max_size=2)
    | st.sampled_from(["object", "List[int]", "str, optional", "w", "x[", "", "function", "#/a", "query", "body", "csv"])
)  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=20
)
MAPS = st.dictionaries(KEYS, VALUES, max_size=5)
PARAMETERS = st.lists(
    st.fixed_dictionaries(
        {"name": VALUES, "in": st.sampled_from(["path", "query", "body", "formData"])},
        optional={"schema": VALUES, "style": VALUES, "content": VALUES, "type": VALUES, "collectionFormat": VALUES},
    ),
    max_size=2,
)
OPERATIONS = MAPS | st.fixed_dictionaries(
    {"parameters": PARAMETERS | VALUES},
    optional={"requestBody": st.fixed_dictionaries({"content": MAPS}), "operationId": VALUES, "consumes": VALUES},
)


@settings(max_examples=150, deadline=None)
@given(MAPS)
def test_only_our_errors_for_dicts(source: Any) -> None:
    """Whatever a dict holds, it is a tool or refused with an error of ours."""
    for each in (source, {"name": "w", **source}, {"name": "w", "parameters": source}):
        try:
            tools = ToolSet.from_any(each)
        except ToolGrammarError:
            continue
        assert all(tool.parameters["type"] == "object" for tool in tools)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["/x", "/x/{id}"]),
        st.dictionaries(st.sampled_from(["get", "post", "parameters"]), OPERATIONS, max_size=2),
        max_size=2,
    ),
    st.booleans(),
)
def test_only_our_errors_for_documents(paths: Any, swagger: bool) -> None:
    """Whatever a document holds, each operation is a tool or named among those that are not."""
    version = {"swagger": "2.0"} if swagger else {"openapi": "3.0.0"}
    tools = tools_from_openapi({**version, "paths": paths})
    wrong = sum(error.place.tool is None for error in tools.skipped)  # path items that cannot be read
    operations = sum(
        isinstance(operation, dict) for item in paths.values() for key, operation in item.items() if key != "parameters"
    )
    assert len(tools) + len(tools.skipped) - wrong <= operations
    assert wrong or len(tools) + len(tools.skipped) == operations
