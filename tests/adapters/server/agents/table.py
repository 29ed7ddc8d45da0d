"""The coding agents: where each comes from, how it is pointed at a server, and the calls of its tools that do the task."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

#: What an agent is asked for, and what it says at the end.
TASK = "In hello.txt, replace the word world by there. Then run: cat hello.txt"
DONE = "All done: hello.txt greets there."

#: Name of the model.
MODEL = "small"

#: Calls of an agent's tools, in order: name, and arguments. ``{project}`` stands for the folder of the task.
Calls = Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Start:
    """How one run of an agent begins.

    Attributes:
        arguments: of the program, without the task's text where ``{task}`` stands for it.
        environment: variables beside PATH and those that name folders.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Agent:
    """One coding agent.

    Attributes:
        package: on the npm registry, with the version that was run last.
        program: path of the program in ``node_modules``, a pattern.
        by_node: the program is a script for Node.js 22.
        start: from the address of the server, an empty folder and the program's path to how it begins.
        calls: that do the task.
        shell: a call of the agent's shell with a command, for long conversations.
    """

    package: str
    program: str
    by_node: bool
    start: Callable[[str, Path, str], Start]
    calls: Calls
    shell: Callable[[str], tuple[str, Mapping[str, Any]]]


def _codex(url: str, home: Path, program: str) -> Start:
    provider = f'model_providers.local={{name="local",base_url="{url}/v1",wire_api="responses"}}'
    options = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", MODEL]
    return Start([*options, "-c", 'model_provider="local"', "-c", provider, "{task}"], {"CODEX_HOME": str(home)})


def _codex_with_catalogue(url: str, home: Path, program: str) -> Start:
    catalogue = home / "models.json"
    catalogue.write_text(httpx.get(f"{url}/v1/models?client_version=0").text, encoding="utf-8")
    plain = _codex(url, home, program)
    return Start(["-c", f'model_catalog_json="{catalogue}"', *plain.arguments], plain.environment)


def _claude(url: str, home: Path, program: str) -> Start:
    tools = ["--allowedTools", "Bash", "Edit", "Read"]
    environment = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_AUTH_TOKEN": "none",
        "CLAUDE_CONFIG_DIR": str(home),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return Start(["-p", "{task}", "--model", MODEL, *tools], environment)


def _opencode(url: str, home: Path, program: str) -> Start:
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {MODEL: {"name": MODEL}}}
    settings = {
        "provider": {"local": provider},
        "model": f"local/{MODEL}",
        "small_model": f"local/{MODEL}",
        "autoupdate": False,
        "share": "disabled",
    }
    file = home / "opencode.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    return Start(["run", "--model", f"local/{MODEL}", "{task}"], {"OPENCODE_CONFIG": str(file)})


def _qwen(url: str, home: Path, program: str) -> Start:
    environment = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": MODEL}
    return Start(["-p", "{task}", "--yolo", "--auth-type", "openai", "-m", MODEL], environment)


def _pi(url: str, home: Path, program: str) -> Start:
    folder = home / ".pi" / "agent"
    folder.mkdir(parents=True)
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [{"id": MODEL}]}
    (folder / "models.json").write_text(json.dumps({"providers": {"local": provider}}), encoding="utf-8")
    return Start(["-p", "--provider", "local", "--model", MODEL, "{task}"], {"PI_OFFLINE": "1"})


def _cline(url: str, home: Path, program: str) -> Start:
    import subprocess

    settings = str(home / "cline")
    known = ["-p", "openai-compatible", "-k", "none", "-m", MODEL, "-b", f"{url}/v1", "--config", settings]
    command = [program, "auth", *known]
    subprocess.run(
        command, env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, timeout=60, check=True, capture_output=True
    )
    options = ["--config", settings, "-P", "openai-compatible", "-m", MODEL, "--auto-approve", "true"]
    return Start([*options, "{task}"], {})


_FILE = "{project}/hello.txt"
_CODEX = "@openai/codex@0.169.0"
_CODEX_PROGRAM = "@openai/codex-linux-*/vendor/*/bin/codex"
_PATCH = "*** Begin Patch\n*** Update File: hello.txt\n@@\n-hello world\n+hello there\n*** End Patch"

AGENTS: Mapping[str, Agent] = {
    "codex": Agent(
        _CODEX,
        _CODEX_PROGRAM,
        False,
        _codex,
        [
            ("exec_command", {"cmd": "ls"}),
            ("exec_command", {"cmd": "sed -i s/world/there/ hello.txt"}),
            ("exec_command", {"cmd": "cat hello.txt"}),
        ],
        lambda command: ("exec_command", {"cmd": command}),
    ),
    "codex-catalogue": Agent(
        _CODEX,
        _CODEX_PROGRAM,
        False,
        _codex_with_catalogue,
        [
            ("exec_command", {"cmd": "ls"}),
            ("apply_patch", {"input": _PATCH}),
            ("exec_command", {"cmd": "cat hello.txt"}),
        ],
        lambda command: ("exec_command", {"cmd": command}),
    ),
    "claude-code": Agent(
        "@anthropic-ai/claude-code@2.1.332",
        "@anthropic-ai/claude-code-linux-*/claude",
        False,
        _claude,
        [
            ("Bash", {"command": "ls"}),
            ("Read", {"file_path": _FILE}),
            ("Edit", {"file_path": _FILE, "old_string": "world", "new_string": "there"}),
            ("Bash", {"command": "cat hello.txt"}),
        ],
        lambda command: ("Bash", {"command": command}),
    ),
    "opencode": Agent(
        "opencode-ai@1.18.33",
        "opencode-linux-*/bin/opencode",
        False,
        _opencode,
        [
            ("bash", {"command": "ls"}),
            ("read", {"filePath": _FILE}),
            ("edit", {"filePath": _FILE, "oldString": "world", "newString": "there"}),
            ("bash", {"command": "cat hello.txt"}),
        ],
        lambda command: ("bash", {"command": command}),
    ),
    "qwen-code": Agent(
        "@qwen-code/qwen-code@0.24.4",
        ".bin/qwen",
        True,
        _qwen,
        [
            ("run_shell_command", {"command": "ls"}),
            ("read_file", {"file_path": _FILE}),
            ("edit", {"file_path": _FILE, "old_string": "world", "new_string": "there"}),
            ("run_shell_command", {"command": "cat hello.txt"}),
        ],
        lambda command: ("run_shell_command", {"command": command}),
    ),
    "pi": Agent(
        "@mariozechner/pi-coding-agent@0.73.1",
        ".bin/pi",
        True,
        _pi,
        [
            ("bash", {"command": "ls"}),
            ("read", {"path": "hello.txt"}),
            ("edit", {"path": "hello.txt", "edits": [{"oldText": "world", "newText": "there"}]}),
            ("bash", {"command": "cat hello.txt"}),
        ],
        lambda command: ("bash", {"command": command}),
    ),
    "cline": Agent(
        "cline@3.0.65",
        "@cline/cli-linux-*/bin/cline",
        False,
        _cline,
        [
            ("run_commands", {"commands": ["ls"]}),
            ("editor", {"path": _FILE, "old_text": "world", "new_text": "there"}),
            ("run_commands", {"commands": ["cat hello.txt"]}),
        ],
        lambda command: ("run_commands", {"commands": [command]}),
    ),
}


def in_project(calls: Calls, project: str) -> Calls:
    """Return calls for a task in a folder."""
    return [(name, json.loads(json.dumps(arguments).replace("{project}", project))) for name, arguments in calls]
