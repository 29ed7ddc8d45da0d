"""A CrewAI crew whose agent calls a tool, with the schema that the tool's author wrote.

    pip install 'toolgrammar[crewai]'
    python examples/crewai_crew.py

It runs offline and at once, because the model follows a script. For a real one, replace the model by::

    ToolGrammarLLM(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
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
from pydantic import BaseModel

from toolgrammar.adapters.crewai import ToolGrammarLLM
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


class Bill(BaseModel):
    """What is to be paid."""

    total: float
    currency: str


@tool("Price List")
def price_list(basket: dict[str, int], discount: float = 0.0) -> str:
    """Add up a basket: how many of each article."""
    prices = {"apple": 0.5, "bread": 3.0}
    total = sum(prices[article] * count for article, count in basket.items())
    print(f"tool runs:    price_list({basket}, discount={discount})")
    return f"{total * (1 - discount):.2f} EUR"


def main() -> None:
    """Run a crew of one agent with two tasks."""
    calls = (ToolCall("", "price_list", {"basket": {"apple": 4, "bread": 1}}),)
    replies = [Message("assistant", tool_calls=calls), "That is 5.00 EUR.", '{"total": 5.0, "currency": "EUR"}']
    model = ScriptedModel(replies)
    # One loaded model, one LLM object for each agent: CrewAI counts tokens by object.
    shop = "You work in a shop."
    clerk = Agent(role="Clerk", goal="Tell prices", backstory=shop, tools=[price_list], llm=ToolGrammarLLM(model=model))
    cashier = Agent(role="Cashier", goal="Write bills", backstory=shop, llm=ToolGrammarLLM(model=model))
    price = Task(description="What do 4 apples and a bread cost?", expected_output="The price", agent=clerk)
    bill = Task(description="Write the bill.", expected_output="The bill", agent=cashier, output_pydantic=Bill)
    result = Crew(agents=[clerk, cashier], tasks=[price, bill]).kickoff()
    print(f"clerk says:   {result.tasks_output[0].raw}")
    print(f"the bill:     {result.pydantic!r}")
    print(f"tokens:       {result.token_usage.total_tokens} in {result.token_usage.successful_requests} requests")


if __name__ == "__main__":
    main()
