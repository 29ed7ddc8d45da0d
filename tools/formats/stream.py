"""Text buffer, marker search and base class of the streaming parsers.

A parser of a wire format reads text that arrives in pieces of any size. Its time must be linear in any text, so it
never copies or searches a part twice: `TextBuffer` is read by position, `MarkerSearch` searches from there, and an
undecided text is examined again only after it has grown by a quarter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from toolgrammar.core.basics import memoised_if_short
from toolgrammar.core.conversation import Event
from toolgrammar.core.errors import ParseError
from toolgrammar.core.json import SPACES
from toolgrammar.core.repair import Edit

from .leniencies import Leniency, lenient

#: Maximum of undecided characters at which each new piece is examined; beyond it, only growth by a quarter is.
_ALWAYS = 1024


class MarkerSearch:
    """Search for the first of several strings in text that may end in the middle of one.

    Where several begin at one place, the longest counts.

    Args:
        marks: the strings, none of them empty.
    """

    def __init__(self, marks: Iterable[str]) -> None:
        longest_first = sorted(set(marks), key=len, reverse=True)
        whole = "|".join(map(re.escape, longest_first)) or r"(?!)"  # without marks, nothing matches
        begun = [f"(?:{_beginnings(mark)})" for mark in longest_first if len(mark) > 1]
        self._whole = re.compile(whole)
        self._whole_or_begun = re.compile("|".join((*begun, f"(?P<mark>{whole})")))

    def search(self, text: str, position: int, *, final: bool) -> tuple[int, str]:
        """Return the position of the first mark, and the mark.

        Without one, the mark is empty, and the position is where the rest of the text may be the beginning of one, or
        the end of the text; if ``final``, always that end.
        """
        match = (self._whole if final else self._whole_or_begun).search(text, position)
        if match is None:
            return len(text), ""
        return match.start(), match.group() if final else match["mark"] or ""

    def at(self, text: str, position: int, *, final: bool) -> str | None:
        """Return the mark at a position: empty if there is none, None if more text has to decide."""
        match = (self._whole if final else self._whole_or_begun).match(text, position)
        if match is None:
            return ""
        return match.group() if final else match["mark"]


def _beginnings(mark: str) -> str:
    """Return a regular expression of the proper prefixes of a string at the end of the text: of ``"</f"`` those of
    ``"<"`` and ``"</"``."""
    pattern = r"\Z"
    for char in reversed(mark[1:-1]):
        pattern = rf"(?:\Z|{re.escape(char)}{pattern})"
    return re.escape(mark[0]) + pattern


@memoised_if_short(1_024)
def marker_search(marks: tuple[str, ...]) -> MarkerSearch:
    """Return the compiled search for these marks, cached."""
    return MarkerSearch(marks)


class TextBuffer:
    """Text that has arrived and is not consumed yet: ``text`` from ``position`` on.

    What was consumed stays in ``text`` before ``position`` until the next `load`, which drops it. After `keep`, what
    was consumed since is kept in two parts: ``_kept`` has the dropped pieces, and ``text`` the rest, from
    ``_kept_from`` to ``position``.
    """

    __slots__ = ("_end", "_kept", "_kept_from", "_new", "_size", "_wanted", "position", "text")

    def __init__(self) -> None:
        self.text = ""
        self.position = 0
        self._new: list[str] = []  # pieces that were pushed and are not loaded yet
        self._end = 0  # where ``text`` ends in all that was pushed
        self._size = 0  # number of characters that are not consumed, loaded or not
        self._wanted = 0  # the size from which a parser looks again
        self._kept: list[str] | None = None  # None: nothing is kept
        self._kept_from = 0

    def push(self, piece: str) -> bool:
        """Add a piece of text; return whether to `load` and parse now.

        False after a long undecided text, until it has grown by a quarter (`settle`): a parser that looked at it after
        each piece would take quadratic time.
        """
        self._new.append(piece)
        self._size += len(piece)
        return self._size >= self._wanted

    def load(self) -> None:
        """Append what was pushed to ``text``, and drop from it what is consumed: ``position`` becomes 0.

        After `keep`, the dropped text is saved for `restore`.
        """
        if self._new:
            self._end += sum(map(len, self._new))
            if self._kept is not None:
                self._kept.append(self.text[self._kept_from : self.position])
                self._kept_from = 0
            if self.position < len(self.text):
                self._new.insert(0, self.text[self.position :])
            self.text = self._new[0] if len(self._new) == 1 else "".join(self._new)
            self.position = 0
            self._new = []

    def settle(self) -> None:
        """Note that what is left is undecided."""
        self._size = len(self.text) - self.position
        self._wanted = 0 if self._size <= _ALWAYS else self._size + self._size // 4

    @property
    def origin(self) -> int:
        """The place of the beginning of ``text`` in all that was pushed."""
        return self._end - len(self.text)

    @property
    def place(self) -> int:
        """The place of the next character in all that was pushed."""
        return self.origin + self.position

    @property
    def is_empty(self) -> bool:
        """All text was consumed."""
        return self.position >= len(self.text)

    def startswith(self, marks: str | tuple[str, ...]) -> bool:
        """Return True if the text begins with the mark, or with one of them."""
        return self.text.startswith(marks, self.position)

    def may_begin(self, marks: Iterable[str]) -> bool:
        """Return True if the whole text is a proper prefix of one of the marks, so that more text has to decide."""
        size = len(self.text) - self.position
        rest: str | None = None
        for mark in marks:
            if len(mark) > size:
                if rest is None:
                    rest = self.text[self.position :]
                if mark.startswith(rest):
                    return True
        return False

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match a pattern at the beginning of the text; nothing is taken."""
        return pattern.match(self.text, self.position)

    def take(self, end: int) -> str:
        """Take the text up to a position."""
        piece = self.text[self.position : end]
        self.position = end
        return piece

    def take_all(self) -> str:
        """Take the whole text."""
        return self.take(len(self.text))

    def take_before(self, marks: MarkerSearch, *, final: bool) -> tuple[str, str]:
        """Take the text before the first mark; return it and the mark, which stays in the buffer.

        The mark is empty if there is none yet; a possible prefix of a mark stays too, unless the text is ``final``.
        """
        end, mark = marks.search(self.text, self.position, final=final)
        return self.take(end), mark

    def skip(self, count: int) -> None:
        """Take as many characters."""
        self.position += count

    def take_space(self) -> str:
        """Take the white space at the beginning."""
        match = SPACES.match(self.text, self.position)
        return self.take(match.end()) if match else ""

    def unread(self, piece: str) -> None:
        """Give back what was just taken: it stands before the rest of the text again."""
        if self.text.endswith(piece, 0, self.position):
            self.position -= len(piece)
            self._kept_from = min(self._kept_from, self.position)
        else:  # `load` has dropped some of it from `text`
            if self._kept is not None:  # the end of what is kept is the piece: take it out
                taken = "".join((*self._kept, self.text[self._kept_from : self.position]))
                self._kept, self._kept_from = [taken[: max(0, len(taken) - len(piece))]], 0
            self.text = piece + self.text[self.position :]
            self.position = 0

    def keep(self) -> None:
        """Keep what is taken from now on, for `restore`."""
        self._kept, self._kept_from = [], self.position

    def forget(self) -> None:
        """Keep nothing any more."""
        self._kept = None

    def restore(self) -> None:
        """Give back all that was taken since `keep`."""
        if self._kept is not None:
            self.text = "".join((*self._kept, self.text[self._kept_from :]))
            self.position, self._kept = 0, None


