"""Detours: other strings than the planned one, where a dependent node forbids that.

A shortest completion is planned as if dependent nodes forbade nothing. Where one forbids the name or the item that was
planned, the next longer ones are tried, one after the other. Each that is refused repeats a name or an item, which has
its own part of the text, so the number of trials is bounded by the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import islice
from typing import Any, Protocol

from ..automaton.encoding import REFUSED
from ..language.json_text import SPACE, string_start
from ..language.nodes import Nodes
from .resolution import Resolution, States, Thread
from .written import Written

#: Maximum number of string beginnings for which the strings that follow are kept.
MAX_KEPT = 64

#: Weight of a string whose spelling is not that of `json.dumps`: it comes after all others, since a name has
#: exponentially many spellings, all of them repeated if one is.
_UNUSUAL = 2.0**30

#: Bytes in the order in which they are tried for names: letters first, so that names look like names.
_UNRANKED = bytes([*range(0x61, 0x7B), *range(0x30, 0x3A), *range(0x30), *range(0x3A, 0x61), *range(0x7B, 0x100)])

#: The quote in that order; the white space of JSON.
_QUOTE, _SPACE = _UNRANKED.index(0x22), frozenset(SPACE.encode())

#: The end of a string in the midst of an escape.
_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\(u[0-9a-fA-F]{0,3})?\Z")

#: The kinds of atoms that are strings.
_STRINGS = ("row", "counted")

#: The strings that are left to try, by the positions at which they begin: what is refused once is refused for the rest
#: of the same object.
Tried = dict[tuple[int, ...], Iterator[bytes]]


class ThreadStates(States, Protocol):
    """The automaton, as far as detours need it."""

    def start(self, node: int) -> int:
        """Return the state before any text of a node."""

    def threads(self, state: int) -> list[Thread]:
        """Return the threads of a state, each a position in an atom and the node that follows."""

    def following(self, state: int) -> bytes:
        """Return the bytes that may come next."""

    def unpack(self, atom: int) -> tuple[Any, ...]:
        """Return a position in an atom, its kind first."""


class Completions(Protocol):
    """A lazy automaton that finds shortest texts."""

    nodes: Nodes
    automaton: ThreadStates
    resolution: Resolution

    def advance(self, state: int, data: bytes, before: Written, behind: bytes = b"") -> int:
        """Return the closed state after ``data``, or `REFUSED`."""

    def fits(self, node: int, most: int) -> bool:
        """Return True if a node has a text of at most ``most`` bytes, if dependent nodes forbid nothing."""

    def within(self, state: int, most: int) -> int:
        """Return a state with the threads of another that need at most ``most`` bytes to the end, or `REFUSED`."""

    def finish_atom(self, atom: int) -> bytes:
        """Return the shortest bytes that complete an atom."""


class Detours:
    """Detours of the shortest completions of a lazy automaton.

    Args:
        source: the automaton.
    """

    def __init__(self, source: Completions) -> None:
        self._source = source
        self._kept: dict[tuple[int, ...], tuple[list[bytes], Iterator[bytes]]] = {}

    def past(self, state: int, data: bytes, left: int, before: Written, tried: Tried) -> tuple[int, bytes]:
        """Return the state after a dependent node and the bytes that lead there: ``data``, or others if it is refused.

        Args:
            state: the state of the text.
            data: bytes that lead to the node.
            left: the planned length of the text after it.
            before: the text so far.
            tried: what the detours of the same completion have tried.
        """
        source = self._source
        reached = self._through(state, data, left, before)
        if reached != REFUSED and not tried:
            return reached, data
        begin = max(0, string_start(data, len(data) - 1)) if data.endswith(b'"') else 0
        near = source.automaton.advance(state, data[:begin])
        planned = source.within(near, left + len(data) - begin)
        near = near if planned == REFUSED else planned
        atoms = tuple(atom for atom, _ in source.automaton.threads(near))
        if reached != REFUSED:
            tried.pop(atoms, None)
            return reached, data
        if atoms not in tried:
            tried[atoms] = self._strings(atoms, near)
        for string in islice(tried[atoms], len(before) + len(data) + 1):
            reached = source.advance(near, string, before, data[:begin])
            if reached != REFUSED:
                return reached, data[:begin] + string
        raise AssertionError("a state from which the text cannot be finished")

    def _through(self, state: int, data: bytes, left: int, before: Written) -> int:
        """Return the state after a dependent node with only the threads that pass it; `REFUSED` if it is forbidden.

        Threads that stay before the node (with another digit of a number, say) could look shorter again and again, so
        that a completion would not end.
        """
        source, nodes = self._source, self._source.nodes
        opened = source.automaton.step(source.automaton.advance(state, data[:-1]), data[-1])
        threads = source.automaton.open_threads(opened)
        if not any(source.fits(source.resolution.static(node, rest)[0], left) for node, rest in threads):
            return source.advance(state, data, before)
        before.suppose(data)
        try:
            after = nodes.alt([source.resolution.resolve(thread, before) for thread in threads])
            if nodes.is_empty(after):
                return REFUSED
            return source.resolution.close(source.automaton.start(after), before)
        finally:
            before.suppose(b"")

    def _strings(self, atoms: tuple[int, ...], state: int) -> Iterator[bytes]:
        """Yield the strings that begin in a state, those first that were found from the same positions before: each of
        a hundred objects in an object has the same names.

        They do not depend on what follows the string, but where a string is put together of several nodes; so those of
        the state itself come last.
        """
        known = self._kept.get(atoms)
        if known is None:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            known = self._kept[atoms] = [], _strings_from(self._source, state)
        found, more = known
        at = 0
        while True:
            if at == len(found):
                string = next(more, None)
                if string is None:
                    break
                found.append(string)
            yield found[at]
            at += 1
        yield from _strings_from(self._source, state)


def _strings_from(source: Completions, state: int) -> Iterator[bytes]:
    """Yield the bytes that lead from a state to a dependent node at the end of a string, the shortest first; those that
    `json.dumps` would spell otherwise come last."""
    automaton = source.automaton
    heap = [(0.0, b"", state, b"")]  # length, data (in the order of `_UNRANKED`), state, ending
    while heap:
        length, data, here, ending = heappop(heap)
        if ending:
            yield data.translate(_UNRANKED) + ending
            heappush(heap, (length + 0.5, data, here, b""))  # longer ones that begin so
            continue
        following = set(automaton.following(here))
        if 0x22 in following and _QUOTE not in data:  # white space before a string makes no other string of it
            following -= _SPACE
        for byte in range(0x100):
            if _UNRANKED[byte] not in following:
                continue
            then = automaton.advance(here, _UNRANKED[byte : byte + 1])
            atoms = {atom for atom, _ in automaton.threads(then)} if then >= 0 else ()
            endings = [source.finish_atom(atom) for atom in atoms if automaton.unpack(atom)[0] in _STRINGS]
            if endings:
                ending = min(endings, key=len)
                size, longer = 1.0 + len(data) + len(ending), data + bytes((byte,))
                if length >= _UNUSUAL or _is_unusual(data.translate(_UNRANKED), _UNRANKED[byte]):
                    size += _UNUSUAL
                if len(ending) == 1 and (not heap or heap[0][0] >= size):  # no other is shorter
                    yield longer.translate(_UNRANKED) + ending
                    heappush(heap, (size + 0.5, longer, then, b""))
                else:
                    heappush(heap, (size, longer, then, ending))


def _is_unusual(before: bytes, byte: int) -> bool:
    """Return True if a byte goes on with an escape in a JSON string that `json.dumps` would not write there."""
    escape = _ESCAPE.search(before)
    if escape is None:
        return False
    begun = escape[1]
    if begun is None:
        return byte not in b'"\\bfnrtu'
    if begun == b"u000":
        return byte not in b"01234567bef"  # the others have short escapes
    return byte not in (b"0", b"0", b"01", b"0123456789abcdef")[len(begun) - 1]
