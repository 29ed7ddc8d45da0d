"""Tools that somebody else lists: what cannot be a tool, or has no grammar, is left out and named."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from toolgrammar.core import InvalidSchemaError, SchemaError, UnsatisfiableSchemaError, UnsupportedSchemaError
from toolgrammar.tools import Tool, ToolSet, tools_from_openapi
from toolgrammar.tools.mcp import tools_from_session

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
#: Schemas without a grammar, and what is wrong with them.
HOPELESS = {
    "twice": ({"properties": {"a": {"type": "string", "pattern": "^(.)?\\1$"}}}, UnsupportedSchemaError),
    "never": ({"properties": {"a": False}, "required": ["a"]}, UnsatisfiableSchemaError),
    # As AutoGen's workbench lists the tools of an MCP server: without the definitions.
    "lost": ({"properties": {"root": {"$ref": "#/$defs/Node"}}}, InvalidSchemaError),
}


def document() -> dict[str, Any]:
    """A document in which three of five operations have no grammar, and one cannot be a tool."""
    bodies = {"good": CITY, **{name: {"type": "object", **schema} for name, (schema, _) in HOPELESS.items()}}
    bodies["lost"] = {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"type": "boolean"}}
    paths = {
        f"/{name}": {
            "post": {
                "operationId": name,
                "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            }
        }
        for name, body in bodies.items()
    }
    paths["/file"] = {"post": {"operationId": "file", "requestBody": {"content": {"image/png": {}}}}}
    return {"openapi": "3.1.0", "paths": paths}


def test_operations_without_a_grammar_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """The set of a document has a grammar; what it left out is in a warning and in ``skipped``, with the reason."""
    with caplog.at_level(logging.WARNING, "toolgrammar"):
        tools = ToolSet(tools_from_openapi(document()))
    assert tools.names == ("good",)
    assert [error.place.tool for error in tools.skipped] == ["file", *HOPELESS]
    assert [type(error) for error in tools.skipped[1:3]] == [UnsupportedSchemaError, UnsatisfiableSchemaError]
    assert all(name in caplog.text for name in ("file", *HOPELESS))
    assert tools.grammar(tool_choice="required").matches(
        '<tool_call>\n{"name": "good", "arguments": {"body": {"city": "Rome"}}}\n</tool_call>'
    )
    assert ToolSet.from_any(document()).skipped and ToolSet.from_any([document(), [CITY | {"title": "t"}]]).names == (
        "good",
        "t",
    )


def test_a_selection_of_operations_is_checked_too() -> None:
    """A filtered list of operations loses those without a grammar; what is left keeps no word of others."""
    listed = tools_from_openapi(document())
    tools = ToolSet(tool for tool in listed if tool.name in ("good", "twice"))
    assert tools.names == ("good",)
    assert [error.place.tool for error in tools.skipped] == ["twice"]


def test_strictness_may_save_a_tool() -> None:
    """A tool that is only checked after it is written has a grammar, so it stays."""
    tools = ToolSet(tools_from_openapi(document()), strictness={"twice": "object"})
    assert tools.names == ("good", "twice")


@pytest.mark.parametrize("name", HOPELESS)
def test_what_is_asked_for_by_name_is_never_left_out(name: str) -> None:
    """An operation that was selected by name, or a document read strictly, is an error that names it."""
    for tools in (
        ToolSet(tools_from_openapi(document(), [name])),
        ToolSet(tool for tool in tools_from_openapi(document(), ["good", name], strict=True)),
    ):
        with pytest.raises(SchemaError) as caught:
            tools.grammar()
        assert caught.value.place.tool == name


@pytest.mark.parametrize("name", HOPELESS)
def test_tools_of_ones_own_are_refused(name: str) -> None:
    """What you list yourself is never left out, unless you ask for it."""
    schema, error = HOPELESS[name]
    listed = [{"name": "good", "parameters": CITY}, {"name": name, "parameters": {"type": "object", **schema}}]
    with pytest.raises(error) as caught:
        ToolSet.from_any(listed).grammar()
    assert caught.value.place.tool == name
    tools = ToolSet.from_any(listed, on_unusable="skip")
    assert tools.names == ("good",)
    assert [(type(each), each.place.tool) for each in tools.skipped] == [(error, name)]
    assert tools.subset(["good"]).grammar() is not None and tools.subset(["good"]).skipped == tools.skipped


def test_what_cannot_be_read_is_left_out_on_request() -> None:
    """One unreadable source among others, at any depth, costs only itself."""

    def fine(a: int) -> None:
        """Fine."""

    def bad(a: Callable[[], int]) -> None:
        """Has no JSON."""

    sources = [
        fine,
        {"tools": [{"name": "good", "inputSchema": CITY}, {"name": "odd", "inputSchema": {"city": 1}}]},
        7,
        bad,
    ]
    with pytest.raises(SchemaError):
        ToolSet.from_any(sources)
    tools = ToolSet.from_any(sources, on_unusable="skip")
    assert tools.names == ("fine", "good")
    assert [error.place.tool for error in tools.skipped] == ["odd", None, "bad"]


def test_two_tools_under_one_name() -> None:
    """Of two different optional tools under one name the first stays."""
    first, second = Tool("f", parameters=CITY, optional=True), Tool("f", optional=True)
    assert ToolSet([first, second])["f"].parameters == CITY
    assert "same name" in str(ToolSet([first, second]).skipped[0])
    with pytest.raises(SchemaError, match="same name"):
        ToolSet([first, Tool("f")])


@pytest.mark.asyncio
async def test_tools_of_a_server() -> None:
    """The tools of a server are those that can be called; the others are named, or refused on request."""
    entries = {"good": CITY, **{name: {"type": "object", **schema} for name, (schema, _) in HOPELESS.items()}}
    entries["odd"] = {"type": "array"}
    page = {"tools": [{"name": name, "inputSchema": schema} for name, schema in entries.items()]}

    class Session:
        """As far as it is asked."""

        async def list_tools(self) -> Any:
            """One page."""
            return SimpleNamespace(tools=page["tools"], model_dump=lambda by_alias: page)

    tools = await tools_from_session(Session(), prefix="s.")
    assert tools.names == ("s.good",)
    assert [error.place.tool for error in tools.skipped] == ["odd", *(f"s.{name}" for name in HOPELESS)]
    assert tools.grammar() is not None
    with pytest.raises(SchemaError, match="object"):
        await tools_from_session(Session(), strict=True)
