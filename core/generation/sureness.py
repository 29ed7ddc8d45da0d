"""How sure a model was of a call: the probabilities of its tool and of its finite values.

A choice belongs to a call by its place. Arguments that stand in the answer as JSON text have exact places. In other
notations the parser's events tell where a call, and each of its arguments, ended; there the choices are in the order of
the values that they spell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..conversation.builder import arguments_text
from ..conversation.events import ArgumentsDelta, CallEnd, CallStart, CallSureness, ChoiceMade, Event
from ..conversation.messages import ToolCall
from .json_places import Places, values_of

#: Roles of text that is a value, not a name or a bracket (see `Places.at`).
_VALUES = ("string", "number", "literal")

#: Spellings of values that are no strings and no numbers, in JSON and Python.
_LITERALS: dict[Any, tuple[str, str]] = {True: ("true", "True"), False: ("false", "False"), None: ("null", "None")}

_QUOTES = ("'", '"')


@dataclass
class WrittenCall:
    """Where a call stands in the raw text, as far as its events tell. An event belongs to a step, so that each place is
    known as a range: from the index of the step's first character to the index after its last one.

    Attributes:
        id: of the call.
        name: of its tool.
        start: where its name was complete.
        end: where it ended.
        parts: where a part of its arguments was complete, and the number of their characters (as JSON) up to there.
    """

    id: str
    name: str
    start: tuple[int, int]
    end: tuple[int, int]
    parts: list[tuple[int, int, int]] = field(default_factory=list)


class WrittenCalls:
    """Collects the places of all calls in a text, with those that `UnequalCalls` leaves out of the answer."""

    def __init__(self) -> None:
        self.calls: list[WrittenCall] = []

    def add(self, event: Event, begin: int, end: int) -> None:
        """Take the next event, and the range of the raw text of its step."""
        if isinstance(event, CallStart):
            self.calls.append(WrittenCall(event.id, event.name, (begin, end), (end, end)))
        elif isinstance(event, ArgumentsDelta) and self.calls:
            parts = self.calls[-1].parts
            parts.append((begin, end, (parts[-1][2] if parts else 0) + len(event.text)))
        elif isinstance(event, CallEnd) and self.calls:
            self.calls[-1].end = (begin, end)


@dataclass(frozen=True)
class _Choice:
    """A choice.

    Attributes:
        at: the index of its first character in which the words differ; before, the text was certain.
        word: the word, as it was written.
        probability: of this word.
    """

    at: int
    word: str
    probability: float


def sureness(
    raw: str, calls: Sequence[ToolCall], choices: Sequence[ChoiceMade], written: Sequence[WrittenCall] = ()
) -> tuple[CallSureness, ...]:
    """Return how sure the model was of each call.

    Args:
        raw: the text of the answer.
        calls: its calls.
        choices: its choices among whole words, in order.
        written: where its calls stand, in order. Without, a call may be anywhere after the one before it.

    Returns:
        For each call the probability of its tool, those of its values, and the lowest of its other ones, as far as they
        were exact choices.
    """
    known = {call.id: call for call in calls}
    places = {place.id for place in written}
    unplaced = (
        WrittenCall(call.id, call.name, (0, len(raw)), (len(raw), len(raw))) for call in calls if call.id not in places
    )
    ordered = [*written, *unplaced]
    rest = [_choice(made) for made in choices]
    found: dict[str, CallSureness] = {}
    begin = 0
    for number, place in enumerate(ordered):
        mine = [one for one in rest if one.at < place.end[1]]
        rest = [one for one in rest if one.at >= place.end[1]]
        if place.id in known:
            following = ordered[number + 1].name if number + 1 < len(ordered) else None
            reader = _ChoicesOfCall(raw, known[place.id], place, begin, following)
            found[place.id] = reader.read(mine)
            rest = reader.left + rest
            begin = reader.end
        else:
            begin = place.end[1]
    return tuple(found[call.id] for call in calls)


def _choice(made: ChoiceMade) -> _Choice:
    # Of all words, the first and the last in order have the least in common.
    pairs = enumerate(zip(min(made.probabilities), max(made.probabilities), strict=False))
    last = max(len(made.value) - 1, 0)
    at = made.start + min(next((index for index, (one, other) in pairs if one != other), last), last)
    return _Choice(at, made.value, made.probabilities[made.value])


@dataclass
class _Item:
    """The name of a member, or a value that is no object and no array, in arguments that are not written as JSON.

    Attributes:
        value: the name or value; of a string that was chosen in several words, what is left of it.
        pointer: of the value; None for a name.
        until: index in the raw text where it was complete.
        place: its range in the raw text, as far as it was found.
    """

    value: Any
    pointer: str | None
    until: int
    place: tuple[int, int] = (0, 0)


class _ChoicesOfCall:
    """Divides the choices that were made until the end of a call into those of its tool and of its arguments.

    Args:
        raw: the text of the answer.
        call: the call.
        written: where it stands.
        begin: it does not begin before this index.
        following: the tool of the next call.

    Attributes:
        end: the index after the call.
        left: the choices that belong to the next call.
    """

    def __init__(self, raw: str, call: ToolCall, written: WrittenCall, begin: int, following: str | None) -> None:
        self._raw = raw
        self._call = call
        self._written = written
        self._begin = begin
        self._following = following
        self._arguments = arguments_text(call)
        self._values: dict[str, float] = {}
        self._other: list[float] = []
        self.left: list[_Choice] = []
        self.end = written.end[1]
        # Some parsers tell of a call only when it is complete.
        self._is_late = not written.parts or written.start[1] >= written.parts[-1][1]
        self._start = self._start_of_json()
        self._name_end = self._start if self._start >= 0 else self._end_of_name()

    def _start_of_json(self) -> int:
        """Return the index of the arguments in the raw text; -1 if they are no JSON there."""
        text = self._call.raw
        if not text or (self._is_late and not self._call.arguments):
            return -1  # a call without arguments may be empty brackets
        # The same text before the call is no part of it.
        begin = self._begin if self._is_late else max(self._begin, self._written.start[0])
        return self._raw.rfind(text, begin, self.end)

    def _end_of_name(self) -> int:
        """Return the index before which the tool's name is."""
        if not self._is_late:
            return self._written.start[1]
        found = self._raw.find(self._call.name, self._begin, self.end)
        return self._begin if found < 0 else found + len(self._call.name)

    def read(self, choices: Sequence[_Choice]) -> CallSureness:
        """Return how sure the model was of the call."""
        tool = self._tool([one for one in choices if one.at < self._name_end])
        # Other choices before the arguments are of the markup: an id, a channel, whether there is a call.
        arguments_from = self._name_end
        if self._start < 0 and not self._is_late:
            arguments_from = self._written.start[0]  # the same step may have begun the first argument
        rest = [one for one in choices if one.at >= arguments_from and one not in tool]
        if self._start >= 0:
            self._read_json(rest)
        else:
            self._read_other(rest)
        return CallSureness(
            self._call.id,
            self._call.name,
            min((one.probability for one in tool), default=None),
            self._values,
            min(self._other, default=None),
        )

    def _tool(self, choices: Sequence[_Choice]) -> list[_Choice]:
        """Return the choices of the tool's name: one, or several if it has characters that end a word."""
        name = self._call.name
        for one in choices:
            if _is_name(one.word, name):
                return [one]
        start = self._raw.rfind(name, self._begin, self._name_end)
        return [one for one in choices if start <= one.at < start + len(name) and one.word in name]

    def _take(self, pointer: str | None, probability: float) -> None:
        if pointer is None:
            self._other.append(probability)
        else:
            self._values[pointer] = min(self._values.get(pointer, 1.0), probability)

    # -- JSON --------------------------------------------------------------------------------------------------

    def _read_json(self, choices: Sequence[_Choice]) -> None:
        places = Places(self._arguments)
        self.end = self._start + len(self._arguments)
        for one in choices:
            if one.at >= self.end:
                self.left.append(one)
                continue
            pointer, role = places.at(one.at - self._start)
            self._take(pointer if role in _VALUES else None, one.probability)

    # -- other notations ---------------------------------------------------------------------------------------

    def _read_other(self, choices: Sequence[_Choice]) -> None:
        """Attribute each choice, in order, to the next name or value with its spelling that may be complete there."""
        items = list(self._items())
        self._locate(items)
        next_item = 0
        last = self._written.end
        for one in choices:
            until = self._until(one.at)
            fitting = [
                number
                for number in range(next_item, len(items))
                if one.at < items[number].until <= until and _spells(one.word, items[number].value)
            ]
            if not fitting:
                if one.at >= last[0] and self._following is not None and _is_name(one.word, self._following):
                    self.left.append(one)
                else:
                    self._take(None, one.probability)
                continue
            # Of several, the one that stands there; else the first that is the word and no more.
            here = [number for number in fitting if items[number].place[0] <= one.at < items[number].place[1]]
            whole = [number for number in fitting if _spells(one.word, items[number].value, whole=True)]
            next_item = (here or whole or fitting)[0]
            item = items[next_item]
            self._take(item.pointer, one.probability)
            item.value = _after(one.word, item.value)
            next_item += item.value is None

    def _until(self, at: int) -> int:
        """Return the index where a value that begins at another index is complete. The step that ended an argument may
        have begun the next one."""
        return next((end for begin, end, _ in self._written.parts if begin > at), self._written.end[1])

    def _items(self) -> Iterator[_Item]:
        """Yield the names and values of the arguments in the order in which they were written."""
        for value in values_of(self._arguments):
            if value.parent is None:
                continue
            until = next((end for _, end, size in self._written.parts if size >= value.end), self._written.end[1])
            if isinstance(value.step, str):
                yield _Item(value.step, None, until)
            if self._arguments[value.start] not in "{[":
                yield _Item(_read(self._arguments[value.start : value.end]), value.pointer(), until)

    def _locate(self, items: Sequence[_Item]) -> None:
        """Find the items in the raw text, each after the one before it."""
        place, until, before = self._name_end, 0, 0
        for item in items:
            if item.until != until:  # another argument, which begins after the end of the one before it
                before, until = until, item.until
                place = max(place, before)
            for text in _spellings(item.value):
                found = self._raw.find(text, place, item.until)
                if found >= 0:
                    place = found + len(text)
                    item.place = (found, place)
                    break


