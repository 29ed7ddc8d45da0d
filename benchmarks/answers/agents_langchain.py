"""LangChain's part of `agents_validity`: `create_agent`, a call demanded on the first turns, streamed or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelCallLimitMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool

from benchmarks.answers.agents_case import MAX_TURNS, Case
from toolgrammar.adapters.langchain import ChatToolGrammar

DEMANDED_TURNS = 2


class Demand(AgentMiddleware):  # type: ignore[type-arg]
    """Demands a call on the first turns: free, noise would rather talk."""

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Bind ``tool_choice``."""
        turns = sum(isinstance(message, AIMessage) for message in request.messages)
        return handler(request.override(tool_choice="any") if turns < DEMANDED_TURNS else request)


def tool(case: Case, name: str, description: str) -> StructuredTool:
    """A tool that records what it is given; its schema goes to LangChain as it is."""

    def run(**arguments: Any) -> str:
        return case.run_tool(name, arguments)

    return StructuredTool(name=name, description=description, args_schema=case.schema(name), func=run)


def run(case: Case) -> None:
    """Let one agent run."""
    model = ChatToolGrammar(model=case.model, temperature=1.0, seed=case.seed, max_tokens=case.max_tokens)
    tools = [tool(case, each["name"], each.get("description") or each["name"]) for each in case.functions]
    middleware = [Demand(), ModelCallLimitMiddleware(run_limit=MAX_TURNS, exit_behavior="end")]
    agent = create_agent(model, tools=tools, middleware=middleware)
    question: Any = {"messages": [("user", case.question)]}
    if case.stream:
        state: Any = None
        for mode, piece in agent.stream(question, stream_mode=["messages", "values"]):
            state = piece if mode == "values" else state
    else:
        state = agent.invoke(question)
    for message in state["messages"]:
        if isinstance(message, AIMessage):
            case.cut += len(message.invalid_tool_calls)
        elif message.type == "tool" and message.status == "error" and "could not be executed" not in message.text:
            case.problems.append(f"the framework refused a call: {message.text}")
