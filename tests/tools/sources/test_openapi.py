"""Operations of OpenAPI documents become tools, and their calls the requests that the document describes."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote, unquote_plus

import httpx
import jsonschema
import pytest

from toolgrammar.core import SchemaError
from toolgrammar.core.schema import KEYWORDS
from toolgrammar.tools import Tool, ToolSet, dialects, tools_from_openapi
from toolgrammar.tools.policy.compiled import TRUSTED
from toolgrammar.tools.policy.grounded import TYPE

PETS: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example/v1"}],
    "paths": {
        "/pets": {
            "parameters": [{"$ref": "#/components/parameters/Trace"}],
            "get": {
                "operationId": "listPets",
                "summary": "List all pets.",
                "parameters": [
                    {
                        "name": "limit",
                        "in": "query",
                        "description": "How many items to return.",
                        "schema": {"type": "integer", "maximum": 100, "exclusiveMaximum": True},
                    },
                    {"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                ],
                "responses": {"200": {"description": "Pets."}},
            },
            "post": {
                "operationId": "createPet",
                "summary": "Create a pet.",
                "description": "The id is given by the server.",
                "requestBody": {"$ref": "#/components/requestBodies/Pet"},
            },
        },
        "/pets/{petId}": {
            "get": {
                "parameters": [{"name": "petId", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {},
            },
        },
    },
    "components": {
        "parameters": {"Trace": {"name": "X-Trace", "in": "header", "schema": {"type": "string", "nullable": True}}},
        "requestBodies": {
            "Pet": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
            }
        },
        "schemas": {
            "Pet": {
                "type": "object",
                "required": ["id", "name"],
                "properties": {
                    "id": {"type": "integer", "readOnly": True},
                    "name": {"type": "string"},
                    "kind": {"$ref": "#/components/schemas/Kind", "description": "ignored in 3.0"},
                    "parent": {"$ref": "#/components/schemas/Pet"},
                },
            },
            "Kind": {"type": "string", "nullable": True, "enum": ["cat", "dog"]},
        },
    },
}


def document(operation: dict[str, Any], path: str = "/x", version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    """A document with one operation, ``f``."""
    return {"openapi": version, "paths": {path: {"post": {"operationId": "f", **operation}}}, **more}


def parameter(name: str, place: str, schema: Any = None, **more: Any) -> dict[str, Any]:
    """A parameter."""
    return {"name": name, "in": place, "schema": {"type": "string"} if schema is None else schema, **more}


def test_pets() -> None:
    """Parameters are properties, the body is one, and components become definitions."""
    tools = ToolSet.from_any(PETS)
    assert tools.names == ("listPets", "createPet", "get_pets_petId")
    assert tools["listPets"].description == "List all pets."
    assert tools["listPets"].parameters == {
        "type": "object",
        "properties": {
            "X-Trace": {"type": ["string", "null"]},
            "limit": {
                "type": "integer",
                "exclusiveMaximum": 100,
                "maximum": 100,
                "description": "How many items to return.",
            },
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }
    assert tools["createPet"].description == "Create a pet.\n\nThe id is given by the server."
    assert tools["createPet"].parameters == {
        "type": "object",
        "properties": {"X-Trace": {"type": ["string", "null"]}, "body": {"$ref": "#/$defs/Pet"}},
        "required": ["body"],
        "$defs": {
            "Pet": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "kind": {"$ref": "#/$defs/Kind"},
                    "parent": {"$ref": "#/$defs/Pet"},
                },
            },
            "Kind": {"type": ["string", "null"], "enum": ["cat", "dog", None]},
        },
    }
    assert tools["get_pets_petId"].parameters["required"] == ["petId"]
    assert all(tool.function is None for tool in tools)
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool.parameters)
    assert tools.grammar(tool_choice="required").matches(
        '<tool_call>\n{"name": "createPet", "arguments": {"body": {"name": "Tom", "kind": "cat"}}}\n</tool_call>'
    )


def test_names_choose() -> None:
    """Names choose operations, in their order."""
    assert [tool.name for tool in tools_from_openapi(PETS, ["createPet", "listPets"])] == ["createPet", "listPets"]


def test_siblings_of_references_count_from_3_1() -> None:
    """Beside a reference nothing counts in 3.0, and everything in 3.1."""
    newer = {**PETS, "openapi": "3.1.0"}
    (tool,) = tools_from_openapi(newer, ["createPet"])
    assert tool.parameters["$defs"]["Pet"]["properties"]["kind"] == {
        "$ref": "#/$defs/Kind",
        "description": "ignored in 3.0",
    }


def test_equal_names_in_different_places() -> None:
    """The later of two parameters of one name says where it belongs; so does a body beside a parameter ``body``."""
    operation = {
        "parameters": [parameter("id", "path"), parameter("id", "query"), parameter("body", "query")],
        "requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The text."},
    }
    (tool,) = tools_from_openapi(document(operation, "/x/{id}"))
    assert list(tool.parameters["properties"]) == ["id", "query_id", "body", "request_body"]
    assert tool.parameters["properties"]["request_body"] == {"type": "string", "description": "The text."}
    assert tool.parameters["required"] == ["id"]


def test_an_operation_replaces_a_parameter_of_its_path() -> None:
    """A parameter declared again, in the same place, is the operation's."""
    source = document({"parameters": [parameter("a", "query", {"type": "integer"})]})
    source["paths"]["/x"]["parameters"] = [parameter("a", "query"), parameter("b", "query")]
    (tool,) = tools_from_openapi(source)
    assert tool.parameters["properties"] == {"a": {"type": "integer"}, "b": {"type": "string"}}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"swagger": "1.2"}, "swagger is '1.2'"),
    ({"openapi": "3.1.0", "paths": []}, "paths is a list"),
    ({"openapi": "3.1.0", "paths": {"/x": {"$ref": "#/no"}}}, "cannot be resolved"),
    (document({"parameters": [{"$ref": "#/components/parameters/No"}]}), "cannot be resolved"),
    (document({"parameters": [{"$ref": "other.yaml#/P"}]}), "refers to another document"),
    (document({"parameters": [parameter("a", "body")]}), "'in' with one of"),
    (document({"parameters": [{"in": "query"}]}), "needs 'name'"),
    (document({}, "/x/{id}"), "without a parameter: id"),
    (document({"requestBody": {"content": {"multipart/form-data": {}}}}), "multipart/form-data"),
    (document({"requestBody": {"content": {}}}), "none"),
    (
        document({"requestBody": {"content": {"application/octet-stream": {}, "image/png": {}}}}),
        "octet-stream, image/png",
    ),
    (document({"parameters": [parameter("a", "query", style="tabs")]}), "the style 'tabs'"),
    (document({"parameters": {"a": 1}}), "parameters is a dict"),
    (document({"parameters": [{"name": "a", "in": "query", "content": {"text/xml": {}}}]}), "text/xml"),
    (document({"parameters": [parameter("a", "query", {"$ref": "#/components/schemas/No"})]}), "cannot be resolved"),
    (document({"parameters": [parameter("a", "query", {"type": "strng"})]}), "strng"),
    (
        document(
            {"parameters": [{"$ref": "#/components/a"}]},
            components={"a": {"$ref": "#/components/b"}, "b": {"$ref": "#/components/a"}},
        ),
        "is circular",
    ),
]


