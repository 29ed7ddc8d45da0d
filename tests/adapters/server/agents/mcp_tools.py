"""An MCP server of forty tools over standard input and output, for agents to start; of the standard library alone."""

import json
import sys

COUNT = 40


def name_of(n: int) -> str:
    """Return the name of a tool."""
    return f"note_{n:02}"


def schema(n: int) -> dict:
    """Return the parameters of a tool: each of the forty has its own.

    They are in alphabetical order, into which Codex brings them.
    """
    return {
        "type": "object",
        "properties": {
            f"kind_{n}": {"type": "string", "enum": [f"short_{n}", f"long_{n}"]},
            "level": {"type": "integer", "minimum": 0, "maximum": n + 3},
            "parts": {
                "type": "array",
                "items": {"type": "object", "properties": {"at": {"type": "number"}}, "required": ["at"]},
            },
            "text": {"type": "string", "minLength": 1, "maxLength": 40 + n},
        },
        "required": ["level", "text"],
        "additionalProperties": False,
    }


def answer(method: str, params: dict) -> dict | None:
    """Return the result of a request, or nothing for a method that this server does not have."""
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        info = {"name": "tools", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "ping":
        return {}
    if method == "tools/list":
        listed = [
            {"name": name_of(n), "description": f"Keeps note {n}.", "inputSchema": schema(n)} for n in range(COUNT)
        ]
        return {"tools": listed}
    if method == "tools/call":
        text = f"{params['name']} keeps {params['arguments']['text']}"
        return {"content": [{"type": "text", "text": text}]}
    return None


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked or "method" not in asked:
            continue
        result = answer(asked["method"], asked.get("params") or {})
        known = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **known}), flush=True)
