"""Values in the results of tools: under a key anywhere in them, or in a field of a result that is one value."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from ..json import escape, unescape
from .messages import Message, ToolCall
from .written_values import OPENING, is_writable, under, values_in

#: Maximum number of values of one key that count as seen: the latest.
MAX_SEEN = 20_000

#: Any field of a result, also the whole of one that is no object or list.
ANY_FIELD = "**"


def seen_values(messages: Sequence[Message], key: str, tool: str | None = None, *, calls: bool = False) -> list[Any]:
    """Return the values that tools returned under a key in a conversation, each once, the latest result first; with
    ``calls``, those of the arguments of successful calls too.

    Whole numbers and texts of digits count as both, so that the type of a parameter chooses.
    """
    path = key.split(".")
    found: dict[tuple[type, Any], Any] = {}  # with its type, because 1 == 1.0
    answered = _answered(messages)
    succeeded = {answered[index] for index in answered if not messages[index].is_error}
    for index in reversed(range(len(messages))):
        message = messages[index]
        values: list[Iterator[Any]] = []
        if message.role == "tool" and not message.is_error:
            call = _call_at(messages, answered.get(index))
            if tool is None or tool in (message.name, call and call.name):
                values.append(values_in(message.text, path))
        for number, call in enumerate(message.tool_calls if calls else ()):
            if _CallPlace(index, number) in succeeded and tool in (None, call.name):
                values.append(under(dict(call.arguments), path))
        for value in chain.from_iterable(values):
            for each in (value, *_other_form(value)):
                found.setdefault((type(each), each), each)
            if len(found) >= MAX_SEEN:
                return list(found.values())
    return list(found.values())


@dataclass(frozen=True)
class ResultField:
    """A scalar in a result that is one JSON value (or Python's notation of one); else the whole text.

    Attributes:
        index: that of the result's message.
        names: the names of the members that lead to it; lists add none.
        pointer: its JSON pointer in the result.
        value: itself.
    """

    index: int
    names: tuple[str, ...]
    pointer: str
    value: Any

    @property
    def forms(self) -> tuple[Any, ...]:
        """The value, and the other form of a whole number: text or number, as the type of a parameter chooses."""
        return (self.value, *_other_form(self.value))

    def is_of(self, field: str, *, below: bool = False) -> bool:
        """Return True if it is a field: one of a name (``id``), of names after each other (``order.id``), or of the
        names from the root on (``/order/id``); `ANY_FIELD` is each. ``below``: or part of such a field."""
        if field == ANY_FIELD:
            return True
        is_from_root = field.startswith("/")
        path = tuple(map(unescape, field[1:].split("/")) if is_from_root else field.split("."))
        if is_from_root:
            return (self.names[: len(path)] if below else self.names) == path
        last = len(self.names) - len(path)  # where the path begins, if the names end with it
        if below:
            return any(self.names[begin : begin + len(path)] == path for begin in range(last + 1))
        return self.names[max(last, 0) :] == path


def fields_of_results(
    messages: Sequence[Message], field: str, tool: str | None = None, without: Sequence[str] = ()
) -> Iterator[ResultField]:
    """Yield the scalars of a field in results that are no errors, the latest result first.

    Unlike `seen_values`, nothing is read out of text: what a member of a result says in its text is not a member.

    Args:
        messages: the conversation.
        field: the field, as of `ResultField.is_of`.
        tool: only results of the tool of this name count.
        without: fields that do not count, with all below them.
    """
    answered = _answered(messages)
    for index in reversed(range(len(messages))):
        message = messages[index]
        if message.role != "tool" or message.is_error:
            continue
        call = _call_at(messages, answered.get(index))
        if tool is None or tool == (message.name if call is None else call.name):
            for found in _scalars(index, _whole_value(message.text)):
                if found.is_of(field) and not any(found.is_of(each, below=True) for each in without):
                    yield found


def _whole_value(text: str) -> Any:
    """Return the JSON value that a text is as a whole, or that of Python's notation; else the text."""
    for read in (json.loads, ast.literal_eval) if OPENING.match(text.strip()[:1]) else (json.loads,):
        try:
            return read(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
    return text


def _scalars(index: int, result: Any) -> Iterator[ResultField]:
    """Yield the strings and numbers in the value of a result, in its order; ``index`` is that of the message."""
    waiting: list[tuple[Any, tuple[str, ...], str]] = [(result, (), "")]  # values with their names and pointers
    while waiting:
        value, names, pointer = waiting.pop()
        if isinstance(value, Mapping):
            inner = [(each, (*names, str(name)), f"{pointer}/{escape(str(name))}") for name, each in value.items()]
            waiting += reversed(inner)
        elif isinstance(value, (list, tuple)):
            waiting += reversed([(each, names, f"{pointer}/{number}") for number, each in enumerate(value)])
        elif is_writable(value):
            yield ResultField(index, names, pointer, value)


def made_calls(messages: Sequence[Message], tool: str) -> list[dict[str, Any]]:
    """Return the arguments of the calls of a tool that have a result that is no error, since the last message of the
    user."""
    last = max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)
    calls = [
        _call_at(messages, place)
        for index, place in _answered(messages).items()
        if index > last and not messages[index].is_error
    ]
    return [dict(call.arguments) for call in calls if call and call.name == tool and call.error is None]


def field_values(messages: Sequence[Message], field: str, tool: str | None, without: Sequence[str]) -> list[Any]:
    """Return the values of a field of results, as `fields_of_results` has them, each once and in both forms."""
    found: dict[tuple[type, Any], Any] = {}
    for each in fields_of_results(messages, field, tool, without):
        for value in each.forms:
            found.setdefault((type(value), value), value)
        if len(found) >= MAX_SEEN:
            break
    return list(found.values())


class _CallPlace(NamedTuple):
    """Where a call is in a conversation: the index of its message, and its number in it."""

    message: int
    number: int


def _answered(messages: Sequence[Message]) -> dict[int, _CallPlace]:
    """Return the call that each result belongs to, by the index of the result's message.

    Ids may come again in later turns, so a result belongs to the nearest earlier call with its id that has no result
    yet; another result for an id, to the one before. A result without an id belongs to the first call of its name in
    the last turn with calls, or without a name to the first call there, of those without a result.
    """
    found: dict[int, _CallPlace] = {}
    done: set[_CallPlace] = set()  # the calls with a result
    latest: dict[str, _CallPlace] = {}  # by id, the last of these
    # Calls that may have no result yet, the next one last; under None all of the last turn.
    by_id: dict[str, list[_CallPlace]] = {}
    by_name: dict[str | None, list[_CallPlace]] = {}
    for index, message in enumerate(messages):
        if message.tool_calls:
            by_name = {}
            for number, call in reversed(list(enumerate(message.tool_calls))):
                place = _CallPlace(index, number)
                by_id.setdefault(call.id, []).append(place)
                by_name.setdefault(call.name, []).append(place)
                by_name.setdefault(None, []).append(place)
        if message.role != "tool":
            continue
        identity = message.tool_call_id
        waiting = by_id.get(identity, []) if identity else by_name.get(message.name or None, [])
        while waiting and waiting[-1] in done:
            waiting.pop()
        answered = waiting.pop() if waiting else latest.get(identity or "")
        if answered is not None:
            found[index] = answered
            done.add(answered)
            if identity:
                latest[identity] = answered
    return found


def _call_at(messages: Sequence[Message], place: _CallPlace | None) -> ToolCall | None:
    return None if place is None else messages[place.message].tool_calls[place.number]


def of_type(values: list[Any], name: Any) -> list[Any]:
    """Return the values of a type of JSON Schema; all, if it is none of those with scalars."""
    kinds: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int, float), "number": (int, float)}
    kind = kinds.get(name) if isinstance(name, str) else None
    return values if kind is None else [value for value in values if isinstance(value, kind)]


def _other_form(value: Any) -> tuple[Any, ...]:
    """Return the text of a whole number, or the number of a text of digits, in a tuple; empty for anything else."""
    if type(value) is int:
        return (str(value),)
    if isinstance(value, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value):
        return (int(value),)
    return ()
