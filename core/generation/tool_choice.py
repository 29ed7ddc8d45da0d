"""Tools and tool choice of a request, and the error for a tool that does not exist."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from ..errors import PolicyError, UnknownToolError
from .params import ToolInterface

#: Keywords of a tool choice; any other choice is the name of a tool.
TOOL_CHOICES = ("auto", "required", "none")


def tool_set_of(tools: Any) -> ToolInterface:
    """Return a tool set of any argument of ``ToolSet.from_any``.

    Raises:
        SchemaError: an argument is not a tool.
    """
    if isinstance(tools, ToolInterface):
        return tools
    made: ToolInterface = import_module("toolgrammar.tools").ToolSet.from_any(tools)  # core does not import tools
    return made


def policy_of(policy: Any) -> Any:
    """Return the policy of its data, or of the path of its file.

    Raises:
        PolicyError: it is malformed.
    """
    return import_module("toolgrammar.tools").Policy.from_any(policy)  # core does not import tools


def allowed_by(policy: Any, tools: ToolInterface) -> ToolInterface:
    """Return the tools that a policy allows; None: all.

    Raises:
        PolicyError: it is malformed, or is not for these tools.
    """
    if policy is None:
        return tools
    under = getattr(tools, "under", None)
    if under is None:
        raise PolicyError("these tools cannot be held to a policy", hint="give a ToolSet, or what it takes")
    restricted: ToolInterface = under(policy)
    return restricted


@lru_cache(maxsize=1)
def no_tools() -> ToolInterface:
    """Return the empty tool set."""
    return tool_set_of(())


def tool_choice_of(choice: Any, names: Sequence[str]) -> Any:
    """Return the canonical tool choice: ``"any"`` becomes ``"required"``, unless a tool has this name."""
    return "required" if choice == "any" and "any" not in names else choice


def check_tool_choice(choice: Any, names: Sequence[str]) -> str:
    """Return the canonical tool choice (`tool_choice_of`): a keyword or the name of a tool.

    Raises:
        UnknownToolError: it is neither; the message lists the tools.
    """
    choice = tool_choice_of(choice, names)
    if not isinstance(choice, str) or (choice not in TOOL_CHOICES and choice not in names):
        words = ", ".join(TOOL_CHOICES)
        raise UnknownToolError.among(names, choice, f"the tool choice {choice!r} is neither a tool nor one of {words}")
    return choice
