"""Runs coding agents against the server on the loopback interface: one task each, whole, cancelled, and long.

`nox -s agents` starts it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolgrammar.core import load_model

from .host import Coder, Seen, hosted
from .mcp_tools import COUNT, name_of
from .mcp_tools import __file__ as _MCP
from .scrub import scrubbed, scrubbed_text
from .table import AGENTS, DONE, KINDS, NOT_RUN, REAL, TASK, TURNS, Agent, calls_of

#: Maximum time of one run, in seconds; of a long conversation.
_SECONDS, _LONG_SECONDS = 240, 900
NODE = "node@22"
_SKIPPED = "skipped"
#: The server's error of a prompt that does not fit the model's window.
_TOO_LONG = re.compile(r"prompt is too long: ([0-9]+) tokens > ")
_PACKAGES = Path(".ci/agents-packages")
_HERE = Path(__file__).parent
RECORDINGS, RESULTS = _HERE / "requests", _HERE / "results.json"
PAGE = Path("docs/coding-agents.md")
_BEGIN, _END = "<!-- agents: written by tests/adapters/server/agents/run.py -->", "<!-- end of agents -->"


def installed(package: str, folder: Path) -> Path:
    """Install a package from npm, unless it is there; return the folder ``node_modules``.

    Raises:
        RuntimeError: it cannot be installed.
    """
    name, _, version = package.rpartition("@")
    where = folder / re.sub(r"\W+", "-", name).strip("-")
    modules = where / "node_modules"
    manifest = modules / name / "package.json"
    if manifest.exists() and json.loads(manifest.read_text())["version"].startswith(version):
        return modules
    where.mkdir(parents=True, exist_ok=True)
    (where / "package.json").write_text("{}\n")
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(where), package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1:])
    return modules


class Run:
    """One agent, installed.

    Args:
        agent: the agent.
        folder: of installed packages.
    """

    def __init__(self, agent: Agent, folder: Path) -> None:
        self._agent = agent
        modules = installed(agent.package, folder)
        found = sorted(path for path in modules.glob(agent.program) if not re.search("(x64|arm64)-musl", str(path)))
        if not found:
            raise RuntimeError(f"the package has no {agent.program}")
        self._program = str(found[0])
        self._node = installed(NODE, folder) / ".bin" if agent.by_node else None
        self._path = [str(installed(other, folder) / ".bin") for other in agent.others]

    def go(self, kind: str) -> tuple[Seen, str, int | None, str, bool]:
        """Give the agent the task.

        Args:
            kind: of ``KINDS``. Where it is ``cancelled``, the agent is interrupted (SIGINT) once the model writes,
                which then never ends by itself.

        Returns:
            The requests, what the agent wrote, its exit status, the text of the file at the end, and
            whether the server was free then.
        """
        stop, seconds = kind == "cancelled", _LONG_SECONDS if kind == "long" else _SECONDS
        with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as project:
            file = Path(project, "hello.txt")
            file.write_text("hello world\n")
            script = () if kind == REAL else calls_of(self._agent, kind, project)
            model = load_model(REAL) if kind == REAL else Coder(script, endless=stop)
            tools = [sys.executable, _MCP] if kind == "forty" else []
            with hosted(model) as seen:
                start = self._agent.start(seen.url, Path(home), self._program, tools)
                program = [self._program] if self._node is None else [str(self._node / "node"), self._program]
                command = [*program, *(one.replace("{task}", TASK) for one in start.arguments)]
                environment = {**self._environment(home), **start.environment}
                if start.before:
                    first = [*program, *start.before]
                    subprocess.run(first, cwd=project, env=environment, timeout=120, check=False, capture_output=True)
                process = subprocess.Popen(
                    command,
                    cwd=project,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    start_new_session=True,
                )
                if stop:
                    end = time.monotonic() + seconds
                    while time.monotonic() < end and not getattr(model, "writes", True):
                        time.sleep(0.05)
                    os.killpg(process.pid, signal.SIGINT)
                try:
                    said, _ = process.communicate(timeout=seconds)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    said, _ = process.communicate()
                    said += f"\n(ended after {seconds} seconds)"
                is_free = seen.is_free(30)
            model.close()
            seen.requests = json.loads(
                json.dumps(seen.requests).replace(project, "/project").replace(home, "/home/user")
            )
            return seen, said, process.returncode, file.read_text(), is_free

    def _environment(self, home: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
        node = [str(self._node)] if self._node is not None else []
        kept["PATH"] = os.pathsep.join([*node, *self._path, kept.get("PATH", "")])
        return {
            **kept,
            "HOME": home,
            **{f"XDG_{kind}_HOME": f"{home}/{kind}" for kind in ("CONFIG", "DATA", "CACHE", "STATE")},
        }


def fault(kind: str, seen: Seen, said: str, status: int | None, text: str, is_free: bool) -> str:
    """Return what is wrong with a run, or nothing."""
    posts = [one for one in seen.requests if one["method"] == "POST"]
    if kind == "cancelled":
        if not posts:
            return f"there was no request: {said[-600:]}"
        return "" if is_free else "the model goes on"
    if kind == REAL:
        odd = [one for one in posts if one.get("status") != 200 and not _TOO_LONG.search(one.get("said", ""))]
        return "" if posts and not odd and is_free else f"{[one.get('said') for one in odd]} {said[-600:]}"
    wrong = [f"{one['method']} {one['path']} {one.get('status')}" for one in seen.requests if one.get("status") != 200]
    if wrong or DONE not in said or status:
        return f"{wrong} status {status}: {said[-600:]}"
    if kind == "task" and text != "hello there\n":
        return f"the file is {text!r}"
    if kind == "long" and len(posts) <= TURNS:
        return f"only {len(posts)} requests"
    if kind == "forty":
        sent = [json.dumps(one["body"]) for one in posts]
        if not any(f"{name_of(7)} keeps forty tools" in body for body in sent):
            return "the tool's result did not come back"
        if not any(all(name_of(n) in body for n in range(COUNT)) for body in sent):
            return "no request has all tools"
    return ""


def main() -> int:
    """Run the agents; say of each what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("agents", nargs="*", choices=[[], *AGENTS], help="by default all")
    parser.add_argument("--folder", type=Path, default=_PACKAGES, help="where the packages are installed")
    parser.add_argument("--kind", choices=[*KINDS, REAL], action="append", help="by default all")
    parser.add_argument("--write", action="store_true", help="write the recordings, the results and the page's table")
    options = parser.parse_args()
    failures = 0
    for name in options.agents or AGENTS:
        for kind, wrong, requests, said in _runs(name, options.kind or (*KINDS, REAL), options.folder.resolve()):
            failures += bool(wrong) and wrong != _SKIPPED
            if options.write:
                what = wrong and (wrong if wrong == _SKIPPED else "wrong")
                _write(name, kind, what or (_real(requests, said) if kind == REAL else ""), requests)
    if options.write:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), json.loads(RESULTS.read_text())), encoding="utf-8")
    for package, why in NOT_RUN.items():
        print(f"skipped: {package}: {why}")
    return min(failures, 1)


