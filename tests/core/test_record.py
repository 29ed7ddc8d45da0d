"""Records: what they say, what changes in them are found, and what is left of them when processes are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core import GenerateParams, Record, RecordError, ToolCall
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import Policy, ToolSet

SECRET = "attack at dawn"


def send(text: str) -> str:
    """Send a text."""
    if text == "fail":
        raise ValueError(text)
    return f"sent {text}"


TOOLS = ToolSet.from_any([send])


def entries(path: Path) -> list[dict[str, Any]]:
    """The entries of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def run() -> None:
    """Run a model that calls a tool and answers."""
    call = json.dumps({"name": "send", "arguments": {"text": SECRET}})
    ScriptedModel([call, "Done."]).run("?", tools=TOOLS).result  # noqa: B018


@pytest.mark.parametrize("contents", [False, True])
def test_a_run_is_recorded_in_order(contents: bool, tmp_path: Path) -> None:
    """A run, each answer, each call before it runs and its result, with hashes of contents, or with the contents."""
    path = tmp_path / "calls.jsonl"
    with Record(path, contents=contents) as record:
        run()
        with pytest.raises(ValueError, match="fail"):
            TOOLS.call(ToolCall("7", "send", {"text": "fail"}))
    run()  # after the block nothing is recorded
    found = entries(path)
    assert [each["event"] for each in found] == [
        "open", "run", "answer", "call", "result", "answer", "end", "call", "result",
    ]  # fmt: skip
    answer, call, result = found[2]["attributes"], found[3], found[4]
    assert answer["toolgrammar.tools"] == ["send"] and answer["toolgrammar.enforced"] is True
    (told,) = answer["toolgrammar.calls"]
    assert told["name"] == "send"
    assert told["arguments_sha256"] == call["attributes"]["toolgrammar.arguments_sha256"]
    assert call["span"] == result["span"] and call["within"] == found[1]["span"] == found[6]["span"]
    assert found[8]["attributes"]["error.type"] == "ValueError"
    assert (SECRET in path.read_text()) is contents
    assert Record.verify(path, head=record.head).ok and Record.verify(path).entries == 9


def test_sources_of_values_are_recorded(tmp_path: Path) -> None:
    """Under a policy, an answer has its hash, and for each value of a call where it came from, and no words."""
    policy = Policy({"tools": {"send": {"text": ["user"]}}})
    call = json.dumps({"name": "send", "arguments": {"text": SECRET}})
    with Record(tmp_path / "calls.jsonl"):
        ScriptedModel([call]).generate(f"Please send: {SECRET}", tools=TOOLS, policy=policy)
    answer = entries(tmp_path / "calls.jsonl")[1]["attributes"]
    assert answer["toolgrammar.policy"] == policy.hash
    (told,) = answer["toolgrammar.calls"]
    assert told["sources"] == [{"/text": [{"source": "user", "message": 0, "at": 13}]}]
    assert SECRET not in (tmp_path / "calls.jsonl").read_text()


def changed(lines: list[bytes]) -> list[tuple[str, list[bytes]]]:
    """A record with one line changed, removed, doubled, moved, added, or torn in the middle."""
    other = lines[3].replace(b'"call"', b'"CALL"')
    assert other != lines[3]
    return [
        ("changed", [*lines[:3], other, *lines[4:]]),
        ("removed", [*lines[:3], *lines[4:]]),
        ("doubled", [*lines[:4], *lines[3:]]),
        ("moved", [*lines[:3], lines[4], lines[3], *lines[5:]]),
        ("added", [*lines[:3], b'{"n":3}\n', *lines[3:]]),
        ("torn", [*lines[:3], lines[3][:20] + b"\n", *lines[4:]]),
        ("without its beginning", lines[1:]),
        ("first of another", [lines[0].replace(b'"n":0', b'"n":1'), *lines[1:]]),
    ]


@pytest.mark.parametrize("key", [None, b"secret"])
def test_every_change_is_found(key: bytes | None, tmp_path: Path) -> None:
    """A line that was changed, removed, doubled, moved or added is a problem with its place; so is another key."""
    path = tmp_path / "calls.jsonl"
    with Record(path, key=key) as record:
        run()
    lines = path.read_bytes().splitlines(keepends=True)
    assert Record.verify(path, key=key, head=record.head).ok
    assert not Record.verify(path, key=b"other").ok
    for what, others in changed(lines):
        path.write_bytes(b"".join(others))
        report = Record.verify(path, key=key)
        assert report.problems or report.first == 1, what
        assert any(f"line {number}" in problem for problem in report.problems for number in (1, 4, 5)) or report.first
    path.write_bytes(b"".join(lines[:-2]))
    assert Record.verify(path, key=key).ok and not Record.verify(path, key=key, head=record.head).ok


