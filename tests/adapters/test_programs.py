"""The function of `program_tool` in the agents of frameworks: each reads its name, docstring and annotations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NewType

import pytest
from pydantic import BaseModel

from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet, program_tool

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:crewai"),
    pytest.mark.filterwarnings("ignore:LiteAgent is deprecated:FutureWarning"),
]

CustomerId = NewType("CustomerId", str)
PROGRAM = 'c = find_customer(name="Mia Lund")\nreturn total_of(customer=c.id)'


class Customer(BaseModel):
    """A customer."""

    id: CustomerId


def find_customer(name: str) -> Customer:
    """Find a customer."""
    return Customer(id=CustomerId(f"C-{len(name)}"))


def total_of(customer: CustomerId) -> str:
    """Sum up the orders of a customer."""
    return f"{customer}: 24.5"


def langchain(model: Any, function: Callable[..., Any]) -> str:
    """Run LangChain's agent."""
    agents = pytest.importorskip("langchain.agents")
    from toolgrammar.adapters.langchain import ChatToolGrammar

    agent = agents.create_agent(ChatToolGrammar(model=model, max_tokens=300), tools=[function])
    return str(agent.invoke({"messages": [("user", "Total of Mia Lund?")]})["messages"][-1].content)


def autogen(model: Any, function: Callable[..., Any]) -> str:
    """Run AutoGen's agent."""
    agents = pytest.importorskip("autogen_agentchat.agents")
    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

    client = ToolGrammarChatCompletionClient(model, max_tokens=300)
    agent = agents.AssistantAgent("helper", client, tools=[function], max_tool_iterations=3)
    return str(asyncio.run(agent.run(task="Total of Mia Lund?")).messages[-1].content)


def crewai(model: Any, function: Callable[..., Any]) -> str:
    """Run CrewAI's agent."""
    crew = pytest.importorskip("crewai")
    from crewai.tools import tool

    from toolgrammar.adapters.crewai import ToolGrammarLLM

    llm = ToolGrammarLLM(model=model, max_tokens=300)
    agent = crew.Agent(role="clerk", goal="help", backstory="at work", llm=llm, tools=[tool(function)])
    return str(agent.kickoff("Total of Mia Lund?"))


def agent_framework(model: Any, function: Callable[..., Any]) -> str:
    """Run Microsoft Agent Framework's agent."""
    pytest.importorskip("agent_framework")
    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

    agent = ToolGrammarChatClient(model, default_options={"max_tokens": 300}).as_agent(tools=[function])
    return str(asyncio.run(agent.run("Total of Mia Lund?")).text)


@pytest.mark.parametrize("framework", [langchain, autogen, crewai, agent_framework])
def test_agents_run_programs(framework: Callable[[Any, Any], str]) -> None:
    """An agent gets the function as its tool, the model writes a program under the grammar, and reads its result."""
    call = ToolCall("c1", "run_program", {"input": PROGRAM})
    model = ScriptedModel([Message("assistant", tool_calls=(call,)), Message("assistant", "It is 24.5.")])
    tool = program_tool([find_customer, total_of])
    assert tool.function is not None
    assert framework(model, tool.function) == "It is 24.5."
    assert "C-8: 24.5" in [message.text for message in model.backend.requests[-1] if message.role == "tool"]


def test_langchain_writes_programs_in_blocks_of_code() -> None:
    """``tool_format="program"``: the call of a chat model is a block of code."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    model = ScriptedModel([Message("assistant", f"```python\n{PROGRAM}\n```")])
    chat = ChatToolGrammar(model=model, max_tokens=300, tool_format="program")
    (call,) = chat.bind_tools([program_tool([find_customer, total_of]).function]).invoke("Total?").tool_calls
    assert call["args"] == {"input": PROGRAM}


def test_models_do_not_read_the_grammar_of_programs() -> None:
    """The function as a tool keeps its grammar; prompts have the functions and not the grammar."""
    tools = ToolSet([program_tool([find_customer, total_of]).function])
    assert "x-grammar" not in str(tools.to_openai()) and "find_customer(name: str)" in str(tools.to_openai())
    assert "Write the program in a block of code" in tools.prompt("program")
    grammar = tools.grammar("program")
    assert grammar.matches(f"```python\n{PROGRAM}\n```")
    assert not grammar.matches("```python\nreturn total_of(find_customer('A'))\n```")
