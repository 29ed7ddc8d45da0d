"""AutoGen's part of `agents_validity`: an `AssistantAgent`, calls demanded on the first turns, streamed or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent
from autogen_core import CancellationToken
from autogen_core.models import CreateResult
from autogen_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict

from benchmarks.answers.agents_case import MAX_TURNS, Case
from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

DEMANDED_TURNS = 2


class Demanding(ToolGrammarChatCompletionClient):
    """Demands a call on the first turns: agents never do, and free, noise would rather talk."""

    turns = 0

    def _choice(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.turns += 1
        demanded = bool(arguments.get("tools")) and self.turns <= DEMANDED_TURNS
        return {**arguments, "tool_choice": "required" if demanded else "auto"}

    async def create(self, messages: Any, **arguments: Any) -> CreateResult:
        """Answer, with a call at first."""
        return await super().create(messages, **self._choice(arguments))

    async def create_stream(self, messages: Any, **arguments: Any) -> AsyncGenerator[str | CreateResult, None]:
        """Answer in pieces, with a call at first."""
        async for piece in super().create_stream(messages, **self._choice(arguments)):
            yield piece


class Anything(BaseModel):
    """Arguments as they come: AutoGen's own reading of the schema is not what is tested."""

    model_config = ConfigDict(extra="allow")


class Recorder(BaseTool[Anything, str]):
    """A tool that records what it is given; its schema goes to AutoGen as it is."""

    def __init__(self, case: Case, name: str, description: str) -> None:
        super().__init__(Anything, str, name, description)
        self._case = case

    @property
    def schema(self) -> Any:
        """What agents are shown."""
        parameters = self._case.schema(self.name)
        return {"name": self.name, "description": self.description, "parameters": parameters}

    async def run(self, args: Anything, cancellation_token: CancellationToken) -> str:
        """Record."""
        return self._case.run_tool(self.name, args.model_extra or {})


async def converse(case: Case) -> None:
    """Let one agent run, and look at what its tools said."""
    client = Demanding(model=case.model, temperature=1.0, seed=case.seed, max_tokens=case.max_tokens)
    tools: list[Any] = [
        Recorder(case, each["name"], each.get("description") or each["name"]) for each in case.functions
    ]
    agent = AssistantAgent("clerk", client, tools=tools, max_tool_iterations=MAX_TURNS, model_client_stream=case.stream)
    async for message in agent.run_stream(task=case.question):
        if not isinstance(message, ToolCallExecutionEvent):
            continue
        for result in message.content:
            if result.is_error and ("JSON" in result.content or "Extra data" in result.content):
                case.cut += 1
            elif result.content != "done":
                case.problems.append(f"the framework refused a call: {result.content}")


def run(case: Case) -> None:
    """Let one agent run."""
    asyncio.run(converse(case))
