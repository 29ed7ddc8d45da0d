"""A CrewAI agent whose arguments refer to real things: articles of a shelf, and ids that a tool returned.

    pip install 'toolgrammar[crewai]'
    python examples/crewai_live_values.py

The model follows a script, and names an article and an order that do not exist; the grammar lets it write real ones
only. For a real model, replace it by::

    ToolGrammarLLM(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
"""

import os

# CrewAI sends usage data unless told not to; this has to be said before it is imported.
os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ["CREWAI_TESTING"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"

from typing import Annotated, Any, Literal

from crewai import Agent, Crew, Task
from crewai.tools import tool

from toolgrammar.adapters.crewai import ToolGrammarLLM
from toolgrammar.core import Message, Seen, ToolCall, Values
from toolgrammar.core.testing import ScriptedModel

SHELVES = {"fruit": ["apple", "pear"], "bread": ["rye"]}


def articles(call: dict[str, Any]) -> list[str]:
    """Return the articles of the shelf that the call has named."""
    return SHELVES[call["shelf"]]


@tool("List Orders")
def list_orders() -> str:
    """List the open orders."""
    return '{"orders": [{"order_id": "O-17"}]}'


@tool("Add Article")
def add_article(
    order: Annotated[str, Seen("order_id")],
    shelf: Literal["fruit", "bread"],
    article: Annotated[str, Values(articles, after=("shelf",))],
) -> str:
    """Add an article to an order."""
    print(f"tool runs:    add_article({order!r}, {shelf!r}, {article!r})")
    return f"{article} is added to {order}"


def turn(name: str, **arguments: Any) -> Message:
    """Return a turn with one call."""
    return Message("assistant", tool_calls=(ToolCall("", name, arguments),))


def main() -> None:
    """Run a crew of one agent."""
    wrong = turn("add_article", order="O-99", shelf="fruit", article="plum")
    llm = ToolGrammarLLM(model=ScriptedModel([turn("list_orders"), wrong, "The fruit is added."]))
    clerk = Agent(
        role="Clerk", goal="Keep orders", backstory="You work in a shop.", tools=[list_orders, add_article], llm=llm
    )
    task = Task(description="Add some fruit to the order.", expected_output="What was done", agent=clerk)
    result = Crew(agents=[clerk], tasks=[task]).kickoff()
    print(f"clerk says:   {result.raw}")


if __name__ == "__main__":
    main()
