"""`Reader`: the marks that a text passes in a reading grammar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..automaton.encoding import OPENED, REFUSED
from ..errors import LimitError
from ..language.node_kinds import CONTROL, EMPTY
from ..language.reading_marks import ReadingMark
from .calls import ReadCall, calls_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..automaton.lazy_dfa import Program
    from ..grammar import Grammar

#: Number of bytes that are read at once, up to the next mark.
_PIECE = 64

#: Maximum number of ways to read a text that are followed; of more, the first.
MAX_WAYS = 64

#: Maximum number of times that the store grows for one text.
_MAX_GROWTHS = 4

#: A mark that was passed, after its place in the text (index of a byte).
Passed = tuple[int, ReadingMark]


@dataclass(frozen=True)
class _Trail:
    """The last mark that one of several ways passes, and the trail before it."""

    before: _Trail | None
    passed: Passed


#: A way to read the text so far: its state, and the marks that not all ways pass.
_Way = tuple[int, _Trail | None]

#: A way from a state past marks: the marks in order, and the state after them.
_Passage = tuple[tuple[ReadingMark, ...], int]


def _marks_of(trail: _Trail | None) -> list[Passed]:
    """Return the marks of a trail, in order."""
    marks = []
    while trail is not None:
        marks.append(trail.passed)
        trail = trail.before
    return marks[::-1]


class Reader:
    """Reads texts of a reading grammar, each in pieces. A thread is followed as a state of the automaton with the marks
    that it passes; threads that pass the same marks are one state.

    Law: if a text can be read in several ways, the first counts: one that passes no mark yet, then marks in their order
    (`ReadingMark`). A text has several only where the grammar is ambiguous.

    Args:
        grammar: the reading grammar; its automaton is derived as texts need it, and shared by its readers.

    Attributes:
        text: the text so far; a control token is the byte `CONTROL`.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.text = bytearray()
        self._program: Program = grammar.program
        self._automaton = self._program.automaton
        self._marks: list[Passed] = []  # that all ways pass
        self._after: dict[int, list[_Passage]] = {}  # by state, the result of `_beyond`
        with self._program.lock:
            # Not the start of the program, in which dependent nodes are resolved: a mark may begin the text.
            self._ways = self._settled([(self._automaton.start(self._program.root), None)])

    @property
    def passed(self) -> Sequence[Passed]:
        """The marks so far, each with its place in `text`."""
        return [*self._marks, *_marks_of(self._ways[0][1] if self._ways else None)]

    def calls(self, text: bytes) -> list[ReadCall]:
        """Return the calls of the text, given as bytes."""
        return calls_of(self.passed, text)

    @property
    def is_lost(self) -> bool:
        """True if the text is not one of the grammar."""
        return not self._ways

    def read(self, text: bytes, controls: Sequence[str]) -> None:
        """Read a text, in which a control token is `CONTROL`, given the names of its control tokens."""
        first, *others = text.split(CONTROL)
        self.feed(first)
        for name, part in zip(controls, others, strict=False):
            self.feed_control(name)
            self.feed(part)

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        at = 0
        while at < len(data) and self._ways:
            at += self._with_room(lambda: self._read(data[at : at + _PIECE]))  # noqa: B023
        self.text += data[at:]

    def feed_control(self, name: str) -> None:
        """Read a control token."""
        self.text += CONTROL
        specials = self._program.store.specials
        number = specials.index(name) if name in specials else -1  # which no state reads

        def read() -> int:
            steps = ((self._automaton.advance_special(state, number), trail) for state, trail in self._ways)
            self._ways = self._settled([way for way in steps if way[0] != REFUSED])
            return 1

        self._with_room(read)

    def end(self) -> None:
        """End the text: ways that may end here come first."""
        with self._program.lock:
            self._ways.sort(key=lambda way: not self._automaton.accepts(way[0]))

    def _with_room(self, read: Callable[[], int]) -> int:
        """Return the number of bytes that a function reads; the store grows as the text needs, within bounds."""
        with self._program.lock:
            for _ in range(_MAX_GROWTHS):
                try:
                    return read()
                except LimitError:
                    self._program.store.grow()
            self._ways = []
        return 0

    def _read(self, data: bytes) -> int:
        """Read bytes up to the next mark; return their number. A single way may read several at once."""
        automaton = self._automaton
        state, trail = self._ways[0]
        size = 1
        if len(self._ways) > 1:
            steps = [(automaton.step(state, data[0]), trail) for state, trail in self._ways]
        else:
            after = automaton.advance(state, data, False)
            if after >= 0:
                self._ways = [(after, trail)]
                self.text += data
                return len(data)
            if after <= OPENED:  # at a mark, after so many bytes
                size = OPENED - after + 1
                after = automaton.step(automaton.advance(state, data[: size - 1], False), data[size - 1])
            steps = [(after, trail)]
        ways = [way for way in steps if way[0] != REFUSED]
        before = len(self.text)
        self.text += data[:size]
        try:
            self._ways = self._settled(ways)
        except LimitError:
            del self.text[before:]
            raise
        return size

    def _settled(self, ways: list[_Way]) -> list[_Way]:
        """Return the ways beyond all marks at the end of the text."""
        at = len(self.text)
        found: dict[int, _Trail | None] = {}
        for state, trail in ways:
            for marks, after in self._beyond(state):
                if after not in found and len(found) < MAX_WAYS:
                    passed = trail
                    for mark in marks:
                        passed = _Trail(passed, (at, mark))
                    found[after] = passed
        if len(found) != 1:
            return list(found.items())
        ((state, trail),) = found.items()
        self._marks += _marks_of(trail)
        return [(state, None)]

    def _beyond(self, state: int) -> list[_Passage]:
        """Return the states beyond the marks at a state, each with the marks before it; dependent nodes that are no
        marks count as their static language, as a text that was written has what they ask for."""
        found = self._after.get(state)
        if found is None:
            found = self._after[state] = self._pass(state)
        return found

    def _pass(self, state: int) -> list[_Passage]:
        """Return the ways past the marks at which threads of a state wait, best first."""
        automaton, nodes = self._automaton, self._program.store.nodes
        if not (waiting := automaton.open_threads(state)):
            return [((), state)]
        by_mark: dict[ReadingMark, set[tuple[int, int]]] = {}
        unmarked: dict[tuple[int, int], int] = {}  # by thread, the node of the way that passes no mark
        for node, rest in waiting:
            static, resolve, _ = nodes.args(node)
            if isinstance(resolve, ReadingMark):
                by_mark.setdefault(resolve, set()).add((node, rest))
                unmarked[node, rest] = EMPTY
            else:
                unmarked[node, rest] = nodes.seq(static, rest)
        found = []
        if (after := automaton.resolve(state, unmarked)) != REFUSED:
            found += self._beyond(after)
        for mark in sorted(by_mark, key=lambda mark: mark.order):  # only its threads, beyond it
            threads = by_mark[mark]
            positions = {(automaton.dependent_position(node), rest) for node, rest in threads}
            after = automaton.resolve(automaton.narrowed(state, positions), {thread: thread[1] for thread in threads})
            found += [((mark, *more), target) for more, target in self._beyond(after)]
        return found
