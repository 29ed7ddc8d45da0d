"""Tools of the Model Context Protocol: as they are listed, as they answer, and as a live server has them."""

from __future__ import annotations

import asyncio
import base64
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core import ImagePart, TextPart, ToolCall, ToolCallError
from toolgrammar.tools import Tool, ToolResult, ToolSet
from toolgrammar.tools.mcp import McpServer, result_from_mcp, result_to_mcp, tools_from_session, tools_to_mcp

SERVER = str(Path(__file__).with_name("mcp_server.py"))

#: The examples of the specification (revision 2025-06-18, "Tools"), by their facts.
LISTED = {
    "jsonrpc": "2.0",
    "id": 1,
    "result": {
        "tools": [
            {
                "name": "get_weather",
                "title": "Weather Information Provider",
                "description": "Get current weather information for a location",
                "inputSchema": {
                    "type": "object",
                    "properties": {"location": {"type": "string", "description": "City name or zip code"}},
                    "required": ["location"],
                },
            }
        ],
        "nextCursor": "next-page-cursor",
    },
}
WITH_OUTPUT = {
    "name": "get_weather_data",
    "title": "Weather Data Retriever",
    "description": "Get current weather data for a location",
    "inputSchema": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "City name or zip code"}},
        "required": ["location"],
    },
    "outputSchema": {
        "type": "object",
        "properties": {
            "temperature": {"type": "number", "description": "Temperature in celsius"},
            "conditions": {"type": "string", "description": "Weather conditions description"},
            "humidity": {"type": "number", "description": "Humidity percentage"},
        },
        "required": ["temperature", "conditions", "humidity"],
    },
}
WEATHER = "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy"
STRUCTURED = {"temperature": 22.5, "conditions": "Partly cloudy", "humidity": 65}


def only(source: Any) -> Tool:
    """The one tool in a source."""
    (tool,) = ToolSet.from_any(source)
    return tool


def test_the_specification_s_list() -> None:
    """A ``tools/list`` response is read as it comes, and so are its result and its entries."""
    tool = only(LISTED)
    entry = LISTED["result"]["tools"][0]  # type: ignore[index]
    assert (tool.name, tool.title, tool.description) == ("get_weather", entry["title"], entry["description"])
    assert tool.parameters == entry["inputSchema"]
    assert tool == only(LISTED["result"]) == only([entry]) == only(entry)
    grammar = ToolSet([tool]).grammar(tool_choice="required")
    assert grammar.matches('<tool_call>\n{"name": "get_weather", "arguments": {"location": "New York"}}\n</tool_call>')


def test_output_schema_and_annotations() -> None:
    """What a tool says of its results and its behaviour is kept, and does not change which calls are allowed."""
    tool = only({**WITH_OUTPUT, "annotations": {"readOnlyHint": True, "title": "Weather"}})
    assert tool.output_schema == WITH_OUTPUT["outputSchema"]
    assert tool.annotations == {"readOnlyHint": True, "title": "Weather"}
    assert tool.title == "Weather Data Retriever"
    assert only({**WITH_OUTPUT, "title": None, "annotations": {"title": "Weather"}}).title == "Weather"
    assert tool == only(WITH_OUTPUT)


def test_results_of_the_specification() -> None:
    """Text is text, structured content is itself, and an error is an error."""
    assert result_from_mcp({"content": [{"type": "text", "text": WEATHER}], "isError": False}) == WEATHER
    structured = {"content": [{"type": "text", "text": str(STRUCTURED)}], "structuredContent": STRUCTURED}
    assert result_from_mcp(structured, only(WITH_OUTPUT)) == STRUCTURED
    failed = {"content": [{"type": "text", "text": "Failed to fetch weather data: API rate limit exceeded"}]}
    with pytest.raises(ToolCallError, match="API rate limit exceeded"):
        result_from_mcp({**failed, "isError": True})
    with pytest.raises(ToolCallError, match="without a reason"):
        result_from_mcp({"content": [], "isError": True})


