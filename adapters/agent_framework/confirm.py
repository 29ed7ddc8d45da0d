"""When a person should look at a call: middleware that asks through the framework's approvals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolgrammar.core.errors import PolicyError

from .. import _shared
from .._shared.thresholds import Thresholds
from .client import ToolGrammarChatClient

try:
    from agent_framework import (
        AgentContext,
        AgentMiddleware,
        Content,
        FunctionInvocationContext,
        FunctionMiddleware,
        MiddlewareTermination,
    )
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
        properties = {"reason": "the model was not sure of this call", "sureness": sure}
        await _call(context, call_next, properties if is_unsure else None)


class UnderPolicy(AgentMiddleware):
    """Holds an agent to a policy, and asks for the approval of the calls that the policy lets a person confirm.

    ::

        agent = ToolGrammarChatClient(model=...).as_agent(tools=[transfer], middleware=[UnderPolicy("policy.yaml")])

    Approvals are as those of `ConfirmUnsure`; their ``additional_properties`` have the pointers of the values in
    question (``ask``). A policy of the client and of a run holds too.

    Args:
        policy: a `Policy` of one role, its data, or the path of its file.

    Raises:
        PolicyError: the policy is malformed; or, in a run, the agent has another client.
    """

    def __init__(self, policy: Any) -> None:
        self._policy = _shared.Confirmed.of(policy).policy

    async def process(self, context: AgentContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Run the agent under the policy, with the approvals that it needs."""
        client = getattr(context.agent, "client", None)
        if not isinstance(client, ToolGrammarChatClient):
            raise PolicyError("the agent's client knows no policies", hint="give it a ToolGrammarChatClient")
        options = context.options or {}
        policy = _shared.Confirmed.of(self._policy, client.policy, options.get("policy"))
        context.options = {**options, "policy": policy}
        others = context.client_kwargs.get("middleware", ())
        context.client_kwargs["middleware"] = [_ConfirmAsked(client), *others]
        await call_next()


class _ConfirmAsked(FunctionMiddleware):
    """Asks for the approval of calls that the policy lets a person confirm."""

    def __init__(self, client: ToolGrammarChatClient) -> None:
        self._client = client

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        pointers = self._client.asked(context.metadata.get("call_id", ""))
        properties = {"reason": "the policy lets a person confirm this call", "ask": list(pointers)}
        await _call(context, call_next, properties if pointers else None)


async def _call(
    context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]], properties: Mapping[str, Any] | None
) -> None:
    """Run a call, or if there is something to tell, ask for its approval first."""
    if properties is None or "approval_response" in context.metadata:
        await call_next()
        return
    call_id = context.metadata["call_id"]
    # A model may use an id twice, so newer versions of the framework give each occurrence of a call an id of its own.
    occurrence = context.metadata.get("function_call_occurrence_id", call_id)
    arguments: Any = context.arguments
    call = Content.from_function_call(
        call_id,
        context.function.name,
        arguments=arguments.model_dump() if hasattr(arguments, "model_dump") else dict(arguments),
        id=occurrence,
    )
    context.result = Content.from_function_approval_request(
        id=occurrence, function_call=call, additional_properties=dict(properties)
    )
    raise MiddlewareTermination("the call is to be approved")
