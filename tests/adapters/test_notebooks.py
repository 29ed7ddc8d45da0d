"""The notebooks in examples/notebooks/ run from top to bottom, and show what they print."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def printed(outputs: list[dict[str, Any]]) -> str:
    """Return what a cell shows: all it prints, since no cell of ours ends in a value."""
    assert all(one["output_type"] == "stream" and one["name"] == "stdout" for one in outputs), outputs
    return "".join("".join(one["text"]) for one in outputs)


@pytest.mark.timeout(300)  # a real model on a busy machine
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_shows_what_it_prints(
    notebook: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The code cells of a notebook run in order, each prints the output that is kept with it, and none is without."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    programs = [("".join(cell["source"]), printed(cell["outputs"])) for cell in cells if cell["cell_type"] == "code"]
    if any('"smollm2"' in source for source, _ in programs):
        request.getfixturevalue("smollm2_file")
    module = types.ModuleType(f"notebook_{notebook.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # Pydantic looks annotations up there
    for source, shown in programs:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(source, str(notebook), "exec"), module.__dict__)
        assert out.getvalue() == shown, source
    assert sum(bool(shown) for _, shown in programs) >= 4


def test_there_are_notebooks() -> None:
    """Three notebooks: tools, extraction, and masks in one's own loop."""
    assert [path.stem for path in NOTEBOOKS] == ["extraction", "masks", "tools"]
