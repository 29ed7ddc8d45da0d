"""Types are part of the product: mypy --strict on the wheel as it is installed, and on a user's code.

The wheel is a pure one, which has the same sources and stubs and takes no C compiler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


def mypy(installed: Path, *arguments: str) -> str:
    """Run mypy outside the repository with the wheel on its path; return its findings, empty when there are none.

    What it learns of other packages is kept in the repository's ignored cache, so that a second run is quick.
    """
    command = [sys.executable, "-m", "mypy", f"--config-file={ROOT / 'pyproject.toml'}", "--no-error-summary"]
    command += [f"--cache-dir={ROOT / '.mypy_cache' / 'wheel'}", *arguments]
    result = subprocess.run(
        command,
        cwd=installed.parent,
        env={**os.environ, "MYPYPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=1000,
        check=False,
    )
    return (result.stdout + result.stderr).strip().replace(str(installed), "")


@pytest.mark.timeout(1200)
def test_installed_wheel_passes_strict_mypy(pure_wheel: Any) -> None:
    """The package, as installed, passes ``mypy --strict``."""
    assert mypy(pure_wheel.installed, "--package=toolgrammar") == ""


@pytest.mark.timeout(1200)
def test_users_code_is_typed(pure_wheel: Any, tmp_path: Path) -> None:
    """A user's program gets the types that ``tests/typing/api.py`` states."""
    shutil.copy(ROOT / "tests" / "typing" / "api.py", tmp_path)
    assert mypy(pure_wheel.installed, str(tmp_path / "api.py")) == ""


@pytest.mark.timeout(1200)
def test_a_type_error_is_found(pure_wheel: Any, tmp_path: Path) -> None:
    """The check is not vacuous: a wrong argument type is reported, so the types of the wheel are seen."""
    program = tmp_path / "wrong.py"
    program.write_text("from toolgrammar import Grammar\nGrammar.from_regex(5)\n", encoding="utf-8")
    assert "arg-type" in mypy(pure_wheel.installed, str(program))
