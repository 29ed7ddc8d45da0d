"""The coding agents: where each comes from, how it is pointed at a server, and the calls of its tools that do the task."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from . import mcp_tools

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
        before: arguments of the same program for a run before, in the same folder; empty for none.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    before: Sequence[str] = ()


@dataclass(frozen=True)
class Agent:
    """One coding agent.

    Attributes:
        package: on the npm registry, with the version that was run last.
        program: path of the program in ``node_modules``, a pattern.
        by_node: the program is a script for Node.js 22.
        start: from the address of the server, an empty folder, the program's path and the command of an MCP server
            (empty: none) to how it begins.
        calls: that do the task.
        shell: a call of the agent's shell with a command, for long conversations.
        prefix: of the names of the MCP server's tools, as the model knows them.
        others: further packages, whose programs are on the agent's PATH.
    """

    package: str
    program: str
    by_node: bool
    start: Callable[[str, Path, str, Sequence[str]], Start]
    calls: Calls
    shell: Callable[[str], tuple[str, Mapping[str, Any]]]
    prefix: str = "mcp__tools__"
    others: Sequence[str] = ()


def _codex(url: str, home: Path, program: str, tools: Sequence[str]) -> Start:
    provider = f'model_providers.local={{name="local",base_url="{url}/v1",wire_api="responses"}}'
    options = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", MODEL]
    if tools:
        options += ["-c", f"mcp_servers.tools={{command={json.dumps(tools[0])},args={json.dumps(tools[1:])}}}"]
    return Start([*options, "-c", 'model_provider="local"', "-c", provider, "{task}"], {"CODEX_HOME": str(home)})


def _codex_with_catalogue(url: str, home: Path, program: str, tools: Sequence[str]) -> Start:
    catalogue = home / "models.json"
    catalogue.write_text(httpx.get(f"{url}/v1/models?client_version=0").text, encoding="utf-8")
    plain = _codex(url, home, program, tools)
    return Start(["-c", f'model_catalog_json="{catalogue}"', *plain.arguments], plain.environment)


def _claude(url: str, home: Path, program: str, tools: Sequence[str]) -> Start:
    allowed = ["--allowedTools", "Bash", "Edit", "Read", "mcp__tools"]
    environment = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_AUTH_TOKEN": "none",
        "CLAUDE_CONFIG_DIR": str(home),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        **({"ENABLE_TOOL_SEARCH": "false"} if tools else {}),
    }
    more = ["--mcp-config", str(_servers(home / "mcp.json", tools)), "--strict-mcp-config"] if tools else []
    return Start(["-p", "{task}", "--model", MODEL, *more, *allowed], environment)


def _claude_flow(url: str, home: Path, program: str, tools: Sequence[str]) -> Start:
    plain = _claude(url, home, program, tools)
    (home / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash", "Edit", "Read", "mcp__tools"]}}))
    options = ["hive-mind", "spawn", "--claude", "--non-interactive", "--no-auto-permissions", "--objective", "{task}"]
    if tools:  # its own --mcp-config has no effect in this version
        _servers(home / ".claude" / "mcp.json", tools)
    return Start(options, {**plain.environment, "ANTHROPIC_MODEL": MODEL}, ["hive-mind", "init"])


def _servers(file: Path, command: Sequence[str], entry: Mapping[str, Any] | None = None, **more: Any) -> Path:
    """Write the file of MCP servers in the form that most agents read, with more in the server's entry and beside."""
    server = {"command": command[0], "args": command[1:], **(entry or {})}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": {"tools": server}, **more}), encoding="utf-8")
    return file


def _opencode(url: str, home: Path, program: str, tools: Sequence[str]) -> Start:
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {MODEL: {"name": MODEL}}}
    settings: dict[str, Any] = {
        "provider": {"local": provider},
        "model": f"local/{MODEL}",
        "small_model": f"local/{MODEL}",
        "autoupdate": False,
        "share": "disabled",
    }
    if tools:
        settings["mcp"] = {"tools": {"type": "local", "command": [*tools], "enabled": True}}
    file = home / "opencode.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    return Start(["run", "--model", f"local/{MODEL}", "{task}"], {"OPENCODE_CONFIG": str(file)})


