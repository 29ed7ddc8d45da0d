"""Parser of calls that a model wrote as JSON in its text, though its format has markup for them.

Models that were trained on code do so, mostly in a code fence. JSON at the beginning of a line, or right
behind such a call, is a call if it names a known tool and has arguments, or a list of calls if all of its items do; any
other JSON stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

from toolgrammar.core.conversation import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCall,
)
from toolgrammar.core.json import SPACE, JsonScanner, dump_json, read_json
from toolgrammar.core.repair import Edit

from .base import FormatParser
from .leniencies import lenient

#: The first key of an object that may be a call.
_KEYS = frozenset({"name", "arguments", "parameters", "type", "id", "function"})
_ARGUMENTS = ("arguments", "parameters")
_FENCE = "```"
_INFO = re.compile(r"[\w\-]{0,20}[ \t]*")

#: Maximum length of a key that is waited for.
_MAX_KEY = 16

#: Maximum length of the text before a key.
_MAX_OPENING = 256


class BareJsonParser:
    """Reads calls in the text of another parser; once that has found a call, all text is text.

    Args:
        inner: the parser.
        names: of the tools.
        finish: applied to each call.
        new_id: makes the id of a call.
    """

    def __init__(
        self,
        inner: FormatParser,
        names: Collection[str],
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
    ) -> None:
        self._inner = inner
        self._names = names
        self._finish = finish
        self._new_id = new_id
        self._is_off = False  # a call has come in the format's markup: JSON in later text is text
        self._calls = 0  # the number of calls that were found here
        self._at_line = True  # only white space and calls stand before the next character in its line
        self._held: list[str] = []  # text that may be a call
        self._scanner: JsonScanner | None = None  # of the JSON in the held text; None: it has not begun
        self._start = 0  # where the JSON begins in the held text
        self._fenced = False  # a fence is open, and calls stand in it
        self._whole: list[str] = []  # what was fed since the last call that has a place
        self._place = 0  # where that begins
        self._passed = 0  # the characters of text and reasoning in it that the inner parser has sent
        self._own: list[Edit] = []  # the leniencies of the calls that were found here

    @property
    def leniencies(self) -> list[Edit]:
        """What the text has that the format does not write, as edits of the text."""
        return sorted((*self._inner.leniencies, *self._own), key=lambda edit: edit.start)

    def feed(self, text: str) -> list[Event]:
        """Take the next piece; return the events that are certain."""
        self._whole.append(text)
        return self._read(self._inner.feed(text))

    def close(self) -> list[Event]:
        """End the text; return the rest."""
        events = self._read(self._inner.close())
        if self._calls and "".join(self._held).strip(SPACE) in ("", _FENCE):
            self._held = []  # white space after a call, and the end of its fence
        return [*events, *self._give_back()]

    def _read(self, events: list[Event]) -> list[Event]:
        """Return the inner parser's events, with the calls in their text; its own calls get the indices after these."""
        read: list[Event] = []
        for event in events:
            if isinstance(event, TextDelta) and not self._is_off:
                self._take(event.text, read)
                self._passed += len(event.text)
                continue
            if isinstance(event, ReasoningDelta):
                self._passed += len(event.text)
            read += self._give_back()
            if isinstance(event, (CallStart, ArgumentsDelta, CallEnd)):
                self._is_off = True
                event = replace(event, index=event.index + self._calls)
            read.append(event)
        return read

    def _give_back(self) -> list[Event]:
        """Return the held text as text: it is no call."""
        text = "".join(self._held)
        self._held, self._scanner = [], None
        if not text:
            return []
        self._at_line = not text.rpartition("\n")[2].strip(SPACE)
        return [TextDelta(text)]

    # -- text --------------------------------------------------------------------------------------------------

    def _take(self, text: str, events: list[Event]) -> None:
        """Read text: a call may begin each line; what is none is sent as text."""
        at = 0
        while at < len(text):
            if self._scanner is not None:
                at = self._take_json(text, at, events)
            elif self._held or self._at_line:
                at = self._take_opening(text, at, events)
            else:
                end = text.find("\n", at) + 1
                self._at_line = end > 0
                end = end or len(text)
                events.append(TextDelta(text[at:end]))
                at = end

    def _take_opening(self, text: str, at: int, events: list[Event]) -> int:
        """Hold characters until they are the beginning of a call or surely none; return where reading stopped."""
        for end in range(at + 1, len(text) + 1):
            self._held.append(text[end - 1])
            held = "".join(self._held)
            found = _opening(held, fenced=self._fenced)
            if found is None:
                continue
            if found < 0:
                if self._fenced and held.strip(SPACE) == _FENCE:  # the fence around calls ends
                    self._held = []
                self._fenced = False
                events += self._give_back()
                return end
            self._scanner, self._start = JsonScanner(), found
            self._scanner.push(held[found:], 0)
            return end
        return len(text)

    def _take_json(self, text: str, at: int, events: list[Event]) -> int:
        """Read on in a JSON value that may be calls; return where reading stopped.

        When it is whole, the events of its calls are added, or its text is given back.
        """
        assert self._scanner is not None
        end = self._scanner.push(text, at)
        self._held.append(text[at:end])
        if self._scanner.problem is None and not self._scanner.done:
            return end
        held = "".join(self._held)
        calls = list(self._calls_in(held[self._start :])) if self._scanner.done else []
        if not calls or None in calls:
            events += self._give_back()
            return end
        self._fenced = self._fenced or _FENCE in held[: self._start]
        self._held, self._scanner, self._at_line = [], None, True
        written = held.lstrip(SPACE)
        self._note(written, self._passed + end - len(written), end)
        for call in calls:
            assert call is not None
            self._calls += 1
            events.append(CallStart(self._calls - 1, call.id, call.name))
            events.append(ArgumentsDelta(self._calls - 1, call.raw or ""))
            events.append(CallEnd(self._calls - 1, self._finish(call)))
        return end

    def _note(self, written: str, before: int, end: int) -> None:
        """Note the leniency of calls at their place in the whole text.

        Args:
            written: their text.
            before: the characters that came before it in ``_whole``, without the markup that the inner parser took.
            end: where it ends in the event that is read.
        """
        whole = "".join(self._whole)
        at = whole.find(written, before)
        if at < 0:  # the inner parser took markup out of it: an edit of nothing, as its place is not known
            self._own.append(lenient("bare_json", self._place))
            return
        self._own.append(lenient("bare_json", self._place + at, written))
        at += len(written)
        self._whole, self._place, self._passed = [whole[at:]], self._place + at, -end

    def _calls_in(self, text: str) -> Iterator[ToolCall | None]:
        """Yield the call that a JSON text is, or each item of its list; None for what is no call."""
        try:
            value = read_json(text)
        except ValueError:
            value = None
        for item in value if isinstance(value, list) else [value]:
            yield self._call(item)

    def _call(self, value: Any) -> ToolCall | None:
        """Return the call of a known tool that a decoded value is, with arguments or with its name alone; else None."""
        if isinstance(value, dict) and isinstance(value.get("function"), dict):
            value = value["function"]
        if not isinstance(value, dict) or value.get("name") not in self._names:
            return None
        if all(key in value for key in _ARGUMENTS):  # which are meant is not known
            return None
        arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
        if arguments is None and value.keys() - {"name", "type", "id", *_ARGUMENTS}:
            return None
        if isinstance(arguments, str):
            try:
                arguments = read_json(arguments)
            except ValueError:
                return None
        if not isinstance(arguments, dict) and arguments is not None:
            return None
        given = arguments or {}
        return ToolCall(self._new_id(), value["name"], given, raw=dump_json(given))