def _runs(name: str, kinds: Iterable[str], folder: Path) -> Iterator[tuple[str, str, list[dict[str, Any]], str]]:
    """Give the kind of each run, what is wrong with it, its requests and what the agent wrote."""
    agent = AGENTS[name]
    try:
        run = Run(agent, folder)
    except RuntimeError as error:
        print(f"{name}: skipped, {agent.package} cannot be installed: {error}", flush=True)
        yield from ((kind, _SKIPPED, [], "") for kind in kinds)
        return
    for kind in kinds:
        begin = time.monotonic()
        seen, said, status, text, is_free = run.go(kind)
        wrong = fault(kind, seen, said, status, text, is_free)
        unused = {one.get("headers", {}).get("x-toolgrammar-unused", "") for one in seen.requests} - {""}
        seconds, count = round(time.monotonic() - begin), len(seen.requests)
        print(f"{name} ({agent.package}), {kind}: {wrong or 'right'} ({seconds} s, {count} requests)", flush=True)
        print(f"  unused: {sorted(unused)}", flush=True)
        yield kind, wrong, seen.requests, said


def _real(requests: Sequence[dict[str, Any]], said: str) -> str:
    """Return whether the agent's prompts fit the window of the real model; if not, what the agent shows."""
    posts = [one for one in requests if "tools" in (one.get("body") or {})]
    if any(one.get("status") == 200 for one in posts):
        return "fits"
    tokens = max(int(found[1]) for one in posts if (found := _TOO_LONG.search(one.get("said", ""))))
    lines = [line for line in said.splitlines() if re.search("context|window|too long|error", line, re.IGNORECASE)]
    shown = re.sub(r"\s+", " ", re.sub(r"\x1b\[[0-9;]*m", "", lines[-1] if lines else said[-200:])).strip()
    return f"{tokens:,} tokens: {scrubbed_text(shown)[:160]}"


