"""Lazy automata: the states of one grammar or of many, derived on demand, and their shortest completions.

A `LazyAutomaton` holds terms, nodes and byte rows, and the kernel's `Automaton` that is filled from them. A `Program`
is one grammar in it. Most grammars have a lazy automaton of their own; grammars made of parts that many grammars share
(the tools of an agent, say) live in one together, so that what was derived for a part is there for all of them.
"""

from __future__ import annotations

import re
import threading
import weakref
from array import array
from collections.abc import Callable, Iterator
from functools import cache
from heapq import heappop, heappush
from itertools import islice

from ..basics.pauses import pause
from ..dependent.written import Written
from ..errors import LimitError, UnsupportedSchemaError
from ..language.node_kinds import (
    CONTROL,
    COUNTED,
    DYNAMIC,
    LITERAL,
    SEQ,
    SHARED_ROOM,
    SPECIAL,
    TEXT,
)
from ..language.nodes import Nodes
from ..language.shortest import preference
from ..language.terms import Terms
from .byte_rows import ByteRows
from .completion import NEVER, NO_TEXT, Rope, ShortestTexts, joined
from .encoding import DEAD, DONE, LOCAL_DONE, OPENED, REFUSED, TAG
from .encoding import DYNAMIC as DYNAMIC_TAG
from .encoding import SPECIAL as SPECIAL_TAG
from .shared_terms import SharedTerms
from .states import Automaton

#: How often a store may grow for one text, and after how many times it has only what is known to lead to the end of a
#: text.
MAX_ROOMS, HURRY = 8, 4

#: Maximum bytes of a store in which new texts begin; and the average bytes of a term, a node and a remembered DYNAMIC
#: place (measured; with keys, arguments and derivatives).
PROGRAM_MEMORY = 64 * 2**20
TERM_BYTES, NODE_BYTES, PLACE_BYTES = 700, 300, 250

#: Number of nodes from which on they are scarce: alternatives that would take many nodes are left out, so that each
#: token takes few, and the maximum (`MAX_NODES`) is only reached by very long texts.
SCARCE_NODES = 300_000

#: Bytes of a fresh store, without its seed; and those for each term of that, with what belongs to it (measured).
STORE_BYTES, SEED_BYTES = 60_000, 96

#: Maximum number of states whose shortest completion is remembered.
MAX_PLANS = 4_096

#: Maximum number of places for which the ways through a string are remembered.
MAX_WAYS = 64

#: Number of nodes among which the threads of a state are searched for a common end.
MAX_TAILS = 8

#: Maximum length of a completion, in bytes.
MAX_TEXT = 2**26

#: Completions of more bytes than this number and so many times the first plan's keep to one reading of the text.
MANY_BYTES, FEW_ROUNDS = 2_048, 4

#: Weight of a string whose spelling is not that of `json.dumps` among those that are tried to pass a DYNAMIC place: it
#: comes after all others, since a name has exponentially many spellings, all of them repeated if one is.
_UNUSUAL = 2.0**30

#: Maximum number of continuations of a text, and of bytes in each, whose closed states are remembered; maximum number
#: of open states whose DYNAMIC places, and closed states, are remembered.
MAX_CLOSED, LONGEST_DATA, MAX_PLACES = 256, 4_096, 4_096


@cache
def _free_string() -> tuple[array[int], list[bytes]]:
    """Return the automaton of the free JSON string, a constant (RFC 8259), with local state 0 before the opening quote
    and 1 between characters; and for each local state the shortest bytes to the end of its character."""
    terms = Terms()
    rows = ByteRows(terms)
    number = {rows.start(terms.ALL, True): 0, rows.body(terms.ALL, True): 1}
    queue = list(number)
    table = array("b")
    for state in queue:
        for target in rows.row(state):
            if target not in number and target not in (DEAD, DONE):
                number[target] = len(number)
                queue.append(target)
            table.append(LOCAL_DONE if target == DONE else DEAD if target == DEAD else number[target])
    closing = [rows.shortest(state)[:-1] for state in queue]
    return table, closing


#: Bytes in the order in which they are tried for names: letters first, so that names look like names.
_UNRANKED = bytes([*range(0x61, 0x7B), *range(0x30, 0x3A), *range(0x30), *range(0x3A, 0x61), *range(0x7B, 0x100)])

