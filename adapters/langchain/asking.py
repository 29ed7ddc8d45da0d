"""Middleware for LangChain's `create_agent`: a question to the user instead of a call of which the model was not sure,
and a person who confirms what a policy leaves to one.

::

    from toolgrammar.adapters.langchain import AskInstead, UnderPolicy

    agent = create_agent(ChatToolGrammar(model=..., exact_choice=True), tools, middleware=[AskInstead(below=0.9)])
    agent = create_agent(ChatToolGrammar(model=...), tools, middleware=[UnderPolicy("policy.yaml")], checkpointer=...)
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from toolgrammar.core.errors import MissingDependencyError

from .. import _shared
from .._shared.thresholds import Thresholds

try:
    from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
    from langchain_core.messages import AIMessage, HumanMessage
except ImportError as error:
    raise MissingDependencyError(
        "toolgrammar.adapters.langchain.asking needs langchain, which is not installed or too old",
        hint="pip install langchain",
    ) from error

__all__ = ["AskInstead", "UnderPolicy"]

#: What the model is told, beside the call that it was not sure of.
INSTRUCTION = (
    "You were about to call {call}, and are not sure that it is what I mean. Do not call it. Ask me one short question "
    "that settles it."
)


class AskInstead(AgentMiddleware[Any, Any, Any]):
    """Lets the model ask the user instead of calling a tool of which it was not sure.

    The turn becomes text: the model is asked again, without tools, for one question. The user's answer is the next
    message of the conversation. Calls without an entry in ``sureness`` (of a model without ``exact_choice`` or on a
    server, or which tokens alone decided) are not touched, unless their tool's threshold is more than 1.

    Args:
        below: a call is unsure if one of its exact choices has a lower probability (see `CallSureness`).
        tools: other thresholds for some tools, by name: 0 never asks, and more than 1 always does.
        instruction: what the model is told; ``{call}`` is the call.

    Raises:
        ToolGrammarError: ``below`` is not between 0 and 1, or a threshold is negative.
    """

    def __init__(
        self, below: float = 0.9, *, tools: Mapping[str, float] | None = None, instruction: str = INSTRUCTION
    ) -> None:
        super().__init__()
        self._thresholds = Thresholds(below, tools)
        self._instruction = instruction

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call the model; if it was not sure of a call, ask it for a question instead."""
        response = handler(request)
        again = self._question(request, response)
        return response if again is None else handler(again)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the model; if it was not sure of a call, ask it for a question instead."""
        response = await handler(request)
        again = self._question(request, response)
        return response if again is None else await handler(again)

    def _question(self, request: Any, response: Any) -> Any:
        """Return the request for a question; None if the model was sure of all its calls."""
        messages = [response] if isinstance(response, AIMessage) else getattr(response, "result", ())
        for message in messages:
            for call in getattr(message, "tool_calls", ()):
                if self._is_unsure(call, message.response_metadata.get("sureness", ())):
                    shown = f"{call['name']}({json.dumps(call['args'], ensure_ascii=False)})"
                    instruction = HumanMessage(self._instruction.replace("{call}", shown))
                    return request.override(
                        messages=[*request.messages, instruction], tools=[], tool_choice=None, response_format=None
                    )
        return None

    def _is_unsure(self, call: Any, sureness: Any) -> bool:
        threshold = self._thresholds.of(call["name"])
        least = next((each["least"] for each in sureness if each["id"] == call["id"]), None)
        return threshold > 1 if least is None else bool(least < threshold)


class UnderPolicy(HumanInTheLoopMiddleware[Any, Any, Any]):
    """Holds an agent of `ChatToolGrammar` to a policy, and asks a person about the calls that the policy lets one
    confirm: as `HumanInTheLoopMiddleware` does, by an interrupt of LangGraph. A policy of the model holds too.

    Args:
        policy: a `Policy` of one role, its data, or the path of its file.
        allowed_decisions: what the person may decide. An edited call is the person's: the policy does not judge it.
        **more: settings of `HumanInTheLoopMiddleware`.

    Raises:
        PolicyError: the policy is malformed.
    """

    def __init__(self, policy: Any, *, allowed_decisions: Sequence[Any] = ("approve", "reject"), **more: Any) -> None:
        super().__init__({}, **more)
        self._policy = _shared.Confirmed.of(policy)
        self.interrupt_on = _OfEachTool(
            {
                "allowed_decisions": list(allowed_decisions),
                "description": _described,
                "when": lambda request: bool(_to_confirm(request.tool_call, request.state)),
            }
        )

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call the model under the policy."""
        return handler(self._under_policy(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the model under the policy."""
        return await handler(self._under_policy(request))

    def _under_policy(self, request: Any) -> Any:
        """Return a request under this policy, and under those that the model and its settings have."""
        settings = {**getattr(request.model, "kwargs", {}), **request.model_settings}
        others = (getattr(request.model, "policy", None), settings.get("policy"))
        policy = _shared.Confirmed.of(self._policy.policy, *others)
        return request.override(model_settings={**request.model_settings, "policy": policy})


class _OfEachTool(dict[str, Any]):
    """The same settings for each tool."""

    def __init__(self, settings: Any) -> None:
        super().__init__()
        self._settings = settings

    def get(self, name: str, default: Any = None) -> Any:
        return self._settings

    def __missing__(self, name: str) -> Any:
        return self._settings


def _to_confirm(call: Any, state: Any) -> list[str]:
    """Return the pointers of values of a call that a person is to confirm (``""``: the call), as its message has them
    in ``response_metadata["ask"]``; of an unknown call, all of it."""
    for message in reversed(state["messages"]):
        if any(own["id"] == call["id"] for own in getattr(message, "tool_calls", ())):
            entries = message.response_metadata.get("ask", ())
            return next((list(entry["ask"]) for entry in entries if entry["id"] == call["id"]), [])
    return [""]


def _described(call: Any, state: Any, runtime: Any) -> str:
    where = ", ".join(filter(None, _to_confirm(call, state))) or "the call"
    return f"The policy lets a person confirm {where}\n\nTool: {call['name']}\nArgs: {call['args']}"
