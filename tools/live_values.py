"""Live values of tools: the arguments of a call that is being written."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from toolgrammar.core.conversation import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Message,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    needs_conversation,
    of_conversation,
)
from toolgrammar.core.errors import LiveValuesError, Place, ToolGrammarError, UnsatisfiableSchemaError
from toolgrammar.core.live import Reading, read_open

from .formats import FormatParser, TurnSpec, WireFormat, get_format
from .formats.gemma import BareCalls
from .formats.literals import PAIRS, PYTHON
from .formats.nested.calls import NestedCalls
from .tool import Tool

#: A value that stands where a text is to go on, and the name of its member.
_HERE = 7_294_710
_NAME = '"toolgrammar"'


@dataclass(frozen=True)
class Ending:
    """How a format ends a call that has begun.

    Attributes:
        end: what follows the last argument of the last call.
        marks: a regular expression of the brackets or tags around values, with groups ``open`` and ``close``, and of
            strings.
        tag: the end of the element that ``open`` begins; empty: values are in brackets.
        count: the number of brackets or elements that ``end`` closes.
    """

    end: str
    marks: re.Pattern[str]
    tag: str = ""
    count: int = 0

    def is_inside(self, last: str) -> bool:
        """Return True if a text whose last character it is may be inside a value."""
        return bool(self.tag) or last in (",", ":", "{")

    def filled(self, text: str) -> str:
        """Return a text that ends before a member or after its name, with a value for it."""
        if self.tag:
            return f"{text.removesuffix('>')}>{_HERE}"
        return f"{text}{_NAME}:{_HERE}" if text.rstrip().endswith(("{", ",")) else f"{text}{_HERE}"

    def closers(self, text: str) -> list[str]:
        """Return what closes the open brackets or elements of a text, innermost first."""
        found: list[str] = []
        for match in self.marks.finditer(text):
            if match["open"]:
                found.append(self.tag.replace("$name", match["open"]) if self.tag else PAIRS[match["open"]])
            elif match["close"] and found:
                found.pop()
        return found[::-1]


class CallReader:
    """Reads the arguments of the call that a text has begun.

    Args:
        make_parser: makes a parser of the format.
        ending: how the format ends a call, for arguments that its parser does not show as they are written.
        is_json: a text that is no call is a JSON answer.
    """

    def __init__(self, make_parser: Callable[[], FormatParser], ending: Ending, is_json: bool = False) -> None:
        self._make_parser = make_parser
        self._ending = ending
        self._is_json = is_json

    def __call__(self, text: str) -> Reading:
        """Return the tool, and the open objects of its arguments, innermost first; of a JSON answer, None and its open
        objects.

        Raises:
            LiveValuesError: the text is neither.
        """
        found = self._call(text)
        if found[0] is not None:
            return found
        if self._is_json:
            return None, read_open(text)
        raise LiveValuesError(
            "the library cannot read the call that is being written, so it cannot ask for the values of a parameter",
            hint="please report it, with the tool and the format; another tool_format may read it",
        )

    def _call(self, text: str) -> Reading:
        """Return the tool and the open objects of its arguments; None and no objects if the text is no call."""
        tool, arguments, _ = self._shown(text)
        objects = read_open(arguments)
        last, shown = text.rstrip()[-1:], arguments.rstrip()
        if tool is not None and (len(objects) > 1 or (last in (",", ":", "{") and shown.endswith(last))):
            return tool, objects  # the parser shows all that is written
        if tool is not None and not self._ending.is_inside(last):
            return tool, objects  # between arguments
        return self._ended(text) or (tool, objects)

    def _shown(self, text: str) -> tuple[str | None, str, int]:
        """Return the tool of the call in which a text ends, its arguments as far as the parser shows them, and the
        amount of all that it shows, which does not fall as a text grows."""
        tool: str | None = None
        arguments, amount = "", 0
        for event in self._make_parser().feed(text):
            if isinstance(event, CallStart):
                tool, arguments = event.name, ""
            elif isinstance(event, ArgumentsDelta):
                arguments += event.text
            elif isinstance(event, CallEnd):
                tool = None
            amount += len(event.text) if isinstance(event, (ArgumentsDelta, TextDelta, ReasoningDelta)) else 1
        return tool, arguments, amount

    def _ended(self, text: str) -> Reading | None:
        """Return the same, read from the text with a value where it is to go on, and the end of the call after it.

        The parser decides if it is right: it reads a call whose last value is `_HERE`. Fewer brackets are open where
        not all text is looked at.
        """
        for begin in self._beginnings(text):
            for ending in (self._ending, *_other_endings()):
                filled = ending.filled(text)
                closers = ending.closers(filled[begin:])
                for count in range(ending.count, -1, -1):
                    inner = closers[: max(len(closers) - count, 0)]
                    parser = self._make_parser()
                    events = [*parser.feed("".join((filled, *inner, ending.end))), *parser.close()]
                    calls = [event.call for event in events if isinstance(event, CallEnd)]
                    objects = _around(calls[-1].arguments) if calls and calls[-1].error is None else []
                    if objects:
                        return calls[-1].name, objects
        return None

    def _beginnings(self, text: str) -> Iterator[int]:
        """Yield where to look for open brackets from: the whole text; or, as a text before the call and strings without
        quotes may hold brackets and quotes, behind what the parser shows."""
        yield 0
        shown = self._shown(text)[2]
        yield max(bisect_left(range(len(text)), shown, key=lambda size: self._shown(text[:size])[2]) - 1, 0)


def _around(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects around `_HERE`, if it is the last value of arguments: innermost first, each with the members
    before it. Else none."""
    objects: list[dict[str, Any]] = []
    value: Any = arguments
    while value and isinstance(value, (dict, list)):
        if isinstance(value, dict):
            objects.insert(0, dict(value))
            value = objects[0].popitem()[1]
        else:
            value = value[-1]
    return objects if str(value) == str(_HERE) else []


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


def ending_of(wire: WireFormat) -> Ending:
    """Return how a format ends a call."""
    written = wire.render("", [ToolCall("call00000", "f", {"a": _HERE})])
    begin, _, end = written.rpartition(str(_HERE))
    if isinstance(wire, NestedCalls):
        mark, names, tag = re.escape(wire.mark), wire.arguments.names, f"{wire.mark}</$name>"
        marks = rf"{mark}<(?P<open>{names})>|(?P<close>{mark}</{names}>)"
        end = end.removeprefix(tag.replace("$name", "a"))
        begin = begin.removesuffix(f"{wire.mark}<a>")
    else:
        literals = wire.literals if isinstance(wire, BareCalls) else PYTHON  # which holds JSON's
        quotes = [(re.escape(quote), escapes) for quote, escapes in literals.quotes]
        strings = [
            rf"{quote}(?:\\.|(?!{quote})[^\\])*{quote}" if escapes else f"{quote}(?:(?!{quote}).)*{quote}"
            for quote, escapes in quotes
        ]
        marks, tag = "|".join((*strings, r"(?P<open>[{\[])", r"(?P<close>[}\]])")), ""
    ending = Ending(end, re.compile(marks, re.DOTALL), tag)
    return replace(ending, count=len(ending.closers(begin)))


@lru_cache(maxsize=1)
def _other_endings() -> tuple[Ending, ...]:
    """Return how calls end that a model writes in the spelling of another family (see ``formats/other_spellings.py``),
    as far as their parsers do not show arguments as they are written."""
    return tuple(ending_of(get_format(name)) for name in ("qwen3-coder", "pythonic"))
