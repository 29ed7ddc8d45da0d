"""A LangChain agent with a model on a server: its answers are validated before any tool runs.

    pip install 'toolgrammar[langchain]' langchain
    python examples/langchain_remote.py

It runs offline and at once, because it starts a server of its own with a scripted model. For a real one say where::

    ChatToolGrammar(model="vllm:Qwen/Qwen3-8B@http://localhost:8000/v1")
    ChatToolGrammar(model="openai:gpt-4.1-mini@https://api.openai.com/v1", options={"api_key": "env:OPENAI_API_KEY"})
"""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from local_server import LocalServer

from toolgrammar.adapters.langchain import ChatToolGrammar

# The replies of the server. The first call has a rating out of range.
SCRIPT = [
    ("rate_film", '{"title": "Stalker", "stars": 11}'),
    ("rate_film", '{"title": "Stalker", "stars": 5}'),
    "I gave Stalker five stars.",
    '{"title": "Stalker", "stars": 5}',
]


def rate_film(title: str, stars: int) -> str:
    """Give a film one to five stars."""
    return f"{title}: {'*' * stars}"


RATE_FILM = {
    "name": "rate_film",
    "description": "Give a film one to five stars.",
    "parameters": {
        "type": "object",
        "properties": {"title": {"type": "string"}, "stars": {"type": "integer", "minimum": 1, "maximum": 5}},
        "required": ["title", "stars"],
    },
}


def main() -> None:
    """Run an agent, then ask for an object."""
    tool = StructuredTool.from_function(rate_film, args_schema=RATE_FILM["parameters"])
    with LocalServer(SCRIPT) as server:
        model = ChatToolGrammar(model=f"openai:small@{server.url}")
        result = create_agent(model, tools=[tool]).invoke({"messages": [("user", "Rate Stalker.")]})
        for message in result["messages"]:
            if isinstance(message, AIMessage) and message.tool_calls:
                for call in message.tool_calls:
                    print(f"model calls: {call['name']}({call['args']})")
                print(f"             guarantee: {message.response_metadata['guarantee']}")
            elif isinstance(message, ToolMessage):
                print(f"tool says:   {message.content}")
            else:
                print(f"{message.type + ' says:':12} {message.text}")
        print(f"server was told: {server.requests[1]['messages'][-1]['content'][:90]} ...")
        print("as an object:", model.with_structured_output(RATE_FILM["parameters"]).invoke("Which film?"))


if __name__ == "__main__":
    main()