class StreamParser:
    """Base of the streaming parsers: states that read a buffer until they need more text.

    A state is a method that takes text from ``_buffer`` and appends events; it returns True if another step can be made
    at once. ``_final`` is set when no more text comes.

    Attributes:
        leniencies: the deviations of the text from the format, as edits of the text.
    """

    _state: Callable[[list[Event]], bool]

    def __init__(self) -> None:
        self._buffer = TextBuffer()
        self._final = False
        self.leniencies: list[Edit] = []

    def feed(self, text: str) -> list[Event]:
        """Take the next piece; return what has become certain.

        Raises:
            ParseError: the parser was closed.
        """
        if self._final:
            raise ParseError("the parser is closed", hint="make a new parser for each text")
        return self._run() if self._buffer.push(text) else []

    def close(self) -> list[Event]:
        """Say that the text is over; return the rest.

        A whole call without its closing markup is a call; one inside of which the text ends is malformed.
        """
        if self._final:
            return []
        self._final = True
        return self._run()

    def _run(self) -> list[Event]:
        """Make steps until more text is needed; return their events."""
        events: list[Event] = []
        self._buffer.load()
        while self._step(events):
            pass
        self._buffer.settle()
        return events

    def _step(self, events: list[Event]) -> bool:
        """Let the state take what it can; return whether another step can be made at once."""
        return self._state(events)

    def _note_leniency(self, name: Leniency, old: str = "", new: str = "", *, at: int | None = None) -> None:
        """Note a leniency, at the next character if no place is given."""
        self.leniencies.append(lenient(name, self._buffer.place if at is None else at, old, new))
