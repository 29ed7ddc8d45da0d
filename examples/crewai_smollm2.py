"""A CrewAI crew on a small real model: its agent asks, calls a tool, reads the result and answers.

    pip install 'toolgrammar[crewai]'
    python examples/crewai_smollm2.py

The model is fetched once. It was never trained for tools, so the first call is demanded; a larger model decides for
itself. (CrewAI reads the annotations of a tool as they are, so they are not postponed here.)
"""

import os

# CrewAI sends usage data unless told not to; this has to be said before it is imported.
os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ["CREWAI_TESTING"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"

from typing import Literal

from crewai import Agent, Crew, Task
from crewai.tools import tool

from toolgrammar.adapters.crewai import ToolGrammarLLM


@tool("get_weather")
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
    """Current weather in a city."""
    print(f"model calls: get_weather({city!r}, {unit!r})")
    return f"18 degrees {unit} and sunny in {city}"


def main() -> None:
    """Run a crew of one agent with one task."""
    llm = ToolGrammarLLM(
        model="smollm2",
        tool_choice="required_first",
        parallel_tool_calls=False,
        temperature=0,
        seed=1,
        max_tokens=100,
    )
    agent = Agent(role="Assistant", goal="Answer questions", backstory="You are helpful.", tools=[get_weather], llm=llm)
    task = Task(description="Weather in Oslo?", expected_output="One sentence", agent=agent)
    print(f"crew says:   {Crew(agents=[agent], tasks=[task]).kickoff().raw}")


if __name__ == "__main__":
    main()
