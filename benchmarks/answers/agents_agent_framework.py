"""Microsoft Agent Framework's part of `agents_validity`: an agent, a call demanded first, streamed or not."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import FunctionTool

from benchmarks.answers.agents_case import MAX_TURNS, Case
from toolgrammar.adapters.agent_framework import ToolGrammarChatClient


def tool(case: Case, name: str, description: str) -> FunctionTool:
    """A tool that records what it is given; its schema goes to the framework as it is."""

    def run(**arguments: Any) -> str:
        return case.run_tool(name, arguments)

    return FunctionTool(name=name, description=description, func=run, input_model=case.schema(name))


async def converse(case: Case) -> None:
    """Let one agent run, and look at its calls and what its tools said."""
    settings = {"temperature": 1.0, "seed": case.seed, "max_tokens": case.max_tokens}
    client = ToolGrammarChatClient(
        model=case.model,
        default_options=settings,
        function_invocation_configuration={"max_iterations": MAX_TURNS},
    )
    tools = [tool(case, each["name"], each.get("description") or each["name"]) for each in case.functions]
    agent = client.as_agent(name="clerk", tools=tools)
    options: Any = {"tool_choice": "required"}
    if case.stream:
        result: Any = await agent.run(case.question, stream=True, options=options).get_final_response()
    else:
        result = await agent.run(case.question, options=options)
    for content in (content for message in result.messages for content in message.contents):
        if content.type == "function_call":
            case.cut += content.informational_only
        elif content.type == "function_result" and content.exception is not None:
            case.problems.append(f"the framework refused a call: {content.result}")


def run(case: Case) -> None:
    """Let one agent run."""
    asyncio.run(converse(case))
