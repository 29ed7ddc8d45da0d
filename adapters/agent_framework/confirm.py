"""When a person should look at a call: a function middleware that asks through the framework's approvals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .. import _shared
from .._shared.thresholds import Thresholds
from .client import ToolGrammarChatClient

try:
    from agent_framework import Content, FunctionInvocationContext, FunctionMiddleware, MiddlewareTermination
except ImportError as error:
    raise _shared.missing("agent-framework-core", "agent-framework") from error


class ConfirmUnsure(FunctionMiddleware):
    """Asks for the approval of calls of which the model was not sure; the others run at once.

    ::

        client = ToolGrammarChatClient(model=..., default_options={"exact_choice": True})
        agent = client.as_agent(tools=[transfer], middleware=[ConfirmUnsure(client, below=0.9)])

    The run ends with a ``function_approval_request`` (``response.user_input_requests``), as for a tool with
    ``approval_mode="always_require"``. Its ``additional_properties`` have the call's ``sureness``. A call without
    an entry (a client without ``exact_choice``, a model on a server, a call which tokens alone decided) is one to look
    at.

    Args:
        client: the client of the agent's model, with ``exact_choice``.
        below: a call is unsure if one of its exact choices has a lower probability (see `CallSureness`).
        tools: other thresholds for some tools, by name: 0 never asks, and more than 1 always does.

    Raises:
        ToolGrammarError: ``below`` is not between 0 and 1, or a threshold is negative.
    """

    def __init__(
        self, client: ToolGrammarChatClient, below: float = 0.9, *, tools: Mapping[str, float] | None = None
    ) -> None:
        self._thresholds = Thresholds(below, tools)
        self._client = client

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Run a call, or ask for its approval."""
        threshold = self._thresholds.of(context.function.name)
        sure = self._client.sureness(context.metadata.get("call_id", ""))
        is_unsure = threshold > 0 and (sure is None or sure["least"] < threshold)
        if not is_unsure or "approval_response" in context.metadata:
            await call_next()
            return
        call_id = context.metadata["call_id"]
        occurrence = context.metadata.get("function_call_occurrence_id", call_id)
        arguments: Any = context.arguments
        call = Content.from_function_call(
            call_id,
            context.function.name,
            arguments=arguments.model_dump() if hasattr(arguments, "model_dump") else dict(arguments),
            id=occurrence,
        )
        told = {"reason": "the model was not sure of this call", "sureness": sure}
        context.result = Content.from_function_approval_request(
            id=occurrence, function_call=call, additional_properties=told
        )
        raise MiddlewareTermination("the call is to be approved")
