"""What the tests of local engines have in common: a schema, the logits of a text, and what every engine must do."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from toolgrammar.core import CancelledError, GenerateParams, JsonMode
from toolgrammar.tools import ToolSet

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


def logits_of(backend: Any, ids: list[int]) -> Any:
    """The logits after a sequence that is read at once."""
    session = backend.new_session()
    logits = session.extend(ids)
    session.close()
    return logits


def note(text: str) -> str:
    """Keep a text."""
    return text


def check_budgets_streams_and_cancellation(model: Any) -> None:
    """A budget closes a call and names its cut values; a stream has the text; a cancelled request ends alone."""
    tools = ToolSet([note])
    options: dict[str, Any] = {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False}
    cut = model.generate("Rome?", max_tokens=45, temperature=1.0, seed=5, **options)
    assert cut.finish_reason == "length" and cut.tool_calls[0].cut
    tools.validate(cut.tool_calls[0])

    whole = model.generate("Rome?", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=1)
    events = list(model.stream("Rome?", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=1))
    assert "".join(getattr(event, "text", "") for event in events[:-1]) == whole.text

    steps = iter(range(100))
    with pytest.raises(CancelledError):
        model.generate("Rome?", max_tokens=500, temperature=1.0, seed=1, cancel=lambda: next(steps) > 5)

    async def left() -> None:
        async for _ in model.astream("Rome?", max_tokens=500, temperature=1.0, seed=1):
            break

    asyncio.run(left())
    assert json.loads(model.generate("Rome?", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=1).text)


def check_several_threads(model: Any) -> None:
    """Requests of several threads have the results of one after the other; greedy, as passes may be shared."""
    params = GenerateParams(json_mode=JsonMode(SCHEMA))
    prompts = ["Rome?", "the weather in Rome", "Paris", "days: 3"]
    expected = [model.generate(prompt, params).text for prompt in prompts]
    assert len(set(expected)) > 1
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda prompt: model.generate(prompt, params).text, prompts)) == expected
