"""A LangChain agent that calls a tool: the model under a grammar, LangChain's own loop around it.

    pip install 'toolgrammar[langchain]' langchain
    python examples/langchain_agent.py

It runs offline and at once, because the model follows a script. For a real one, replace the model by::

    ChatToolGrammar(model="hf:Qwen/Qwen2.5-1.5B-Instruct", temperature=0.7)
"""

from __future__ import annotations

from enum import Enum

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.core.testing import ScriptedModel


class Unit(str, Enum):
    """A unit of temperature."""

    celsius = "celsius"
    fahrenheit = "fahrenheit"


def get_weather(city: str, unit: Unit = Unit.celsius) -> str:
    """Say what the weather is like in a city now."""
    return {"Oslo": "-4 degrees, snow", "Lima": "19 degrees, fog"}.get(city, "unknown")


def model() -> ChatToolGrammar:
    """A model that asks for the weather and then tells it; it also tries to name a unit that does not exist."""
    wrong = (
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "unit": "celsius degrees"}}\n</tool_call>'
    )
    return ChatToolGrammar(model=ScriptedModel([wrong, "It is -4 degrees in Oslo, and it snows."]))


def main() -> None:
    """Run the agent and print the conversation."""
    agent = create_agent(model(), tools=[get_weather])
    result = agent.invoke({"messages": [("user", "How is the weather in Oslo?")]})
    for message in result["messages"]:
        if isinstance(message, AIMessage) and message.tool_calls:
            for call in message.tool_calls:
                print(f"model calls: {call['name']}({call['args']})")
            share = message.response_metadata["forced_share"]
            print(f"             {share:.0%} of these tokens were fixed by the grammar, the rest chosen within it")
        elif isinstance(message, ToolMessage):
            print(f"tool says:   {message.content}")
        else:
            print(f"{message.type + ' says:':12} {message.text}")

    # With a required tool, the output is always a valid call of this tool.
    noise = ChatToolGrammar(model="embedded", temperature=1.0, seed=7, max_tokens=60)
    answer = noise.bind_tools([set_lamp], tool_choice="any", parallel_tool_calls=False).invoke("Good morning!")
    print(f"pure noise:  {answer.tool_calls[0]['name']}({answer.tool_calls[0]['args']})")


def set_lamp(on: bool, brightness: int = 100) -> None:
    """Switch the lamp."""


if __name__ == "__main__":
    main()
