"""Resolution of dependent nodes: the three questions, asked of the states of an automaton."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..automaton.encoding import OPENED, REFUSED
from ..language.node_kinds import ALL, DYNAMIC, REPEATED_NAMES
from ..language.nodes import Nodes
from .written import Written

#: Maximum number of continuations of a text, and of bytes in each, whose closed states are memoised with the text.
MAX_CLOSED, LONGEST_DATA = 256, 4_096

#: Maximum number of open states whose dependent nodes and closed states are memoised.
MAX_STATES = 4_096

#: Estimated bytes of each of these entries, with its key.
ENTRY_BYTES = 250

#: A thread at a dependent node: the node, and the node that follows it.
Thread = tuple[int, int]


def bound(nodes: Nodes, node: int) -> tuple[int, int]:
    """Return the static language of a dependent node, and the continuations that it may forbid (see `node_kinds`)."""
    static, _, forbids = nodes.args(node)
    return static, forbids


def planned_language(nodes: Nodes, node: int) -> tuple[int, bool]:
    """Return the language from which a completion of a dependent node is planned, as a node, and True if no text can
    forbid it: of live values, a text of the length that is kept for them; else the static language. The node is
    -1 for a node of another kind."""
    if nodes.kind(node) != DYNAMIC:
        return -1, True
    static, resolve, forbids = nodes.args(node)
    return (resolve.planned(), True) if forbids == ALL else (static, False)


class States(Protocol):
    """The part of `Automaton` that `Resolution` uses."""

    def advance(self, state: int, data: bytes, whole: bool = True) -> int:
        """Return the state after ``data``, `REFUSED`, or ``OPENED - n`` if it is open after byte ``n``."""

    def step(self, state: int, byte: int) -> int:
        """Return the state after one byte, which may be open, or `REFUSED`."""

    def cut(self, state: int) -> int:
        """Return a state with the threads that have the shortest completions, if there are too many."""

    def open_threads(self, state: int) -> list[Thread]:
        """Return the threads of a state at dependent nodes."""

    def thread_count(self, state: int) -> int:
        """Return the number of threads of a state."""

    def accepts(self, state: int) -> bool:
        """Return True if the text may end in a state."""

    def resolve(self, state: int, replaced: Mapping[Thread, int]) -> int:
        """Return an open state with each of these threads replaced by a node; `REFUSED` if no thread remains."""


class Resolution:
    """The dependent nodes of a store, and the open states of its automaton.

    Args:
        nodes: the store.
        states: the automaton.
    """

    def __init__(self, nodes: Nodes, states: States) -> None:
        self._nodes = nodes
        self._states = states
        self._threads: dict[int, list[Thread]] = {}
        self._closed: dict[tuple[int, ...], int] = {}
        self._names_end: dict[tuple[int, bytes], bool] = {}

    def byte_count(self) -> int:
        """Return the bytes of the memoised results (estimated)."""
        return ENTRY_BYTES * (len(self._threads) + len(self._closed) + len(self._names_end))

    # -- the three questions -----------------------------------------------------------------------------------

    def static(self, node: int, rest: int) -> tuple[int, int]:
        """Return the static language of a dependent node, followed by ``rest``, as a node; and the continuations that
        the dependent node may forbid (see `node_kinds`)."""
        static, forbids = bound(self._nodes, node)
        return self._nodes.seq(static, rest), forbids

    def resolve(self, thread: Thread, before: Written) -> int:
        """Return the node of a thread's language after a text; EMPTY if it has no text."""
        node, rest = thread
        _, resolve, _ = self._nodes.args(node)
        return self._followed(resolve(before), rest)

    def _followed(self, node: int, rest: int) -> int:
        """Return a node followed by another one; EMPTY if that has no text."""
        both = self._nodes.seq(node, rest)
        return self._nodes.EMPTY if self._nodes.is_empty(both) else both

    def ends_a_name(self, state: int, data: bytes) -> bool:
        """Return True if ``data`` leads from a state to the end of a name and to no other position; then it is
        forbidden iff it is one of `Written.endings`."""
        key = state, data
        known = self._names_end.get(key)
        if known is None:
            if len(self._names_end) >= MAX_STATES:
                self._names_end.clear()
            known = self._names_end[key] = self._ends_a_name(state, data)
        return known

    def _ends_a_name(self, state: int, data: bytes) -> bool:
        """Return True if the last byte of ``data`` ends a name (and nothing else may end there), so that the name may
        be a repeated one."""
        states = self._states
        if states.advance(state, data) != OPENED - len(data) + 1:  # open after the last byte, and not before
            return False
        end = states.step(states.advance(state, data[:-1], False), data[-1])
        threads = states.open_threads(end)
        return (
            len(threads) == states.thread_count(end)
            and not states.accepts(end)
            and all(self._nodes.args(node)[2] == REPEATED_NAMES for node, _ in threads)
        )

    # -- open states -------------------------------------------------------------------------------------------

    def advance(self, state: int, data: bytes, result: int, before: Written, tentative: bytes = b"") -> int:
        """Return the state after ``data``, which is closed; or `REFUSED`.

        Args:
            state: the state of the text.
            data: the bytes that continue it.
            result: the automaton's result for them, with the index of the byte after which the state is open.
            before: the text so far.
            tentative: text between ``before`` and ``data``, which is not final.
        """
        states = self._states
        done = 0
        try:
            while result <= OPENED:
                size = OPENED - result  # number of bytes before the one after which the state is open
                if size:
                    state = states.advance(state, data[done : done + size], False)
                state = states.step(state, data[done + size])
                done += size + 1
                state = self._close_after(state, before, tentative + data[:done])
                if state == REFUSED:
                    return state
                if done == len(data):
                    return states.cut(state)
                result = states.advance(state, data[done:])
            return result
        finally:
            before.suppose(b"")

    def _close_after(self, state: int, before: Written, data: bytes) -> int:
        """Return `close` of a state after a text and ``data``, memoised with the text."""
        # The tokens of one mask, and the token chosen from it, reach the same few nodes.
        key = state, data
        closed = before.closed.get(key)
        if closed is None:
            before.suppose(data)
            closed = self.close(state, before)
            if len(data) <= LONGEST_DATA:
                if len(before.closed) >= MAX_CLOSED:
                    before.closed.clear()
                before.closed[key] = closed
        return closed

    def close(self, state: int, before: Written) -> int:
        """Return an open state with each dependent node replaced by its language after a text; or `REFUSED`. These
        languages may begin with dependent nodes, which are replaced in turn."""
        while state != REFUSED:
            threads = self._threads.get(state)
            if threads is None:
                if len(self._threads) >= MAX_STATES:
                    self._threads.clear()
                threads = self._threads[state] = self._states.open_threads(state)
            if not threads:
                break
            resolved = [self._nodes.args(node)[1](before) for node, _ in threads]
            key = (state, *resolved)
            closed = self._closed.get(key)
            if closed is None:
                after = {
                    thread: self._followed(node, thread[1]) for thread, node in zip(threads, resolved, strict=True)
                }
                if len(self._closed) >= MAX_STATES:
                    self._closed.clear()
                closed = self._closed[key] = self._states.resolve(state, after)
            state = closed
        return state
