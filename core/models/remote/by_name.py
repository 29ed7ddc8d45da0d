"""Many tools for a model on a server: a first request chooses among their names, and a second one has the schemas.

Nothing can be inserted into the prompt of a server while it writes (``tools_in_prompt="names"``). So the first request
has each tool without parameters, and one line of its description; a text that answers it is the answer. If the model
calls tools instead, the second request has these tools alone, with their schemas, and demands a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import BudgetError
from ...generation.params import GenerateParams
from ..model import LEAST_AUTO_BYTES


def is_by_name(params: GenerateParams, window: int) -> bool:
    """Return True if the model is to see names of tools first.

    Args:
        params: options of the request.
        window: the context window in tokens.
    """
    tools: Any = params.tools
    if tools is None or params.tools_in_prompt == "schemas" or params.tool_choice == "none":
        return False
    if not hasattr(tools, "named") or len(tools.names) < 2:
        return False
    size = max(LEAST_AUTO_BYTES, window // 2)
    # All tools, since the first request has the declaration of none.
    return len(tools.brief_names(params.tools_in_prompt, size)) == len(tools.names)


def choosing(params: GenerateParams) -> GenerateParams:
    """Return the options of the first request."""
    return replace(params, tools=params.tools.named(), tools_in_prompt="schemas")


def calling(params: GenerateParams, names: Sequence[str], spent: int) -> GenerateParams:
    """Return the options of the request for calls of the chosen tools.

    Args:
        params: options of the request.
        names: names of these tools.
        spent: number of tokens of the first answer.

    Raises:
        BudgetError: the first answer has used up the token budget.
    """
    budget = None if params.max_tokens is None else params.max_tokens - spent
    if budget is not None and budget < 1:
        raise BudgetError("the token budget ended before the arguments of a call", hint="raise max_tokens")
    is_one = len(names) == 1 and not params.parallel_tool_calls
    return replace(
        params,
        tools=params.tools.subset(names),
        tools_in_prompt="schemas",
        tool_choice=names[0] if is_one else "required",
        json_mode=None,
        max_tokens=budget,
    )
