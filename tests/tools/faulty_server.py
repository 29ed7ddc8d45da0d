"""A small MCP server that keeps its word, but for the one fault that its first argument names, or a variable."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import jsonschema
import mcp.types as types
import mcp_server

FAULT = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FAULT", "")

INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 8},
        "unit": {"enum": ["C", "F", "K"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
        "at": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["lat"]}]},
    },
    "required": ["city"],
    "additionalProperties": False,
}
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "highs": {"type": "array", "items": {"type": "number"}}},
    "required": ["city", "highs"],
}


def list_tools(_: str | None) -> types.ListToolsResult:
    """One tool that is harmless, and one that is not."""
    tool = {"inputSchema": INPUT, "outputSchema": OUTPUT}
    harmless = {"name": "forecast", **tool, "annotations": {"readOnlyHint": True}}
    return types.ListToolsResult.model_validate({"tools": [harmless, {"name": "erase", **tool}]})


def refused(given: dict[str, Any]) -> bool:
    """Tell if arguments are refused."""
    schema = {**INPUT, "properties": dict(INPUT["properties"])}
    if FAULT == "takes one more":
        schema["properties"]["days"] = {"type": "integer", "minimum": 1, "maximum": 15}
    if FAULT.startswith("takes unknown members"):
        del schema["additionalProperties"]
    if FAULT == "takes less":
        del schema["required"]
    if FAULT == "takes another case":
        schema["properties"]["unit"] = {"enum": ["C", "F", "K", "c", "f", "k"]}
    if FAULT == "takes texts as numbers":
        schema["properties"]["days"] = {"type": ["integer", "string"], "minimum": 1, "maximum": 14}
    if FAULT.endswith("of long calls"):
        schema["properties"]["city"] = {"type": "string", "minLength": 8, "maxLength": 8}
    return not jsonschema.Draft202012Validator(schema).is_valid(given)


async def call_tool(name: str, given: dict[str, Any]) -> types.CallToolResult:
    """Run a tool."""
    if name == "erase":
        os._exit(1)  # nobody may call it
    if refused(given):
        return mcp_server.result([{"type": "text", "text": "refused"}], isError=True)
    if FAULT == "crashes" and given.get("unit") == "K":
        os._exit(1)
    if FAULT == "crashes at an option" and isinstance(given.get("at"), dict):
        os._exit(1)
    if FAULT == "needs an optional member":
        given["days"]
    if FAULT == "refuses the bound" and given.get("days") == 14:
        raise ValueError("days must be below 14")
    if FAULT == "refuses a letter" and "e" in given["city"] and len(given["city"]) > 2:
        raise ValueError("no e")
    if FAULT == "hangs" and len(given.get("tags", ())) == 3:
        await asyncio.sleep(60)
    result: dict[str, Any] = {"city": given.get("city", ""), "highs": [1.5]}
    if FAULT == "gives another type" and given.get("unit") == "F":
        result["highs"] = "1.5"
    if FAULT == "gives less" and len(given["city"]) == 8:
        del result["highs"]
    return mcp_server.result([{"type": "text", "text": "sunny"}], structuredContent=result)


if __name__ == "__main__":
    mcp_server.list_tools, mcp_server.call_tool = list_tools, call_tool
    asyncio.run(mcp_server.main())
