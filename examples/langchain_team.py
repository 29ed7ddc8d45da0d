"""Several LangChain agents on one model: a host asks two experts, each with tools of its own.

    pip install 'toolgrammar[langchain]' langchain
    python examples/langchain_team.py

The experts are tools of the host, so the host can only ask experts that there are, and in the form that each takes. All
three share one loaded model. It runs offline and at once, because the model follows a script; for a real one, replace
it by ``load_model("hf:Qwen/Qwen2.5-1.5B-Instruct")``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from pydantic import BaseModel, Field

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.core import Message, Model, ToolCall
from toolgrammar.core.testing import ScriptedModel

STOCK = {"tulip": 40, "rose": 12}


class Offer(BaseModel):
    """What the shop offers."""

    flower: Literal["tulip", "rose"]
    stems: int = Field(ge=1, le=100)
    euros: float = Field(ge=0)


def count_stock(flower: Literal["tulip", "rose"]) -> int:
    """Say how many stems are there."""
    return STOCK[flower]


def price_of(flower: Literal["tulip", "rose"], stems: int) -> float:
    """Say what so many stems cost, in euros."""
    return {"tulip": 0.5, "rose": 2.0}[flower] * stems


def make_host(engine: Model) -> Any:
    """The host, whose tools are the gardener and the cashier."""
    model = ChatToolGrammar(model=engine)
    gardener = create_agent(model, tools=[count_stock], system_prompt="You are the gardener.")
    cashier = create_agent(model, tools=[price_of], system_prompt="You are the cashier.")

    def ask_gardener(question: str) -> str:
        """Ask the gardener what there is."""
        return gardener.invoke({"messages": [("user", question)]})["messages"][-1].text

    def ask_cashier(question: str, urgent: bool = False) -> str:
        """Ask the cashier what something costs."""
        return cashier.invoke({"messages": [("user", question)]})["messages"][-1].text

    return create_agent(
        model,
        tools=[ask_gardener, ask_cashier],
        system_prompt="You are the host.",
        response_format=Offer,
    )


def calls(name: str, **arguments: object) -> Message:
    """A turn that calls one tool."""
    return Message("assistant", tool_calls=(ToolCall("", name, arguments),))


def script(messages: Sequence[Message]) -> Message | str:
    """What each of the three says, by who it is and how often it was answered."""
    who, results = messages[0].text, [message.text for message in messages if message.role == "tool"]
    if "gardener" in who:
        return f"There are {results[0]} roses." if results else calls("count_stock", flower="rose")
    if "cashier" in who:
        return f"They cost {results[0]} euros." if results else calls("price_of", flower="rose", stems=12)
    if not results:
        return calls("ask_gardener", question="How many roses?")
    if len(results) == 1:
        return calls("ask_cashier", question="What do 12 roses cost?", urgent=True)
    return '{"flower": "rose", "stems": 12, "euros": 24.0}'


def main() -> None:
    """Ask the host, and show who asked whom."""
    host = make_host(ScriptedModel(script))
    question = {"messages": [("user", "All the roses you have, please.")]}
    for update in host.stream(question, stream_mode="updates"):
        for node, change in update.items():
            for message in change["messages"]:
                if isinstance(message, AIMessage) and message.tool_calls:
                    print(f"{node} asks:    {message.tool_calls[0]['name']}({message.tool_calls[0]['args']})")
                elif message.type == "tool":
                    print(f"{node} answer:  {message.text}")
            if offer := change.get("structured_response"):
                print(f"{node} offers:  {offer!r}")


if __name__ == "__main__":
    main()
