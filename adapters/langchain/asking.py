"""Middleware for LangChain's `create_agent`: a question to the user instead of a call of which the model was not sure.

::

    from toolgrammar.adapters.langchain import AskInstead

    agent = create_agent(ChatToolGrammar(model=..., exact_choice=True), tools, middleware=[AskInstead(below=0.9)])
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolgrammar.core.errors import MissingDependencyError

from .._shared.thresholds import Thresholds

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import AIMessage, HumanMessage
except ImportError as error:
    raise MissingDependencyError(
        "toolgrammar.adapters.langchain.asking needs langchain, which is not installed or too old",
        hint="pip install langchain",
    ) from error

__all__ = ["AskInstead"]

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
        found = [response] if isinstance(response, AIMessage) else getattr(response, "result", ())
        for message in found:
            for call in getattr(message, "tool_calls", ()):
                if self._is_unsure(call, message.response_metadata.get("sureness", ())):
                    written = f"{call['name']}({json.dumps(call['args'], ensure_ascii=False)})"
                    told = HumanMessage(self._instruction.replace("{call}", written))
                    return request.override(
                        messages=[*request.messages, told], tools=[], tool_choice=None, response_format=None
                    )
        return None

    def _is_unsure(self, call: Any, sureness: Any) -> bool:
        threshold = self._thresholds.of(call["name"])
        least = next((each["least"] for each in sureness if each["id"] == call["id"]), None)
        return threshold > 1 if least is None else bool(least < threshold)
