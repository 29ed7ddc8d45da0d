"""Runs coding agents against the server on the loopback interface: one task each, whole, cancelled, and long.

`.ci/agents` starts it.
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .host import Coder, Seen, hosted
from .scrub import scrubbed
from .table import AGENTS, DONE, TASK, Agent, Calls, in_project

#: Maximum time of one run, in seconds; of a long conversation.
_SECONDS, _LONG_SECONDS = 240, 900
#: Number of calls of a long conversation.
_TURNS = 50
NODE = "node@22"
_PACKAGES = Path(".ci/agents-packages")


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

    def go(self, calls: Calls, seconds: float, stop: bool = False) -> tuple[Seen, str, int | None, str, bool]:
        """Give the agent the task.

        Args:
            calls: that the model makes.
            seconds: maximum time.
            stop: interrupt the agent (SIGINT) once the model writes, which then never ends by itself.

        Returns:
            The requests, what the agent wrote, its exit status, the text of the file at the end, and
            whether the server was free then.
        """
        with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as project:
            file = Path(project, "hello.txt")
            file.write_text("hello world\n")
            model = Coder(in_project(calls, project), endless=stop)
            with hosted(model) as seen:
                start = self._agent.start(seen.url, Path(home), self._program)
                program = [self._program] if self._node is None else [str(self._node / "node"), self._program]
                command = [*program, *(one.replace("{task}", TASK) for one in start.arguments)]
                environment = {**self._environment(home), **start.environment}
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
                    while time.monotonic() < end and not model.writes:
                        time.sleep(0.05)
                    os.killpg(process.pid, signal.SIGINT)
                try:
                    said, _ = process.communicate(timeout=seconds)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    said, _ = process.communicate()
                    said += f"\n(ended after {seconds} seconds)"
                is_free = seen.is_free(30)
            seen.requests = json.loads(
                json.dumps(seen.requests).replace(project, "/project").replace(home, "/home/user")
            )
            return seen, said, process.returncode, file.read_text(), is_free

    def _environment(self, home: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
        if self._node is not None:
            kept["PATH"] = f"{self._node}{os.pathsep}{kept.get('PATH', '')}"
        return {
            **kept,
            "HOME": home,
            **{f"XDG_{kind}_HOME": f"{home}/{kind}" for kind in ("CONFIG", "DATA", "CACHE", "STATE")},
        }


def task(agent: Agent, folder: Path, record: Path | None, name: str) -> str:
    """Let an agent do the task; return what is wrong, or nothing."""
    seen, said, status, text, _ = Run(agent, folder).go(agent.calls, _SECONDS)
    if record is not None:
        kept = {"package": agent.package, **scrubbed(seen.requests)}
        (record / f"{name}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    wrong = [f"{one['method']} {one['path']} {one.get('status')}" for one in seen.requests if one.get("status") != 200]
    told = {**dict.fromkeys(one.get("headers", {}).get("x-toolgrammar-unused", "") for one in seen.requests)}
    if wrong or text != "hello there\n" or DONE not in said or status:
        return f"{wrong} file {text!r} status {status}: {said[-600:]}"
    print(f"  {len(seen.requests)} requests; unused: {[one for one in told if one]}")
    return ""


def long(agent: Agent, folder: Path) -> str:
    """Let an agent make 50 calls, one a turn; return what is wrong, or nothing."""
    calls = [agent.shell(f"echo turn {n}") for n in range(_TURNS)]
    seen, said, status, *_ = Run(agent, folder).go(calls, _LONG_SECONDS)
    good = sum(one.get("status") == 200 for one in seen.requests)
    if DONE not in said or status or good != len(seen.requests) or good <= _TURNS:
        return f"{good} of {len(seen.requests)} requests, status {status}: {said[-600:]}"
    return ""


def cancelled(agent: Agent, folder: Path) -> str:
    """Interrupt an agent in the middle of an answer; return what is wrong, or nothing."""
    seen, said, _, _, is_free = Run(agent, folder).go(agent.calls, _SECONDS, stop=True)
    if not seen.requests:
        return f"there was no request: {said[-600:]}"
    return "" if is_free else "the model goes on"


KINDS: Mapping[str, Any] = {"task": task, "long": long, "cancelled": cancelled}


def main() -> int:
    """Run the agents; say of each what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("agents", nargs="*", choices=[[], *AGENTS], help="by default all")
    parser.add_argument("--folder", type=Path, default=_PACKAGES, help="where the packages are installed")
    parser.add_argument("--kind", choices=[*KINDS], action="append", help="by default all")
    parser.add_argument("--record", type=Path, help="write the requests of the task here, for the replay test")
    options = parser.parse_args()
    failures = 0
    for name in options.agents or AGENTS:
        agent = AGENTS[name]
        for kind in options.kind or KINDS:
            begin = time.monotonic()
            try:
                more = (options.record, name) if kind == "task" else ()
                wrong = KINDS[kind](agent, options.folder, *more)
            except RuntimeError as error:
                print(f"{name}: skipped, {agent.package} cannot be installed: {error}", flush=True)
                break
            failures += bool(wrong)
            seconds = round(time.monotonic() - begin)
            print(f"{name} ({agent.package}), {kind}: {wrong or 'right'} ({seconds} s)", flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
