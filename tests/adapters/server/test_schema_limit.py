"""Schemas that are too large are refused before any of them is read, and what was read of a refused one is freed."""

from __future__ import annotations

import gc
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
        (
            "/v1/responses",
            {"input": [{"type": "tool_search_output", "execution": "client", "tools": [{"parameters": BIG}]}]},
        ),
        ("/v1/completions", {"prompt": "x", "a field of tomorrow": BIG}),
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


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_refused_request_read_is_freed_at_once(http: Callable[..., httpx.Client], stream: bool) -> None:
    """Without a collection of garbage, which stops all threads for the time that so many objects take."""
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(5):
        nested = {"oneOf": [{**nested, "minLength": n} if "type" in nested else nested for n in range(6)]}
    schema = {"type": "object", "properties": {"x": nested}, "required": ["x"]}
    client = http({"m": ScriptedModel(["hello"])})
    body = {"model": "m", "messages": SAID, "tools": [openai_tool("f", schema)], "stream": stream}
    gc.collect()
    gc.disable()
    try:
        answer = client.post("/v1/chat/completions", json={**body, "tool_choice": "required"})
        assert answer.status_code == 400 and "more than 3,000 alternatives" in answer.text
        left = sum(type(each).__name__ == "Conjunction" for each in gc.get_objects())
    finally:
        gc.enable()
    assert left < 200  # 9,500 were read
