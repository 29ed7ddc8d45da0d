"""The distribution ``langchain-toolgrammar``: it builds offline, and its module is toolgrammar's adapter."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "adapters" / "langchain" / "distribution"


def test_it_builds(tmp_path: Path) -> None:
    """The wheel has one module, and names toolgrammar as its dependency."""
    pytest.importorskip("build.__main__")  # the repository's own folder build/ is a package to Python, too
    source = tmp_path / "source"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    (wheel,) = tmp_path.glob("langchain_toolgrammar-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        assert names == ["langchain_toolgrammar.py"]
        assert "Requires-Dist: toolgrammar[langchain]>=" in archive.read(metadata).decode()


def test_its_module_is_the_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name of the adapter is there, the same object; others are an AttributeError."""
    monkeypatch.syspath_prepend(str(SOURCE))
    import langchain_toolgrammar

    from toolgrammar.adapters import langchain as adapter

    assert langchain_toolgrammar.ChatToolGrammar is adapter.ChatToolGrammar
    with pytest.raises(AttributeError, match="nothing"):
        langchain_toolgrammar.nothing  # noqa: B018
