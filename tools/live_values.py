"""Live values of tools: the arguments of a call that is being written, and the check of a finished call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from toolgrammar.core.basics.json_pointer import escape
from toolgrammar.core.conversation import ArgumentsDelta, CallEnd, CallStart, ToolCall
from toolgrammar.core.dependent.live import LiveValues, Reading, read_open
from toolgrammar.core.errors import InvalidArgumentsError, Place
from toolgrammar.core.schema.read.live import has_values, marks_of, with_answers
from toolgrammar.core.validation import Validator

from .formats import FormatParser, WireFormat
from .tool import Tool


class CallReader:
    """Reads the arguments of the call that a text has begun.

    Args:
        make_parser: makes a parser of the format.
        ending: what ends a call after its last argument, for formats whose parser shows calls when they are whole.
    """

    def __init__(self, make_parser: Callable[[], FormatParser], ending: str) -> None:
        self._make_parser = make_parser
        self._ending = ending

    def __call__(self, text: str) -> Reading:
        """Return the tool, and the open objects of its arguments, innermost first."""
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


def has_no_value(parameters: Any) -> list[str]:
    """Return the required parameters that no value satisfies, as `of_conversation` left them."""
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


def check_values(tool: Tool, arguments: Mapping[str, Any], live: LiveValues) -> None:
    """Raise an error unless each argument with live values is one of them.

    Args:
        tool: the tool.
        arguments: valid for its schema.
        live: the callables; those that were asked for these arguments are not asked again.

    Raises:
        InvalidArgumentsError: an argument is none of its values; with a JSON pointer.
        LiveValuesError: a callable failed.
    """
    root = tool.parameters
    if not has_values(root):
        return
    definitions: dict[str, Any] = {key: root[key] for key in ("$defs", "definitions") if key in root}
    for schema, objects, name, pointer in _members(root, arguments, [], "", definitions):
        names = list(schema["properties"])
        member = schema["properties"][name]
        answers = {}
        for steps, mark in marks_of(member, name, names[: names.index(name)]):
            call: dict[str, Any] = {}
            for each in objects:
                for other in mark.after:
                    if other in each:
                        call.setdefault(other, each[other])
            answer = live.of_call(tool.name, mark, call)
            if answer.error is not None:
                raise answer.error
            answers[steps] = False if answer.schema is None else answer.schema
        if answers:
            validator = Validator({**definitions, "allOf": [with_answers(member, answers)]}, formats=True)
            if next(validator.problems(objects[0][name]), None) is not None:
                shown = json.dumps(objects[0][name], ensure_ascii=False)[:200]
                raise InvalidArgumentsError(
                    f"{shown} is not one of the present values of the argument",
                    hint="choose one of the values that exist now",
                    place=Place(tool=tool.name, parameter=name, pointer=pointer),
                )


def _members(
    schema: Any, value: Any, above: Sequence[Mapping[str, Any]], pointer: str, definitions: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]], str, str]]:
    """Yield each member of the objects in a value that its schema declares: the schema of the object, the objects
    around the member, innermost first, its name, and its pointer."""
    if not isinstance(schema, Mapping):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = definitions
        for step in reference[2:].split("/"):
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
        yield from _members(target, value, above, pointer, definitions)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for option in schema.get(keyword, ()):
            if keyword == "allOf" or not any(Validator({**definitions, "allOf": [option]}).problems(value)):
                yield from _members(option, value, above, pointer, definitions)
    properties = schema.get("properties")
    if isinstance(value, Mapping) and isinstance(properties, Mapping):
        objects = [value, *above]
        for name in value:
            if name in properties:
                at = f"{pointer}/{escape(name)}"
                yield schema, objects, name, at
                yield from _members(properties[name], value[name], objects, at, definitions)
    elif isinstance(value, list):
        first = schema.get("prefixItems", ())
        for index, item in enumerate(value):
            inner = first[index] if index < len(first) else schema.get("items")
            yield from _members(inner, item, above, f"{pointer}/{index}", definitions)
