"""A CrewAI team: a manager delegates, a clerk calls its tool in text, and the answer is an object.

    pip install 'toolgrammar[crewai]'
    python examples/crewai_team.py

It runs offline and at once, because the models follow a script. For a real one, replace them by::

    ToolGrammarLLM(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
"""

from __future__ import annotations

import os

# CrewAI sends usage data unless told not to; this has to be said before it is imported.
os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ["CREWAI_TESTING"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"

from crewai import Agent, Crew, Process, Task
from crewai.tools import tool
from pydantic import BaseModel

from toolgrammar.adapters.crewai import ToolGrammarLLM
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


class Stock(BaseModel):
    """What is on the shelf."""

    article: str
    count: int


@tool("Count Stock")
def count_stock(article: str, shelves: list[int]) -> str:
    """Count an article on some shelves."""
    print(f"tool runs:     count_stock({article!r}, {shelves})")
    return f"{4 * len(shelves)}"


def main() -> None:
    """Run a crew of a manager and a clerk."""
    # The script of the manager misspells the clerk's name; the grammar allows only existing coworkers.
    order = {"task": "Count the bells.", "context": "Shelves 1 and 2.", "coworker": "the storekeeper"}
    delegate = Message("assistant", tool_calls=(ToolCall("", "delegate_work_to_coworker", order),))
    manager = ToolGrammarLLM(model=ScriptedModel([delegate, '{"article": "bell", "count": 8}']), max_tokens=500)
    action = 'Thought: I count.\nAction: count_stock\nAction Input: {"article": "bell", "shelves": [1, 2]}'
    clerk_model = ScriptedModel([action, "Thought: I know.\nFinal Answer: There are 8 bells."])
    clerk = Agent(
        role="Storekeeper",
        goal="Count",
        backstory="You keep the store.",
        tools=[count_stock],
        llm=ToolGrammarLLM(model=clerk_model, native_tools=False),
    )
    task = Task(description="How many bells are there?", expected_output="The stock", output_pydantic=Stock)
    result = Crew(agents=[clerk], tasks=[task], process=Process.hierarchical, manager_llm=manager).kickoff()
    print(f"clerk writes:  {clerk_model.requests[1][-2].text.splitlines()[1:3]}")
    print(f"the stock:     {result.pydantic!r}")


if __name__ == "__main__":
    main()