@pytest.mark.parametrize(("source", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_refused(source: dict[str, Any], said: str) -> None:
    """What cannot be a tool is refused with the operation's name and the reason."""
    with pytest.raises(SchemaError, match=said) as caught:
        tools_from_openapi(source, strict=True)
    place = caught.value.place
    assert place.tool == ("f" if "operationId" in json.dumps(source) else None)
    assert place.pointer or "swagger" in source


def test_refused_names() -> None:
    """Two operations of one name, and a name that no operation has, are errors."""
    twice = {**PETS, "paths": {path: {"get": {"operationId": "a"}} for path in ("/a", "/b")}}
    with pytest.raises(SchemaError, match="the same name"):
        tools_from_openapi(twice, strict=True)
    with pytest.raises(SchemaError, match="no operation 'dropPets'"):
        tools_from_openapi(PETS, ["dropPets"])


def files(**more: Any) -> dict[str, Any]:
    """An operation that takes a file."""
    schema = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}, **more}}
    return {"requestBody": {"content": {"multipart/form-data": {"schema": schema}}}}


def test_unusable_operations_are_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    """One operation that cannot be a tool does not take the others with it; result and log say which and why."""
    source = {
        **PETS,
        "paths": {**PETS["paths"], "/files": {"post": {"operationId": "upload", **files()}}, "/x": {"$ref": "#/no"}},
    }
    tools = tools_from_openapi(source)
    assert [tool.name for tool in tools] == ["listPets", "createPet", "get_pets_petId"]
    assert [(error.place.tool, error.place.pointer) for error in tools.skipped] == [
        ("upload", "/paths/~1files/post/requestBody"),
        (None, "/paths/~1x"),
    ]
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("toolgrammar.openapi", "WARNING")
    assert "2 of 5 operations" in record.message and "multipart/form-data (tool 'upload'" in record.message
    assert ToolSet.from_any(source).names == ToolSet(tools).names
    assert tools_from_openapi(source, ["listPets"]).skipped == ()
    with pytest.raises(SchemaError, match="multipart/form-data"):
        tools_from_openapi(source, ["listPets", "upload"])


