"""The example of SGLang's whole engine, on a CPU, where two of SGLang's packages are stood in for."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("sglang") is None:
    pytest.skip("SGLang is not installed", allow_module_level=True)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[3]


def test_example_runs(tmp_path: Path) -> None:
    """The plug-in is found by its entry point, and what the engine wrote is valid."""
    from benchmarks.engines.engine_models import noise
    from benchmarks.engines.sglang_engine import write_stand_ins

    model, stand_ins = tmp_path / "model", tmp_path / "stand_ins"
    stand_ins.mkdir()
    noise(model)
    write_stand_ins(stand_ins)
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "sglang_offline.py"), str(model), "cpu"],
        env={**os.environ, "PYTHONPATH": str(stand_ins), "SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    missing = re.search(r"ModuleNotFoundError: No module named '(\S+)'", result.stderr)
    if missing:
        pytest.skip(f"SGLang's package {missing[1]} is not installed")
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    lists = [json.loads(text.replace("'", '"')) for text in re.findall(r"colours: (.*)", result.stdout)]
    assert len(lists) == 4 and all(found and len(set(found)) == len(found) for found in lists)
    assert re.search(r"code: [A-C]{2}-[0-9]{2}$", result.stdout, re.MULTILINE)
