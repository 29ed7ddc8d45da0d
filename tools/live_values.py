"""Tools that cannot be called in a conversation, because it has no value for a required parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from toolgrammar.core.conversation import Message, of_conversation
from toolgrammar.core.errors import LiveValuesError, Place, ToolGrammarError, UnsatisfiableSchemaError
from toolgrammar.core.live import LiveSchema

from .formats import TurnSpec
from .tool import Tool


def has_value(tool: Tool, bound: Tool, turn: TurnSpec) -> bool:
    """Return True unless a tool cannot be called because of a conversation.

    An error of the tool itself is not the conversation's: then return True, and the grammar of its calls raises it.

    Args:
        tool: the tool.
        bound: the same with the values of the conversation (`of_conversation`).
        turn: how its schema is read. The grammar of its arguments is kept, and is a part of that of its calls.
    """
    if _without_values(bound.parameters):
        return False
    try:
        return _has_arguments(bound, turn) or not _has_arguments(tool.readable, turn)
    except ToolGrammarError:
        return True


def _has_arguments(tool: Tool, turn: TurnSpec) -> bool:
    """Return False if no arguments satisfy a tool's schema.

    Raises:
        ToolGrammarError: the schema has another error.
    """
    dated = tool.of_today()
    try:
        turn.part(dated, turn.grammars.number(has_value), partial(turn.arguments, dated))
    except UnsatisfiableSchemaError:
        return False
    return True


def _without_values(parameters: Any) -> list[str]:
    """Return the required parameters for which `of_conversation` left no value."""
    properties = parameters.get("properties", {})
    return [name for name in parameters.get("required", ()) if _is_false(properties.get(name, True))]


def _is_false(schema: Any) -> bool:
    """Return True if a schema is false, or plainly equal to false."""
    if schema is False:
        return True
    if not isinstance(schema, Mapping):
        return False
    alternatives = schema.get("anyOf") or schema.get("oneOf") or ()
    has_false_part = any(map(_is_false, schema.get("allOf", ())))
    return has_false_part or (bool(alternatives) and all(map(_is_false, alternatives)))


def not_offered(tools: Sequence[Tool], messages: Sequence[Message]) -> LiveValuesError:
    """Return the error for a demanded call of one of some tools, none of which has its values in a conversation. Its
    place is a parameter of the first tool: one without a value, or else one that needs the conversation."""
    parameters = tools[0].parameters
    properties = parameters.get("properties", {})
    needed = [name for name in parameters.get("required", ()) if LiveSchema(properties.get(name)).needs_conversation]
    parameter = next(iter((*_without_values(of_conversation(parameters, messages)), *needed)), None)
    problem = "no tool can be called" if len(tools) > 1 else "the tool cannot be called"
    return LiveValuesError(
        f"{problem}: the conversation has no value for a required parameter",
        hint="make the parameter optional, do not demand the call, or give messages with the results of tools",
        place=Place(tool=tools[0].name, parameter=parameter),
    )
