"""Detours: alternatives to the planned string of a completion, if a dependent node forbids that.

A shortest completion is planned as if dependent nodes forbade nothing. If one forbids the planned name or item, longer
ones are tried in order of length. Each refused string repeats a name or an item, which is a part of the text, so the
length of the text bounds the number of trials.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count, islice
from typing import Any, Protocol

from ..automaton.encoding import REFUSED
from ..errors import REPORT, InternalError
from ..json import SPACE, string_start
from ..language.node_kinds import RIVALS
from ..language.nodes import Nodes
from .resolution import Resolution, States, Thread
from .written import Written

#: Maximum number of sets of positions for which the strings from there are memoised.
MAX_KEPT = 64

#: Weight of a string that `json.dumps` would spell differently. It is tried after all others, because a name has
#: exponentially many spellings, and all of them repeat it.
_UNUSUAL = 2.0**30

#: By rank: the bytes in the order in which they are tried for names, letters first.
_UNRANKED = bytes([*range(0x61, 0x7B), *range(0x30, 0x3A), *range(0x30), *range(0x3A, 0x61), *range(0x7B, 0x100)])

#: The rank of the quote; the white space of JSON.
_QUOTE, _SPACE = _UNRANKED.index(0x22), frozenset(SPACE.encode())

#: Matches an incomplete escape at the end of a string.
_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\(u[0-9a-fA-F]{0,3})?\Z")

#: The kinds of atoms that are strings.
_STRINGS = ("row", "counted")

#: The strings that were not tried yet, by the positions at which they begin; a refused string stays refused for the
#: rest of the same object.
Untried = dict[tuple[int, ...], Iterator[bytes]]


class ThreadStates(States, Protocol):
    """The part of `Automaton` that detours use."""

    def start(self, node: int) -> int:
        """Return the state before any text of a node."""

    def threads(self, state: int) -> list[Thread]:
        """Return the threads of a state, each a position in an atom and the node that follows."""

    def following(self, state: int) -> bytes:
        """Return the bytes that may come next."""

    def unpack(self, atom: int) -> tuple[Any, ...]:
        """Return a position decoded, its kind first."""


class Plan(Protocol):
    """A planned completion."""

    @property
    def length(self) -> int:
        """Its length in bytes; a control token counts as 1."""


class Completions(Protocol):
    """The part of `LazyAutomaton` that detours use."""

    nodes: Nodes
    automaton: ThreadStates
    resolution: Resolution

    def advance(self, state: int, data: bytes, before: Written, tentative: bytes = b"") -> int:
        """Return the closed state after ``data``, or `REFUSED`."""

    def fits(self, node: int, most: int) -> bool:
        """Return True if a node has a text of at most ``most`` bytes, as if dependent nodes forbade nothing."""

    def plan(self, state: int) -> Plan:
        """Return the shortest completion of a state, as if dependent nodes forbade nothing."""

    def within(self, state: int, most: int) -> int:
        """Return the state of the threads whose completions have at most ``most`` bytes, or `REFUSED`."""

    def finish_atom(self, atom: int) -> bytes:
        """Return the shortest bytes that complete an atom, from a position."""


class Detours:
    """Detours of the shortest completions of a lazy automaton.

    Args:
        source: the automaton.
    """

    def __init__(self, source: Completions) -> None:
        self._source = source
        self._memoised: dict[tuple[int, ...], tuple[list[bytes], Iterator[bytes]]] = {}

    def past(self, state: int, data: bytes, left: int, before: Written, untried: Untried) -> tuple[int, bytes]:
        """Return the state after a dependent node and the bytes that lead there: ``data``, or others if that is
        refused.

        Args:
            state: the state of the text.
            data: the planned bytes, which lead to the node.
            left: the planned number of bytes after it.
            before: the text so far.
            untried: the strings that this completion has not tried yet; changed.
        """
        source = self._source
        reached = self._through(state, data, left, before)
        direct: int | None = None  # the state after ``data``, if rivals make the rest longer than planned
        if reached != REFUSED and source.plan(reached).length > left and self._may_have_rivals(state, data):
            direct, reached = reached, REFUSED
        if reached != REFUSED and not untried:
            return reached, data
        # The string that the node may forbid, and the state before it, without threads that are longer than planned.
        begin = max(0, string_start(data, len(data) - 1)) if data.endswith(b'"') else 0
        here = source.automaton.advance(state, data[:begin])
        planned = source.within(here, left + len(data) - begin)
        here = here if planned == REFUSED else planned
        atoms = tuple(atom for atom, _ in source.automaton.threads(here))
        if reached != REFUSED:
            untried.pop(atoms, None)
            return reached, data
        if atoms not in untried:
            untried[atoms] = self._strings(atoms, here)
        # Each refused string is a part of the text, which has fewer strings than bytes.
        for string in islice(untried[atoms], len(before) + len(data) + 1):
            reached = source.advance(here, string, before, data[:begin])
            if reached == REFUSED or (direct is not None and source.plan(reached).length > left):
                continue
            if direct is not None and len(data) + source.plan(direct).length <= begin + len(string) + left:
                return direct, data  # not longer than with this string
            return reached, data[:begin] + string
        if direct is not None:
            return direct, data
        raise InternalError("a state from which the text cannot be finished", hint=REPORT)

    def _may_have_rivals(self, state: int, data: bytes) -> bool:
        """Return True if ``data`` leads from a state to the end of a deciding member (see `DistinctObjects`)."""
        automaton = self._source.automaton
        opened = automaton.step(automaton.advance(state, data[:-1]), data[-1])
        return any(self._source.nodes.args(node)[2] == RIVALS for node, _ in automaton.open_threads(opened))

    def _through(self, state: int, data: bytes, left: int, before: Written) -> int:
        """Return the state of the threads that pass a dependent node; `REFUSED` if it forbids ``data``.

        Threads that stay before the node (with another digit of a number, say) are dropped: they could look shorter
        each time, and the completion would not end.
        """
        source, nodes = self._source, self._source.nodes
        opened = source.automaton.step(source.automaton.advance(state, data[:-1]), data[-1])
        threads = source.automaton.open_threads(opened)
        if not any(source.fits(source.resolution.static(node, rest)[0], left) for node, rest in threads):
            return source.advance(state, data, before)
        before.suppose(data)
        try:
            after = nodes.alt([source.resolution.resolve(thread, before) for thread in threads])
            if nodes.is_empty(after):  # of no thread at a dependent node; others may go on
                return source.advance(state, data, before)
            return source.resolution.close(source.automaton.start(after), before)
        finally:
            before.suppose(b"")

    def _strings(self, atoms: tuple[int, ...], state: int) -> Iterator[bytes]:
        """Yield the strings that begin in a state: first those memoised for the same positions (a hundred objects may
        have the same names), then those of the state itself.

        The memoised strings may be incomplete if a string consists of several nodes, because the positions are those of
        the first node only.
        """
        if atoms not in self._memoised:
            if len(self._memoised) >= MAX_KEPT:
                self._memoised.clear()
            self._memoised[atoms] = [], _strings_from(self._source, state)
        known, more = self._memoised[atoms]
        for number in count():
            if number == len(known):  # others may have drawn further meanwhile
                string = next(more, None)
                if string is None:
                    break
                known.append(string)
            yield known[number]
        yield from _strings_from(self._source, state)


def _strings_from(source: Completions, state: int) -> Iterator[bytes]:
    """Yield the bytes from a state to the end of a string with a dependent node, the shortest first; strings that
    `json.dumps` would spell differently come last."""
    automaton = source.automaton
    # Entries: length; prefix, in ranks (so that letters come first); state; ending: empty once it was yielded.
    heap = [(0.0, b"", state, b"")]
    while heap:
        length, ranks, here, ending = heappop(heap)
        if ending:
            yield ranks.translate(_UNRANKED) + ending
            # Longer ones with this prefix come after all strings of its length.
            heappush(heap, (length + 0.5, ranks, here, b""))
            continue
        following = set(automaton.following(here))
        if 0x22 in following and _QUOTE not in ranks:  # white space before a string does not change the string
            following -= _SPACE
        for rank in range(0x100):
            byte = _UNRANKED[rank]
            if byte not in following:
                continue
            after = automaton.advance(here, bytes((byte,)))
            atoms = {atom for atom, _ in automaton.threads(after)} if after >= 0 else ()
            endings = [source.finish_atom(atom) for atom in atoms if automaton.unpack(atom)[0] in _STRINGS]
            if endings:
                ending = min(endings, key=len)
                size, longer = 1.0 + len(ranks) + len(ending), ranks + bytes((rank,))
                if length >= _UNUSUAL or _is_unusual(ranks.translate(_UNRANKED), byte):
                    size += _UNUSUAL
                if len(ending) == 1 and (not heap or heap[0][0] >= size):  # no other string is shorter
                    yield longer.translate(_UNRANKED) + ending
                    heappush(heap, (size + 0.5, longer, after, b""))
                else:
                    heappush(heap, (size, longer, after, ending))


def _is_unusual(before: bytes, byte: int) -> bool:
    """Return True if ``byte`` continues an escape in a JSON string that `json.dumps` would not write: that has ``\\n``,
    and ``\\u00..`` for those of the first 32 characters without a short escape."""
    escape = _ESCAPE.search(before)
    if escape is None:
        return False
    begun = escape[1]
    if begun is None:
        return byte not in b'"\\bfnrtu'
    if begun == b"u000":
        return byte not in b"01234567bef"  # the others have short escapes
    return byte not in (b"0", b"0", b"01", b"0123456789abcdef")[len(begun) - 1]  # the next digit of u00..
