"""Requests of real coding agents, recorded by `nox -s agents`: each is answered with the call that the model wants to make."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolgrammar.adapters.server.unused import HEADER

from .agents.host import Coder
from .agents.run import PAGE, RECORDINGS, RESULTS, with_table
from .agents.scrub import LONGEST, WHOLE, bodies_of, differences
from .agents.table import AGENTS, DONE, KINDS, MODEL, calls_of

RECORDED = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RECORDINGS.glob("*.json"))}
RUNS = [(name, kind) for name, kept in RECORDED.items() for kind in kept["runs"]]
ROOT = Path(__file__).parents[3]


def _requests(agent: str, kind: str) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """Give the path, the body and the header of unused fields of each request of a run."""
    kept = RECORDED[agent]
    run = kept["runs"][kind]
    for request, body in zip(run, bodies_of(run, kept["tools"]), strict=True):
        yield request["path"], body, request.get(HEADER.lower())


def _is_left_out(kind: str, left: int) -> bool:
    """Return True for two of three turns of a long conversation: each turn has the ones before it."""
    return kind == "long" and left % 3 != 0


def test_each_agent_has_its_recordings() -> None:
    """The table, the results and the recordings are of the same versions, and 200 requests or more are replayed."""
    versions = {name: agent.package for name, agent in AGENTS.items()}
    results = json.loads(RESULTS.read_text())
    assert {name: result["package"] for name, result in results.items()} == versions
    right = {(name, kind) for name, result in results.items() for kind in KINDS if result.get(kind) == "right"}
    assert set(RUNS) == right
    assert all(kept["package"] == versions[name] for name, kept in RECORDED.items())
    counts = {(name, kind): len(RECORDED[name]["runs"][kind]) for name, kind in RUNS}
    assert sum(count // 3 if kind == "long" else count for (_, kind), count in counts.items()) >= 200


@pytest.mark.parametrize("agent", RECORDED)
def test_each_recorded_tool_is_sent(agent: str) -> None:
    """The list of tools of a recording has none twice, and none that no request has."""
    kept = RECORDED[agent]
    sent = {n for run in kept["runs"].values() for request in run for n in request["set"].get("tools", ())}
    assert sent == set(range(len(kept["tools"])))
    assert len({json.dumps(tool) for tool in kept["tools"]}) == len(kept["tools"])


def test_the_page_has_the_results() -> None:
    """The table of the page is the one that the job writes from the results."""
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_table(page, json.loads(RESULTS.read_text())) == page


def test_differences_lose_nothing() -> None:
    """Bodies come back from their differences: fields that change, go and come again, lists that grow and shrink."""
    bodies: list[dict[str, Any]] = [
        {"messages": [1, 2], "stream": True, "n": 1},
        {"messages": [1, 2, 3], "stream": True},
        {"messages": [1, 4], "n": 2, "input": "text"},
        {"messages": [], "input": ["text"]},
        {"messages": [], "input": []},
    ]
    assert bodies_of(differences(bodies), []) == bodies


@pytest.mark.parametrize(("agent", "kind"), [run for run in RUNS if run[1] != "cancelled"])
def test_recorded_requests_are_answered(http: Callable[..., httpx.Client], agent: str, kind: str) -> None:
    """Each request of a run gets status 200, and in its turn the stream has the call or the last words."""
    calls = calls_of(AGENTS[agent], kind, "/project")
    client = http({MODEL: Coder(calls)})
    wanted: list[str | None] = [name.removeprefix(AGENTS[agent].prefix) for name, _ in calls] + [None]
    for path, body, unused in _requests(agent, kind):
        assert body["stream"] is True
        call = wanted.pop(0) if "tools" in body else None
        if _is_left_out(kind, len(wanted)):
            continue
        answer = client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        assert answer.headers.get(HEADER) == unused
        if call is not None:
            assert re.search(rf'"name":"\w*{call}"', answer.text)
        elif "tools" in body:
            assert _text(answer.text) == DONE
    assert not wanted


@pytest.mark.parametrize("agent", RECORDED)
def test_whole_answers(http: Callable[..., httpx.Client], agent: str) -> None:
    """The same requests without a stream, which no agent asks for by itself, get the same calls."""
    calls = calls_of(AGENTS[agent], "task", "/project")
    client = http({MODEL: Coder(calls)})
    wanted = [name for name, _ in calls]
    for path, body, unused in _requests(agent, "task"):
        body.pop("stream_options", None)
        answer = client.post(path, json={**body, "stream": False})
        assert answer.status_code == 200, answer.text
        assert answer.headers.get(HEADER) == unused
        if "tools" in body:
            assert f'"{wanted.pop(0) if wanted else DONE}"' in answer.text
    assert not wanted


@pytest.mark.parametrize("agent", [name for name, kind in RUNS if kind == "cancelled"])
def test_recorded_requests_are_cut(http: Callable[..., httpx.Client], agent: str) -> None:
    """A client that leaves in the middle of an endless answer does not keep the server from the next one."""
    client = http({MODEL: Coder((), endless=True)})
    for path, body, _ in _requests(agent, "cancelled"):
        with client.stream("POST", path, json=body) as answer:
            assert answer.status_code == 200
            lines: list[str] = []
            for line in itertools.islice(answer.iter_lines(), 200):
                lines.append(line)
                if "word" in _text("\n".join(lines)):
                    break
            else:
                pytest.fail(f"no words in {lines}")


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
    text = (RECORDINGS / f"{agent}.json").read_text(encoding="utf-8")
    assert not re.search(r"/root|/tmp|/work|/opt|127\.0\.0\.1|localhost:|[0-9a-f]{24}", text)
    long = [name for name, length in _texts(RECORDED[agent], "") if length > LONGEST + 20 and name not in WHOLE]
    assert long == []


def _texts(value: Any, name: str) -> Iterator[tuple[str, int]]:
    """Give the field and the length of each text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, name)
    elif isinstance(value, str):
        yield name, len(value)