def _read(text: str) -> Any:
    """Return a value of JSON text; one that is not complete as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _spellings(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value else ()
    if value is None or isinstance(value, bool):
        return _LITERALS[value]
    return (json.dumps(value),)


def _is_name(word: str, name: str) -> bool:
    """Return True if a word is the name of a tool, alone or in the namespace that a format writes before it."""
    plain = _plain(word)
    return plain == name or plain.endswith(f".{name}")


def _spells(word: str, value: Any, *, whole: bool = False) -> bool:
    """Return True if a word spells a value; if it is a string, also a part of it, unless ``whole``."""
    if isinstance(value, str):
        plain = _plain(word)
        return plain == value or (not whole and plain != "" and plain in value)
    if value is None or isinstance(value, bool):
        return word in _LITERALS[value]
    try:
        return bool(float(word) == value if re.search("[.eE]", word) else int(word) == value)
    except ValueError:
        return False


def _after(word: str, value: Any) -> str | None:
    """Return the rest of a string value behind a word; None if nothing is left, or the value is no string."""
    return value.partition(_plain(word))[2] or None if isinstance(value, str) and _plain(word) else None


def _plain(word: str) -> str:
    """Return a string as it is meant: without an opening quote, and without escapes."""
    text = word[1:] if word.startswith(_QUOTES) else word
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text