def _qwen(url: str, home: Path, program: str, tools: Sequence[str]) -> Start:
    environment = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": MODEL}
    if tools:
        whole = {"toolSearch": {"enabled": False}}
        _servers(home / ".qwen" / "settings.json", tools, {"trust": True}, tools=whole)
    return Start(["-p", "{task}", "--yolo", "--auth-type", "openai", "-m", MODEL], environment)


def _pi(url: str, home: Path, program: str, tools: Sequence[str]) -> Start:
    folder = home / ".pi" / "agent"
    folder.mkdir(parents=True)
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [{"id": MODEL}]}
    (folder / "models.json").write_text(json.dumps({"providers": {"local": provider}}), encoding="utf-8")
    more = []
    if tools:  # pi takes no MCP servers: an extension has the same tools
        listed = mcp_tools.answer("tools/list", {})
        (home / "tools.js").write_text(_EXTENSION.replace("LISTED", json.dumps(listed)), encoding="utf-8")
        more = ["--extension", str(home / "tools.js")]
    return Start(["-p", "--provider", "local", "--model", MODEL, *more, "{task}"], {"PI_OFFLINE": "1"})


_EXTENSION = """export default function (pi) {
  for (const { name, description, inputSchema } of LISTED.tools) {
    const execute = async (id, given) => ({ content: [{ type: "text", text: `${name} keeps ${given.text}` }], details: {} });
    pi.registerTool({ name, label: name, description, parameters: inputSchema, execute });
  }
}
"""


def _cline(url: str, home: Path, program: str, tools: Sequence[str]) -> Start:
    import subprocess

    settings = str(home / "cline")
    known = ["-p", "openai-compatible", "-k", "none", "-m", MODEL, "-b", f"{url}/v1", "--config", settings]
    command = [program, "auth", *known]
    subprocess.run(
        command, env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, timeout=60, check=True, capture_output=True
    )
    options = ["--config", settings, "-P", "openai-compatible", "-m", MODEL, "--auto-approve", "true"]
    more = {"CLINE_MCP_SETTINGS_PATH": str(_servers(home / "mcp.json", tools))} if tools else {}
    return Start([*options, "{task}"], more)


_FILE = "{project}/hello.txt"
_CODEX = "@openai/codex@0.171.0"
_CLAUDE = "@anthropic-ai/claude-code@2.1.332"
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
        _CLAUDE,
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
        prefix="tools_",
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
        prefix="",
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
        prefix="tools__",
    ),
    "claude-flow": Agent(
        "claude-flow@3.43.0",
        ".bin/claude-flow",
        True,
        _claude_flow,
        [
            ("Bash", {"command": "ls"}),
            ("Read", {"file_path": _FILE}),
            ("Edit", {"file_path": _FILE, "old_string": "world", "new_string": "there"}),
            ("Bash", {"command": "cat hello.txt"}),
        ],
        lambda command: ("Bash", {"command": command}),
        others=[_CLAUDE],
    ),
}

#: Agents that are not run, and why.
NOT_RUN: Mapping[str, str] = {
    "@google/gemini-cli@0.61.0": "it takes a base URL of Gemini's own protocol alone (`GOOGLE_GEMINI_BASE_URL`), "
    "which this server does not speak",
}

#: The kind of run with a real model, whose requests are not recorded.
REAL = "smollm2"
#: Number of calls of a long conversation.
TURNS = 50
#: What each kind of run with a scripted model is.
KINDS: Mapping[str, str] = {
    "task": "task",
    "long": f"{TURNS} calls",
    "cancelled": "interrupt",
    "forty": f"{mcp_tools.COUNT} tools",
}


def calls_of(agent: Agent, kind: str, project: str) -> Calls:
    """Return the calls of a kind of run for a task in a folder."""
    if kind == "long":
        return [agent.shell(f"echo turn {n}") for n in range(TURNS)]
    if kind == "forty":
        note = (agent.prefix + mcp_tools.name_of(7), {"level": 3, "text": "forty tools"})
        return [agent.shell("ls"), note, agent.shell("cat hello.txt")]
    return in_project(agent.calls, project)


def in_project(calls: Calls, project: str) -> Calls:
    """Return calls for a task in a folder."""
    return [(name, json.loads(json.dumps(arguments).replace("{project}", project))) for name, arguments in calls]
