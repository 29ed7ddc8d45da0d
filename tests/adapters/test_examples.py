"""Every example runs as it is: offline, without a warning, and prints what it is there to show."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

OSLO = "{'city': 'Oslo', 'unit': 'celsius'}"

# What each example must print, in order.
SAID = {
    "langchain_agent.py": ["model calls: get_weather", "'unit': 'celsius'", "tool says:   -4 degrees", "set_lamp("],
    "langchain_live_values.py": ["assign({'project': 'engine', 'ticket': 'E-1', 'person': 'p-71'})", "E-1 of 2 goes"],
    "policy_mail.py": ["('eve@evil.example', 9000.0)", "with the policy:  ('bob@home.example', 25.0)"],
    "crewai_live_values.py": ["add_article('O-17', 'fruit', 'pear')", "The fruit is added."],
    "autogen_live_values.py": ['"booking": "B-77"', "B-77 has seat 14 in IC 702"],
    "agent_framework_confirm.py": ["person:       yes to transfer({'amount': 200, 'to': 'car'})", "It is sent."],
    "agent_framework_live_values.py": ["move_meeting('m-4', 2, 'Ash')", "It is moved."],
    "langchain_structured.py": ["bell of brass, with clapper, ring", "1 part 2 parts done", "ran out", "Part(name='b"],
    "langchain_team.py": [
        "ask_gardener(",
        "There are 12 roses.",
        "ask_cashier(",
        "cost 24.0 euros",
        "Offer(flower='rose'",
    ],
    "crewai_crew.py": ["price_list({'apple': 4, 'bread': 1}, discount=0.0)", "Bill(total=5.0", "in 3 requests"],
    "crewai_team.py": ["count_stock('bell', [1, 2])", "Action: count_stock", "Stock(article='bell', count=8)"],
    "agent_framework_agent.py": ["timetable('Quay', {'7': 4}, at_night=False)", "minutes=11", "take line 7."],
    "autogen_team.py": ["line_editor", "greeter -> poet", "poet says:"],
    "langchain_remote.py": [
        "'stars': 5}",
        "validated",
        "Stalker: *****",
        "greater than th",
        "{'title': 'Stalker', 'stars': 5}",
    ],
    "crewai_remote.py": ["water_plant('fern', 0.5)", "Report(plant='fern', litres=0.5)", "'litres' is a require"],
    "autogen_remote.py": ['find_train({"to": "Bergen", "after": 14})', "14:35 to Bergen", "3; 120 tokens"],
    "agent_framework_remote.py": ["set_alarm(7)", "rings at seven", "3"],
    "langchain_smollm2.py": [f"get_weather({OSLO})", "tool says:   18 degrees", "ai says:", "18 degrees celsius"],
    "crewai_smollm2.py": ["get_weather('Oslo', 'celsius')", "crew says:", "18 degrees celsius"],
    "decisions_smollm2.py": ["wish: ", "(request refund ", "price: ", "complains: ", "(True ", "anger: ", "(0 "],
    "autogen_smollm2.py": ['get_weather({"city": "Oslo", "unit": "celsius"})', "assistant says:", "18 degrees celsius"],
    "agent_framework_smollm2.py": ["get_weather('Oslo', 'celsius')", "agent says:", "18 degrees celsius"],
    "anthropic_client.py": [
        "count_trees({'park': 'Abbey', 'kinds': {'oak': 3, 'ash': 4}})",
        "7 trees",
        "There are sev",
    ],
    "openai_agents_sdk.py": ["tool_call_item", "North: 7 bells", "Report(bells=7)"],
    "openai_haystack.py": ["depth({'lake': 'Plau'})", "Plau is 37 metres deep", "37 metres."],
    "openai_instructor.py": ["Preussen True"],
    "openai_llama_index.py": ["called height({'tower': 'St Mary'})", "agent says: 40 metres.", "St Mary True"],
    "openai_pydantic_ai.py": ["tool-call: ", "the soil of east is sandy", "Plan(beds={'east': 12})"],
    "ag2_agent.py": [
        "soil_of('east', {'ph': 6})",
        "agent says: The soil",
        "Plan(beds={'east': 12})",
        "in pieces:  True",
    ],
    "langchain_deep_agent.py": [
        "water_of('Plau')",
        "/report.md Lake Plau is 27 metres deep.",
        "agent says: The report",
    ],
    "pydantic_ai_agent.py": ["soil_of('east', {'ph': 6})", "Plan(beds={'east': 12})", "in pieces:"],
    "openai_smolagents.py": ["Sail at nine.", "called tide({'harbour': 'Husum', 'hour': 9})"],
    "litellm_dspy.py": ["False bills"],
    "tools_by_name.py": ["schemas: 34,459", "names: 3,559", "of one call: 3,938", "heat_room_42({'degrees': 21.5, 'h"],
    "openai_client.py": [
        "find_seat({'train': 'IC 702', 'window': True})",
        "seat 14 in IC 702, at",
        "You have seat 14.",
    ],
    "ray_serve_server.py": ["called: book({'seats': "] * 4,
    "autogen_agent.py": ["model calls:  depth_of(", "tool says:    3", "Answer(depth=3, deepest='jazz')"],
}


# Frameworks that are not among the packages of the tests; their examples run where they are installed.
NEEDS = {
    "langchain_deep_agent.py": "deepagents",
    "ag2_agent.py": "ag2",
    "openai_agents_sdk.py": "agents",
    "openai_haystack.py": "haystack",
    "openai_instructor.py": "instructor",
    "openai_llama_index.py": "llama_index.llms.openai_like",
    "openai_pydantic_ai.py": "pydantic_ai",
    "openai_smolagents.py": "smolagents",
    "pydantic_ai_agent.py": "pydantic_ai",
    "litellm_dspy.py": "dspy",
    "ray_serve_server.py": "ray.serve",
}


# What examples import.
HELPERS = {"local_server.py"}

# Examples that need a whole engine: `nox -s engines` runs them (`tests/adapters/vllm/test_engine_examples.py`).
ENGINES = {"sglang_offline.py", "vllm_offline.py", "ray_serve_llm.py", "ray_data_llm.py"}


def is_installed(module: str) -> bool:
    """Return whether a module is there; it may lie in a package that is not."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def test_every_example_is_known() -> None:
    """No example is left out here."""
    assert {path.name for path in EXAMPLES.glob("*.py")} - HELPERS - ENGINES == set(SAID)


@pytest.mark.parametrize("name", sorted(SAID))
def test_example_runs(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The example ends well and prints its lines in order; those on the real model finish a task of two steps."""
    if name.endswith("_smollm2.py"):
        request.getfixturevalue("smollm2_file")
    if name in NEEDS and not is_installed(NEEDS[name]):
        pytest.skip(f"{NEEDS[name]} is not installed")
    environment = {
        **os.environ,
        "PYTHONIOENCODING": "utf-8",
        "HOME": str(tmp_path),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    rest = result.stdout
    for words in SAID[name]:
        assert words in rest, f"{words!r} is missing in:\n{result.stdout}"
        rest = rest.partition(words)[2]
