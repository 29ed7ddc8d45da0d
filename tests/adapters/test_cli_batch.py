"""``toolgrammar batch``: OpenAI's batch lines in, its answers out, whatever kills the process on the way."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from toolgrammar.adapters.cli.app import app

PROGRAM = "from toolgrammar.adapters.cli import main; main()"
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "find_order",
        "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]},
    },
}


def line(name: str, url: str = "/v1/chat/completions", **body: Any) -> str:
    """A request of a batch."""
    said = {"model": "any", "messages": [{"role": "user", "content": f"Where is {name}?"}], "max_tokens": 40, **body}
    return json.dumps({"custom_id": name, "method": "POST", "url": url, "body": said})


def asked(folder: Path, *lines: str) -> Path:
    """A file of requests."""
    path = folder / "requests.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def run(*arguments: Any) -> tuple[int, str]:
    """Run the command; return the exit code and the complaints."""
    result = CliRunner().invoke(app, ["batch", *map(str, arguments)], env={"NO_COLOR": "1"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    lines = result.stderr.splitlines()
    said = lines[-1] if result.exit_code < 2 else result.stderr  # a handler of another test may complain before
    return result.exit_code, " ".join(said.split())


def answers(path: Path) -> dict[str, Any]:
    """The answers of a file by their names; each is there once."""
    read = [json.loads(each) for each in path.read_text().splitlines()]
    assert len({each["custom_id"] for each in read}) == len(read)
    return {each["custom_id"]: each for each in read}


def test_each_request_has_an_answer_in_openai_s_form(tmp_path: Path) -> None:
    """Calls, JSON, other endpoints and refused requests: the answer of each is that of the server, with its status."""
    requests = asked(
        tmp_path,
        line("call", tools=[TOOL], tool_choice="required"),
        line(
            "json", response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}
        ),
        "",
        line("messages", url="/v1/messages"),
        line("streamed", stream=True),
        line("wrong", temperature="hot"),
    )
    output = tmp_path / "answers.jsonl"
    code, said = run(requests, "-o", output, "-m", "embedded")
    assert (code, said) == (1, "answered 4 of 5")
    found = answers(output)
    assert found.keys() == {"call", "json", "messages", "streamed", "wrong"}
    bodies = {name: each["response"]["body"] for name, each in found.items()}
    (call,) = bodies["call"]["choices"][0]["message"]["tool_calls"][:1]
    assert isinstance(json.loads(call["function"]["arguments"])["order"], int)
    assert isinstance(json.loads(bodies["json"]["choices"][0]["message"]["content"]), int)
    assert bodies["messages"]["type"] == "message" and bodies["streamed"]["object"] == "chat.completion"
    assert found["wrong"]["response"]["status_code"] == 400 and "temperature" in bodies["wrong"]["error"]["message"]
    assert all(each["error"] is None and each["id"].startswith("batch_req_") for each in found.values())


def test_answered_requests_are_not_answered_again(tmp_path: Path) -> None:
    """A second run answers what is missing: nothing, or the line that a kill tore."""
    requests, output = asked(tmp_path, line("a"), line("b"), line("c")), tmp_path / "answers.jsonl"
    assert run(requests, "-o", output, "-m", "embedded") == (0, "answered 3 of 3")
    whole = output.read_bytes()
    assert run(requests, "-o", output, "-m", "embedded") == (0, "answered 0 of 0; 3 were answered before")
    assert output.read_bytes() == whole
    output.write_bytes(whole[:-20])
    assert run(requests, "-o", output, "-m", "embedded") == (0, "answered 1 of 1; 2 were answered before")
    assert output.read_bytes().startswith(b"".join(whole.splitlines(keepends=True)[:2]))
    assert answers(output).keys() == {"a", "b", "c"}


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_kills_lose_and_double_no_line(tmp_path: Path) -> None:
    """Killed again and again in the middle, the same command ends with each answer once."""
    names = [str(number) for number in range(300)]
    requests = asked(tmp_path, *(line(name, max_tokens=60, tools=[TOOL]) for name in names))
    output = tmp_path / "answers.jsonl"
    command = [sys.executable, "-c", PROGRAM, "batch", str(requests), "-o", str(output), "-m", "embedded"]
    kills = 0
    for goal in (1, 60, 120):
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and (not output.exists() or output.read_bytes().count(b"\n") < goal):
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
    assert kills and len(output.read_bytes().splitlines()) < len(names)
    assert run(requests, "-o", output, "-m", "embedded")[0] == 0
    assert answers(output).keys() == set(names)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")
def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    """While one writes the answers, another ends with one line."""
    import fcntl

    requests, output = asked(tmp_path, line("a")), tmp_path / "answers.jsonl"
    with output.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, said = run(requests, "-o", output, "-m", "embedded")
    assert code == 2 and "another process writes" in said


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["{"], "line 1 of"),
        ([line("a"), '{"custom_id": "b"}'], "line 2 of"),
        ([line("a"), line("b", url="/v1/embeddings")], "'/v1/embeddings'"),
        ([line("a"), line("a")], "has the custom_id 'a' of a line before"),
        (['{"custom_id": 1, "body": {}}'], "is not a request"),
    ],
)
def test_a_wrong_file_is_named_by_its_line(lines: list[str], said: str, tmp_path: Path) -> None:
    """Before a model is loaded, and before anything is written."""
    output = tmp_path / "answers.jsonl"
    code, complaint = run(asked(tmp_path, *lines), "-o", output, "-m", "nosuchmodel")
    assert code == 2 and said in complaint.replace("\n", "") and not output.exists()


def test_a_file_that_is_no_answers_file_is_left_alone(tmp_path: Path) -> None:
    """Answers to other requests, or other text: one line, and nothing is written."""
    output = tmp_path / "answers.jsonl"
    for text in ('{"custom_id": "other"}\n', "notes\n"):
        output.write_text(text)
        code, said = run(asked(tmp_path, line("a")), "-o", output, "-m", "embedded")
        assert code == 2 and "give another --output" in said and output.read_text() == text


def test_examples_in_the_help_are_commands() -> None:
    """Each command has examples below its help, whose options and arguments it takes."""
    group = typer.main.get_command(app)
    seen = 0
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        commands = getattr(command, "commands", {name: command})
        for each in commands.values():
            assert each.epilog and each.epilog.startswith("Examples:"), name
            for example in each.epilog.split("\n\n")[1:]:
                words = shlex.split(example)
                assert words[0] == "toolgrammar"
                while words[1:2] and words[1] in (name, each.name):
                    del words[1]
                each.make_context(each.name, words[1:], resilient_parsing=False)
                seen += 1
    assert seen > 12