def test_an_incomplete_line_is_cut_off_and_said(tmp_path: Path) -> None:
    """What a killed process left of a line is reported, and the next entry continues the last whole one."""
    path = tmp_path / "calls.jsonl"
    with Record(path):
        run()
    with open(path, "ab") as file:
        file.write(b'{"n":7,"time":')
    assert [each.partition(":")[0] for each in Record.verify(path).torn] == ["calls.jsonl line 8"]
    with Record(path):
        pass
    report = Record.verify(path)
    assert report.ok and report.entries == 8 and "14 bytes" in report.torn[0]


def test_files_are_rotated_and_the_chain_goes_on(tmp_path: Path) -> None:
    """A full file is renamed, and its successor continues it; a part that is gone in the middle is found."""
    path = tmp_path / "calls.jsonl"
    with Record(path, max_bytes=3000):
        for _ in range(6):
            run()
    parts = sorted(tmp_path.glob("calls.jsonl.[0-9]*"), key=lambda each: int(each.suffix[1:]))
    assert len(parts) >= 3 and Record.verify(path).entries == 37 and Record.verify(path).ok
    parts[0].unlink()
    assert Record.verify(path).ok and Record.verify(path).first > 0
    parts[2].unlink()
    assert not Record.verify(path).ok


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: Record(path / "no" / "file"), "cannot be written: No such file or directory"),
        (lambda path: Record(path, key=b""), "at least one"),
        (lambda path: Record(path / "x", key="text"), "must be bytes"),  # type: ignore[arg-type]
        (lambda path: Record(path / "x", max_bytes=0), "max_bytes is 0"),
        (lambda path: Record(path / "damaged"), "cannot be continued: its last line: it is not an entry"),
        (lambda path: Record(path / "keyed"), "it was changed, or written with a key"),
    ],
)
def test_what_cannot_be_recorded_is_an_error(make: Callable[[Path], Record], said: str, tmp_path: Path) -> None:
    """A record that cannot be opened or continued is an error of ours that says why."""
    (tmp_path / "damaged").write_text("Hello.\n")
    with Record(tmp_path / "keyed", key=b"1"):
        pass
    with pytest.raises(RecordError, match=said), make(tmp_path):
        pass


def test_what_cannot_be_recorded_does_not_run(tmp_path: Path) -> None:
    """When entries cannot be written any more, tools do not run and answers are errors."""
    path, ran = tmp_path / "folder" / "calls.jsonl", []
    path.parent.mkdir()
    tools = ToolSet.from_any([lambda_tool(ran)])
    with Record(path):
        for each in path.parent.iterdir():
            each.unlink()
        path.parent.rmdir()
        with pytest.raises(RecordError):
            tools.call(ToolCall("1", "note", {"text": "a"}))
        with pytest.raises(RecordError):
            ScriptedModel(["x"]).generate("?", GenerateParams())
    assert ran == []


def lambda_tool(ran: list[str]) -> Callable[[str], None]:
    """A tool that notes its calls."""

    def note(text: str) -> None:
        """Note a text."""
        ran.append(text)

    return note


WRITER = """
import sys
from toolgrammar.core import Record
with Record(sys.argv[1], key=b"k", max_bytes=200_000) as record:
    number = 0
    while True:
        record.tell("answer", "", None, {"writer": sys.argv[2], "number": number, "filling": "x" * (number * 37 % 3000)})
        print(number, flush=True)
        number += 1
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed by a signal")
def test_killed_processes_lose_nothing_that_was_promised(tmp_path: Path) -> None:
    """Processes that append to one file and are killed in the middle: the chain is whole, with every number printed."""
    path, count = tmp_path / "calls.jsonl", 4
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(each)], stdout=subprocess.PIPE, text=True)
        for each in range(count)
    ]
    rng = random.Random(5)
    for each in writers:
        assert each.stdout is not None and each.stdout.readline() == "0\n"
    for each in writers:
        time.sleep(rng.random() / 4)
        os.kill(each.pid, signal.SIGKILL)
    promised = {
        str(number): int([line for line in each.communicate()[0].split("\n") if line][-1])
        for number, each in enumerate(writers)
    }
    report = Record.verify(path, key=b"k")
    assert report.ok
    files = [*tmp_path.glob("calls.jsonl.[0-9]*"), path]
    written: dict[str, int] = {}
    for file in files:
        for line in file.read_bytes().split(b"\n")[:-1]:
            facts = json.loads(line)["attributes"]
            if "writer" in facts:
                written[facts["writer"]] = max(written.get(facts["writer"], 0), facts["number"])
    assert all(promised[each] <= written[each] <= promised[each] + 1 for each in promised)
    with Record(path, key=b"k"):
        pass
    assert Record.verify(path, key=b"k").ok
