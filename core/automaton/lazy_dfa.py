"""Lazy automata: the states of one grammar or of many, derived on demand, and their shortest completions.

A `LazyAutomaton` (a *store*) has terms, nodes and byte rows, and the kernel's `Automaton` that is derived from them. A
`Program` is one grammar in it. Most grammars have a store of their own. Grammars of shared parts (the tools of an
agent, say) have one store together, so that each part is derived once.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable

from ..basics.forks import shared_lock
from ..basics.pauses import pause
from ..basics.resident import Space
from ..dependent.detours import Detours, Untried
from ..dependent.resolution import Resolution
from ..dependent.written import Written
from ..errors import LimitError, UnsupportedSchemaError
from ..language.node_kinds import (
    CONTROL,
    COUNTED,
    LITERAL,
    SHARED_ROOM,
    SPECIAL,
    TEXT,
)
from ..language.nodes import Nodes
from ..language.terms import Terms
from .byte_rows import ByteRows
from .completion.plans import Plans
from .completion.texts import Rope, joined
from .encoding import OPENED, REFUSED, TAG
from .encoding import SPECIAL as SPECIAL_TAG
from .free_string import free_string
from .shared_terms import SharedTerms
from .states import Automaton

#: Maximum number of times that a store may grow for one text, and the number of times after which it is hurried (see
#: `LazyAutomaton.hurry`).
MAX_GROWTHS, HURRY = 8, 4

#: Maximum bytes and number of terms of a store for new texts: one step of a text may need as many terms again.
PROGRAM_MEMORY, PROGRAM_TERMS = 64 * 2**20, 96_000

#: Average bytes of a node and a completion (measured, with keys and arguments).
NODE_BYTES, PLAN_BYTES = 300, 250

#: Number of nodes above which nodes are scarce: alternatives that need many nodes are omitted, so that each token needs
#: few, and only very long texts reach the maximum (`MAX_NODES`).
SCARCE_NODES = 300_000

#: Bytes of a fresh store without its terms, nodes and states (measured).
STORE_BYTES = 60_000

#: Maximum length of a completion, in bytes.
MAX_TEXT = 2**26

#: A completion with more bytes than the first of these plus the second times the first plan's keeps to one reading of
#: the text.
MANY_BYTES, FEW_ROUNDS = 2_048, 4


def _fresh() -> tuple[Terms, ByteRows]:
    terms = Terms()
    return terms, ByteRows(terms)


class LazyAutomaton:
    """A lazily derived automaton, for one grammar or many.

    Args:
        memory: estimated bytes at which the store is full; None: `PROGRAM_MEMORY`.
        shared: many grammars will share it.
        seed: initial terms and row states; None: none.

    Attributes:
        nodes: the node store.
        automaton: the kernel's automaton; use it under `lock`.
        plans: the shortest completions of its states.
        lock: held during each derivation.
        resolution: the dependent nodes of the store.
        specials: names of the control tokens so far, by number.
        is_shared: many grammars share it.
        is_dependent: it has a dependent node, so validity may depend on the text so far.
    """

    def __init__(self, memory: int | None = None, *, shared: bool = False, seed: SharedTerms | None = None) -> None:
        self._limit = memory
        self.is_shared = shared
        terms, self.rows = _fresh() if seed is None else seed.copies()
        self.nodes = Nodes(terms, shared=shared)
        self.nodes.plenty = SCARCE_NODES + (SHARED_ROOM if shared else 0)
        # Weak, so that there is no reference cycle, and memory is released without the garbage collector.
        self.automaton = Automaton(weakref.proxy(self), self.rows, free_string()[0])
        self.lock = shared_lock(self, "lock", threading.RLock())
        self.specials: list[str] = []
        self._atoms: dict[int, int] = {}
        self.is_dependent = False
        self.resolution = Resolution(self.nodes, self.automaton)
        self.plans = Plans(weakref.proxy(self))
        self._detours = Detours(weakref.proxy(self))
        self._space = Space(self)  # the last attribute, so that the others are released before it

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "_space") and not ends():  # it was completed; when the interpreter ends, all memory goes
            self._space.size = self.byte_count()
            self.nodes.clear()

    @property
    def is_full(self) -> bool:
        """True if new texts should begin in a fresh store."""
        return self.is_filled(1)

    def is_filled(self, share: float) -> bool:
        """Return True if the store uses this share of the memory, or of the terms, at which it is full."""
        most = PROGRAM_MEMORY if self._limit is None else self._limit
        return self.byte_count() > share * most or len(self.nodes.terms) > share * PROGRAM_TERMS

    def byte_count(self) -> int:
        """Return the bytes that the store takes (estimated)."""
        held = STORE_BYTES + self.nodes.weight + self.nodes.terms.byte_count() + len(self.nodes) * NODE_BYTES
        held += self.resolution.byte_count() + len(self.plans) * PLAN_BYTES
        return held + self.rows.byte_count() + self.automaton.state_bytes()

    def grow(self) -> None:
        """Raise the limits of terms and nodes, because one step of a text exceeds them."""
        self.nodes.grow()

    @property
    def is_hurried(self) -> bool:
        """True after `hurry`."""
        return self.nodes.terms.is_hurried

    def hurry(self) -> None:
        """From now on, treat a language as empty if only a long search could show a text of it (`grow` did not
        help)."""
        self.nodes.hurry()

    # -- called by the kernel ----------------------------------------------------------------------------------

    def atom(self, node: int) -> int:
        """Return the position at which an atomic node begins.

        Each kind of node (`node_kinds`) has its kind of position (`encoding`). Control tokens (`SPECIAL`) are numbered
        when first met; in the text so far each of them is the byte `CONTROL`.
        """
        atom = self._atoms.get(node)
        if atom is None:
            kind, args = self.nodes.kind(node), self.nodes.args(node)
            if kind == LITERAL:
                atom = self.automaton.add_literal(args[0])
            elif kind == TEXT:
                atom = self.rows.start(args[0], args[1])
            elif kind == COUNTED:
                atom = self.automaton.add_counted(args[0], -1 if args[1] is None else args[1])
            elif kind == SPECIAL:
                atom = (SPECIAL_TAG << TAG) | len(self.specials)
                self.specials.append(args[0])
            else:  # DYNAMIC: the position is the node itself, which a text resolves
                atom = self.automaton.dependent_position(node)
                self.is_dependent = True
            self._atoms[node] = atom
        return atom

    def nearest(self, state: int, few: int, most: int) -> set[tuple[int, int]]:
        """See `Plans.nearest`."""
        return self.plans.nearest(state, few, most)

    def plan(self, state: int) -> Rope:
        """Return the shortest completion of a state, as if dependent nodes forbade nothing."""
        return self.plans.plan(state)

    def within(self, state: int, most: int) -> int:
        """See `Plans.within`."""
        return self.plans.within(state, most)

    def finish_atom(self, atom: int) -> bytes:
        """Return the shortest bytes that complete an atom other than a control token."""
        return self.plans.finish_atom(atom)

    # -- dependent nodes -------------------------------------------------------------------------------------------

    def static(self, node: int, rest: int) -> tuple[int, int]:
        """See `Resolution.static`."""
        return self.resolution.static(node, rest)

    def advance(self, state: int, data: bytes, before: Written, tentative: bytes = b"") -> int:
        """Return the state after ``data``, or `REFUSED`; never an open state.

        Args:
            state: the state of the text.
            data: the bytes that continue it.
            before: the text so far; read only if a dependent node is reached.
            tentative: text between ``before`` and ``data``, which is not final.
        """
        result = self.automaton.advance(state, data)
        return result if result >= REFUSED else self.resolution.advance(state, data, result, before, tentative)

    def advance_special(self, state: int, number: int, before: Callable[[], Written]) -> int:
        """Return the state after a control token, by its number, or `REFUSED`; never an open state.

        Args:
            state: the state of the text.
            number: of the token, in `specials`.
            before: returns the text before the token; called only if a dependent node is reached.
        """
        after: int = self.automaton.advance_special(state, number)
        if after == REFUSED or not self.automaton.open_threads(after):
            return after
        text = before()
        text.suppose(CONTROL)
        try:
            return self.resolution.close(after, text)
        finally:
            text.suppose(b"")

    # -- shortest completions ----------------------------------------------------------------------------------

    def completion_length(self, state: int, before: Written) -> int:
        """Return the length of `shortest_completion` (a control token counts as one byte), usually without making
        it."""
        plan = self.plan(state)
        if plan.is_certain or plan.length > MAX_TEXT:
            return plan.length
        return sum(map(_length, self.shortest_completion(state, before)))

    def shortest_completion(self, state: int, before: Written) -> list[bytes | str]:
        """Return a short completion of the text: the shortest, unless a dependent node forbids it. In the place of a
        live value that is not known yet it has a text of the length that is reserved for it.

        Args:
            state: the state of the text.
            before: the text so far.

        Returns:
            Runs of bytes, and the names of the control tokens between them.

        Raises:
            LimitError: it has more than `MAX_TEXT` bytes.
        """
        plan = self.plan(state)
        if plan.length > MAX_TEXT:
            raise _too_long("the shortest text that ends here", plan.length)
        found = self._completed(state, before.planned(), FEW_ROUNDS * plan.length + MANY_BYTES)
        if found is None:
            found = self._completed(state, before.planned(), None)
            assert found is not None
        return found

    def _completed(self, state: int, before: Written, most: int | None) -> list[bytes | str] | None:
        """Return a short completion: follow a plan to the next dependent node, resolve that, and plan again.

        Args:
            state: the state of the text.
            before: the text so far; the completion is appended.
            most: return None above this number of bytes. If a text has several readings, another one may always look
                shorter than the one in which a dependent node has just forbidden something (an open array, say, and
                then another array of the same kind), so that planning might not end. None: keep to the reading of each
                plan, which ends, because a plan passes each dependent node once.
        """
        done: list[bytes | str] = []
        untried: Untried = {}
        end = None if most is None else len(before) + most
        while not self.automaton.accepts(state):
            pause()
            if end is None:
                state = self.plans.only_shortest(state)
            elif len(before) > end:
                return None
            plan = self.plan(state)
            if plan.is_certain:
                return joined([*done, *plan.pieces()])
            left = plan.length  # of the plan, in bytes
            for part in plan.pieces():
                if isinstance(part, str):
                    state = self.automaton.advance_special(state, self.specials.index(part))
                    before.write(CONTROL)
                    done.append(part)
                    left -= 1
                    if self.automaton.open_threads(state):  # a dependent node: it may forbid the rest of the plan
                        state = self.resolution.close(state, before)
                        break
                    continue
                reached = self.automaton.advance(state, part)
                if reached == REFUSED:  # the threads of the plan were cut: plan again, equally short
                    break
                is_dependent = reached < 0  # a dependent node after a byte: it may forbid the rest of the plan
                if is_dependent:
                    part = part[: OPENED + 1 - reached]  # up to this byte
                    reached, part = self._detours.past(state, part, left - len(part), before, untried)
                left -= len(part)
                before.write(part)
                done.append(part)
                state = reached
                if is_dependent:
                    break
        return joined(done)

    def fits(self, node: int, most: int) -> bool:
        """Return True if a node has a text of at most ``most`` bytes, as if dependent nodes forbade nothing."""
        text = self.plans.texts.shortest(node)
        return text is not None and text.length <= most


def _too_long(subject: str, length: int) -> LimitError:
    """Return the error for a text that is too long to be completed."""
    return LimitError(
        f"{subject} has at least {length:,} bytes",
        hint="lower the counts of repetitions, required, minItems and minProperties",
    )


def _length(part: bytes | str) -> int:
    """Return the length of a piece of a text; a control token counts as one byte."""
    return len(part) if isinstance(part, bytes) else 1


class Program:
    """One grammar in a store.

    Args:
        build: makes the root node in a node store; called once.
        store: its store; None: a new one.

    Attributes:
        store: its store.
        root: its node.
        is_empty: it has no text at all.

    Raises:
        LimitError: a part of the root has no text that is short enough to be completed (`MAX_TEXT`).
    """

    def __init__(self, build: Callable[[Nodes], int], store: LazyAutomaton | None = None) -> None:
        self.store = LazyAutomaton() if store is None else store
        with self.store.lock:
            self.root = build(self.store.nodes)
            self.is_empty = self.store.nodes.is_empty(self.root)
            longest = self.store.plans.texts.longest_part(self.root)
            if longest > MAX_TEXT:
                raise _too_long("each text of a part of the grammar", longest)
        self._start: int | None = None

    @property
    def narrowed(self) -> tuple[UnsupportedSchemaError, ...]:
        """The limits that texts in its store have exceeded so far; what exceeds them is excluded."""
        return tuple(
            UnsupportedSchemaError(
                error.message, hint=error.hint, place=error.place, left_out="what exceeds this limit"
            )
            for error in self.store.nodes.limits
        )

    @property
    def start(self) -> int:
        """The automaton's first state."""
        if self._start is None:
            with self.store.lock:
                self._start = self.store.resolution.close(self.store.automaton.start(self.root), Written())
        return self._start

    @property
    def is_full(self) -> bool:
        """True if new texts should begin in a fresh store."""
        return self.store.is_full

    @property
    def lock(self) -> threading.RLock:
        """The store's lock, held during each derivation."""
        return self.store.lock

    def after(self, data: bytes) -> int:
        """Return the state after a text, or `REFUSED`. If the store is full, it grows and the text is read again, at
        most `MAX_GROWTHS` times.

        Raises:
            LimitError: a limit that growing does not remove, or the store is full for the last time.
        """
        for tries in range(MAX_GROWTHS):
            try:
                return self.advance(self.start, data, Written())
            except LimitError:
                if not self.is_full:
                    raise
                self.store.grow()
                if tries == HURRY:
                    self.store.hurry()
        return self.advance(self.start, data, Written())

    @property
    def automaton(self) -> Automaton:
        """The kernel's automaton; use it under `lock`."""
        return self.store.automaton

    @property
    def rows(self) -> ByteRows:
        """The store's row states."""
        return self.store.rows

    def advance(self, state: int, data: bytes, before: Written) -> int:
        """See `LazyAutomaton.advance`."""
        return self.store.advance(state, data, before)


class Workspace:
    """Holder of the store of all grammars with shared parts; it is replaced by a fresh one when it is full."""

    def __init__(self) -> None:
        self._lock = shared_lock(self, "_lock", threading.Lock())
        self._store: LazyAutomaton | None = None

    def store(self, seed: SharedTerms | None = None) -> LazyAutomaton:
        """Return the store for new grammars."""
        with self._lock:
            if self._store is None or self._store.is_full:
                self._store = LazyAutomaton(shared=True, seed=seed)
            return self._store

    def release(self, store: LazyAutomaton) -> None:
        """Use a fresh store from the next grammar, if ``store`` is the current one."""
        with self._lock:
            if self._store is store:
                self._store = None
