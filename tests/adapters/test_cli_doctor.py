"""``toolgrammar doctor``: facts of the installation, problems with their remedies, and exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolgrammar.adapters import cli
from toolgrammar.adapters.cli import installation
from toolgrammar.core.compiled import build
from toolgrammar.core.compiled.modules import COMPILED as MODULES
from toolgrammar.core.masks import COMPILED

ROOT = Path(__file__).resolve().parents[2]


def invoke(*arguments: str) -> tuple[int, str]:
    """Run the command; return its exit code and its output."""
    result = CliRunner().invoke(cli.app, ["doctor", *arguments], env={"NO_COLOR": "1"})
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout


def report() -> tuple[int, dict[str, Any]]:
    """Return the exit code and the JSON report."""
    code, out = invoke("--json")
    return code, json.loads(out)


def messages(found: dict[str, Any], level: str) -> list[str]:
    """Return the messages of the findings of one level."""
    return [finding["message"] for finding in found["findings"] if finding["level"] == level]


def test_a_sound_installation() -> None:
    """The report has the versions, the compiled modules and the extras of this installation, and exit code 0."""
    code, found = report()
    assert code == 0 and found["ok"] and not messages(found, "error")
    assert found["library"]["version"] == version("toolgrammar")
    assert found["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert found["kernel"]["compiled"] == (len(MODULES) if COMPILED else 0)
    assert {"name": "numpy", "installed": version("numpy")}.items() <= found["packages"][0].items()
    assert {package["name"] for package in found["extras"]["server"]} >= {"starlette", "uvicorn"}
    code, out = invoke()
    assert code == 0
    assert f"{found['kernel']['compiled']} of {len(MODULES)} modules are compiled" in out


def test_packages_that_are_missing_or_untested(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing required package is an error, an extra outside its tested range a warning, each with the command."""

    def pretended(name: str) -> str:
        if name == "jinja2":
            raise PackageNotFoundError(name)
        return {"starlette": "0.1.0"}.get(name) or version(name)

    monkeypatch.setattr(installation, "version", pretended)
    code, found = report()
    assert code == 1 and not found["ok"]
    assert messages(found, "error") == ["the required package jinja2 is not installed (>=3.1 is required)"]
    assert "starlette 0.1.0 is outside the tested range >=0.40" in messages(found, "warning")
    _, out = invoke()
    assert "pip install 'jinja2>=3.1'" in out and "pip install 'toolgrammar[server]'" in out


@pytest.mark.skipif(not COMPILED, reason="needs the compiled modules")
def test_modules_of_another_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extensions of another interpreter are reported as such; some of them absent is an error."""
    monkeypatch.setattr(build, "EXTENSION_SUFFIXES", [".another-python.so"])
    code, found = report()
    assert code == 0 and "it is compiled for another Python" in messages(found, "warning")[0]
    missing = MODULES[0].rpartition(".")[2]
    monkeypatch.setattr(build, "_has_extension", lambda path: path.name != missing)
    code, found = report()
    assert code == 1
    assert messages(found, "error") == [f"only {len(MODULES) - 1} of {len(MODULES)} modules are compiled"]


def test_an_engine_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that cannot be imported or used is an error of one line, not a traceback."""
    monkeypatch.setattr("toolgrammar.core.Grammar.from_json_schema", lambda schema: 1 / 0)
    monkeypatch.setitem(sys.modules, "toolgrammar.core.models.stores", None)  # whose import fails then
    code, found = report()
    assert code == 1
    assert messages(found, "error") == ["the engine cannot be used: ZeroDivisionError: division by zero"]


def test_models_and_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of Hugging Face's cache are listed by their addresses; the vocabulary cache by its files."""
    snapshot = tmp_path / "hub" / "models--some-one--Small-Model" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TOOLGRAMMAR_CACHE_DIR", str(tmp_path))
    (tmp_path / "ab.arrays").write_bytes(b"123")
    _, found = report()
    assert found["models"]["hf:some-one/Small-Model"] == str(snapshot.parents[1])
    assert found["cache"] == {"folder": str(tmp_path), "files": 1, "bytes": 3}
    assert found["variables"]["TOOLGRAMMAR_CACHE_DIR"] == str(tmp_path)


def test_caches_that_are_off_or_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that is off, and one that is a file, are warnings; so is a misspelt variable."""
    monkeypatch.setenv("TOOLGRAMMAR_CACHE_DIR", "off")
    monkeypatch.setenv("TOOLGRAMMAR_CASHE", "1")
    code, found = report()
    assert code == 0 and found["cache"]["folder"] is None
    assert any("vocabulary cache is off" in message for message in messages(found, "warning"))
    assert "the environment variable TOOLGRAMMAR_CASHE has no meaning" in messages(found, "warning")
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("TOOLGRAMMAR_CACHE_DIR", str(file))
    _, found = report()
    assert f"the cache folder {file} cannot be written: Not a directory" in messages(found, "warning")


def test_the_interpreted_form_is_reported() -> None:
    """With ``TOOLGRAMMAR_INTERPRETED=1`` a warning says how slow that is, and how it ends."""
    command = [sys.executable, "-m", "toolgrammar", "doctor", "--json"]
    result = subprocess.run(
        command, env={**os.environ, "TOOLGRAMMAR_INTERPRETED": "1"}, capture_output=True, text=True, check=False
    )
    found = json.loads(result.stdout)
    assert result.returncode == 0, result.stderr
    assert found["kernel"]["interpreted"]
    assert any("TOOLGRAMMAR_INTERPRETED is set" in message for message in messages(found, "warning"))


def test_all_variables_are_known() -> None:
    """The variables that the library reads are those that the command knows."""
    read = {
        name
        for folder in ("core", "tools", "adapters")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "installation.py"
        for name in re.findall(r"TOOLGRAMMAR_[A-Z_]+[A-Z]", path.read_text(encoding="utf-8"))
    }
    assert set(installation.VARIABLES) <= read <= {*installation.VARIABLES, *installation.OTHER_VARIABLES}
