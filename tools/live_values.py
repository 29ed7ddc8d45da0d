"""Live values of tools: the arguments of a call that is being written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolgrammar.core.conversation import ArgumentsDelta, CallEnd, CallStart, Message, ToolCall
from toolgrammar.core.conversation.bound import of_conversation
from toolgrammar.core.dependent.live import Reading, read_open
from toolgrammar.core.errors import LiveValuesError, Place, ToolGrammarError, UnsatisfiableSchemaError
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.schema.read.keywords import ANNOTATIONS, GRAMMAR

from .formats import FormatParser, WireFormat
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


def has_no_value(parameters: Any, messages: Sequence[Message]) -> list[str]:
    """Return the required parameters that no value of a conversation satisfies."""
    properties = parameters.get("properties", {})
    named = {key: parameters[key] for key in ("$schema", "$defs", "definitions") if key in parameters}
    found = []
    for name in parameters.get("required", ()):
        schema = properties.get(name, True)
        bound = of_conversation(schema, messages)
        if bound is not schema and not _has_value(bound) and (_is_false(bound) or _is_empty(bound, named)):
            found.append(name)
    return found


def _is_false(schema: Any) -> bool:
    if schema is False:
        return True
    if not isinstance(schema, Mapping):
        return False
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if any(map(_is_false, schema.get("allOf", ()))):
        return True
    return bool(alternatives) and all(map(_is_false, alternatives or ()))


def _has_value(schema: Any) -> bool:
    """Return True if a schema is one of values or copies of a conversation, as `of_conversation` wrote it, with nothing
    beside that may exclude all of them."""
    if not isinstance(schema, Mapping):
        return False
    alternatives, parts = schema.get("anyOf"), schema.get("allOf", ({},))
    beside = schema.keys() - ANNOTATIONS - {"type"}
    if beside == {"anyOf"} and isinstance(alternatives, list):
        return any(map(_has_value, alternatives))
    return beside <= {"enum"} or (beside == {"allOf"} and len(parts) == 1 and GRAMMAR in parts[0])


def _is_empty(schema: Any, named: Mapping[str, Any]) -> bool:
    """Return True if no value satisfies a schema, with the definitions that it may refer to."""
    try:
        Grammar.from_json_schema({**named, **schema}).check()
    except UnsatisfiableSchemaError:
        return True
    except ToolGrammarError:
        return False  # the grammar of the whole tool has the error
    return False


def not_offered(tools: Sequence[Tool], messages: Sequence[Message]) -> LiveValuesError:
    """Return the error for a demanded call of one of some tools, none of which has its values in a conversation."""
    parameter = next(iter(has_no_value(tools[0].parameters, messages)), None)
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
