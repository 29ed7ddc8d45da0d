"""Streaming parser of calls in the syntax of Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toolgrammar.core.conversation import CallEnd, CallStart, Event, ToolCall
from toolgrammar.core.json import dump_json

from ..literals import PYTHON, LiteralReader, unescaped
from ..template.parser import Syntax, TemplateParser

#: The names of arguments that the grammar writes: letters, digits and underscores, as in Python, and all characters of
#: most scripts.
ARGUMENT_NAME = r"[A-Za-z_\u00c0-\u1fff\u3040-\ud7ff][A-Za-z0-9_\u00c0-\u1fff\u3040-\ud7ff]*"

_NAME_AND_BRACKET = re.compile(r"(?P<name>[^\W\d][\w.\-]*)\s*\(")
_PERHAPS_NAME = re.compile(r"(?:[^\W\d][\w.\-]*\s*)?")
#: Names of arguments: Python's, and other names that the grammar writes (`ARGUMENT_NAME`), with combining marks for
#: example.
_FIRST, _REST = ARGUMENT_NAME.removesuffix("*").replace("][", "] [").split(" ")
_WORD = rf"(?:[^\W\d]|{_FIRST})(?:\w|{_REST})*"
# Compiled when they are first used, which takes milliseconds.
_KEY = rf"(?P<key>{_WORD})\s*=(?!=)\s*"
_PERHAPS_KEY = rf"(?:{_WORD}\s*)?(?:=\s*)?"

#: Maximum number of calls of a text that are looked at again for quotes that are not escaped.
MAX_MENDED = 64

#: A quote that ends an argument: another one follows, or the end of the call.
_LAST_QUOTE = {
    quote: rf"(?<!\\)(?:\\\\)*{quote}(?P<rest>\s*(?:,\s*(?P<key>{_WORD})\s*=(?!=)\s*"
    r"|,?\s*(?P<end>\))\s*(?=\Z|[\]\n<]|,\s*[^\W\d][\w.\-]*\()))"
    for quote in "'\""
}

_STRING = r"""(?:'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*")"""
#: Strings side by side, with white space between them: Python reads them as one, and a comma may be missing.
_SIDE_BY_SIDE = rf"{_STRING}(?:\s+{_STRING})+"


class PythonicCallsParser(TemplateParser):
    """Text and calls ``name(key=literal, ...)`` from a stream; arguments arrive one by one, as JSON.

    In addition to the history form it accepts other white space, both kinds of quotes (tripled too), all escapes of
    Python, tuples, JSON's ``true``, ``false`` and ``null``, a comma after the last argument or call, strings that
    contain their own quotes, and a repetition of the calls after their closing markup. Text that begins like calls and
    has none is text.
    """

    def __init__(self, syntax: Syntax, finish: Callable[[ToolCall], ToolCall], new_id: Callable[[], str]) -> None:
        super().__init__(syntax, finish, new_id)
        self._key = ""
        self._literal = LiteralReader(PYTHON, ",)")
        # Of the pieces of a malformed call, the index of the first of the value that is broken; None: no value is.
        self._value_at: int | None = None
        self._place = 0  # where that value, or what may be an echo, begins
        self._mended = 0  # calls that were read in another way
        self._said: set[tuple[str, str]] = set()  # names and arguments of the calls so far
        self._is_echo = False  # the last call was one of them
        self._held: list[Event] | None = None  # the events of what may be an echo
        self._noted = 0  # the number of leniencies before that

    @property
    def _finish_mark(self) -> str:
        """The tag that ends the calls of a turn; empty if there is none."""
        tags = [mark for mark in self._syntax.skips if mark.endswith(">") and mark not in self._syntax.triggers]
        return next((mark for mark in tags if any(mark in back for back in self._after_last)), "")

    def _step(self, events: list[Event]) -> bool:
        goes_on = super()._step(events if self._held is None else self._held)
        self._release(events)
        return goes_on

    def _release(self, events: list[Event]) -> None:
        """Send the held events of a call, once it is whole, or forget them if it is an echo."""
        if not self._held or not isinstance(self._held[-1], CallEnd):
            return
        if self._is_echo:
            self._index -= 1
            # It stays as it is: only the places are told.
            self.leniencies[self._noted :] = [
                replace(e, end=e.start, old="", new="") for e in self.leniencies[self._noted :]
            ]
            self._note_leniency("echo", at=self._place)
        else:
            events += self._held
        self._held = None

    def _between(self, events: list[Event]) -> bool:
        """Begin a call where ``name(`` stands; return False until more text is needed to tell."""
        buffer = self._buffer
        self._space.append(buffer.take_space())
        match = buffer.match(_NAME_AND_BRACKET)
        if match is not None:
            space, self._space = "".join(self._space), []
            finish = self._finish_mark
            if finish and finish in self._passed and not set(self._passed).intersection(self._syntax.triggers):
                # Behind the calls without new markup before it: perhaps an echo, which is known at its end.
                self._held, self._place, self._noted = [], buffer.place, len(self.leniencies)
                events = self._held
            self._come_to_call("", space)
            self._name = match["name"]
            self._call_text = [buffer.take(match.end())]
            self._id = self._new_id()
            events.append(CallStart(self._index, self._id, self._name))
            self._open_arguments(events)
            self._state = self._read_key
            return True
        if not self._final and _PERHAPS_NAME.fullmatch(buffer.text, buffer.position):
            return False
        return super()._between(events)

    def _read_key(self, events: list[Event]) -> bool:
        """Read the name of an argument, or the end of the call."""
        buffer = self._buffer
        buffer.take_space()
        if buffer.startswith(")"):
            buffer.skip(1)
            return self._close_arguments(events)
        if buffer.startswith(",") and self._values:
            buffer.skip(1)
            return True
        match = buffer.match(re.compile(_KEY))
        # The name, or the white space after "=", may go on in the next piece of the text.
        if match is None or (match.end() == len(buffer.text) and not self._final):
            if match is None and not re.compile(_PERHAPS_KEY).fullmatch(buffer.text, buffer.position):
                return self._give_up("expected an argument's name, '=' and a value", events)
            return self._unfinished(events)
        self._key = match["key"]
        self._call_text.append(buffer.take(match.end()))
        if self._key in self._values:
            return self._give_up(f"the argument {self._key!r} is repeated", events)
        self._literal = LiteralReader(PYTHON, ",)")
        self._state = self._read_value
        return True

    def _read_value(self, events: list[Event]) -> bool:
        """Read on in the value of an argument; a malformed one is kept for `_mend`."""
        literal = self._literal
        if not literal.take(self._buffer):
            is_given_up = self._unfinished(events, literal.pieces)
            if is_given_up and self._problem != ToolCall.ENDS_INSIDE:
                self._value_at, self._place = len(self._call_text), self._buffer.place
            return is_given_up
        if literal.problem is not None:
            self._value_at, self._place = len(self._call_text), self._buffer.place
            return self._give_up(literal.problem, events)
        self._add_argument(self._key, literal.value, literal.json, events)
        self._call_text.append(literal.text)
        self._state = self._read_key
        return True

    def _end_call(self, arguments: dict[str, Any], raw: str, events: list[Event]) -> bool:
        self._is_echo = (self._name, raw) in self._said
        self._said.add((self._name, raw))
        return super()._end_call(arguments, raw, events)

    def _mend(self, events: list[Event]) -> bool:
        """Read strings that hold the quotes around them: each ends where another argument or the call's end follows.

        ``'O'Neil', b="x")`` is ``O'Neil``, and then the argument ``b``.
        """
        is_tried = self._value_at is not None and self._mended < MAX_MENDED
        text = "".join(self._call_text[self._value_at :]) if is_tried else ""
        self._value_at = None
        found: list[tuple[str, str]] = []
        escaped: list[str] = []  # the text with the quotes in its strings escaped, in pieces
        key, at = self._key, 0
        while text[at : at + 1] in ("'", '"') and key not in self._values and key not in dict(found):
            last_quote = re.compile(_LAST_QUOTE[text[at]]).search(text, at + 1)
            if last_quote is None or re.compile(_SIDE_BY_SIDE).fullmatch(text, at, last_quote.start("rest")):
                return False
            try:
                found.append((key, unescaped(text[at + 1 : last_quote.start("rest") - 1])))
            except ValueError:
                return False
            escaped += [dump_json(found[-1][1]), last_quote["rest"]]
            at = last_quote.end()
            if last_quote["end"]:
                for name, value in found:
                    self._add_argument(name, value, dump_json(value), events)
                self._note_leniency("unescaped_quote", text[:at], "".join(escaped), at=self._place)
                self._mended += 1
                self._buffer.unread(text[at:])
                return self._close_arguments(events)
            key = last_quote["key"]
        return False
