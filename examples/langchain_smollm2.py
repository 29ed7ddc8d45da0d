"""A LangChain agent on a small real model: it asks, calls a tool, reads the result and answers.

    pip install 'toolgrammar[langchain]' langchain
    python examples/langchain_smollm2.py

The model is fetched once. It was never trained for tools, so a call is demanded in the first step, and none is offered
in the second; a larger model decides for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage, ToolMessage

from toolgrammar.adapters.langchain import ChatToolGrammar


def get_weather(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
    """Current weather in a city."""
    return f"18 degrees {unit} and sunny in {city}"


@wrap_model_call
def one_call(request: Any, handler: Callable[[Any], Any]) -> Any:
    """Demand a call, then an answer."""
    called = any(isinstance(message, ToolMessage) for message in request.messages)
    if called:
        return handler(request.override(tools=[]))
    return handler(request.override(tool_choice="any", model_settings={"parallel_tool_calls": False}))


def main() -> None:
    """Run the agent and print the conversation."""
    model = ChatToolGrammar(model="smollm2", temperature=0, seed=1, max_tokens=100)
    agent = create_agent(model, tools=[get_weather], middleware=[one_call])
    for message in agent.invoke({"messages": [("user", "Weather in Oslo?")]})["messages"]:
        if isinstance(message, AIMessage) and message.tool_calls:
            print(f"model calls: {message.tool_calls[0]['name']}({message.tool_calls[0]['args']})")
        else:
            print(f"{message.type + ' says:':12} {message.text}")


if __name__ == "__main__":
    main()
