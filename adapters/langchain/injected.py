"""Middleware for LangChain's `create_agent`: callables of live values see the arguments that the model does not.

::

    from toolgrammar.adapters.langchain import InjectedArguments

    agent = create_agent(model, tools, middleware=[InjectedArguments()])
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, get_args, get_type_hints

from toolgrammar.core.errors import MissingDependencyError
from toolgrammar.core.live import given

try:
    from langchain.agents.middleware import AgentMiddleware
    from langgraph.prebuilt import InjectedState
except ImportError as error:
    raise MissingDependencyError(
        "toolgrammar.adapters.langchain.injected needs langchain, which is not installed or too old",
        hint="pip install langchain",
    ) from error

__all__ = ["InjectedArguments"]


class InjectedArguments(AgentMiddleware[Any, Any, Any]):
    """Gives callables of `Values` the injected arguments of their tools: those with `InjectedState`, and the context.

    A callable has them in its mapping if `Values` names them in ``after``. An argument annotated with
    ``InjectedState`` is the state, or its field; ``runtime`` is the agent's runtime, with its ``context`` and
    ``store``. The model sees none of them.
    """

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call the model with the injected arguments."""
        with given(**_injected(request)):
            return handler(request)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the model with the injected arguments."""
        with given(**_injected(request)):
            return await handler(request)


def _injected(request: Any) -> dict[str, Any]:
    """Return the injected arguments of a request's tools, by name."""
    found: dict[str, Any] = {"runtime": request.runtime}
    for tool in request.tools:
        for name, marks in _annotations(tool):
            for mark in marks:
                if mark is InjectedState or isinstance(mark, InjectedState):
                    field = getattr(mark, "field", None)
                    found[name] = request.state if not field else request.state.get(field)
    return found


def _annotations(tool: Any) -> Iterable[tuple[str, tuple[Any, ...]]]:
    """Return the parameters of a tool's function, each with its annotations: ``state: Annotated[dict, InjectedState]``
    -> ``("state", (InjectedState,))``."""
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    if function is None:
        return []
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception:  # an annotation that cannot be evaluated: LangChain does not inject it either
        return []
    return [(name, get_args(hint)[1:]) for name, hint in hints.items()]
