"""Translation between CrewAI's tools, answers, calls, usage and errors and ours.

CrewAI tells a model less than it knows: it closes maps, cuts recursion and demands every optional argument of a tool,
and it asks for an output class only in a second call. The objects that it got from the user are reachable, and say all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from toolgrammar.core.conversation import Message, ToolCall, Usage

from .. import _shared
from .react import INPUT, OBSERVATION

try:
    from crewai.tools.agent_tools.base_agent_tools import BaseAgentTool
    from crewai.utilities.agent_utils import convert_tools_to_openai_schema
    from crewai.utilities.exceptions.context_window_exceeding_exception import LLMContextLengthExceededError
    from crewai.utilities.i18n import I18N_DEFAULT
except ImportError as error:
    raise _shared.missing("crewai", "crewai") from error

_LAST_ANSWER = I18N_DEFAULT.errors("force_final_answer").strip()

# How CrewAI's prompts list the tools, when it has them called in text.
_NAMES = re.compile(r"only one name of \[([^\]\n]*)\]")


def reachable_tools(agent: Any, task: Any) -> dict[str, Any]:
    """Return the tools of an agent and its task by the names that CrewAI gives them; those of its executor win."""
    executor = getattr(agent, "agent_executor", None)
    sources = (getattr(executor, "original_tools", None), getattr(task, "tools", None), getattr(agent, "tools", None))
    by_name: dict[str, Any] = {}
    for source in sources:
        if source:
            _, _, by_crewai_name = convert_tools_to_openai_schema(source)
            by_name = {**by_crewai_name, **by_name}  # what is there already wins
    return by_name


def original_tools(tools: Sequence[Mapping[str, Any]], agent: Any, task: Any) -> list[dict[str, Any]]:
    """Return the tools under CrewAI's names, with the schemas of their authors.

    A tool that neither the agent nor the task has, or that has other arguments there, keeps the schema it came with.
    A tool that delegates work accepts the names of the existing coworkers only.
    """
    originals = reachable_tools(agent, task) if tools else {}
    result = []
    for tool in tools:
        function = tool.get("function", tool)
        made = _shared.openai_tool(tool)
        original = originals.get(function["name"])
        schema = getattr(original, "args_schema", None)
        if schema is not None:
            parameters = _shared.openai_tool({**function, "parameters": schema})["function"]["parameters"]
            if _properties(parameters) == _properties(made["function"]["parameters"]):
                made["function"]["parameters"] = parameters
        if isinstance(original, BaseAgentTool) and "coworker" in made["function"]["parameters"].get("properties", ()):
            coworkers = list(dict.fromkeys(agent.role for agent in original.agents))
            made["function"]["parameters"]["properties"]["coworker"]["enum"] = coworkers
        result.append(made)
    return result


def text_tools(messages: Sequence[Message], agent: Any, task: Any) -> list[dict[str, Any]]:
    """Return the tools that a prompt wants called in text ("Action Input:"); empty for other prompts.

    A tool that the prompt names and that is not reachable takes any arguments.
    """
    prompt = "\n".join(message.text for message in messages if message.role in ("system", "user"))
    if INPUT.rstrip() not in prompt:
        return []
    tools, _, _ = convert_tools_to_openai_schema(list(reachable_tools(agent, task).values()))
    reached = original_tools(tools, agent, task)
    reached_names = {_shared.tool_name(tool) for tool in reached}
    listed = _NAMES.search(prompt)
    names = [name.strip() for name in listed[1].split(",")] if listed else []
    return reached + [_open_tool(name) for name in dict.fromkeys(names) if name and name not in reached_names]


def called_tools(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the tools that a conversation has called natively, each with any arguments."""
    return [
        _open_tool(name) for name in dict.fromkeys(call.name for message in messages for call in message.tool_calls)
    ]


def is_forced_to_answer(messages: Sequence[Message]) -> bool:
    """Return True if CrewAI demands a last answer without tools, because an agent has had all its turns.

    That request comes without the agent and without its tools; only its words tell.
    """
    last = messages[-1] if messages else None
    return last is not None and last.role == "user" and last.text.strip() == _LAST_ANSWER


def _open_tool(name: str) -> dict[str, Any]:
    anything = {"type": "object", "additionalProperties": True}
    return {"type": "function", "function": {"name": name, "parameters": anything}}


def answer_model(agent: Any, task: Any) -> type[BaseModel] | None:
    """Return the class that the last text of an agent with tools must match; None if the text is free.

    CrewAI would make a further call of the text to get an instance. Steps of a plan are not the last text.
    """
    executor = getattr(agent, "agent_executor", None)
    if task is None or executor is None or executor.task is not task or executor.state.todos.items:
        return None
    model = executor.response_model
    return model if isinstance(model, type) and issubclass(model, BaseModel) else None


def is_answered(messages: Sequence[Message]) -> bool:
    """Return True if a tool's result is in the conversation, natively or in text."""
    return any(
        message.role == "tool"
        or (message.role == "assistant" and f"\n{OBSERVATION}" in message.text)
        or (message.role == "user" and message.text.startswith(OBSERVATION))
        for message in messages
    )


def _properties(schema: Mapping[str, Any]) -> set[str]:
    """Return the names of the arguments; the schema of a recursive class is a reference to a definition."""
    definition = schema.get("$ref", "").removeprefix("#/$defs/")
    return set(schema.get("$defs", {}).get(definition, schema).get("properties", ()))


def openai_call(call: ToolCall) -> dict[str, Any]:
    """Return a call for CrewAI to run."""
    function = {"name": call.name, "arguments": _shared.executable_text(call)}
    return {"id": call.id, "type": "function", "function": function}


def usage_dict(usage: Usage) -> dict[str, Any]:
    """Return token counts under CrewAI's names."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cached_prompt_tokens": usage.cached_tokens,
    }


#: Where CrewAI reads these words, it summarises the conversation.
TOO_LONG = "context length exceeded"


def errors() -> Mapping[str, type[Exception]]:
    """Return which of our errors CrewAI acts on by another name.

    It calls again where the status is 429. A ``TimeoutError`` ends the task, as its own ``max_execution_time`` does.
    """
    return {"context_overflow": LLMContextLengthExceededError}
