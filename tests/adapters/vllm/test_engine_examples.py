"""The examples of whole engines: vLLM alone, and Ray Serve LLM and Ray Data LLM on a Ray of this machine, whose workers
find the plug-in.

Start-up takes one to two minutes each; `nox -s engines` runs this.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: nox -s engines runs these tests where it is")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.mark.parametrize(
    ("name", "count", "said"),
    [
        ("vllm_offline.py", 4, r"called: turn_on (\['percent', 'room'\])"),
        ("ray_serve_llm.py", 1, r"called: get_weather\((.*)\)"),
        ("ray_data_llm.py", 4, r"judged: (.*)"),
    ],
)
def test_example_runs(name: str, count: int, said: str, model_path: str) -> None:
    """The example ends well, and what its workers wrote is valid."""
    if name.startswith("ray_"):
        pytest.importorskip("ray.serve.llm", reason="Ray with Ray Serve LLM is not installed")
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / name), model_path, "cpu"],
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    values = [json.loads(value.replace("'", '"')) for value in re.findall(said, result.stdout)]
    assert len(values) >= count
    for value in values:
        if name == "ray_data_llm.py":
            assert len(set(value["colours"])) == len(value["colours"]) and 1 <= value["stars"] <= 5
        elif name == "ray_serve_llm.py":
            assert value["city"] in ("Oslo", "Rome") and 1 <= value["days"] <= 9