def test_content_of_every_type() -> None:
    """Texts and images become parts; what is neither is named in a line."""
    png = base64.b64encode(b"png").decode()
    uri = "file:///project/src/main.rs"
    blocks: list[tuple[dict[str, Any], Any]] = [
        ({"type": "text", "text": "Tool result text"}, TextPart("Tool result text")),
        ({"type": "image", "data": png, "mimeType": "image/png"}, ImagePart(data=b"png", media_type="image/png")),
        ({"type": "audio", "data": png, "mimeType": "audio/wav"}, TextPart("[audio of type audio/wav]")),
        (
            {"type": "resource_link", "uri": uri, "name": "main.rs", "mimeType": "text/x-rust"},
            TextPart(f"[link to {uri}: main.rs, text/x-rust]"),
        ),
        ({"type": "resource", "resource": {"uri": uri, "text": "fn main() {}"}}, TextPart("fn main() {}")),
        (
            {"type": "resource", "resource": {"uri": uri, "mimeType": "image/gif", "blob": png}},
            ImagePart(data=b"png", media_type="image/gif"),
        ),
        (
            {"type": "resource", "resource": {"uri": uri, "mimeType": None, "blob": png}},
            TextPart(f"[resource {uri} of type application/octet-stream]"),
        ),
        ({"type": "hologram", "x": 1}, TextPart('{"type":"hologram","x":1}')),
    ]
    assert result_from_mcp({"content": [block for block, _ in blocks]}) == tuple(part for _, part in blocks)


def test_broken_promises() -> None:
    """A structured result that its own schema refuses is an error, and so is a missing one."""
    for content in ({"temperature": "warm"}, None):
        with pytest.raises(ToolCallError, match="does not match its output schema"):
            result_from_mcp({"content": [], "structuredContent": content}, only(WITH_OUTPUT))


def test_the_way_back() -> None:
    """Tools and results can be given to MCP clients, and are read back as they were."""
    tool = only({**WITH_OUTPUT, "annotations": {"readOnlyHint": True}})
    back = only(tools_to_mcp([tool]))
    assert back == tool
    assert (back.title, back.output_schema, back.annotations) == (tool.title, tool.output_schema, tool.annotations)
    call = ToolCall("c", "x", {})
    for value in ("text", {"a": [1]}, (TextPart("Here:"), ImagePart(data=b"png", media_type="image/png"))):
        assert result_from_mcp(result_to_mcp(ToolResult(call, value))) == value
    with pytest.raises(ToolCallError, match="broken"):
        result_from_mcp(result_to_mcp(ToolResult(call, error="broken")))


def test_objects_of_the_official_package() -> None:
    """Its ``Tool``, ``ListToolsResult`` and ``CallToolResult`` are read without converting them first."""
    types = pytest.importorskip("mcp.types")
    listed = types.ListToolsResult.model_validate({"tools": [WITH_OUTPUT]})
    assert only(listed) == only(listed.tools[0]) == only(WITH_OUTPUT)
    assert only(listed).output_schema == WITH_OUTPUT["outputSchema"]
    assert types.ListToolsResult.model_validate(tools_to_mcp([only(WITH_OUTPUT)])) == listed
    result = types.CallToolResult.model_validate(result_to_mcp(ToolResult(ToolCall("c", "x", {}), "text")))
    assert result_from_mcp(result) == "text"


@pytest.fixture(scope="module")
def server() -> Iterator[McpServer]:
    """A live server."""
    pytest.importorskip("mcp")
    with McpServer.stdio(sys.executable, [SERVER], prefix="test.") as running:
        yield running


def test_live_tools(server: McpServer) -> None:
    """All pages are listed, under the prefix, with what they say of themselves."""
    assert server.tools.names == ("test.add", "test.fail", "test.picture", "test.sleep", "test.die")
    tool = server.tools["test.add"]
    assert (tool.title, dict(tool.annotations)) == ("Adder", {"readOnlyHint": True})


def test_live_calls(server: McpServer) -> None:
    """Calls run from ordinary code; the arguments are checked before anything is sent."""
    assert server.tools.call({"name": "test.add", "arguments": {"a": 1, "b": 2}}) == {"sum": 3}
    result = server.tools.execute({"name": "test.picture", "arguments": {}})
    assert result.to_message().content == (
        TextPart("Here:"),
        ImagePart(data=base64.b64decode("iVBORw0KGgo="), media_type="image/png"),
    )
    assert server.tools.execute({"name": "test.add", "arguments": {"a": "1", "b": 2}}).code == "invalid_arguments"


def test_live_errors(server: McpServer) -> None:
    """``isError`` is a structured failure with the server's own words."""
    result = server.tools.execute({"name": "test.fail", "arguments": {}})
    assert result.code == "tool_call"
    assert "the disk is full" in (result.error or "")