def _write(name: str, kind: str, said: str, requests: list[dict[str, Any]]) -> None:
    """Write into the results what a run was, nothing being right, and its requests into the recording if it was so."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    package = AGENTS[name].package
    result = results.setdefault(name, {})
    if result.get("package") != package:
        result.clear()
    result["package"] = package
    result[kind] = said or "right"
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if said:
        return
    file = RECORDINGS / f"{name}.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if kept.get("package") != package or "runs" not in kept:
        kept = {"package": package, "tools": [], "runs": {}}
    kept["runs"][kind] = scrubbed(requests, kept["tools"])
    _prune(kept)
    lines = [f' "{head}": {json.dumps(kept[head], ensure_ascii=False)}' for head in ("package",)]
    lines.append(' "tools": [\n' + ",\n".join(_line(tool) for tool in kept["tools"]) + "\n ]")
    runs = [f'  "{one}": [\n' + ",\n".join(map(_line, run)) + "\n  ]" for one, run in kept["runs"].items()]
    lines.append(' "runs": {\n' + ",\n".join(runs) + "\n }")
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _prune(kept: dict[str, Any]) -> None:
    """Take the tools out of a recording that no run has any more."""
    sets = [request["set"] for run in kept["runs"].values() for request in run if "tools" in request["set"]]
    used = sorted({n for one in sets for n in one["tools"]})
    for one in sets:
        one["tools"] = [used.index(n) for n in one["tools"]]
    kept["tools"] = [kept["tools"][n] for n in used]


def _line(value: Any) -> str:
    return "   " + json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _called(name: str, package: str) -> str:
    return f"`{package.rpartition('@')[0]}`" + (", with the catalogue" if name == "codex-catalogue" else "")


def with_table(page: str, results: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page with the table of results."""
    rows = [f"| package | version | {' | '.join(KINDS.values())} |", "|---" * (len(KINDS) + 2) + "|"]
    for name, result in results.items():
        version = result["package"].rpartition("@")[2]
        rows.append(
            f"| {_called(name, result['package'])} | {version} | {' | '.join(result.get(kind, 'not run') for kind in KINDS)} |"
        )
    rows += ["", f"| package | `{REAL}` |", "|---|---|"]
    for name, result in results.items():
        shown = result.get(REAL, "not run").replace("|", "\\|").replace("<", "&lt;")
        rows.append(f"| {_called(name, result['package'])} | {shown} |")
    rows += ["", *(f"Not run: `{package}`: {why}." for package, why in NOT_RUN.items())]
    before, rest = page.split(_BEGIN)
    return f"{before}{_BEGIN}\n\n" + "\n".join(rows) + f"\n\n{_END}{rest.split(_END)[1]}"


if __name__ == "__main__":
    sys.exit(main())
