"""Warming: states and masks that a text may need, derived before it is written."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..automaton.encoding import FINISHED, RAW
from ..errors import ToolGrammarError
from ..language.node_kinds import CONTROL

if TYPE_CHECKING:
    from ..automaton.lazy_dfa import LazyAutomaton
    from .masks import Masks

#: Default maximum time of one call, in seconds.
WARM_SECONDS = 0.005

#: Maximum number of states that are visited for one constraint.
MAX_STATES = 20_000
#: Maximum number of literals followed by the same node (values of an enum, for example) that are visited.
MAX_ALIKE = 4
#: Maximum share of a store's memory, and of that of its masks, that warming fills.
MAX_SHARE = 0.5
#: Number of states after which that share is tested again.
ROUND = 32

#: Bytes that are tried inside strings, numbers and whitespace, in addition to the shortest completion.
_PROBES = (b"a", b"1", b" ", b'"')


@dataclass(frozen=True)
class Warmed:
    """Report of one call of `Constraint.warm`.

    Attributes:
        states: number of states visited, each with its mask.
        seconds: time taken.
        bytes: memory added.
        is_complete: no states are left to visit.
    """

    states: int
    seconds: float
    bytes: int
    is_complete: bool


class Bound(Protocol):
    """The part of `Constraint` that warming uses."""

    words: int
    mask_memory: int

    @property
    def masks(self) -> Masks:
        """The masks of new matchers."""

    def byte_count(self) -> int:
        """Return the size in bytes."""


class Text(Protocol):
    """The part of `Matcher` that warming uses."""

    @property
    def _place(self) -> tuple[Any, int]: ...

    def fill_mask(self, out: Any) -> None:
        """Write the mask."""

    def accept(self, token_id: int) -> bool:
        """Advance by a token."""

    def accept_bytes(self, data: bytes) -> bool:
        """Advance by bytes."""


class Frontier:
    """A breadth-first visit of a store's states, which can be interrupted and resumed.

    From each state it follows the shortest completion of every atom, and a few bytes that are frequent in strings,
    numbers and whitespace. A visit does what a text would do in the state: it computes the mask, and expands the rules
    that may follow.

    Args:
        store: the store.
        special: the control tokens by name.
        start: the state and the text to begin with.
    """

    def __init__(self, store: LazyAutomaton, special: Mapping[str, int], start: tuple[int, bytes]) -> None:
        self.store = store
        self._special = special
        self.lock = Lock()
        self._seen = {start[0]}
        self._todo = deque([start])
        self._text_bytes = 0

    def byte_count(self) -> int:
        """Return the bytes of the states and of the texts that are to be visited (estimated)."""
        return 100 * len(self._seen) + 150 * len(self._todo) + self._text_bytes

    def visit(
        self,
        constraint: Bound,
        matcher_at: Callable[[int, bytes], Text],
        seconds: float,
        max_bytes: int | None,
        stop: Callable[[], bool] | None,
    ) -> Warmed:
        """Visit states until the budget is spent; see `Constraint.warm`."""
        began = time.perf_counter()
        before = constraint.byte_count()
        out = np.zeros(constraint.words, dtype=np.uint32)
        states = 0
        if self.lock.acquire(blocking=False):  # else another thread is warming
            try:
                while self._todo and time.perf_counter() - began < seconds and not (stop is not None and stop()):
                    if max_bytes is not None and constraint.byte_count() - before >= max_bytes:
                        break
                    if states % ROUND == 0 and self._is_filled(constraint):
                        self._todo.clear()
                        self._text_bytes = 0
                        break
                    state, text = self._todo.popleft()
                    self._text_bytes -= len(text)
                    self._visit_one(matcher_at, state, text, out)
                    states += 1
            finally:
                self.lock.release()
        return Warmed(states, time.perf_counter() - began, constraint.byte_count() - before, not self._todo)

    def _is_filled(self, constraint: Bound) -> bool:
        """Return True if the share of memory for warming is used up."""
        held = constraint.masks.counters()["bytes"]
        return (
            len(self._seen) > MAX_STATES or held > MAX_SHARE * constraint.mask_memory or self.store.is_filled(MAX_SHARE)
        )

    def _visit_one(self, matcher_at: Callable[[int, bytes], Text], state: int, text: bytes, out: Any) -> None:
        """Derive the mask of a state, and queue its successors. ``text`` is one that leads to the state; ``out`` is
        scratch space for the mask. Raw text that has no other continuation is followed by its completion."""
        matcher = matcher_at(state, text)
        try:
            matcher.fill_mask(out)
            ways, unfinished = self._ways(state)
            is_followed = False
            for way in ways:
                # A second space or letter rarely leads to a new state.
                is_again = way in _PROBES and text.endswith(way)
                is_followed |= is_again or self._follow(matcher_at(state, text), text, way)
            if not is_followed:
                for atom in unfinished:
                    with self.store.lock:
                        end = self.store.finish_atom(atom)
                    for way in (end[:1], end):
                        self._follow(matcher_at(state, text), text, way)
        except ToolGrammarError:  # a limit: a text that gets here will report it
            return

    def _follow(self, matcher: Text, text: bytes, way: bytes | str) -> bool:
        """Queue the state after a text and ``way``, bytes or the name of a control token, unless it was seen.
        ``matcher`` is at the end of the text. Return False if they cannot follow."""
        if isinstance(way, str):
            if not matcher.accept(self._special[way]):
                return False
            way = CONTROL
        elif not matcher.accept_bytes(way):
            return False
        state = matcher._place[1]
        if state != FINISHED and state not in self._seen:
            self._seen.add(state)
            self._todo.append((state, text + way))
            self._text_bytes += len(text) + len(way)
        return True

    def _ways(self, state: int) -> tuple[dict[bytes | str, None], list[int]]:
        """Return the continuations to follow from a state: for each thread the name of its control token, or the
        shortest text of its atom, that text without its closing quote, and its first byte. Also return the positions in
        raw text (numbers, say) whose shortest completion may take long to find, to be used if none of these can follow.
        """
        store = self.store
        ways: dict[bytes | str, None] = {}
        unfinished: list[int] = []
        with store.lock:
            alike: Counter[int] = Counter()
            is_open = False
            for atom, rest in store.automaton.threads(state):
                kind, what, *_ = store.automaton.unpack(atom)
                if kind == "special":
                    ways[store.specials[what]] = None
                    continue
                if kind == "literal":  # of many that lead to the same node, a few are enough
                    alike[rest] += 1
                    if alike[rest] > MAX_ALIKE:
                        continue
                else:
                    is_open = True
                    if kind == "row" and store.rows.what(what)[0] == RAW:  # raw text is followed by `_PROBES`
                        if not store.rows.nullable(what):
                            unfinished.append(atom)
                        continue
                data = store.finish_atom(atom)
                if data[:1] == b'"' or kind != "literal":
                    ways[data[:1]] = None
                if data[-1:] == b'"':
                    ways[data[:-1]] = None
                ways[data] = None
            if is_open:
                ways.update(dict.fromkeys(_PROBES))
        ways.pop(b"", None)
        return ways, unfinished
