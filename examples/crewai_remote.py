"""A CrewAI crew with a model on a server: its answers are validated before any tool runs.

    pip install 'toolgrammar[crewai]'
    python examples/crewai_remote.py

It runs offline and at once, because it starts a server of its own with a scripted model. For a real one say where::

    ToolGrammarLLM(model="ollama:qwen3@http://localhost:11434/v1")
"""

from __future__ import annotations

import os

# CrewAI sends usage data unless told not to; this has to be said before it is imported.
os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ["CREWAI_TESTING"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"

from crewai import Agent, Crew, Task
from crewai.tools import tool
from local_server import LocalServer
from pydantic import BaseModel

from toolgrammar.adapters.crewai import ToolGrammarLLM

# The replies of the server. The first call lacks an argument, and the report is surrounded by text.
SCRIPT = [
    ("water_plant", '{"name": "fern"}'),
    ("water_plant", '{"name": "fern", "litres": 0.5}'),
    'Here is the report:\n```json\n{"plant": "fern", "litres": 0.5}\n```',
]


class Report(BaseModel):
    """What was done."""

    plant: str
    litres: float


@tool("Water Plant")
def water_plant(name: str, litres: float) -> str:
    """Water a plant."""
    print(f"tool runs:   water_plant({name!r}, {litres})")
    return f"The {name} has {litres} litres."


def main() -> None:
    """Run a crew of one agent with one task."""
    with LocalServer(SCRIPT) as server:
        llm = ToolGrammarLLM(model=f"openai:small@{server.url}")
        gardener = Agent(role="Gardener", goal="Water", backstory="You garden.", tools=[water_plant], llm=llm)
        task = Task(description="Water the fern.", expected_output="A report", agent=gardener, output_pydantic=Report)
        result = Crew(agents=[gardener], tasks=[task]).kickoff()
        print(f"the report:  {result.pydantic!r}")
        print(f"requests:    {len(server.requests)}, the second one after: {_last(server.requests[1])}")


def _last(request: dict[str, object]) -> str:
    """The last message of a request, shortened."""
    messages = request["messages"]
    assert isinstance(messages, list)
    return f"{messages[-1]['content'][:90]} ..."


if __name__ == "__main__":
    main()
