"""Frameworks and SDKs do a task of two tools and one object over a server on this machine, whole and streamed.

Each runs where it is installed; `nox` gives each an environment with its newest version.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from .test_examples import is_installed

ROOT = Path(__file__).resolve().parents[2]

#: The modules of `clients` that do the task, and the module of the framework that each needs.
NEEDS = {
    "ag2_agent": "ag2",
    "agno_agent": "agno",
    "anthropic_sdk": "anthropic",
    "deepagents_agent": "deepagents",
    "dspy_agent": "dspy",
    "google_adk": "google.adk",
    "haystack_agent": "haystack",
    "instructor_sdk": "instructor",
    "langchain_mcp_tools": "langchain_mcp_adapters",
    "langgraph_supervisor_agents": "langgraph_supervisor",
    "langgraph_swarm_agents": "langgraph_swarm",
    "litellm_provider": "litellm",
    "llama_index_agent": "llama_index.llms.openai_like",
    "openai_agents": "agents",
    "openai_sdk": "openai",
    "semantic_kernel_agent": "semantic_kernel",
    "smolagents_agent": "smolagents",
    "strands_agent": "strands",
}


def test_each_module_is_known() -> None:
    """No module is left out here."""
    found = {path.stem for path in (Path(__file__).parent / "clients").glob("*.py")}
    assert found - {"__init__", "__main__", "shop"} == set(NEEDS)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NEEDS)
def test_task(name: str, tmp_path: Path) -> None:
    """The tools are called in turn, and the text and the object are those of the script, in both ways."""
    if not is_installed(NEEDS[name]):
        pytest.skip(f"{NEEDS[name]} is not installed")
    if name == "ag2_agent" and not hasattr(import_module("openai.types.responses"), "ServiceTier"):
        pytest.skip("AG2's client needs a newer openai than the one that is installed")
    done = subprocess.run(
        [sys.executable, "-m", "tests.adapters.clients", name],
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert [line for line in lines if line in ("whole", "streamed")] == ["whole", "streamed"]