def echo(request: httpx.Request) -> httpx.Response:
    """What was asked, as JSON."""
    if request.url.path.endswith("/broken"):
        return httpx.Response(500, text="the disk is full" + "x" * 5_000)
    if request.url.path.endswith("/text"):
        return httpx.Response(200, text="plain")
    return httpx.Response(
        200,
        json={
            "method": request.method,
            "url": str(request.url),
            "headers": {
                k: v for k, v in request.headers.items() if k.startswith("x-") or k in ("cookie", "content-type")
            },
            "body": request.content.decode(),
        },
    )


CLIENT = httpx.Client(transport=httpx.MockTransport(echo), base_url="https://api.example/v1")


def sent(operation: dict[str, Any], arguments: dict[str, Any], path: str = "/x") -> dict[str, Any]:
    """The request of a call."""
    tools = ToolSet(tools_from_openapi(document(operation, path), client=CLIENT))
    result: dict[str, Any] = tools.call({"name": "f", "arguments": arguments})
    return result


#: Examples of the specification's table of styles (color = blue, black, brown; R=100, G=200, B=150).
STYLES: list[tuple[dict[str, Any], Any, str]] = [
    ({}, "blue", "color=blue"),
    ({}, ["blue", "black"], "color=blue&color=black"),
    ({"explode": False}, ["blue", "black"], "color=blue%2Cblack"),
    ({}, {"R": 100, "G": 200}, "R=100&G=200"),
    ({"explode": False}, {"R": 100, "G": 200}, "color=R%2C100%2CG%2C200"),
    ({"style": "spaceDelimited"}, ["blue", "black"], "color=blue+black"),
    ({"style": "pipeDelimited"}, ["blue", "black"], "color=blue%7Cblack"),
    ({"style": "deepObject", "explode": True}, {"R": 100, "G": 200}, "color%5BR%5D=100&color%5BG%5D=200"),
    ({}, True, "color=true"),
    ({}, 1.5, "color=1.5"),
    ({"content": {"application/json": {"schema": {}}}}, {"a": [1]}, "color=%7B%22a%22%3A+%5B1%5D%7D"),
]


@pytest.mark.parametrize(("how", "value", "query"), STYLES, ids=[query for *_, query in STYLES])
def test_styles_of_the_query(how: dict[str, Any], value: Any, query: str) -> None:
    """Arrays and objects are written in the query as the specification's styles say."""
    request = sent({"parameters": [parameter("color", "query", {}, **how)]}, {"color": value})
    assert httpx.URL(request["url"]).query.decode().replace("%20", "+") == query.replace("%20", "+")


def test_every_place() -> None:
    """Each argument goes where its parameter is, encoded for that place."""
    operation = {
        "parameters": [
            parameter("id", "path"),
            parameter("ids", "path", {"type": "array", "items": {"type": "integer"}}),
            parameter("X-Names", "header", {"type": "array", "items": {"type": "string"}}),
            parameter("session", "cookie"),
        ],
        "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
    }
    arguments = {"id": "a/b?c ü", "ids": [1, 2], "X-Names": ["a", "b"], "session": "s;1", "body": {"ü": [1]}}
    request = sent(operation, arguments, "/x/{id}/{ids}")
    assert request["url"] == "https://api.example/v1/x/a%2Fb%3Fc%20%C3%BC/1,2"
    assert request["headers"] == {"x-names": "a,b", "cookie": "session=s%3B1", "content-type": "application/json"}
    assert json.loads(request["body"]) == {"ü": [1]}
    assert request["method"] == "POST"


