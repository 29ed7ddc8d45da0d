"""Requests of real coding agents, recorded by `.ci/agents`: each is answered with the call that the model wants to make."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolgrammar.adapters.server.unused import HEADER

from .agents.host import Coder
from .agents.table import AGENTS, DONE, MODEL, in_project

REQUESTS = Path(__file__).parent / "agents" / "requests"
RECORDED = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(REQUESTS.glob("*.json"))}


def test_each_agent_has_its_recording() -> None:
    """The table and the recordings are of the same versions."""
    assert {name: kept["package"] for name, kept in RECORDED.items()} == {name: a.package for name, a in AGENTS.items()}


@pytest.mark.parametrize("agent", RECORDED)
def test_recorded_requests_are_answered(http: Callable[..., httpx.Client], agent: str) -> None:
    """Each request of the task gets status 200, and in its turn the stream has the call or the last words."""
    kept = RECORDED[agent]
    calls = in_project(AGENTS[agent].calls, "/project")
    client = http({MODEL: Coder(calls)})
    wanted = [name for name, _ in calls]
    for request in kept["requests"]:
        body = {**request["body"]}
        if "tools" in body:
            body["tools"] = kept["tools"][body["tools"]]
        assert body["stream"] is True
        answer = client.post(request["path"], json=body)
        assert answer.status_code == 200, answer.text
        assert answer.headers.get(HEADER) == request.get(HEADER.lower())
        if "tools" not in body:
            continue
        if wanted:
            assert f'"name":"{wanted.pop(0)}"' in answer.text
        else:
            assert _text(answer.text) == DONE
    assert not wanted


@pytest.mark.parametrize("agent", ["claude-code", "codex", "opencode"])
def test_forty_tools_more(http: Callable[..., httpx.Client], agent: str) -> None:
    """The first request of a task with forty more tools, as a client of MCP servers has them, gets the same call."""
    kept = RECORDED[agent]
    calls = in_project(AGENTS[agent].calls, "/project")
    request = next(one for one in kept["requests"] if "tools" in one["body"])
    tools = kept["tools"][request["body"]["tools"]]
    plain = next(tool for tool in tools if calls[0][0] in (tool.get("name"), tool.get("function", {}).get("name")))
    more = [json.loads(json.dumps(plain).replace(f'"{calls[0][0]}"', f'"mcp__tools__{n}"')) for n in range(40)]
    answer = http({MODEL: Coder(calls)}).post(request["path"], json={**request["body"], "tools": [*tools, *more]})
    assert answer.status_code == 200 and f'"name":"{calls[0][0]}"' in answer.text, answer.text


def _text(stream: str) -> str:
    """Return the text in the events of a stream, of any protocol."""
    found = []
    for line in stream.splitlines():
        event: Any = json.loads(line[6:]) if line.startswith("data: {") else {}
        if event.get("type") == "response.output_text.delta":
            found.append(event["delta"])
        elif event.get("type") == "content_block_delta":
            found.append(event["delta"].get("text", ""))
        for choice in event.get("choices", ()):
            found.append(choice["delta"].get("content") or "")
    return "".join(found)


@pytest.mark.parametrize("agent", RECORDED)
def test_no_recording_has_words_of_a_machine(agent: str) -> None:
    """Paths, ids and long texts of others are not in the recordings."""
    text = (REQUESTS / f"{agent}.json").read_text(encoding="utf-8")
    assert "/root" not in text and "/tmp" not in text and "/work" not in text
    long = [line for line in text.splitlines() if len(line) > 260 and '"definition"' not in line]
    assert long == []
