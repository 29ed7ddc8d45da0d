"""When a person should look at a call: a predicate for LangChain's human in the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._shared.thresholds import Thresholds


def unsure(below: float = 0.9) -> Callable[[Any], bool]:
    """Return a predicate that is True for calls of which the model was not sure.

    ::

        HumanInTheLoopMiddleware(interrupt_on={
            "transfer": {"allowed_decisions": ["approve", "edit", "reject"], "when": unsure(below=0.95)},
        })

    It reads ``response_metadata["sureness"]``, which `ChatToolGrammar` writes with ``exact_choice=True``, in every
    wire format: the least probability of the call's exact choices (see `CallSureness`). A call without an entry (of a
    model without ``exact_choice`` or on a server, or which tokens alone decided) is one to look at.

    Args:
        below: a call with a lower probability is unsure.

    Raises:
        ToolGrammarError: ``below`` is not between 0 and 1.
    """
    thresholds = Thresholds(below)

    def is_unsure(request: Any) -> bool:
        call = request.tool_call
        threshold = thresholds.of(call["name"])
        for message in reversed(request.state["messages"]):
            if any(own["id"] == call["id"] for own in getattr(message, "tool_calls", ())):
                sureness = message.response_metadata.get("sureness", ())
                return not any(entry["id"] == call["id"] and entry["least"] >= threshold for entry in sureness)
        return True

    return is_unsure