def test_bodies_that_are_not_json() -> None:
    """Forms and plain text are sent as such; without a body nothing is."""
    form = {"requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}}}
    request = sent(form, {"body": {"a": "x y", "b": 1}})
    assert (request["body"], request["headers"]["content-type"]) == ("a=x+y&b=1", "application/x-www-form-urlencoded")
    assert sent({"requestBody": {"content": {"text/plain": {}}}}, {"body": "hello"})["body"] == "hello"
    assert sent(form, {})["body"] == ""


FORM = "application/x-www-form-urlencoded"
#: Schema or encoding of the fields, the body, and what is sent. Lists are repeated fields, and objects JSON, unless the
#: document says otherwise (OpenAPI 3.1.1, "Encoding the x-www-form-urlencoded Media Type").
FORMS: list[tuple[dict[str, Any], Any, str]] = [
    ({}, {"MediaUrl": ["https://a", "https://b"], "Body": "x"}, "MediaUrl=https://a&MediaUrl=https://b&Body=x"),
    ({}, {"address": {"zip": "1"}}, 'address={"zip": "1"}'),
    ({}, {"filters": [{"a": 1}, {"b": 2}]}, 'filters={"a": 1}&filters={"b": 2}'),
    ({}, {"a": None, "b": True, "c": 1.5}, "b=true&c=1.5"),
    ({"ids": {"explode": False}}, {"ids": [1, 2]}, "ids=1,2"),
    ({"ids": {"style": "pipeDelimited", "explode": False}}, {"ids": [1, 2]}, "ids=1|2"),
    ({"at": {"style": "form"}}, {"at": {"x": 1, "y": 2}}, "x=1&y=2"),
    (
        {"at": {"style": "deepObject", "explode": True}},
        {"at": {"x": 1, "in": {"y": [2, 3]}}},
        "at[x]=1&at[in][y][0]=2&at[in][y][1]=3",
    ),
    ({"expand": {"style": "deepObject", "explode": True}}, {"expand": ["a", "b"]}, "expand[0]=a&expand[1]=b"),
    ({"ids": {"contentType": "application/json"}}, {"ids": [1, 2]}, "ids=[1, 2]"),
]


@pytest.mark.parametrize(("encoding", "body", "text"), FORMS, ids=[text for *_, text in FORMS])
def test_forms(encoding: dict[str, Any], body: Any, text: str) -> None:
    """The fields of a form are written as the document's encoding says."""
    request = sent(
        {"requestBody": {"content": {FORM: {"schema": {"type": "object"}, "encoding": encoding}}}}, {"body": body}
    )
    assert unquote_plus(request["body"]) == text
    assert request["headers"]["content-type"] == FORM


def test_multipart_forms_without_files() -> None:
    """A form of plain fields can be sent in parts; one with a file, or with a field of any type, cannot."""
    operation = files(file={"type": "array", "items": {"type": "integer"}}, name={"type": "string"})
    request = sent(operation, {"body": {"name": "ü", "file": [1, 2]}})
    assert request["headers"]["content-type"].startswith("multipart/form-data; boundary=")
    assert re.findall(r'name="(\w+)"\r\n\r\n(.*?)\r\n--', request["body"]) == [
        ("name", "ü"),
        ("file", "1"),
        ("file", "2"),
    ]
    for field in (
        {"type": "array", "items": {"type": "string", "format": "binary"}},
        {},
        {"type": "string", "contentMediaType": "image/png"},
        {"$ref": "#/components/schemas/Name", "format": "binary"},
    ):
        schemas = {"schemas": {"Name": {"type": "string"}}}
        assert tools_from_openapi(document(files(more=field), components=schemas)).skipped


def test_text_of_any_kind() -> None:
    """A body of a text type is one string."""
    operation = {"requestBody": {"content": {"text/csv": {}, "image/png": {}}}}
    request = sent(operation, {"body": "a,b"})
    assert (request["body"], request["headers"]["content-type"]) == ("a,b", "text/csv")


#: The path column of the specification's table of styles.
PATHS: list[tuple[dict[str, Any], Any, str]] = [
    ({}, "a b", "a%20b"),
    ({}, ["blue", "bl,ack"], "blue,bl%2Cack"),
    ({}, {"R": 100, "G": 200}, "R,100,G,200"),
    ({"explode": True}, {"R": 100, "G": 200}, "R=100,G=200"),
    ({"style": "label"}, "blue", ".blue"),
    ({"style": "label"}, ["blue", "black"], ".blue,black"),
    ({"style": "label", "explode": True}, ["blue", "black"], ".blue.black"),
    ({"style": "label", "explode": True}, {"R": 100, "G": 200}, ".R=100.G=200"),
    ({"style": "matrix"}, "blue", ";color=blue"),
    ({"style": "matrix"}, ["blue", "black"], ";color=blue,black"),
    ({"style": "matrix", "explode": True}, ["blue", "black"], ";color=blue;color=black"),
    ({"style": "matrix"}, {"R": 100, "G": 200}, ";color=R,100,G,200"),
    ({"style": "matrix", "explode": True}, {"R": 100, "G": 200}, ";R=100;G=200"),
]


@pytest.mark.parametrize(("how", "value", "text"), PATHS, ids=[text for *_, text in PATHS])
def test_styles_of_the_path(how: dict[str, Any], value: Any, text: str) -> None:
    """Values in a path are written as the specification's styles say."""
    request = sent({"parameters": [parameter("color", "path", {}, **how)]}, {"color": value}, "/x/{color}")
    assert request["url"] == f"https://api.example/v1/x/{text}"


def test_a_path_cannot_be_left_by_two_values() -> None:
    """Two values that make ``..`` together are refused too; a query parameter of the same name is another one."""
    parameters = [parameter("a", "query"), parameter("a", "path"), parameter("b", "path")]
    tools = ToolSet(tools_from_openapi(document({"parameters": parameters}, "/x/{a}{b}/y"), client=CLIENT))
    result = tools.execute({"name": "f", "arguments": {"path_a": ".", "b": "."}})
    assert (result.code, result.pointer) == ("invalid_arguments", "/path_a")


def test_read_only_properties_under_all_of() -> None:
    """A property that is not sent is not required either, wherever it is declared."""
    schema = {
        "allOf": [
            {"properties": {"id": {"type": "string", "readOnly": True}}},
            {"$ref": "#/components/schemas/Base"},
            {"required": ["id", "a"]},
        ],
        "required": ["id", "at", "a"],
        "properties": {"a": {"type": "string"}},
    }
    base = {"properties": {"at": {"$ref": "#/components/schemas/At"}}}
    (tool,) = tools_from_openapi(
        document(
            {"requestBody": {"content": {"application/json": {"schema": schema}}}},
            components={"schemas": {"Base": base, "At": {"type": "string", "readOnly": True}}},
        )
    )
    body = tool.parameters["properties"]["body"]
    assert (body["required"], body["allOf"][2]["required"]) == (["a"], ["a"])
    grammar = ToolSet([tool]).grammar(tool_choice="required")
    assert grammar.matches('<tool_call>\n{"name": "f", "arguments": {"body": {"a": "x"}}}\n</tool_call>')


AT = "#/components/schemas/"
MARKED = {"$ref": AT + "Id", "readOnly": True}
BESIDE: dict[str, Any] = {
    "Marked": {"type": "object", "properties": {"id": MARKED, "name": {"type": "string"}}, "required": ["id"]},
    "Beside": {"$ref": AT + "Base", "properties": {"k": {"type": "string", "readOnly": True}}, "required": ["k"]},
    "Both": {"allOf": [{"$ref": AT + "Base", "properties": {"id": MARKED}}], "required": ["id"]},
    "Chain": {"$ref": AT + "Base", "properties": {"id": {"$ref": AT + "Marked id"}}, "required": ["id"]},
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_mark_beside_a_reference(name: str) -> None:
    """``readOnly`` beside a reference counts from OpenAPI 3.1 on, and so does a property declared beside one."""
    base = {"type": "object", "properties": {"name": {"type": "string"}}}
    schemas = {"Id": {"type": "string"}, "Base": base, "Marked id": MARKED, **BESIDE}
    content = {"application/json": {"schema": {"$ref": AT + name}}}
    operation = {"requestBody": {"content": content, "required": True}}
    tools = tools_from_openapi(document(operation, components={"schemas": schemas}))
    grammar = ToolSet(tools).grammar(tool_choice="required")
    for body, is_valid in (({"name": "x"}, True), ({"id": "x", "name": "x"}, False)):
        call = json.dumps({"name": "f", "arguments": {"body": body}})
        assert grammar.matches(f"<tool_call>\n{call}\n</tool_call>") is is_valid
    (old,) = tools_from_openapi(document(operation, version="3.0.3", components={"schemas": schemas}))
    assert old.parameters["$defs"][name].get("required", []) == ([] if "$ref" in BESIDE[name] else ["id"])


def test_references_are_uri_fragments() -> None:
    """A reference may be percent-encoded, and extensions are not schemas."""
    source = document(
        {"parameters": [{"$ref": "#/paths/~1y~1%7Bid%7D/parameters/0"}]},
        "/x/{id}",
    )
    schema = {"type": "string", "x-docs": {"$ref": "elsewhere.md"}}
    source["paths"]["/y/{id}"] = {"parameters": [parameter("id", "path", schema)]}
    (tool,) = tools_from_openapi(source)
    assert tool.parameters["properties"] == {"id": {"type": "string"}}


@pytest.mark.parametrize("name", sorted({*(name for name in KEYWORDS if name.startswith("x-")), TYPE, TRUSTED}))
def test_keywords_of_ours_are_kept(name: str) -> None:
    """Of the extensions of a schema in a document, those that this library reads stay, as they are written."""
    value: Any = {"x-grammar": {"syntax": "lark", "definition": 'start: "a"'}, TYPE: "Id", TRUSTED: False}.get(
        name,
        "a",  # whatever the keyword takes: nothing looks at it here
    )
    schema = {"type": "string", name: value, "x-other": value}
    (tool,) = tools_from_openapi(document({"parameters": [parameter("a", "query", schema)]}))
    assert tool.parameters["properties"]["a"] == {"type": "string", name: value}


def test_long_chains_of_references() -> None:
    """Components that refer to one another in a long chain are read without recursion, each once."""
    schemas: dict[str, Any] = {
        f"s{n}": {"properties": {"next": {"$ref": f"#/components/schemas/s{n + 1}"}}} for n in range(3_000)
    }
    schemas["s3000"] = {"type": "string"}
    body = {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/s0"}}}}}
    (tool,) = tools_from_openapi(document(body, components={"schemas": schemas}))
    assert len(tool.parameters["$defs"]) == 3_001


SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "consumes": ["application/json"],
    "parameters": {"Page": {"name": "page", "in": "query", "type": "integer", "minimum": 1}},
    "definitions": {"Pet": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
    "paths": {
        "/pets/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "type": "string", "description": "Which."}],
            "post": {
                "operationId": "f",
                "parameters": [
                    {"$ref": "#/parameters/Page"},
                    {"name": "a", "in": "query", "type": "array", "items": {"type": "string"}},
                    {
                        "name": "b",
                        "in": "query",
                        "type": "array",
                        "items": {"type": "string"},
                        "collectionFormat": "multi",
                    },
                    {
                        "name": "c",
                        "in": "query",
                        "type": "array",
                        "items": {"type": "string"},
                        "collectionFormat": "pipes",
                    },
                    {"name": "pet", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Pet"}},
                ],
            },
        }
    },
}


def swagger(*parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A Swagger document with one operation, ``f``."""
    return {"swagger": "2.0", "paths": {"/x": {"post": {"operationId": "f", "parameters": list(parameters), **more}}}}


def test_swagger() -> None:
    """A Swagger 2 document is read as the same document of OpenAPI 3 is."""
    assert ToolSet.from_any(SWAGGER).names == ("f",)
    (tool,) = tools_from_openapi(SWAGGER, client=CLIENT)
    strings = {"type": "array", "items": {"type": "string"}}
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "Which."},
            "page": {"type": "integer", "minimum": 1},
            **dict.fromkeys("abc", strings),
            "body": {"$ref": "#/$defs/Pet"},
        },
        "required": ["id", "body"],
        "$defs": SWAGGER["definitions"],
    }
    lists = {key: ["1", "2"] for key in "abc"}
    request = ToolSet([tool]).call({"name": "f", "arguments": {"id": "7", "page": 1, **lists, "body": {"name": "Tom"}}})
    assert unquote(request["url"]) == "https://api.example/v1/pets/7?page=1&a=1,2&b=1&b=2&c=1|2"
    assert json.loads(request["body"]) == {"name": "Tom"}


def test_swagger_forms() -> None:
    """Form fields are one body: urlencoded, or in parts where the document says so; files cannot be sent."""
    fields = [
        {"name": "n", "in": "formData", "type": "integer", "required": True, "description": "How many."},
        {"name": "a", "in": "formData", "type": "array", "items": {"type": "string"}},
        {"name": "m", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"},
    ]
    (tool,) = tools_from_openapi(swagger(*fields), client=CLIENT)
    assert tool.parameters["required"] == ["body"]
    assert tool.parameters["properties"]["body"]["required"] == ["n"]
    assert tool.parameters["properties"]["body"]["properties"]["n"] == {"type": "integer", "description": "How many."}
    call = {"name": "f", "arguments": {"body": {"n": 1, "a": ["x", "y"], "m": ["x", "y"]}}}
    assert unquote(ToolSet([tool]).call(call)["body"]) == "n=1&a=x,y&m=x&m=y"
    (tool,) = tools_from_openapi(swagger(*fields, consumes=["multipart/form-data"]), client=CLIENT)
    assert 'name="n"' in ToolSet([tool]).call(call)["body"]
    upload = swagger(*fields, {"name": "file", "in": "formData", "type": "file"})
    assert "multipart/form-data" in str(tools_from_openapi(upload).skipped[0])


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ({"name": "a", "in": "query", "type": "array", "items": {}, "collectionFormat": "tsv"}, "the format 'tsv'"),
        ({"name": "a", "in": "header", "type": "array", "items": {}, "collectionFormat": "multi"}, "header parameter"),
        ({"name": "a", "in": "body", "schema": {"$ref": "#/definitions/No"}}, "cannot be resolved"),
    ],
)
def test_refused_in_swagger(parameter: dict[str, Any], said: str) -> None:
    """What OpenAPI 3 cannot say, or no request can hold, is refused with the operation's name."""
    with pytest.raises(SchemaError, match=said) as caught:
        tools_from_openapi(swagger(parameter), strict=True)
    assert caught.value.place.tool == "f"


@pytest.mark.parametrize("value", ["..", ".", ""])
def test_a_path_cannot_be_left(value: str) -> None:
    """A value that would lead to another path is refused before anything is sent."""
    tools = ToolSet(tools_from_openapi(document({"parameters": [parameter("id", "path")]}, "/x/{id}/y"), client=CLIENT))
    result = tools.execute({"name": "f", "arguments": {"id": value}})
    assert (result.code, result.pointer) == ("invalid_arguments", "/id")


def test_answers() -> None:
    """JSON is decoded, text is text, and an error of the server is told with its words, shortened."""
    tools = ToolSet(tools_from_openapi(document({}, "/text"), client=CLIENT))
    assert tools.call({"name": "f", "arguments": {}}) == "plain"
    tools = ToolSet(tools_from_openapi(document({}, "/broken"), client=CLIENT))
    result = tools.execute({"name": "f", "arguments": {}})
    assert result.code == "tool_call"
    assert "500 Internal Server Error: the disk is full" in (result.error or "")
    assert len(result.error or "") < 2_200


@pytest.mark.asyncio
async def test_async_clients() -> None:
    """With an async client the tools are async functions."""
    async with httpx.AsyncClient(transport=httpx.MockTransport(echo)) as client:
        tools = ToolSet(tools_from_openapi(PETS, client=client, base_url="https://other.example/"))
        answer = await tools.acall({"name": "get_pets_petId", "arguments": {"petId": "7"}}, timeout=5)
    assert answer["url"] == "https://other.example/pets/7"


def test_without_a_client_nothing_is_sent() -> None:
    """A document's own servers are never used by themselves; a base URL alone makes the tools run."""
    result = ToolSet.from_any(PETS).execute({"name": "listPets", "arguments": {}})
    assert "no function" in (result.error or "")
    (tool,) = tools_from_openapi(PETS, ["listPets"], base_url="http://localhost:9")
    assert isinstance(tool, Tool)
    failed = ToolSet([tool]).execute({"name": "listPets", "arguments": {}}, timeout=20)
    assert failed.code == "tool_failed"
    assert "Connect" in (failed.error or "")


def test_components_are_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many operations share its components, a document is converted about once; each tool has its closure."""
    count = 0
    convert = dialects._Converter.convert

    def counted(self: Any, schema: Any, steps: Any) -> Any:
        nonlocal count
        count += 1
        return convert(self, schema, steps)

    monkeypatch.setattr(dialects._Converter, "convert", counted)
    chain = {
        f"C{index}": {
            "type": "object",
            "properties": {
                "next": {"$ref": f"#/components/schemas/C{index + 1}"},
                "n": {"type": "number", "nullable": True},
            },
        }
        for index in range(40)
    }
    chain["C40"] = {"type": "object", "properties": {"first": {"$ref": "#/components/schemas/C0"}}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/C0"}}}}
    paths = {f"/p{index}": {"post": {"operationId": f"p{index}", "requestBody": body}} for index in range(50)}
    tools = tools_from_openapi({"openapi": "3.0.3", "paths": paths, "components": {"schemas": chain}})
    assert count < 50 * 4 + 41 * 4
    assert all(len(tool.parameters["$defs"]) == 41 for tool in tools)
    assert tools[7].parameters["$defs"]["C3"]["properties"]["n"] == {"type": ["number", "null"]}
    assert Tool("p7", parameters=tools[7].parameters).parameters == tools[7].parameters
    assert len(ToolSet(tools)) == 50


def test_a_component_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """Each operation that needs it is left out, with the place in the component."""
    schemas = {"Bad": {"type": "object", "properties": {"a": {"type": "nonsense"}}}, "Good": {"type": "string"}}
    paths = {
        f"/{index}/{name}": {
            "post": {
                "operationId": f"{name}{index}",
                "requestBody": {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}},
            }
        }
        for name in schemas
        for index in range(2)
    }
    tools = tools_from_openapi({"openapi": "3.1.0", "paths": paths, "components": {"schemas": schemas}})
    assert [tool.name for tool in tools] == ["Good0", "Good1"]
    assert [(error.place.tool, error.place.pointer) for error in tools.skipped] == [
        ("Bad0", "/$defs/Bad/properties/a/type"),
        ("Bad1", "/$defs/Bad/properties/a/type"),
    ]


@pytest.mark.parametrize("word", ["oneOf", "anyOf"])
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_a_discriminator_tells_open_alternatives_apart(word: str, version: str) -> None:
    """Each alternative has the tags that ``mapping`` gives it, under the name or the address of its schema."""
    base = {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}}
    dog = {"type": "object", "required": ["bark"], "properties": {"bark": {"type": "string"}}}
    cat = {"type": "object", "properties": {"lives": {"type": "integer"}}}
    components = {"Dog": {"allOf": [base, dog]}, "Cat": {"allOf": [base, cat]}}
    pet = {
        word: [{"$ref": f"#/components/schemas/{name}"} for name in components],
        "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat", "dog": "Dog"}},
    }
    body = {"required": True, "content": {"application/json": {"schema": pet}}}
    document = {
        "openapi": version,
        "paths": {"/pets": {"post": {"operationId": "create", "requestBody": body}}},
        "components": {"schemas": components},
    }
    grammar = ToolSet(document).grammar(tool_choice="create", parallel=False)

    def takes(value: Any) -> bool:
        return grammar.matches(
            f'<tool_call>\n{{"name": "create", "arguments": {{"body": {json.dumps(value)}}}}}\n</tool_call>'
        )

    assert takes({"kind": "dog", "bark": "w"}) and takes({"kind": "cat", "lives": 9}) and takes({"kind": "cat"})
    assert not takes({"kind": "zebra"}) and not takes({"kind": "dog", "lives": 9}) and not takes({"kind": "dog"})
