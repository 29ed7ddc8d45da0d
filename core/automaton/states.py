# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""States of the lazy DFA: hash-consed sets of threads (subset construction over the heads of grammar nodes).

A *thread* is a pair of a position in an atomic node and of the node that follows it. In the code, ``atom`` is that
position, a tagged integer (see `encoding`), and ``rest`` is that node. For the text ``[1`` of a list of numbers, one
thread is in the number, and its ``rest`` is the rest of the list.

A position with the tag DYNAMIC is a *dependent* node: what it allows depends on the text so far. A state with such a
thread is *open*: it has no transitions until `Automaton.resolve` replaces these nodes by those that they are after this
text.

Compiled where that is possible; ``states.pxd`` declares its C interface.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.hashing import BASIS, mix
    from ..compiled.int_map import IntMap
    from ..compiled.memory import free, ints, longs, more, octets
    from . import encoding
    from .positions import Positions

#: Maximum number of threads of a state between two tokens; of more, those with the longest completions are dropped.
MAX_THREADS = 2_048

#: The same limit while nodes are scarce.
FEW_THREADS = 4

#: Number of threads from which threads at the same position are joined.
MANY_THREADS = 16


@cython.cclass
class Automaton(Positions):
    """A lazy DFA over bytes (and control tokens). A state is a set of threads: pairs of a position and the node after
    it.

    Args:
        source: ``source.nodes`` derives the heads of nodes, ``source.atom(node)`` returns the position at which an
            atomic node begins, and ``source.nearest(state, few, most)`` the threads to keep if there are too many.
        byte_rows: the row states (see ``byte_rows.py``); their rows are derived on demand.
        local: the transition table of the free JSON string (see ``free_string.py``), for COUNTED atoms.
    """

    def __init__(self, source, byte_rows, local):
        Positions.__init__(self, byte_rows, local)
        self.source = source
        self.nodes = source.nodes
        self.node_room, self.node_atom = 128, longs(128)
        self.head_at, self.head_count, self.node_null = ints(128), ints(128), octets(128)
        self.head_room, self.head_atom, self.head_rest = 128, longs(128), ints(128)
        self.head_used = 1  # index 0 means that the heads are not known
        self.thread_room, self.thread_atom, self.thread_rest = 128, longs(128), ints(128)
        self.thread_used = 0
        self.state_room, self.state_accepts = 64, octets(64)
        self.state_at, self.state_count = ints(64), ints(64)
        self.state_used = 0
        self.interned = IntMap()
        self.cuts = {}  # by state, the cut state
        self.remnants = set()  # the cut states that lack threads
        self.now_room, self.now_atom, self.now_rest = 64, longs(64), ints(64)
        self.next_room, self.next_atom, self.next_rest = 64, longs(64), ints(64)
        self.now_count = 0
        self.next_count = 0
        self.now_accepts = False
        self.next_accepts = False
        self.is_open = False

    def __dealloc__(self):
        free(self.node_atom)
        free(self.head_at)
        free(self.head_count)
        free(self.node_null)
        free(self.head_atom)
        free(self.head_rest)
        free(self.thread_atom)
        free(self.thread_rest)
        free(self.state_accepts)
        free(self.state_at)
        free(self.state_count)
        free(self.now_atom)
        free(self.now_rest)
        free(self.next_atom)
        free(self.next_rest)

    @cython.cfunc
    def _grow_nodes(self, needed: cython.int) -> object:
        """Ensure that the arrays by node (position, index and number of heads, nullability) have ``needed`` entries."""
        had: cython.int = self.node_room
        if needed > had:
            room: cython.int = max(needed, 2 * had)
            self.head_at = more(self.head_at, had, room)
            self.head_count = more(self.head_count, had, room)
            self.node_null = more(self.node_null, had, room)
            self.node_atom = more(self.node_atom, had, room)
            self.node_room = room
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def knows_heads(self, node: cython.int) -> cython.bint:
        """Return True if `need_heads` was asked of a node before."""
        return node < self.node_room and self.head_at[node] > 0

    @cython.cfunc
    def need_heads(self, node: cython.int) -> object:
        """Copy the heads of a node from the node store, once, with atomic nodes as positions (counted as a fault)."""
        if self.knows_heads(node):
            return None
        self.faults += 1
        at: cython.int = self.nodes.head_index(node)
        nullable: cython.bint = self.nodes.nullable(node)
        size: cython.int = self.nodes._heads[at]
        self._grow_nodes(node + 1)
        start: cython.int = self.head_used
        if start + size > self.head_room:
            room: cython.int = max(2 * self.head_room, start + size)
            self.head_rest = more(self.head_rest, self.head_room, room)
            self.head_atom = more(self.head_atom, self.head_room, room)
            self.head_room = room
        i: cython.int
        atom: cython.longlong
        is_open: cython.bint = False
        for i in range(size):
            atom = self._atom_of(self.nodes._heads[at + 1 + 2 * i])
            is_open |= (atom >> encoding.TAG) == encoding.DYNAMIC
            self.head_atom[start + i] = atom
            self.head_rest[start + i] = self.nodes._heads[at + 2 + 2 * i]
        self.head_at[node] = start
        self.head_count[node] = size
        self.node_null[node] = (1 if nullable else 0) | (2 if is_open else 0)  # flags (see ``states.pxd``)
        self.head_used = start + size
        return None

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _atom_of(self, node: cython.int) -> cython.longlong:
        """Return the position at which an atomic node begins."""
        if node >= self.node_room:
            self._grow_nodes(node + 1)
        if self.node_atom[node] == 0:
            self.node_atom[node] = self.source.atom(node) + 1
        return self.node_atom[node] - 1

    @cython.cfunc
    def _push(self, atom: cython.longlong, rest: cython.int) -> object:
        """Add a thread to the next set. A small set gets each thread once; in a large one, repeated threads stay until
        `_sort`. A thread at a dependent node makes the set open."""
        i: cython.int
        n: cython.int = self.next_count
        if (atom >> encoding.TAG) == encoding.DYNAMIC:
            self.is_open = True
        if n <= 16:
            for i in range(n):
                if self.next_atom[i] == atom and self.next_rest[i] == rest:
                    return None
        if n == self.next_room:
            self.next_rest = more(self.next_rest, n, 2 * n)
            self.next_atom = more(self.next_atom, n, 2 * n)
            self.next_room = 2 * n
        self.next_atom[n] = atom
        self.next_rest[n] = rest
        self.next_count = n + 1
        return None

    @cython.cfunc
    def _enter_node(self, node: cython.int) -> object:
        """Add all heads of a node to the next set."""
        i: cython.int
        self.need_heads(node)
        if self.node_null[node] & 1:  # it has the empty text
            self.next_accepts = True
        start: cython.int = self.head_at[node]
        for i in range(start, start + self.head_count[node]):
            self._push(self.head_atom[i], self.head_rest[i])
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def _sort(self) -> cython.void:
        """Sort the next set (shell sort: sets are small) and drop duplicates, which makes it canonical."""
        n: cython.int = self.next_count
        gap: cython.int = n // 2
        i: cython.int
        j: cython.int
        atom: cython.longlong
        rest: cython.int
        while gap > 0:
            for i in range(gap, n):
                atom = self.next_atom[i]
                rest = self.next_rest[i]
                j = i
                while j >= gap and (
                    self.next_atom[j - gap] > atom
                    or (self.next_atom[j - gap] == atom and self.next_rest[j - gap] > rest)
                ):
                    self.next_atom[j] = self.next_atom[j - gap]
                    self.next_rest[j] = self.next_rest[j - gap]
                    j -= gap
                self.next_atom[j] = atom
                self.next_rest[j] = rest
            gap //= 2
        if n > 1:
            j = 1
            for i in range(1, n):
                if self.next_atom[i] != self.next_atom[j - 1] or self.next_rest[i] != self.next_rest[j - 1]:
                    self.next_atom[j] = self.next_atom[i]
                    self.next_rest[j] = self.next_rest[i]
                    j += 1
            self.next_count = j

    @cython.cfunc
    def _merge(self) -> object:
        """Join threads of the next set (sorted) at the same position into one, followed by the union of their nodes. So
        the number of threads is at most that of positions, even for ambiguous texts."""
        count: cython.int = 0
        i: cython.int = 0
        end: cython.int
        atom: cython.longlong
        while i < self.next_count:
            atom = self.next_atom[i]
            end = i + 1
            while end < self.next_count and self.next_atom[end] == atom:
                end += 1
            if end > i + 1 and (atom >> encoding.TAG) != encoding.DYNAMIC:
                rests = [self.next_rest[k] for k in range(i, end)]
                self.next_atom[count] = atom
                self.next_rest[count] = self.nodes.merged(rests)
                count += 1
                i = end
            while i < end:
                self.next_atom[count] = atom
                self.next_rest[count] = self.next_rest[i]
                count += 1
                i += 1
        self.next_count = count
        return None

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _intern(self) -> cython.int:
        """Return the number of the state that has the next set's threads (sorted by `_sort`) and accepts as it does; a
        new one if there is none."""
        self._sort()
        n: cython.int = self.next_count
        i: cython.int
        hashed: cython.ulonglong = BASIS + n + (1 if self.next_accepts else 0)
        for i in range(n):
            hashed = mix(mix(hashed, self.next_atom[i]), self.next_rest[i])
        hashed |= 1  # never 0
        state: cython.int
        slot: cython.int = self.interned.first(hashed)
        while slot >= 0:
            state = self.interned.values[slot]
            if self.state_count[state] == n and self.state_accepts[state] == (1 if self.next_accepts else 0):
                at: cython.int = self.state_at[state]
                for i in range(n):
                    if self.thread_atom[at + i] != self.next_atom[i] or self.thread_rest[at + i] != self.next_rest[i]:
                        break
                else:
                    return state
            slot = self.interned.after(slot)
        state = self.state_used
        if state == self.state_room:
            self.state_count = more(self.state_count, state, 2 * state)
            self.state_accepts = more(self.state_accepts, state, 2 * state)
            self.state_at = more(self.state_at, state, 2 * state)
            self.state_room = 2 * state
        if self.thread_used + n > self.thread_room:
            room: cython.int = max(2 * self.thread_room, self.thread_used + n)
            self.thread_rest = more(self.thread_rest, self.thread_room, room)
            self.thread_atom = more(self.thread_atom, self.thread_room, room)
            self.thread_room = room
        for i in range(n):
            self.thread_atom[self.thread_used + i] = self.next_atom[i]
            self.thread_rest[self.thread_used + i] = self.next_rest[i]
        self.state_at[state] = self.thread_used
        self.state_count[state] = n
        self.state_accepts[state] = 1 if self.next_accepts else 0
        self.thread_used += n
        self.state_used = state + 1
        self.interned.add(hashed, state)
        return state

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def own(self, state: cython.int) -> cython.int:
        """Return a state given by a caller; raise IndexError if it is out of bounds."""
        if state < 0 or state >= self.state_used:
            raise IndexError("no such state")
        return state

    @cython.cfunc
    def _load(self, state: cython.int) -> object:
        """Copy a state's threads into the current set (``now_atom``, ``now_rest``), which `_advance` reads."""
        n: cython.int = self.state_count[self.own(state)]
        at: cython.int = self.state_at[state]
        if n > self.now_room:
            self.now_rest = more(self.now_rest, self.now_room, 2 * n)
            self.now_atom = more(self.now_atom, self.now_room, 2 * n)
            self.now_room = 2 * n
        i: cython.int
        for i in range(n):
            self.now_atom[i] = self.thread_atom[at + i]
            self.now_rest[i] = self.thread_rest[at + i]
        self.now_count = n
        return None

    @cython.cfunc
    def _swap(self) -> object:
        """Make the next set the current one."""
        self.now_atom, self.next_atom = self.next_atom, self.now_atom
        self.now_rest, self.next_rest = self.next_rest, self.now_rest
        self.now_room, self.next_room = self.next_room, self.now_room
        self.now_count = self.next_count
        self.now_accepts = self.next_accepts
        return None

    @cython.cfunc
    def _advance(self, byte: cython.int) -> object:
        """Compute the next set: the transitions of the current one by a byte. A thread whose atom may end there adds
        the heads of the node after it. The set is sorted only if it is large; `_intern` sorts it anyway."""
        i: cython.int
        atom: cython.longlong
        self.next_count = 0
        self.next_accepts = False
        for i in range(self.now_count):
            atom = self.after(self.now_atom[i], byte)
            if atom < 0:
                continue
            if atom != encoding.DONE:
                self._push(atom, self.now_rest[i])
            if self.may_end(atom):
                self._enter_node(self.now_rest[i])
        if self.next_count > 16:
            self._sort()
        if self.next_count > MANY_THREADS:
            self._merge()
        return None

    def dependent_position(self, node: cython.int) -> object:
        """Return the position of a dependent node."""
        return (cython.cast(cython.longlong, encoding.DYNAMIC) << encoding.TAG) | node

    def start(self, node: int) -> int:
        """Return the state before any text of ``node``; it may be open (see `resolve`)."""
        self.next_count = 0
        self.next_accepts = False
        self._enter_node(node)
        return self.cut(self._intern())

    @cython.ccall
    @cython.exceptval(-1)
    def cut(self, state: cython.int) -> cython.int:
        """Return a state with the threads that have the shortest completions, if there are too many; else the same
        state.

        Each thread has a completion of its own, so the shortest completion stays as short. States are cut only between
        two tokens, so that masks and `advance` agree. An open state is not cut.
        """
        n: cython.int = self.state_count[self.own(state)]
        if n <= FEW_THREADS:
            return state
        known = self.cuts.get(state)
        if known is not None:
            return known
        most: cython.int = FEW_THREADS if self.nodes.is_scarce else MAX_THREADS
        if n <= most or self.open_threads(state):
            return state
        kept = self.source.nearest(state, most, MAX_THREADS)
        i: cython.int
        self._load(state)
        self.next_count = 0
        self.next_accepts = self.state_accepts[state] != 0
        for i in range(self.now_count):
            if (self.now_atom[i], self.now_rest[i]) in kept:
                self._push(self.now_atom[i], self.now_rest[i])
        found: cython.int = self._intern()
        self.cuts[state] = found
        if found != state:
            self.remnants.add(found)
        return found

    @cython.ccall
    @cython.exceptval(-1)
    def advance(self, state: cython.int, data: bytes, whole: cython.bint = True) -> cython.int:
        """Return the state after ``data``, or `REFUSED` if no text continues with it.

        ``whole``: ``data`` ends with a token, so that the state may be `cut`.

        If the state after byte ``n`` is *open* (it has a thread at a dependent node), return ``OPENED - n``: the caller
        takes that byte by `step`, and closes the state by `resolve`.
        """
        i: cython.int
        size: cython.int = len(data)
        if size == 0:
            return state
        self._load(state)
        for i in range(size):
            self.is_open = False
            self._advance(data[i])
            if self.next_count == 0 and not self.next_accepts:
                return encoding.REFUSED
            if self.is_open:
                return encoding.OPENED - i
            if i + 1 < size:
                self._swap()
        return self.cut(self._intern()) if whole else self._intern()

    def step(self, state: cython.int, byte: cython.int) -> int:
        """Return the state after one byte, which may be open, or `REFUSED`."""
        if byte < 0 or byte > 0xFF:
            raise ValueError("not a byte")
        self._load(state)
        self._advance(byte)
        return encoding.REFUSED if self.next_count == 0 and not self.next_accepts else self._intern()

    def resolve(self, state: cython.int, replaced: dict) -> int:
        """Return an open state with each thread of `open_threads` replaced by the node ``replaced[thread]``; `REFUSED`
        if no thread remains. The new state may be open again."""
        i: cython.int
        self._load(state)
        self.next_count = 0
        self.next_accepts = self.state_accepts[state] != 0
        for i in range(self.now_count):
            if (self.now_atom[i] >> encoding.TAG) == encoding.DYNAMIC:
                self._enter_node(replaced[self.now_atom[i] & encoding.PAYLOAD, self.now_rest[i]])
            else:
                self._push(self.now_atom[i], self.now_rest[i])
        return encoding.REFUSED if self.next_count == 0 and not self.next_accepts else self._intern()

    def open_threads(self, state: cython.int) -> list:
        """Return the threads of a state at dependent nodes, as pairs of that node and the node that follows it."""
        at: cython.int = self.state_at[self.own(state)]
        i: cython.int
        found = []
        for i in range(at, at + self.state_count[state]):
            if (self.thread_atom[i] >> encoding.TAG) == encoding.DYNAMIC:
                found.append((self.thread_atom[i] & encoding.PAYLOAD, self.thread_rest[i]))
        return found

    def narrowed(self, state: cython.int, kept: object) -> int:
        """Return the state that has only those threads of a state that are in ``kept``, a set of ``(atom, rest)``
        pairs; `REFUSED` if there are none. The text may not end in the result, even if it may end in ``state``."""
        i: cython.int
        self._load(state)
        self.next_count = 0
        self.next_accepts = False
        for i in range(self.now_count):
            if (self.now_atom[i], self.now_rest[i]) in kept:
                self._push(self.now_atom[i], self.now_rest[i])
        return encoding.REFUSED if self.next_count == 0 else self._intern()

    def advance_special(self, state: cython.int, number: cython.int) -> int:
        """Return the state after control token ``number``, or `REFUSED`."""
        i: cython.int
        wanted: cython.longlong = (cython.cast(cython.longlong, encoding.SPECIAL) << encoding.TAG) | number
        self._load(state)
        self.next_count = 0
        self.next_accepts = False
        found: cython.bint = False
        for i in range(self.now_count):
            if self.now_atom[i] == wanted:
                found = True
                self._enter_node(self.now_rest[i])
        return self.cut(self._intern()) if found else encoding.REFUSED

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def accepts(self, state: cython.int) -> cython.bint:
        """Return True if the text may end here."""
        return self.state_accepts[self.own(state)] != 0

    def thread_count(self, state: cython.int) -> int:
        """Return the number of threads of a state; 0 if nothing can follow."""
        return self.state_count[self.own(state)]

    def threads(self, state: cython.int) -> list:
        """Return the threads of a state as ``(atom, rest)`` pairs."""
        at: cython.int = self.state_at[self.own(state)]
        return [(self.thread_atom[at + i], self.thread_rest[at + i]) for i in range(self.state_count[state])]

    def forced(self, state: cython.int, limit: cython.int) -> bytes:
        """Return at most ``limit`` bytes of the only possible continuation, up to the first point where the text may
        end."""
        out = bytearray()
        i: cython.int
        byte: cython.int
        choice: cython.int
        atom: cython.longlong
        self._load(state)
        self.now_accepts = self.state_accepts[state] != 0
        while len(out) < limit and not self.now_accepts and self.now_count > 0:
            choice = encoding.NO_BYTE
            for i in range(self.now_count):
                atom = self.now_atom[i]
                if (atom >> encoding.TAG) == encoding.LITERAL:
                    byte = self.pool[cython.cast(cython.int, atom & encoding.PAYLOAD)]
                elif (atom >> encoding.TAG) == encoding.SPECIAL or (atom >> encoding.TAG) == encoding.DYNAMIC:
                    byte = encoding.SEVERAL
                else:
                    byte = self._only_byte(atom)
                if byte < 0 or (choice >= 0 and byte != choice):
                    choice = encoding.SEVERAL
                    break
                choice = byte
            if choice < 0:
                break
            self._advance(choice)
            self._swap()
            out.append(choice)
        return bytes(out)

    def following(self, state: cython.int) -> bytes:
        """Return the bytes that may come next, ascending, as if dependent nodes forbade nothing."""
        seen = bytearray(256)
        i: cython.int
        byte: cython.int
        self._load(state)
        for i in range(self.now_count):
            for byte in range(256):
                if not seen[byte] and self.after(self.now_atom[i], byte) >= 0:
                    seen[byte] = 1
        return bytes([byte for byte in range(256) if seen[byte]])

    def state_bytes(self) -> int:
        """Return the bytes that literals, heads, states and their threads take."""
        held: cython.longlong = 2 * self.pool_room + 16 * self.counted_room + 17 * self.node_room
        held += 12 * (self.head_room + self.thread_room) + 9 * self.state_room
        return held + self.interned.byte_count()

    def counters(self) -> dict:
        """Return deterministic counts: states, row states, nodes with heads, threads, faults, cut states; and bytes
        held."""
        size = 2 * self.pool_room + 12 * (self.head_room + self.thread_room) + 17 * self.node_room + 9 * self.state_room
        return {
            "states": self.state_used,
            "rows": len(self.byte_rows) - self.base_count,
            "threads": self.thread_used,
            "faults": self.faults,
            "cuts": len(self.remnants),
            "bytes": size + self.byte_rows.byte_count(),
        }
