"""A small MCP server over standard input and output, run by the tests as a program of its own."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

server: Server[Any, Any] = Server("test")
NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
NONE: dict[str, Any] = {"type": "object", "additionalProperties": False}
PIXEL = "iVBORw0KGgo="


@server.list_tools()
async def list_tools(request: types.ListToolsRequest) -> types.ListToolsResult:
    """Two pages."""
    cursor = request.params.cursor if request and request.params else None
    if cursor is None:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name="add",
                    title="Adder",
                    description="Add two numbers.",
                    inputSchema=NUMBERS,
                    outputSchema={"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
                    annotations=types.ToolAnnotations(readOnlyHint=True),
                ),
                types.Tool(name="fail", description="Fail.", inputSchema=NONE),
            ],
            nextCursor="2",
        )
    return types.ListToolsResult(
        tools=[
            types.Tool(name="picture", description="A picture.", inputSchema=NONE),
            types.Tool(name="sleep", description="Sleep.", inputSchema=NONE),
            types.Tool(name="die", description="End the server.", inputSchema=NONE),
        ]
    )


@server.call_tool(validate_input=False)
async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
    """Run a tool."""
    if name == "add":
        return {"sum": arguments["a"] + arguments["b"]}
    if name == "picture":
        return [
            types.TextContent(type="text", text="Here:"),
            types.ImageContent(type="image", data=PIXEL, mimeType="image/png"),
        ]
    if name == "sleep":
        await asyncio.sleep(20)
    if name == "die":
        os._exit(1)
    raise ValueError("the disk is full")


async def main() -> None:
    """Serve until the input ends."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
