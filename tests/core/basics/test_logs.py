"""The logger ``toolgrammar``: silent by default, and above ``DEBUG`` without any data of users."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import httpx
import pytest

from toolgrammar.core import BudgetError, ConstraintCache, Grammar, InvalidArgumentsError, JsonMode
from toolgrammar.core.grammar import constraint_cache
from toolgrammar.core.models.remote import RemoteModel
from toolgrammar.core.testing import ScriptedModel, byte_vocabulary
from toolgrammar.tools import ToolSet

SECRET = "my-private-words"
SCHEMA = {
    "type": "object",
    "properties": {"note": {"type": "string", "maxLength": 40}, "days": {"type": "integer"}},
    "required": ["note"],
    "additionalProperties": False,
}
TOOLS = ToolSet.from_any([{"name": "write", "description": SECRET, "parameters": SCHEMA}])


def reply(arguments: str, finish: str = "tool_calls") -> httpx.Response:
    """Make an answer that calls the tool with these arguments."""
    call = {"id": "1", "type": "function", "function": {"name": "write", "arguments": arguments}}
    message = {"content": SECRET, "tool_calls": [call]}
    return httpx.Response(200, json={"choices": [{"message": message, "finish_reason": finish}]})


def remote(*replies: httpx.Response) -> RemoteModel:
    """Make a model on a server that gives these answers in turn."""
    script = list(replies)
    return RemoteModel("m@http://model.test/v1", transport=httpx.MockTransport(lambda request: script.pop(0)))


GOOD = json.dumps({"note": SECRET, "days": 3})
REFUSED = httpx.Response(400, json={"error": {"message": f"'maxLength' in {SECRET} is not supported"}})
BUSY = httpx.Response(503, headers={"retry-after": "0"}, text=SECRET)


def closed_by_force() -> None:
    """End the budget inside a call."""
    wanted = f'<tool_call>\n{{"name": "write", "arguments": {GOOD}}}\n</tool_call>'
    answer = ScriptedModel([wanted]).generate(SECRET, tools=TOOLS, tool_choice="required", max_tokens=70)
    assert answer.tool_calls[0].cut


def asked_again_locally() -> None:
    """Let a model that nothing holds write no JSON."""
    mode = JsonMode(schema=SCHEMA, constrained_decoding=False)
    with pytest.raises(InvalidArgumentsError):
        ScriptedModel([f"{SECRET} {n}" for n in range(3)]).generate(SECRET, json_mode=mode)


def cut_json() -> None:
    """End a server's budget inside JSON."""
    half = {"choices": [{"message": {"content": GOOD[:9]}, "finish_reason": "length"}]}
    with pytest.raises(BudgetError):
        remote(httpx.Response(200, json=half)).generate(SECRET, json_mode=JsonMode(schema=SCHEMA))


def slow() -> None:
    """Compile a grammar."""
    ConstraintCache().bind(Grammar.literal(SECRET), byte_vocabulary())


TRACES: dict[str, tuple[Any, str, str]] = {
    "again": (
        lambda: remote(reply("{}"), reply(GOOD)).generate(SECRET, tools=TOOLS),
        "remote",
        "answer 1 of at most 3",
    ),
    "repaired": (lambda: remote(reply(GOOD.replace("3", '"3"'))).generate(SECRET, tools=TOOLS), "tools", "repaired"),
    "form": (
        lambda: remote(REFUSED, reply(GOOD)).generate(SECRET, tools=TOOLS),
        "remote",
        "refused the form 'tools' (400)",
    ),
    "busy": (lambda: remote(BUSY, reply(GOOD)).generate(SECRET, tools=TOOLS), "remote", "busy (503)"),
    "cut": (lambda: remote(reply(GOOD[:9], "length")).generate(SECRET, tools=TOOLS), "remote", "cut a call"),
    "cut json": (cut_json, "remote", "cut an answer"),
    "closed": (closed_by_force, "models", "values cut: 1"),
    "local again": (asked_again_locally, "models", "answer 1 of at most 3"),
    "slow": (slow, "grammars", "to compile"),
}


@pytest.mark.parametrize("kind", TRACES)
def test_what_leaves_a_trace(kind: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each leaves a trace in the logger of its room, in which nothing of what users and models say is found."""
    monkeypatch.setattr(constraint_cache, "SLOW", -1.0)
    run, room, words = TRACES[kind]
    caplog.set_level(logging.INFO, logger="toolgrammar")
    run()
    mine = [record for record in caplog.records if record.name.startswith("toolgrammar")]
    assert any(record.name == f"toolgrammar.{room}" and words in record.getMessage() for record in mine)
    assert SECRET not in caplog.text and "note" not in caplog.text
    assert all(record.levelno >= logging.INFO for record in mine)


def test_debug_says_why(caplog: pytest.LogCaptureFixture) -> None:
    """``DEBUG`` adds what was wrong and what the server said."""
    caplog.set_level(logging.DEBUG, logger="toolgrammar")
    remote(REFUSED, reply("{}"), reply(GOOD)).generate("x", tools=TOOLS)
    assert (
        f"reason of the refusal: 'maxLength' in {SECRET}" in caplog.text
        and "'note' is a required property" in caplog.text
    )


def test_silent_unless_configured() -> None:
    """A program that configures no logging sees nothing, also of warnings."""
    code = """
from toolgrammar.core import Grammar
from toolgrammar.core.grammar import constraint_cache
from toolgrammar.core.testing import byte_vocabulary
constraint_cache.SLOW = -1
constraint_cache.ConstraintCache().bind(Grammar.literal("x"), byte_vocabulary())
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)
