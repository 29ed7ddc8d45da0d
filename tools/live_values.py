"""Live values of tools: the arguments of a call that is being written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from toolgrammar.core.conversation import ArgumentsDelta, CallEnd, CallStart, Message, ToolCall
from toolgrammar.core.conversation.bound import needs_conversation, of_conversation
from toolgrammar.core.dependent.live import Reading, read_open
from toolgrammar.core.errors import LiveValuesError, Place, ToolGrammarError, UnsatisfiableSchemaError

from .formats import FormatParser, TurnSpec, WireFormat
from .tool import Tool


class CallReader:
    """Reads the arguments of the call that a text has begun.

    Args:
        make_parser: makes a parser of the format.
        ending: what ends a call after its last argument, for formats whose parser shows calls when they are whole.
        is_json: a text that is no call is a JSON answer.
    """

    def __init__(self, make_parser: Callable[[], FormatParser], ending: str, is_json: bool = False) -> None:
        self._make_parser = make_parser
        self._ending = ending
        self._is_json = is_json

    def __call__(self, text: str) -> Reading:
        """Return the tool, and the open objects of its arguments, innermost first; of a JSON answer, None and its open
        objects."""
        found = self._call(text)
        return (None, read_open(text)) if found[0] is None and self._is_json else found

    def _call(self, text: str) -> Reading:
        """Return the tool and the open objects of its arguments; None and no objects if the text is no call."""
        tool: str | None = None
        arguments = ""
        for event in self._make_parser().feed(text):
            if isinstance(event, CallStart):
                tool, arguments = event.name, ""
            elif isinstance(event, ArgumentsDelta):
                arguments += event.text
            elif isinstance(event, CallEnd):
                tool = None
        if tool is None:  # a format whose parser shows calls when they are whole
            return self._ended(text)
        objects = read_open(arguments)
        if len(objects) > 1 or arguments.rstrip().endswith((",", ":", "{", "[")):
            return tool, objects
        # Markup around the arguments: a value that is not whole is behind the last one that is.
        inner = read_open(_after_values(text, objects[-1] if objects else {}))
        found = [*inner, *objects]
        return (tool, found) if any(found) else self._ended(text)

    def _ended(self, text: str) -> Reading:
        """Return the same for the text with the end of the call behind the last argument."""
        for last in (text.rstrip().removesuffix(","), text + "0"):  # after a value, or after a name
            parser = self._make_parser()
            events = [*parser.feed(last + self._ending), *parser.close()]
            calls = [event.call for event in events if isinstance(event, CallEnd)]
            if calls and calls[-1].error is None:
                return calls[-1].name, [dict(calls[-1].arguments)]
        return None, []


def has_value(tool: Tool, bound: Tool, turn: TurnSpec) -> bool:
    """Return True unless a tool cannot be called because of a conversation.

    Args:
        tool: the tool.
        bound: the same with the values of the conversation (`of_conversation`).
        turn: how its schema is read. The grammar of its arguments is kept, and is a part of that of its calls.
    """
    if _without_values(bound.parameters):
        return False
    form = turn.grammars.number(has_value)
    for each in (bound, tool.readable):
        dated = each.of_today()
        try:
            turn.part(dated, form, partial(turn.arguments, dated))
        except UnsatisfiableSchemaError:
            continue
        except ToolGrammarError:
            return True  # the grammar of its calls has the error
        return each is bound
    return True  # it contradicts itself, which is an error


def _without_values(parameters: Any) -> list[str]:
    """Return the required parameters for which `of_conversation` left no value."""
    properties = parameters.get("properties", {})
    return [name for name in parameters.get("required", ()) if _is_false(properties.get(name, True))]


def _is_false(schema: Any) -> bool:
    if schema is False:
        return True
    if not isinstance(schema, Mapping):
        return False
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if any(map(_is_false, schema.get("allOf", ()))):
        return True
    return bool(alternatives) and all(map(_is_false, alternatives or ()))


def not_offered(tools: Sequence[Tool], messages: Sequence[Message]) -> LiveValuesError:
    """Return the error for a demanded call of one of some tools, none of which has its values in a conversation."""
    parameters = tools[0].parameters
    properties = parameters.get("properties", {})
    needed = [name for name in parameters.get("required", ()) if needs_conversation(properties.get(name))]
    parameter = next(iter((*_without_values(of_conversation(parameters, messages)), *needed)), None)
    said = "no tool can be called" if len(tools) > 1 else "the tool cannot be called"
    return LiveValuesError(
        f"{said}: the conversation has no value for a required parameter",
        hint="make the parameter optional, do not demand the call, or give messages with the results of tools",
        place=Place(tool=tools[0].name, parameter=parameter),
    )


def ending_of(wire: WireFormat) -> str:
    """Return what a format writes after the last argument of the last call, if that is a number."""
    number = 7_294_710
    written = wire.render("", [ToolCall("call00000", "f", {"a": number})])
    return written.rpartition(str(number))[2]


def _after_values(text: str, arguments: dict[str, Any]) -> str:
    """Return the part of a text behind the last of some arguments."""
    at = 0
    for value in arguments.values():
        spelled = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        found = text.find(spelled, at)
        at = at if found < 0 else found + len(spelled)
    return text[at:]
