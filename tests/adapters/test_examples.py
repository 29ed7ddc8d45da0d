"""Every example runs as it is: offline, and prints what it is there to show."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# A process runs all examples of a framework.
pytestmark = [pytest.mark.begin_first, pytest.mark.timeout(400)]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

OSLO = "{'city': 'Oslo', 'unit': 'celsius'}"

# What each example must print, in order.
SAID = {
    "langchain_agent.py": ["model calls: get_weather", "'unit': 'celsius'", "tool says:   -4 degrees", "set_lamp("],
    "langchain_live_values.py": ["assign({'project': 'engine', 'ticket': 'E-1', 'person': 'p-71'})", "E-1 of 2 goes"],
    "program_shop.py": ["the result that the model reads: 24.5", "cannot follow"],
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


# Examples that need a model that sees: `tests/core/models/transformers/test_images.py` runs them.
VISION = {"receipt.py"}


def is_installed(module: str) -> bool:
    """Return whether a module is there; it may lie in a package that is not."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def test_every_example_is_known() -> None:
    """No example is left out here."""
    assert {path.name for path in EXAMPLES.glob("*.py")} - HELPERS - ENGINES - VISION == set(SAID)


#: Frameworks that take seconds to import: one process imports each, and runs its examples one after another.
FRAMEWORKS = ("ag2", "agent_framework", "autogen", "crewai", "langchain", "openai", "pydantic_ai")

#: Runs examples as programs, each ending with a line of its name and whether it ended well.
PROGRAM = """
import runpy, sys, traceback
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    sys.argv = [f"{sys.path[0]}/{name}"]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
        ended = "well"
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        ended = "badly"
    print(f"\\x1e{name} ended {ended}\\x1e", end="", flush=True)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[[str], tuple[str, bool]]:
    """Run an example with the others of its framework, once; return what it prints and whether it ends well."""
    done: dict[str, tuple[str, bool]] = {}
    try:
        request.getfixturevalue("smollm2_file")
    except pytest.skip.Exception:
        names = [name for name in SAID if not name.endswith("_smollm2.py")]
    else:
        names = list(SAID)

    def run_it(name: str) -> tuple[str, bool]:
        if name not in done:
            framework = next((each for each in FRAMEWORKS if name.startswith(f"{each}_")), name)
            together = [each for each in names if each.startswith(framework) and is_installed(NEEDS.get(each, "sys"))]
            home = tmp_path_factory.mktemp(framework)
            environment = {
                **os.environ,
                "PYTHONIOENCODING": "utf-8",
                "HOME": str(home),
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            }
            result = subprocess.run(
                [sys.executable, "-c", PROGRAM, str(EXAMPLES), *together],
                cwd=home,
                env=environment,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=300,
                check=False,
            )
            parts = result.stdout.split("\x1e")
            for printed, ended in zip(parts[::2], parts[1::2], strict=False):
                done[ended.partition(" ")[0]] = printed, ended.endswith("well")
            done.setdefault(name, (result.stdout + result.stderr, False))
        return done[name]

    return run_it


@pytest.mark.parametrize("name", sorted(SAID))
def test_example_runs(name: str, run: Callable[[str], tuple[str, bool]], request: pytest.FixtureRequest) -> None:
    """The example ends well and prints its lines in order; those on the real model finish a task of two steps."""
    if name.endswith("_smollm2.py"):
        request.getfixturevalue("smollm2_file")
    if name in NEEDS and not is_installed(NEEDS[name]):
        pytest.skip(f"{NEEDS[name]} is not installed")
    printed, ended_well = run(name)
    assert ended_well, printed
    rest = printed
    for words in SAID[name]:
        assert words in rest, f"{words!r} is missing in:\n{printed}"
        rest = rest.partition(words)[2]
