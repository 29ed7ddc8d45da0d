"""A small MCP server over standard input and output, run by the tests as a program of its own."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
NONE: dict[str, Any] = {"type": "object", "additionalProperties": False}
PIXEL = "iVBORw0KGgo="


def list_tools(cursor: str | None) -> types.ListToolsResult:
    """Two pages."""
    if cursor is None:
        add = {
            "name": "add",
            "title": "Adder",
            "description": "Add two numbers.",
            "inputSchema": NUMBERS,
            "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
            "annotations": {"readOnlyHint": True},
        }
        page = {"tools": [add, {"name": "fail", "description": "Fail.", "inputSchema": NONE}], "nextCursor": "2"}
    else:
        rest = {"picture": "A picture.", "sleep": "Sleep.", "die": "End the server."}
        page = {"tools": [{"name": name, "description": about, "inputSchema": NONE} for name, about in rest.items()]}
    return types.ListToolsResult.model_validate(page)


async def call_tool(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    """Run a tool."""
    if name == "add":
        total = {"sum": arguments["a"] + arguments["b"]}
        return result([{"type": "text", "text": json.dumps(total)}], structuredContent=total)
    if name == "picture":
        image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
        return result([{"type": "text", "text": "Here:"}, image])
    if name == "sleep":
        await asyncio.sleep(20)
    if name == "die":
        os._exit(1)
    return result([{"type": "text", "text": "the disk is full"}], isError=True)


def result(content: list[dict[str, Any]], **more: Any) -> types.CallToolResult:
    """A result by its names on the wire, which the two versions of the package share."""
    return types.CallToolResult.model_validate({"content": content, **more})


def make_server() -> Any:
    """The server, as version 1 or 2 of the package makes it."""
    if not hasattr(Server, "list_tools"):

        async def listed(_: Any, params: Any) -> types.ListToolsResult:
            return list_tools(params.cursor if params else None)

        async def called(_: Any, params: Any) -> types.CallToolResult:
            return await call_tool(params.name, params.arguments or {})

        make: Any = Server
        return make("test", on_list_tools=listed, on_call_tool=called)

    server: Server[Any, Any] = Server("test")

    # Without the decorators, whose functions have other arguments in older versions.
    async def listed_1(request: types.ListToolsRequest) -> types.ServerResult:
        return types.ServerResult(list_tools(request.params.cursor if request.params else None))

    async def called_1(request: types.CallToolRequest) -> types.ServerResult:
        return types.ServerResult(await call_tool(request.params.name, request.params.arguments or {}))

    server.request_handlers[types.ListToolsRequest] = listed_1
    server.request_handlers[types.CallToolRequest] = called_1
    return server


async def main() -> None:
    """Serve until the input ends."""
    server = make_server()
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
