"""A LangChain agent whose arguments refer to real things: tickets of a project, and ids that a tool returned.

    pip install 'toolgrammar[langchain]' langchain
    python examples/langchain_live_values.py

The tickets come from the state of the agent, which the model does not see. The model follows a script, and names a
ticket and a person that do not exist; the grammar lets it write real ones only. For a real model, replace it by::

    ChatToolGrammar(model="hf:Qwen/Qwen2.5-1.5B-Instruct", temperature=0.7)
"""

from typing import Annotated, Any

from langchain.agents import AgentState, create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.prebuilt import InjectedState

from toolgrammar.adapters.langchain import ChatToolGrammar, InjectedArguments
from toolgrammar.core import Message, Seen, ToolCall, Values
from toolgrammar.core.testing import ScriptedModel


class Desk(AgentState[Any]):
    """The agent's state: the open tickets, by project."""

    tickets: dict[str, list[str]]


def open_tickets(call: dict[str, Any]) -> list[str]:
    """Return the open tickets of the project that the call has named."""
    return call["tickets"].get(call["project"], [])  # type: ignore[no-any-return]


@tool
def list_people() -> str:
    """List the people who can take a ticket."""
    return '{"people": [{"name": "Ada", "person_id": "p-71"}, {"name": "Bo", "person_id": "p-72"}]}'


@tool
def assign(
    project: str,
    ticket: Annotated[str, Values(open_tickets, after=("project", "tickets"))],
    person: Annotated[str, Seen("person_id")],
    tickets: Annotated[dict[str, list[str]], InjectedState("tickets")],
) -> str:
    """Give a ticket to a person."""
    return f"{ticket} of {len(tickets[project])} goes to {person}"


def turn(name: str, **arguments: Any) -> Message:
    """Return a turn with one call."""
    return Message("assistant", "", tool_calls=(ToolCall("", name, arguments),))


def main() -> None:
    """Run the agent and print its calls."""
    wrong = turn("assign", project="engine", ticket="E-9", person="Ada")
    model = ChatToolGrammar(model=ScriptedModel([turn("list_people"), wrong, "Done."]))
    agent = create_agent(model, [list_people, assign], state_schema=Desk, middleware=[InjectedArguments()])
    tickets = {"engine": ["E-1", "E-7"], "site": ["S-4"]}
    result = agent.invoke({"messages": [("user", "Give an engine ticket to Ada.")], "tickets": tickets})
    for message in result["messages"]:
        if isinstance(message, AIMessage) and message.tool_calls:
            print("model calls:", ", ".join(f"{call['name']}({call['args']})" for call in message.tool_calls))
        else:
            print(f"{message.type + ' says:':12} {message.text}")


if __name__ == "__main__":
    main()
