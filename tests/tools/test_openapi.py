"""Operations of OpenAPI documents become tools, and their calls the requests that the document describes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import jsonschema
import pytest

from toolgrammar.core import SchemaError
from toolgrammar.tools import Tool, ToolSet, tools_from_openapi

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
    ({"swagger": "2.0"}, "swagger is '2.0'"),
    (document({"parameters": [{"$ref": "#/components/parameters/No"}]}), "leads nowhere"),
    (document({"parameters": [{"$ref": "other.yaml#/P"}]}), "out of the document"),
    (document({"parameters": [parameter("a", "body")]}), "one of the places"),
    (document({"parameters": [{"in": "query"}]}), "needs a name"),
    (document({}, "/x/{id}"), "without a parameter: id"),
    (document({"requestBody": {"content": {"multipart/form-data": {}}}}), "multipart/form-data"),
    (document({"requestBody": {"content": {}}}), "none"),
    (document({"parameters": [{"name": "a", "in": "query", "content": {"text/xml": {}}}]}), "text/xml"),
    (document({"parameters": [parameter("a", "query", {"$ref": "#/components/schemas/No"})]}), "leads nowhere"),
    (document({"parameters": [parameter("a", "query", {"type": "strng"})]}), "strng"),
    (
        document(
            {"parameters": [{"$ref": "#/components/a"}]},
            components={"a": {"$ref": "#/components/b"}, "b": {"$ref": "#/components/a"}},
        ),
        "leads to itself",
    ),
]


@pytest.mark.parametrize(("source", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_refused(source: dict[str, Any], said: str) -> None:
    """What cannot be a tool is refused with the operation's name and the reason."""
    with pytest.raises(SchemaError, match=said) as caught:
        tools_from_openapi(source)
    assert "swagger" in source or caught.value.place.tool == "f"


def test_refused_names() -> None:
    """Two operations of one name, and a name that no operation has, are errors."""
    twice = {**PETS, "paths": {path: {"get": {"operationId": "a"}} for path in ("/a", "/b")}}
    with pytest.raises(SchemaError, match="the same name"):
        tools_from_openapi(twice)
    with pytest.raises(SchemaError, match="no operation 'dropPets'"):
        tools_from_openapi(PETS, ["dropPets"])


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
    assert request["url"] == "https://api.example/v1/x/a%2Fb%3Fc%20%C3%BC/1%2C2"
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
