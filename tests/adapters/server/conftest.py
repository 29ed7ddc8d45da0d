"""What the tests of the server share: tools, the application over a model, and requests as they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess

#: A schema with what strict modes lack: a pattern, bounds, recursion and a map.
BOOKING = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{3}$"},
        "seats": {"type": "integer", "minimum": 1, "maximum": 9},
        "extras": {"type": "object", "additionalProperties": {"type": "number"}, "maxProperties": 2},
        "after": {"$ref": "#"},
    },
    "required": ["code", "seats"],
    "additionalProperties": False,
}


def openai_tool(name: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    """A tool of chat completions."""
    return {"type": "function", "function": {"name": name, "description": name, "parameters": schema or BOOKING}}


@pytest.fixture
def http() -> Iterator[Callable[..., httpx.Client]]:
    """Make plain clients of applications, closed at the end."""
    made: list[httpx.Client] = []

    def make(models: Any, **options: Any) -> httpx.Client:
        process = InProcess(create_app(models, **options), httpx)
        made.append(httpx.Client(transport=process.transport(), base_url=BASE_URL, timeout=60))
        return made[-1]

    yield make
    for client in made:
        client.close()
