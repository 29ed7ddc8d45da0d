"""The tree is clean under ruff, and the rules that ruff cannot say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def modules(*folders: str) -> list[Path]:
    """Every Python file of these folders."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=["lint", "format"])
def test_ruff_is_content(command: list[str]) -> None:
    """``ruff check`` and ``ruff format --check`` find nothing."""
    result = subprocess.run(
        [sys.executable, "-m", "ruff", *command, str(ROOT)],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=ROOT,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_test_says_what_is_true() -> None:
    """Each test function has a docstring."""
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in modules("tests")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


def test_long_functions_say_what_they_do() -> None:
    """A function of twenty lines or more has a docstring, a private one too; `__init__` has that of its class."""
    silent = []
    for path in modules("core", "tools", "adapters"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            inner = node.body if isinstance(node, (ast.Module, ast.ClassDef)) else ()
            silent += [
                f"{path.relative_to(ROOT)}:{each.lineno} {each.name}"
                for each in inner
                if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
                and int(each.end_lineno or 0) - each.lineno >= 19
                and not (each.name.startswith("__") or ast.get_docstring(each))
            ]
    assert silent == []


def test_modules_stay_small() -> None:
    """A module is one idea, and some ideas need many lines; none has more than 900."""
    long = {
        str(path.relative_to(ROOT)): lines
        for path in modules("core", "tools", "adapters")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 900
    }
    assert long == {}


def test_optional_packages_are_imported_inside_functions() -> None:
    """No module of core or tools imports an optional package at its top: it must work without."""
    optional = {"torch", "transformers", "tokenizers", "tiktoken", "llama_cpp", "json_repair", "tree_sitter"}
    found = []
    for path in modules("core", "tools"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            found += [f"{path.relative_to(ROOT)}:{node.lineno}" for name in names if name.split(".")[0] in optional]
    assert found == []
