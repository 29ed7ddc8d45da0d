"""Plans: shortest completions of states, as if dependent nodes forbade nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...errors import REPORT, InternalError, LimitError
from ..byte_rows import ByteRows
from ..free_string import BETWEEN, free_string
from ..states import Automaton
from .strings import preference
from .texts import NEVER, NO_TEXT, Rope, ShortestTexts, Source

#: Maximum number of states whose plan is memoised.
MAX_PLANS = 4_096


class Store(Source, Protocol):
    """The part of a `LazyAutomaton` that plans use."""

    automaton: Automaton
    rows: ByteRows
    specials: Sequence[str]


class Plans:
    """Shortest completions of atoms, threads and states.

    The completion of a thread is that of its atom, followed by the shortest text of the next node. The plan of a state
    is the shortest completion of its threads.

    Args:
        store: the automaton; a weak proxy, so that there is no reference cycle.

    Attributes:
        texts: the shortest texts of its nodes.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[int, Rope] = {}
        self.texts = ShortestTexts(store)

    def __len__(self) -> int:
        return len(self._known)

    def plan(self, state: int) -> Rope:
        """Return the shortest completion of a state."""
        best = self._known.get(state)
        if best is None:
            best = NO_TEXT if self._store.automaton.accepts(state) else self._shortest_of_threads(state)
            if len(self._known) >= MAX_PLANS:
                self._known.clear()
            self._known[state] = best
        return best

    def _shortest_of_threads(self, state: int) -> Rope:
        """Return the shortest of the threads' texts, each the rest of an atom and the shortest text of the node after
        it; of equally short ones, that whose first part is preferred (`preference`). Threads with a lower bound that is
        too long are not searched to the end."""
        best: tuple[int, tuple[int, int, bytes], Rope] | None = None
        threads = [(self._begin(atom), rest) for atom, rest in self._store.automaton.threads(state)]
        for begin, rest in sorted(threads, key=lambda each: each[0].length + self.texts.least_length(each[1])):
            if not begin.length:  # a resolved dependent node: its continuation has threads of its own
                continue
            # Not longer than the best one: of equal length, it may be preferred.
            limit = NEVER if best is None else best[0] + 1 - begin.length
            tail = self.texts.shortest(rest, limit)
            if tail is not None:
                weight = begin.length + tail.length, preference(begin.data)
                if best is None or weight < best[:2]:
                    best = *weight, begin + tail
        if best is None:
            raise InternalError("a state from which the text cannot be finished", hint=REPORT)
        return best[2]

    def only_shortest(self, state: int) -> int:
        """Return the state of a single thread of a state, one with the shortest completion."""
        threads = self._store.automaton.threads(state)
        if len(threads) == 1:
            return state
        best = min(
            (begin.length + tail.length, atom, rest)
            for atom, rest in threads
            # Not those at a resolved dependent node: its continuation has threads of its own.
            if (begin := self._begin(atom)).length and (tail := self.texts.shortest(rest)) is not None
        )
        return self._store.automaton.narrowed(state, {best[1:]})

    def within(self, state: int, most: int) -> int:
        """Return the state that has only those threads of a state which can be completed by at most ``most`` bytes."""
        kept = set()
        for atom, rest in self._store.automaton.threads(state):
            if self.texts.shortest(rest, most + 1 - self._begin(atom).length) is not None:
                kept.add((atom, rest))
        return self._store.automaton.narrowed(state, kept)

    def nearest(self, state: int, few: int, most: int) -> set[tuple[int, int]]:
        """Return ``few`` of the threads of a state, with the least lower bounds of their completions, and all threads
        with a shortest completion even if they are more, so that a completion can be followed to its end.

        If the text may forbid a shortest one, the completion may belong to any thread, so ``most`` threads are
        returned.
        """
        ranked: list[tuple[bool, int, int, int]] = []
        for atom, rest in self._store.automaton.threads(state):
            begin = self._begin(atom).length
            # Those at a resolved dependent node (without a text of their own) come last.
            ranked.append((begin == 0, begin + self.texts.least_length(rest), atom, rest))
        ranked.sort()
        best: int | None = None  # the length of a shortest completion
        is_certain = True
        kept: list[tuple[int, tuple[int, int]]] = []  # each with its length, or a lower bound of it
        for is_over, least, atom, rest in ranked:
            if best is None or (not is_over and least <= best):
                tail = self.texts.shortest(rest)
                if tail is None:
                    continue
                least = self._begin(atom).length + tail.length
                if best is None or least < best:
                    best, is_certain = least, True
                if least == best:
                    is_certain = is_certain and tail.is_certain
            kept.append((least, (atom, rest)))
        most = few if is_certain else most
        if len(kept) <= most:
            return {thread for _, thread in kept}
        self._store.nodes.exceed(
            LimitError(
                f"a text can be read in more than {most:,} ways at once",
                hint="give each alternative of anyOf, oneOf and not a property with its own const; in a grammar as "
                "text, write fewer alternatives or optional parts at one place",
            )
        )
        kept.sort(key=lambda each: each[0])
        return {thread for number, (least, thread) in enumerate(kept) if number < most or least == best}

    def _begin(self, atom: int) -> Rope:
        """Return the shortest completion of a position in an atom."""
        kind, *rest = self._store.automaton.unpack(atom)
        if kind == "special":
            return Rope(1, special=self._store.specials[rest[0]])
        data = self.finish_atom(atom)
        return Rope(len(data), data)

    def finish_atom(self, atom: int) -> bytes:
        """Return the shortest bytes that complete an atom, from a position; not for control tokens."""
        kind, *rest = self._store.automaton.unpack(atom)
        if kind == "literal":
            data: bytes = rest[0]
            return data
        if kind == "row":
            row: bytes = self._store.rows.shortest(rest[0])
            return row
        local, written, least = rest
        closing: bytes = free_string()[1][local]
        if local > BETWEEN:  # inside a character
            written += 1
        return closing + b"a" * int(max(0, least - written)) + b'"'
