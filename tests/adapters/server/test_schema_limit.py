"""Schemas that are too large are refused before any of them is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from toolgrammar.adapters import _shared
from toolgrammar.adapters.server import Limits
from toolgrammar.core.testing import ScriptedModel

from .conftest import openai_tool

SAID: Any = [{"role": "user", "content": "x"}]
BIG = {"type": "object", "properties": {f"p{n}": {"type": "string", "pattern": f"^[a-z]{{1,{n}}}$"} for n in range(99)}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": SAID, "tools": [openai_tool(f"tool_{n}") for n in range(20)]}),
        ("/v1/chat/completions", {"messages": SAID, "grammar": "root ::= " + '"a" ' * 999}),
        ("/v1/responses", {"input": "x", "text": {"format": {"type": "json_schema", "name": "n", "schema": BIG}}}),
        ("/v1/messages", {"messages": SAID, "max_tokens": 9, "tools": [{"name": "f", "input_schema": BIG}]}),
        ("/api/chat", {"messages": SAID, "format": BIG}),
    ],
)
def test_no_schema_is_read_of_a_request_that_has_too_much(
    http: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    """The status is 413, and no tool and no schema was converted for it."""
    read: list[Any] = []
    monkeypatch.setattr(_shared, "openai_tool", read.append)
    monkeypatch.setattr(_shared, "closed", read.append)
    client = http({"m": ScriptedModel(["hello"])}, limits=Limits(max_schema=2_000))
    answer = client.post(path, json={"model": "m", **body})
    assert answer.status_code == 413 and "at most 2,000 are taken" in answer.text
    assert read == []