@pytest.mark.asyncio
async def test_live_calls_at_once(server: McpServer) -> None:
    """Async calls run at once; one that takes too long is cancelled, and the server goes on."""
    begin = time.monotonic()
    slow, *sums = await asyncio.gather(
        server.tools.aexecute({"name": "test.sleep", "arguments": {}}, timeout=0.2),
        *(server.tools.acall({"name": "test.add", "arguments": {"a": n, "b": 1}}) for n in range(5)),
    )
    assert slow.code == "tool_timeout"
    assert [each["sum"] for each in sums] == [1, 2, 3, 4, 5]
    assert time.monotonic() - begin < 5
    assert await server.tools.acall({"name": "test.add", "arguments": {"a": 1, "b": 1}}) == {"sum": 2}


@pytest.mark.asyncio
async def test_a_session_of_the_user() -> None:
    """Who has a session already gets its tools from it."""
    mcp = pytest.importorskip("mcp")
    parameters = mcp.StdioServerParameters(command=sys.executable, args=[SERVER])
    async with mcp.stdio_client(parameters) as (reading, writing), mcp.ClientSession(reading, writing) as session:
        await session.initialize()
        tools = await tools_from_session(session, timeout=10)
        assert await tools.acall({"name": "add", "arguments": {"a": 2, "b": 2}}) == {"sum": 4}


class Page:
    """A page of tools as version 2 of the package has it: snake case in Python, camel case on the wire."""

    def __init__(self, name: str, cursor: str | None) -> None:
        self.tools = [{"name": name, "inputSchema": {"type": "object"}, "description": None}]
        self.next_cursor = cursor

    def model_dump(self, *, by_alias: bool) -> dict[str, Any]:
        """The page by its names on the wire."""
        return {"tools": self.tools, "nextCursor" if by_alias else "next_cursor": self.next_cursor}


class SessionOfVersion2:
    """The methods of ``mcp.ClientSession`` 2.x that are used here, with its signatures."""

    async def list_tools(self, *, params: Any = None) -> Page:
        """Two pages."""
        return Page("first", "2") if params is None else Page(f"second {params.cursor}", None)

    async def call_tool(self, name: str, arguments: Any = None, read_timeout_seconds: float | None = None) -> Any:
        """A call that takes its time."""
        assert read_timeout_seconds is None or isinstance(read_timeout_seconds, float)
        await asyncio.sleep(arguments.get("seconds", 0))
        return {"content": [{"type": "text", "text": name}]}


@pytest.mark.asyncio
async def test_a_session_of_version_2() -> None:
    """Version 2 of the package lists and calls by other names; a call that takes too long is a time-out in both."""
    pytest.importorskip("mcp")
    tools = await tools_from_session(SessionOfVersion2(), timeout=0.05)
    assert tools.names == ("first", "second 2")
    tools = ToolSet(tools, additional_properties=True)
    assert await tools.acall({"name": "first", "arguments": {}}) == "first"
    result = await tools.aexecute({"name": "first", "arguments": {"seconds": 20}})
    assert (result.code, "did not answer in 0.05 seconds" in (result.error or "")) == ("tool_timeout", True)


def test_a_server_that_does_not_start() -> None:
    """A program that is not there, or no MCP server, is an error at once or after the given seconds."""
    pytest.importorskip("mcp")
    with pytest.raises(ToolCallError, match="does not work"), McpServer.stdio("/no/such/program"):
        pass
    silent = McpServer.stdio(sys.executable, ["-c", "import time; time.sleep(60)"], start_timeout=0.5)
    with pytest.raises(ToolCallError, match=r"did not answer in 0\.5 seconds"), silent:
        pass


def test_a_server_that_dies() -> None:
    """Calls of a server that is gone fail in words; after the block nothing can be called."""
    pytest.importorskip("mcp")
    with McpServer.stdio(sys.executable, [SERVER], call_timeout=5) as running:
        assert running.tools.execute({"name": "die", "arguments": {}}, timeout=10).is_error
        assert running.tools.execute({"name": "add", "arguments": {"a": 1, "b": 1}}, timeout=10).is_error
    result = running.tools.execute({"name": "add", "arguments": {"a": 1, "b": 1}})
    assert "not running" in (result.error or "")