def _opening(held: str, *, fenced: bool) -> int | None:
    """Return where JSON that may be a call begins in the text of a line; -1: there is none; None: not known yet.

    ``'```json\n[{"name":' -> 8``, ``'{"age":' -> -1``, ``' {"na' -> None``.

    Args:
        held: the text.
        fenced: the text is inside a fence, after a call.
    """
    if len(held) > _MAX_OPENING:
        return -1
    at = _behind_space(held, 0)
    if held.startswith(_FENCE, at):
        info = _INFO.match(held, at + len(_FENCE))
        at = at + len(_FENCE) if info is None else info.end()
        if at == len(held):
            return None
        if held[at] != "\n" or fenced:
            return -1
        at = _behind_space(held, at)
    elif _FENCE.startswith(held[at:]):
        return None
    start = at
    if at < len(held) and held[at] == "[":
        at = _behind_space(held, at + 1)
    if at < len(held) and held[at] == "{":
        at = _behind_space(held, at + 1)
    elif at < len(held):
        return -1
    if at == len(held):
        return None
    end = held.find('"', at + 1)
    if held[at] != '"' or (end < 0 and len(held) - at > _MAX_KEY):
        return -1
    if end < 0:
        return None
    return start if held[at + 1 : end] in _KEYS else -1


def _behind_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in SPACE:
        at += 1
    return at