#: The end of a string in the midst of an escape.
_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\(u[0-9a-fA-F]{0,3})?\Z")

#: The quote in that order; the whitespace of JSON.
_QUOTE, _WHITESPACE = _UNRANKED.index(0x22), frozenset(b" \t\n\r")

#: The kinds of atoms that are strings.
_STRINGS = ("row", "counted")


def _fresh() -> tuple[Terms, ByteRows]:
    terms = Terms()
    return terms, ByteRows(terms)


class LazyAutomaton:
    """A lazily derived automaton, for one grammar or many.

    Args:
        memory: number of bytes (estimated) from which on the store is full; None: `PROGRAM_MEMORY`.
        shared: many grammars will share it.
        seed: the terms and row states to begin with; None: none.

    Attributes:
        nodes: the node store.
        automaton: the kernel's automaton; use it under `lock`.
        lock: one derivation at a time.
        specials: names of the control tokens met so far, by number.
        is_shared: many grammars share it.
    """

    def __init__(self, memory: int | None = None, *, shared: bool = False, seed: SharedTerms | None = None) -> None:
        self._limit = memory
        self.is_shared = shared
        terms, self.rows = _fresh() if seed is None else seed.copies()
        self._known = len(terms)
        self.nodes = Nodes(terms, shared=shared)
        self.nodes.plenty = SCARCE_NODES + (SHARED_ROOM if shared else 0)
        # No reference cycle: the memory is released with the store, without the garbage collector.
        self.automaton = Automaton(weakref.proxy(self), self.rows, _free_string()[0])
        self.lock = threading.RLock()
        self.specials: list[str] = []
        self._atoms: dict[int, int] = {}
        self._dynamic: list[int] = []
        self._places: dict[int, list[tuple[int, int]]] = {}
        self._resolved: dict[tuple[int, ...], int] = {}
        self._plans: dict[int, Rope] = {}
        self._ways_known: dict[tuple[int, ...], tuple[list[bytes], Iterator[bytes]]] = {}
        self._texts = ShortestTexts(weakref.proxy(self))

    def __del__(self) -> None:
        self.nodes.clear()

    @property
    def is_full(self) -> bool:
        """True if new texts should begin in a fresh store."""
        return self.is_filled(1)

    def is_filled(self, share: float) -> bool:
        """Return True if a share of the memory is used from which on the store is full."""
        return self.byte_count() > share * (PROGRAM_MEMORY if self._limit is None else self._limit)

    def byte_count(self) -> int:
        """Return the bytes that the store takes (estimated)."""
        terms = len(self.nodes.terms) - self._known
        held = STORE_BYTES + SEED_BYTES * self._known + self.nodes.weight
        held += terms * TERM_BYTES + len(self.nodes) * NODE_BYTES
        held += (len(self._places) + len(self._resolved) + len(self._plans)) * PLACE_BYTES
        return held + self.rows.byte_count() + self.automaton.state_bytes()

    def grow(self) -> None:
        """Take more terms and nodes than are allowed, because one step of a text needs them."""
        self.nodes.grow()

    @property
    def is_hurried(self) -> bool:
        """True if what takes a long search to be known to have a text is left out."""
        return self.nodes.terms.is_hurried

    def hurry(self) -> None:
        """Leave out, from now on, what takes a long search to be known to have a text: growing did not help."""
        self.nodes.hurry()

    # -- called by the kernel ----------------------------------------------------------------------------------

    def atom(self, node: int) -> int:
        """Return the position at which an atomic node begins."""
        atom = self._atoms.get(node)
        if atom is None:
            kind, args = self.nodes.kind(node), self.nodes.args(node)
            if kind == LITERAL:
                atom = self.automaton.lay(args[0])
            elif kind == TEXT:
                atom = self.rows.start(args[0], args[1])
            elif kind == COUNTED:
                atom = self.automaton.count(args[0], -1 if args[1] is None else args[1])
            elif kind == DYNAMIC:
                atom = (DYNAMIC_TAG << TAG) | len(self._dynamic)
                self._dynamic.append(node)
            else:
                assert kind == SPECIAL
                atom = (SPECIAL_TAG << TAG) | len(self.specials)
                self.specials.append(args[0])
            self._atoms[node] = atom
        return atom

    def nearest(self, state: int, few: int, most: int) -> set[tuple[int, int]]:
        """Return ``few`` of the threads of a state: those whose completions look short, and all with the shortest,
        also if they are more, so that a completion that was begun can go on.

        Where the text may forbid a shortest one, that completion may be one of any thread: ``most`` are returned.
        """
        threads = self.automaton.threads(state)
        ranked = sorted(
            (not begin.length, begin.length + self._texts.least_length(rest), atom, rest)
            for atom, rest in threads
            for begin in (self._begin(atom),)
        )
        best: int | None = None
        is_certain = True
        kept: list[tuple[int, tuple[int, int]]] = []
        for is_over, least, atom, rest in ranked:
            if best is None or (not is_over and least <= best):
                tail = self._texts.shortest(rest)
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
        self.nodes.exceed(
            LimitError(
                f"a text can be read in more than {most:,} ways at once",
                hint="give each alternative of anyOf, oneOf and not a property with its own const; in a grammar as "
                "text, write fewer alternatives or optional parts at one place",
            )
        )
        kept.sort(key=lambda each: each[0])
        return {thread for number, (least, thread) in enumerate(kept) if number < most or least == best}

    # -- places that depend on the text so far -----------------------------------------------------------------------

    @property
    def is_dynamic(self) -> bool:
        """True if a DYNAMIC place was met."""
        return bool(self._dynamic)

    def static(self, number: int, rest: int) -> tuple[int, int]:
        """Return, for a DYNAMIC place, the node of everything that it could allow, then ``rest``; and its kind."""
        static, _, kind = self.nodes.args(self._dynamic[number])
        return self.nodes.seq(static, rest), kind

    def advance(self, state: int, data: bytes, before: Written, behind: bytes = b"") -> int:
        """Return the state after ``data``, or `REFUSED`; never an open state.

        Args:
            state: the state of the text.
            data: the bytes that continue it.
            before: the text so far; read only if a DYNAMIC place is met.
            behind: tentative text between ``before`` and ``data``.
        """
        result = self.automaton.advance(state, data)
        if result >= REFUSED:
            return result
        try:
            done = 0
            while result < REFUSED:  # open after one of the bytes
                size = OPENED - result
                if size:
                    state = self.automaton.advance(state, data[done : done + size], False)
                state = self.automaton.step(state, data[done + size])
                done += size + 1
                state = self._close(state, before, behind + data[:done])
                if state == REFUSED:
                    return state
                if done == len(data):
                    return self.automaton.cut(state)
                result = self.automaton.advance(state, data[done:])
            return result
        finally:
            before.suppose(b"")

    def _close(self, state: int, before: Written, data: bytes) -> int:
        """Return an open state, after a text and ``data``, with each DYNAMIC thread replaced by the node that it
        resolves to; or `REFUSED`."""
        # The tokens of one mask meet the same few places, and so does the token that is then chosen.
        key = state, data
        closed = before.closed.get(key)
        if closed is None:
            before.suppose(data)
            closed = self._find_closed(state, before)
            if len(data) <= LONGEST_DATA:
                if len(before.closed) >= MAX_CLOSED:
                    before.closed.clear()
                before.closed[key] = closed
        return closed

    def _find_closed(self, state: int, before: Written) -> int:
        while state != REFUSED:
            places = self._places.get(state)
            if places is None:
                if len(self._places) >= MAX_PLACES:
                    self._places.clear()
                places = self._places[state] = self.automaton.open_threads(state)
            if not places:
                break
            key = (state, *[self.nodes.args(self._dynamic[atom & 0xFFFFFFFF])[1](before) for atom, _ in places])
            resolved = self._resolved.get(key)
            if resolved is None:
                replaced = {}
                for (atom, rest), node in zip(places, key[1:], strict=True):
                    after = self.nodes.seq(node, rest)
                    replaced[atom, rest] = self.nodes.EMPTY if self.nodes.is_empty(after) else after
                if len(self._resolved) >= MAX_PLACES:
                    self._resolved.clear()
                resolved = self._resolved[key] = self.automaton.resolve(state, replaced)
            state = resolved
        return state

    # -- shortest completions ----------------------------------------------------------------------------------

    def completion_length(self, state: int, before: Written) -> int:
        """Return the length of `shortest_completion`, where a control token counts as one byte; mostly without making
        it."""
        plan = self.plan(state)
        return (
            plan.length
            if plan.is_certain or plan.length > MAX_TEXT
            else sum(map(_length, self.shortest_completion(state, before)))
        )

    def shortest_completion(self, state: int, before: Written) -> list[bytes | str]:
        """Return a short completion of the text: the shortest, unless a DYNAMIC place forbids it.

        Args:
            state: the state of the text.
            before: the text so far.

        Returns:
            Runs of bytes, and the names of the control tokens between them (each counts as one byte).

        Raises:
            LimitError: it has more than `MAX_TEXT` bytes.
        """
        plan = self.plan(state)
        if plan.length > MAX_TEXT:
            raise LimitError(
                f"the shortest text that ends here has at least {plan.length:,} bytes",
                hint="ask for fewer members and items: lower required, minItems and minProperties",
            )
        text = before.text()
        found = self._completed(state, Written(text), FEW_ROUNDS * plan.length + MANY_BYTES)
        if found is None:
            found = self._completed(state, Written(text), None)
            assert found is not None
        return found

    def _completed(self, state: int, before: Written, most: int | None) -> list[bytes | str] | None:
        """Return a short completion, by one plan after the other, each as if DYNAMIC places forbade nothing.

        Args:
            state: the state of the text.
            before: the text so far; the completion is added.
            most: number of bytes from which on to return None: where a text has several readings, another one may
                always look shorter than that of which a place has just forbidden something (an array that was begun,
                say, and one more array of the same kind after it). None: keep to the reading of each plan. It leads to
                an end, as a plan never goes through the same place twice.
        """
        done: list[bytes | str] = []
        tried: dict[tuple[int, ...], Iterator[bytes]] = {}
        end = None if most is None else len(before) + most
        while not self.automaton.accepts(state):
            pause()
            if end is None:
                state = self._planned(state)
            elif len(before) > end:
                return None
            plan = self.plan(state)
            if plan.is_certain:
                return joined([*done, *plan.pieces()])
            left = plan.length
            for part in plan.pieces():
                if isinstance(part, str):
                    state = self.automaton.advance_special(state, self.specials.index(part))
                    before.write(CONTROL)
                    done.append(part)
                    left -= 1
                    continue
                reached = self.automaton.advance(state, part)
                if reached == REFUSED:  # the threads of the plan were cut: another is as short
                    break
                is_closed = reached < 0  # a DYNAMIC place: the rest of the plan may be forbidden
                if is_closed:
                    part = part[: OPENED + 1 - reached]
                    reached, part = self._across(state, part, left - len(part), before, tried)
                left -= len(part)
                before.write(part)
                done.append(part)
                state = reached
                if is_closed:
                    break
        return joined(done)

    def _across(
        self, state: int, data: bytes, left: int, before: Written, tried: dict[tuple[int, ...], Iterator[bytes]]
    ) -> tuple[int, bytes]:
        """Return the state after a DYNAMIC place and the bytes that lead there: ``data``, or others if it is forbidden.

        Args:
            state: the state of the text.
            data: bytes that lead to the place.
            left: the planned length of the text after it.
            before: the text so far.
            tried: iterators over the ways to such places, by the atoms where they begin: ways that were refused once
                are refused for the rest of the same object.
        """
        reached = self._through(state, data, left, before)
        if reached != REFUSED and not tried:
            return reached, data
        begin = _string_start(data)
        near = self.automaton.advance(state, data[:begin])
        planned = self._narrowed(near, left + len(data) - begin)
        near = near if planned == REFUSED else planned
        atoms = tuple(atom for atom, _ in self.automaton.threads(near))
        if reached != REFUSED:
            tried.pop(atoms, None)
            return reached, data
        # Each that is refused repeats a name or an item, which has its own part of the text.
        if atoms not in tried:
            tried[atoms] = self._known_ways(atoms, near)
        ways = tried[atoms]
        for way in islice(ways, len(before) + len(data) + 1):
            reached = self.advance(near, way, before, data[:begin])
            if reached != REFUSED:
                return reached, data[:begin] + way
        raise AssertionError("a state from which the text cannot be finished")

    def _planned(self, state: int) -> int:
        """Return a state with only one thread of another: one with the shortest completion."""
        threads = self.automaton.threads(state)
        if len(threads) == 1:
            return state
        best = min(
            (begin.length + tail.length, atom, rest)
            for atom, rest in threads
            # None of a resolved place, whose continuation has threads of its own.
            if (begin := self._begin(atom)).length and (tail := self._texts.shortest(rest)) is not None
        )
        return self.automaton.narrowed(state, {best[1:]})

    def _narrowed(self, state: int, most: int) -> int:
        """Return a state without the threads of another that need more than ``most`` bytes to the end."""
        kept = set()
        for atom, rest in self.automaton.threads(state):
            if self._texts.shortest(rest, most + 1 - self._begin(atom).length) is not None:
                kept.add((atom, rest))
        return self.automaton.narrowed(state, kept)

    def _through(self, state: int, data: bytes, left: int, before: Written) -> int:
        """Return the state after a DYNAMIC place with only the threads that pass it; `REFUSED` if it is forbidden.

        Threads that stay before the place (with another digit of a number, say) could look shorter again and again, so
        that a completion would not end.
        """
        nodes = self.nodes
        opened = self.automaton.step(self.automaton.advance(state, data[:-1]), data[-1])
        places = [
            (nodes.args(self._dynamic[atom & 0xFFFFFFFF]), rest) for atom, rest in self.automaton.open_threads(opened)
        ]
        plans = [self._texts.shortest(nodes.seq(static, rest)) for (static, _, _), rest in places]
        if all(plan is None or plan.length > left for plan in plans):
            return self.advance(state, data, before)
        before.suppose(data)
        try:
            ways = [nodes.seq(resolve(before), rest) for (_, resolve, _), rest in places]
            way = nodes.alt([each for each in ways if not nodes.is_empty(each)])
            return REFUSED if way == nodes.EMPTY else self._find_closed(self.automaton.start(way), before)
        finally:
            before.suppose(b"")

    def _known_ways(self, atoms: tuple[int, ...], state: int) -> Iterator[bytes]:
        """Yield `_ways`, those that were found from the same atoms before at once: each of a hundred objects in an
        object has the same names. They do not depend on what follows the string, but where a string is put together of
        several nodes; so those of the state itself come last."""
        known = self._ways_known.get(atoms)
        if known is None:
            if len(self._ways_known) >= MAX_WAYS:
                self._ways_known.clear()
            known = self._ways_known[atoms] = [], LazyAutomaton._ways(weakref.proxy(self), state)
        found, more = known
        at = 0
        while True:
            if at == len(found):
                way = next(more, None)
                if way is None:
                    break
                found.append(way)
            yield found[at]
            at += 1
        yield from self._ways(state)

    def _ways(self, state: int) -> Iterator[bytes]:
        """Yield the bytes that lead from a state to a DYNAMIC place at the end of a string, the shortest first; those
        that `json.dumps` would spell otherwise come last."""
        heap = [(0.0, b"", state, b"")]  # length, data (in preference order), state, ending
        while heap:
            length, data, here, ending = heappop(heap)
            if ending:
                yield data.translate(_UNRANKED) + ending
                heappush(heap, (length + 0.5, data, here, b""))  # longer ones that begin so
                continue
            following = set(self.automaton.following(here))
            if 0x22 in following and _QUOTE not in data:  # whitespace before a string makes no other string of it
                following -= _WHITESPACE
            for byte in range(0x100):
                if _UNRANKED[byte] not in following:
                    continue
                then = self.automaton.advance(here, _UNRANKED[byte : byte + 1])
                atoms = {atom for atom, _ in self.automaton.threads(then)} if then >= 0 else ()
                endings = [self.finish_atom(atom) for atom in atoms if self.automaton.unpack(atom)[0] in _STRINGS]
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

    def plan(self, state: int) -> Rope:
        """Return the shortest completion, as if DYNAMIC places forbade nothing."""
        found = self._plans.get(state)
        if found is not None:
            return found
        if self.automaton.accepts(state):
            found = NO_TEXT
        best: tuple[int, tuple[int, int, bytes]] | None = None
        threads = [] if found is not None else self.automaton.threads(state)
        begins = [(self._begin(atom), rest) for atom, rest in threads]
        # What all threads have in common, such as thousands of closing brackets, is decided first, and once.
        common = self._common_tail([rest for _, rest in begins])
        if common >= 0:
            self._texts.shortest(common)
        for begin, rest in sorted(begins, key=lambda each: each[0].length + self._texts.least_length(each[1])):
            if not begin.length:  # a resolved place: its continuation has threads of its own
                continue
            tail = self._texts.shortest(rest, NEVER if best is None else best[0] + 1 - begin.length)
            if tail is None:
                continue
            weight = begin.length + tail.length, preference(begin.data)
            if best is None or weight < best:
                best = weight
                found = begin + tail
        if found is None:
            raise AssertionError("a state from which the text cannot be finished")
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[state] = found
        return found

    def _common_tail(self, rests: list[int]) -> int:
        """Return a node, near the beginning of each of some nodes, with which all of them end; -1 if there is none."""
        nodes = self.nodes
        common: list[int] = []
        for number, rest in enumerate(rests):
            tails = [rest]
            while nodes.kind(tails[-1]) == SEQ and len(tails) < MAX_TAILS:
                tails.append(nodes.args(tails[-1])[1])
            common = [node for node in common if node in tails] if number else tails[1:] or tails
        return common[0] if common else -1

    def _begin(self, atom: int) -> Rope:
        """Return the shortest completion of an atom."""
        kind, *rest = self.automaton.unpack(atom)
        if kind == "special":
            return Rope(1, special=self.specials[rest[0]])
        data = self.finish_atom(atom)
        return Rope(len(data), data)

    def finish_atom(self, atom: int) -> bytes:
        """Return the shortest bytes that complete an atom other than a control token."""
        kind, *rest = self.automaton.unpack(atom)
        if kind == "literal":
            data: bytes = rest[0]
            return data
        if kind == "row":
            return self.rows.shortest(rest[0])
        if kind == "dynamic":
            return b""
        local, written, least = rest
        closing: bytes = _free_string()[1][local]
        if local > 1:  # in the middle of a character
            written += 1
        return closing + b"a" * int(max(0, least - written)) + b'"'


def _string_start(data: bytes) -> int:
    """Return the index at which the JSON string at the end of some bytes begins; 0 if it is not among them."""
    at = len(data) - 1
    while True:
        at = data.rfind(b'"', 0, max(at, 0)) if data.endswith(b'"') else -1
        if at < 0:
            return 0
        slashes = at - len(data[:at].rstrip(b"\\"))
        if slashes % 2 == 0:
            return at


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
    """

    def __init__(self, build: Callable[[Nodes], int], store: LazyAutomaton | None = None) -> None:
        self.store = LazyAutomaton() if store is None else store
        with self.store.lock:
            self.root = build(self.store.nodes)
            self.is_empty = self.store.nodes.is_empty(self.root)
        self._start: int | None = None

    @property
    def narrowed(self) -> tuple[UnsupportedSchemaError, ...]:
        """The limits that texts in its store have met so far: what exceeds them is not written."""
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
                self._start = self.store.automaton.start(self.root)
        return self._start

    @property
    def is_full(self) -> bool:
        """True if new texts should begin in a fresh store."""
        return self.store.is_full

    @property
    def lock(self) -> threading.RLock:
        """The store's lock: one derivation at a time."""
        return self.store.lock

    def after(self, data: bytes) -> int:
        """Return the state after a text, or `REFUSED`; the store is given as much room as the text needs.

        Raises:
            LimitError: growing does not help.
        """
        for tries in range(MAX_ROOMS):
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
    """Holder of the store of all grammars that share parts; a fresh one when the last has grown too large."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._store: LazyAutomaton | None = None

    def store(self, seed: SharedTerms | None = None) -> LazyAutomaton:
        """Return the store for new grammars."""
        with self._lock:
            if self._store is None or self._store.is_full:
                self._store = LazyAutomaton(shared=True, seed=seed)
            return self._store

    def release(self, store: LazyAutomaton) -> None:
        """Begin anew with the next grammar, if ``store`` is the present one."""
        with self._lock:
            if self._store is store:
                self._store = None
