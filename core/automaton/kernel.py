# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The hot part: states, steps, the vocabulary trie and the mask walk. Cython in pure-Python mode.

The same file runs interpreted (correct, slow) or compiled; `COMPILED` says which. Three classes:

`Automaton`  a lazily built deterministic automaton. A state is a small integer that stands for a set of *threads*
             ``(atom, rest)``: a position inside an atomic language, and the grammar node that must follow it. Rows and
             heads that are not known yet are faults: the Python side derives them, the walk goes on.
`Trie`       a vocabulary as a byte trie in flat pre-order arrays (byte, depth, token, subtree size).
`Masks`      for a state, the set of tokens that keep the output valid. ``mask(atom rest)`` splits into the tokens that
             stay inside the atom, a set that does not depend on where the atom stands and is computed once, and those
             that cross its end, found by walking ``rest`` from the trie nodes where the atom may end.

An atom position is one 64-bit integer, its top bits a tag: ROW (a state of
``toolgrammar.core.automaton.rows.Rows``), LITERAL (an offset into the pool of literals: literals are laid down whole,
not as states), COUNTED (a JSON string with a character count that is computed, not unrolled), SPECIAL (a control
token), DYNAMIC (no text: a place where what follows depends on the text so far; see `Automaton.resolve`).
"""

from __future__ import annotations

from array import array

from ..errors import LimitError
from .layout import CLASS, FACTS, LEAST, MAY_END, MOST, ROW_AT

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from .. import cython_standin as cython  # type: ignore[no-redef]

COMPILED: bool = bool(cython.compiled)

#: How many threads a state may have; a power of two.
MAX_THREADS = 2_048

DEAD = cython.declare(cython.longlong, -1)
DONE = cython.declare(cython.longlong, 0)
TAG = cython.declare(cython.int, 60)
ROW = cython.declare(cython.longlong, 0)
LITERAL = cython.declare(cython.longlong, 1)
COUNTED = cython.declare(cython.longlong, 2)
SPECIAL = cython.declare(cython.longlong, 3)
DYNAMIC = cython.declare(cython.longlong, 4)
# What is known of a row state; see `layout`.
_FACTS = cython.declare(cython.int, FACTS)
_ROW_AT = cython.declare(cython.int, ROW_AT)
_MAY_END = cython.declare(cython.int, MAY_END)
_CLASS = cython.declare(cython.int, CLASS)
_LEAST = cython.declare(cython.int, LEAST)
_MOST = cython.declare(cython.int, MOST)
POOL_END = cython.declare(cython.int, 256)
#: From how many trie nodes on a subtree is worth an answer from `Runs`, and how many of them one vocabulary keeps.
LARGE = cython.declare(cython.int, 64)
MOST_RUNS = cython.declare(cython.int, 24)
#: How often a class of characters is met before its `Runs` are taken, where a walk would do as well.
OFTEN = cython.declare(cython.int, 8)
#: How many tables of counted strings one vocabulary keeps.
MOST_COUNTED = cython.declare(cython.int, 256)
#: From how many tokens on that are set one by one a mask is joined.
SCATTERED = cython.declare(cython.int, 128)
#: For how many beginnings of tokens, of at most so many bytes, `Masks.below` keeps the trie's node.
MOST_PLACES = cython.declare(cython.int, 2048)
LONGEST_PLACE = cython.declare(cython.int, 64)
LOCAL_DONE = cython.declare(cython.int, 127)
LOCAL_BODY = cython.declare(cython.int, 1)
UNBOUNDED = cython.declare(cython.longlong, 0xFFFFFFFF)
#: Groups of bytes (see `Trie`): parts of characters beyond ASCII, those of U+2028 and U+2029, and all that no state
#: may be asked for.
HIGH = cython.declare(cython.ulonglong, 1 << 61)
SEPARATOR = cython.declare(cython.ulonglong, 1 << 62)
OTHER = cython.declare(cython.ulonglong, 1 << 63)
#: From how many trie nodes on a subtree is worth to find out in which groups of bytes a state stays where it is.
SOME = cython.declare(cython.int, 16)
# The 64-bit FNV-1a hash: offset basis and prime.
FNV_BASIS = cython.declare(cython.ulonglong, 14695981039346656037)
FNV_PRIME = cython.declare(cython.ulonglong, 1099511628211)


#: To be repeated, which is the quickest way to an array of zeros.
_ZERO = {code: array(code, [0]) for code in "BHIQhiq"}


def _grown(old, code: str, size: int):
    """A copy of an array with room for ``size`` items, zero-filled."""
    new = _ZERO[code] * size
    if old is not None:
        new[: len(old)] = old
    return new


def _copied(code: str, view) -> array:
    """A view's items as an array."""
    found = array(code)
    found.frombytes(memoryview(view).tobytes())
    return found


def _byte_groups() -> array:
    """For each byte the group it is in, as a bit: a letter, the digits, a punctuation mark, ..."""
    members = [bytes((byte,)) for byte in range(0x61, 0x7B)]
    members += [b"0123456789", b"ABCDEF", b"GHIJKLMNOPQRSTUVWXYZ", b"^`"]
    members += [bytes((byte,)) for byte in b" !\"#$%&'()*+,-./:;<=>?@[\\]_{|}~"]
    members.append(bytes(range(0x80, 256)))
    groups = array("Q", [OTHER]) * 256
    for number, group in enumerate(members):
        for byte in group:
            groups[byte] = 1 << number
    return groups


GROUPS = _byte_groups()


@cython.cclass
class Automaton:
    """A lazily built automaton over bytes (and control tokens).

    Args:
        source: derives what is not known yet. ``source.is_dynamic`` says whether a DYNAMIC place was met.
            ``source.nodes`` has the heads of nodes, and ``source.atom(node)`` gives the position at which an atomic
            node begins.
        given: the row states (see `toolgrammar.core.automaton.rows`); their rows are derived as they are asked for.
        local: rows of the free JSON string automaton, 256 local states each, for COUNTED atoms.
    """

    source: object
    nodes: object
    # row states
    given: object
    rows: cython.int[::1]
    facts: cython.int[::1]
    row_room: cython.int
    row_version: cython.int
    # the first row states, which many automata share: their rows are known
    base_rows: cython.int[::1]
    base_count: cython.int
    # the pool of literals
    pool: cython.short[::1]
    pool_array: object
    pool_used: cython.int
    # counted strings
    local: cython.schar[::1]
    least: cython.longlong[::1]
    most: cython.longlong[::1]
    counted_used: cython.int
    # heads of nodes
    head_at: cython.int[::1]
    head_count: cython.int[::1]
    node_null: cython.uchar[::1]
    node_atom: cython.longlong[::1]
    node_room: cython.int
    found: cython.int[::1]
    found_array: object
    head_atom: cython.longlong[::1]
    head_rest: cython.int[::1]
    head_atom_array: object
    head_rest_array: object
    head_at_array: object
    head_count_array: object
    node_null_array: object
    node_atom_array: object
    head_used: cython.int
    # states: hash-consed sets of threads
    thread_atom: cython.longlong[::1]
    thread_rest: cython.int[::1]
    thread_atom_array: object
    thread_rest_array: object
    thread_used: cython.int
    state_at: cython.int[::1]
    state_count: cython.int[::1]
    state_accepts: cython.uchar[::1]
    state_at_array: object
    state_count_array: object
    state_accepts_array: object
    state_used: cython.int
    table: cython.int[::1]
    # scratch
    now_atom: cython.longlong[::1]
    now_rest: cython.int[::1]
    now_count: cython.int
    now_accepts: cython.bint
    is_open: cython.bint
    next_atom: cython.longlong[::1]
    next_rest: cython.int[::1]
    next_count: cython.int
    next_accepts: cython.bint
    faults: cython.longlong

    def __init__(self, source, given, local):
        self.source = source
        self.given = given
        self.nodes = source.nodes
        self.local = local
        self.base_rows = given.shared_rows()
        self.base_count = given.seeded()
        self._read_rows(-1)
        self.pool_array = _grown(None, "h", 1024)
        self.pool = self.pool_array
        self.pool_used = 0
        self.least = array("q", bytes(8 * 16))
        self.most = array("q", bytes(8 * 16))
        self.counted_used = 0
        self.node_room = 0
        self.head_at_array = self.head_count_array = self.node_null_array = self.node_atom_array = None
        self._grow_nodes(256)
        self.found_array = self.nodes.head_pool
        self.found = self.found_array
        self.head_atom_array = _grown(None, "q", 1024)
        self.head_atom = self.head_atom_array
        self.head_rest_array = _grown(None, "i", 1024)
        self.head_rest = self.head_rest_array
        self.head_used = 1  # where heads begin is never 0: that stands for not known
        self.thread_atom_array = _grown(None, "q", 256)
        self.thread_atom = self.thread_atom_array
        self.thread_rest_array = _grown(None, "i", 256)
        self.thread_rest = self.thread_rest_array
        self.thread_used = 0
        self.state_at_array = _grown(None, "i", 64)
        self.state_at = self.state_at_array
        self.state_count_array = _grown(None, "i", 64)
        self.state_count = self.state_count_array
        self.state_accepts_array = _grown(None, "B", 64)
        self.state_accepts = self.state_accepts_array
        self.state_used = 0
        self.table = _grown(None, "i", 256)
        self.now_atom = _grown(None, "q", 64)
        self.now_rest = _grown(None, "i", 64)
        self.next_atom = _grown(None, "q", 64)
        self.next_rest = _grown(None, "i", 64)
        self.now_count = 0
        self.next_count = 0
        self.now_accepts = False
        self.next_accepts = False
        self.is_open = False
        self.faults = 0

    # -- growth ------------------------------------------------------------------------------------------------

    @cython.cfunc
    def _read_rows(self, version: cython.int) -> object:
        """Read rows and facts where they are now."""
        rows, facts, room = self.given.arrays()
        self.rows = rows
        self.facts = facts
        self.row_room = room
        self.row_version = version
        return None

    @cython.cfunc
    def _grow_nodes(self, needed: cython.int) -> object:
        if needed > self.node_room:
            room: cython.int = max(needed, 2 * self.node_room)
            self.head_at_array = _grown(self.head_at_array, "i", room)
            self.head_at = self.head_at_array
            self.head_count_array = _grown(self.head_count_array, "i", room)
            self.head_count = self.head_count_array
            self.node_null_array = _grown(self.node_null_array, "B", room)
            self.node_null = self.node_null_array
            self.node_atom_array = _grown(self.node_atom_array, "q", room)
            self.node_atom = self.node_atom_array
            self.node_room = room
        return None

    def lay(self, data: bytes) -> int:
        """Put a literal into the pool; returns its atom position."""
        size: cython.int = len(data)
        if self.pool_used + size + 1 > len(self.pool_array):
            self.pool_array = _grown(self.pool_array, "h", max(2 * len(self.pool_array), self.pool_used + size + 1))
            self.pool = self.pool_array
        at: cython.int = self.pool_used
        i: cython.int
        for i in range(size):
            self.pool[at + i] = data[i]
        self.pool[at + size] = POOL_END
        self.pool_used = at + size + 1
        return (LITERAL << TAG) | at

    def count(self, least: int, most: int) -> int:
        """Register a JSON string of so many characters (``most`` -1: no bound); returns its atom position."""
        number: cython.int = self.counted_used
        if number == len(self.least):
            self.least = _grown(array("q", self.least), "q", 2 * number)
            self.most = _grown(array("q", self.most), "q", 2 * number)
        self.least[number] = least
        self.most[number] = UNBOUNDED if most < 0 else most
        self.counted_used = number + 1
        return (COUNTED << TAG) | (cython.cast(cython.longlong, number) << 40)

    # -- atoms -------------------------------------------------------------------------------------------------

    @cython.cfunc
    def _row_fault(self, state: cython.int) -> object:
        self.faults += 1
        version: cython.int = self.given.derive(state)
        if version != self.row_version:
            self._read_rows(version)
        return None

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _step(self, atom: cython.longlong, byte: cython.int) -> cython.longlong:
        """The atom position after one byte: DEAD, DONE (complete, nothing can follow inside), or a position."""
        tag: cython.longlong = atom >> TAG
        if tag == ROW:
            state: cython.int = cython.cast(cython.int, atom)
            if state < self.base_count:
                return self.base_rows[state * 256 + byte]
            if state >= self.row_room or self.facts[_FACTS * state + _ROW_AT] < 0:
                self._row_fault(state)
            return self.rows[self.facts[_FACTS * state + _ROW_AT] + byte]
        if tag == LITERAL:
            at: cython.int = cython.cast(cython.int, atom & 0x7FFFFFFF)
            if self.pool[at] != byte:
                return DEAD
            return DONE if self.pool[at + 1] == POOL_END else atom + 1
        if tag == COUNTED:
            here: cython.int = cython.cast(cython.int, atom & 0xFF)
            then: cython.int = self.local[here * 256 + byte]
            if then == -1:
                return DEAD
            number: cython.int = cython.cast(cython.int, (atom >> 40) & 0xFFFFF)
            written: cython.longlong = (atom >> 8) & 0xFFFFFFFF
            if then == LOCAL_DONE:
                return DONE if written >= self.least[number] else DEAD
            if here == LOCAL_BODY:  # a character begins
                if written >= self.most[number]:
                    return DEAD
            if then == LOCAL_BODY and here != 0:  # a character is complete
                # Past the minimum of an unbounded string the count says nothing more: keep states few.
                if self.most[number] != UNBOUNDED or written < self.least[number]:
                    written += 1
            return (COUNTED << TAG) | (cython.cast(cython.longlong, number) << 40) | (written << 8) | then
        return DEAD

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _may_end(self, atom: cython.longlong) -> cython.bint:
        return (atom >> TAG) == ROW and (
            atom == DONE or self.facts[_FACTS * cython.cast(cython.int, atom) + _MAY_END] != 0
        )

    # -- nodes -------------------------------------------------------------------------------------------------

    @cython.cfunc
    def _need_heads(self, node: cython.int) -> object:
        """Make sure that the heads of a node are known."""
        if node < self.node_room and self.head_at[node] > 0:
            return None
        self.faults += 1
        at: cython.int = self.nodes.lay_heads(node)
        nullable: cython.bint = self.nodes.nullable(node)
        if self.nodes.head_pool is not self.found_array:
            self.found_array = self.nodes.head_pool
            self.found = self.found_array
        size: cython.int = self.found[at]
        self._grow_nodes(node + 1)
        start: cython.int = self.head_used
        if start + size > len(self.head_atom_array):
            room = max(2 * len(self.head_atom_array), start + size)
            self.head_atom_array = _grown(self.head_atom_array, "q", room)
            self.head_atom = self.head_atom_array
            self.head_rest_array = _grown(self.head_rest_array, "i", room)
            self.head_rest = self.head_rest_array
        i: cython.int
        atom: cython.longlong
        is_open: cython.bint = False
        for i in range(size):
            atom = self._atom_of(self.found[at + 1 + 2 * i])
            is_open |= (atom >> TAG) == DYNAMIC
            self.head_atom[start + i] = atom
            self.head_rest[start + i] = self.found[at + 2 + 2 * i]
        self.head_at[node] = start
        self.head_count[node] = size
        self.node_null[node] = (1 if nullable else 0) | (2 if is_open else 0)
        self.head_used = start + size
        return None

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _atom_of(self, node: cython.int) -> cython.longlong:
        """The position at which an atomic node begins."""
        if node >= self.node_room:
            self._grow_nodes(node + 1)
        if self.node_atom[node] == 0:
            self.node_atom[node] = self.source.atom(node) + 1
        return self.node_atom[node] - 1

    # -- states ------------------------------------------------------------------------------------------------

    @cython.cfunc
    def _push(self, atom: cython.longlong, rest: cython.int) -> object:
        """Add a thread to the next set, once."""
        i: cython.int
        n: cython.int = self.next_count
        if (atom >> TAG) == DYNAMIC:
            self.is_open = True
        if n <= 16:
            for i in range(n):
                if self.next_atom[i] == atom and self.next_rest[i] == rest:
                    return None
        if n == len(self.next_atom):
            if n >= MAX_THREADS:
                raise LimitError(
                    f"a text can be read in more than {MAX_THREADS:,} ways at once",
                    hint="give each alternative of anyOf, oneOf and not a property with its own const",
                )
            self.next_atom = _grown(array("q", self.next_atom), "q", 2 * n)
            self.next_rest = _grown(array("i", self.next_rest), "i", 2 * n)
        self.next_atom[n] = atom
        self.next_rest[n] = rest
        self.next_count = n + 1
        return None

    @cython.cfunc
    def _enter_node(self, node: cython.int) -> object:
        """Add all heads of a node to the next set."""
        i: cython.int
        self._need_heads(node)
        if self.node_null[node] & 1:
            self.next_accepts = True
        start: cython.int = self.head_at[node]
        for i in range(start, start + self.head_count[node]):
            self._push(self.head_atom[i], self.head_rest[i])
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def _sort(self) -> cython.void:
        """Sort the next set (shell sort: sets are small) and drop duplicates, so that equal sets look equal."""
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
    @cython.exceptval(-9, check=False)
    def _intern(self) -> cython.int:
        """The state of the next set."""
        self._sort()
        n: cython.int = self.next_count
        i: cython.int
        mixed: cython.ulonglong = FNV_BASIS + n + (1 if self.next_accepts else 0)
        for i in range(n):
            mixed = (mixed ^ cython.cast(cython.ulonglong, self.next_atom[i])) * FNV_PRIME
            if not cython.compiled:
                mixed &= 0xFFFFFFFFFFFFFFFF
            mixed = (mixed ^ cython.cast(cython.ulonglong, self.next_rest[i])) * FNV_PRIME
            if not cython.compiled:
                mixed &= 0xFFFFFFFFFFFFFFFF
            mixed ^= mixed >> 29
        size: cython.ulonglong = len(self.table)
        slot: cython.ulonglong = mixed & (size - 1)
        found: cython.int
        while True:
            found = self.table[slot] - 1
            if found < 0:
                break
            if self.state_count[found] == n and self.state_accepts[found] == (1 if self.next_accepts else 0):
                at: cython.int = self.state_at[found]
                same: cython.bint = True
                for i in range(n):
                    if self.thread_atom[at + i] != self.next_atom[i] or self.thread_rest[at + i] != self.next_rest[i]:
                        same = False
                        break
                if same:
                    return found
            slot = (slot + 1) & (size - 1)
        state: cython.int = self.state_used
        if state == len(self.state_at_array):
            self.state_at_array = _grown(self.state_at_array, "i", 2 * state)
            self.state_at = self.state_at_array
            self.state_count_array = _grown(self.state_count_array, "i", 2 * state)
            self.state_count = self.state_count_array
            self.state_accepts_array = _grown(self.state_accepts_array, "B", 2 * state)
            self.state_accepts = self.state_accepts_array
        if self.thread_used + n > len(self.thread_atom_array):
            room = max(2 * len(self.thread_atom_array), self.thread_used + n)
            self.thread_atom_array = _grown(self.thread_atom_array, "q", room)
            self.thread_atom = self.thread_atom_array
            self.thread_rest_array = _grown(self.thread_rest_array, "i", room)
            self.thread_rest = self.thread_rest_array
        for i in range(n):
            self.thread_atom[self.thread_used + i] = self.next_atom[i]
            self.thread_rest[self.thread_used + i] = self.next_rest[i]
        self.state_at[state] = self.thread_used
        self.state_count[state] = n
        self.state_accepts[state] = 1 if self.next_accepts else 0
        self.thread_used += n
        self.state_used = state + 1
        self.table[slot] = state + 1
        if 2 * self.state_used > len(self.table):
            self._rehash()
        return state

    @cython.cfunc
    def _rehash(self) -> object:
        size: cython.ulonglong = 2 * len(self.table)
        table: cython.int[::1] = _grown(None, "i", size)
        state: cython.int
        i: cython.int
        for state in range(self.state_used):
            n: cython.int = self.state_count[state]
            at: cython.int = self.state_at[state]
            mixed: cython.ulonglong = FNV_BASIS + n + self.state_accepts[state]
            for i in range(n):
                mixed = (mixed ^ cython.cast(cython.ulonglong, self.thread_atom[at + i])) * FNV_PRIME
                if not cython.compiled:
                    mixed &= 0xFFFFFFFFFFFFFFFF
                mixed = (mixed ^ cython.cast(cython.ulonglong, self.thread_rest[at + i])) * FNV_PRIME
                if not cython.compiled:
                    mixed &= 0xFFFFFFFFFFFFFFFF
                mixed ^= mixed >> 29
            slot: cython.ulonglong = mixed & (size - 1)
            while table[slot] != 0:
                slot = (slot + 1) & (size - 1)
            table[slot] = state + 1
        self.table = table
        return None

    @cython.cfunc
    def _load(self, state: cython.int) -> object:
        """Copy a state's threads into the current set."""
        n: cython.int = self.state_count[state]
        at: cython.int = self.state_at[state]
        if n > len(self.now_atom):
            self.now_atom = _grown(None, "q", 2 * n)
            self.now_rest = _grown(None, "i", 2 * n)
        i: cython.int
        for i in range(n):
            self.now_atom[i] = self.thread_atom[at + i]
            self.now_rest[i] = self.thread_rest[at + i]
        self.now_count = n
        return None

    @cython.cfunc
    def _swap(self) -> object:
        """The next set becomes the current one."""
        self.now_atom, self.next_atom = self.next_atom, self.now_atom
        self.now_rest, self.next_rest = self.next_rest, self.now_rest
        self.now_count = self.next_count
        self.now_accepts = self.next_accepts
        return None

    @cython.cfunc
    def _advance(self, byte: cython.int) -> object:
        """The next set from the current one, after a byte."""
        i: cython.int
        atom: cython.longlong
        self.next_count = 0
        self.next_accepts = False
        for i in range(self.now_count):
            atom = self._step(self.now_atom[i], byte)
            if atom < 0:
                continue
            if atom != DONE:
                self._push(atom, self.now_rest[i])
            if self._may_end(atom):
                self._enter_node(self.now_rest[i])
        if self.next_count > 16:
            self._sort()
        return None

    def start(self, node: int) -> int:
        """The state before any text of ``node``; it may be open (see `resolve`)."""
        self.next_count = 0
        self.next_accepts = False
        self._enter_node(node)
        return self._intern()

    def advance(self, state: cython.int, data: bytes) -> int:
        """The state after ``data``, or -1 if no text goes on so, or ``-2 - n`` if after byte ``n`` of it the state is
        *open*: it has a DYNAMIC thread. `step` takes that byte, and `resolve` closes the state."""
        i: cython.int
        size: cython.int = len(data)
        if size == 0:
            return state
        self._load(state)
        for i in range(size):
            self.is_open = False
            self._advance(data[i])
            if self.next_count == 0 and not self.next_accepts:
                return -1
            if self.is_open:
                return -2 - i
            if i + 1 < size:
                self._swap()
        return self._intern()

    def step(self, state: cython.int, byte: cython.int) -> int:
        """The state after one byte, which may be open, or -1."""
        self._load(state)
        self._advance(byte)
        return -1 if self.next_count == 0 and not self.next_accepts else self._intern()

    def resolve(self, state: cython.int, replaced: dict) -> int:
        """An open state with each DYNAMIC thread ``(atom, rest)`` replaced by the node ``replaced[atom, rest]``; -1 if
        nothing is left. The new state may be open again.

        This is the one place where the text so far takes part (data-dependent grammars: Jim, Mandelbaum, Walker 2010,
        "Semantics and algorithms for data-dependent grammars"); states stay independent of it.
        """
        i: cython.int
        self._load(state)
        self.next_count = 0
        self.next_accepts = self.state_accepts[state] != 0
        for i in range(self.now_count):
            if (self.now_atom[i] >> TAG) == DYNAMIC:
                self._enter_node(replaced[self.now_atom[i], self.now_rest[i]])
            else:
                self._push(self.now_atom[i], self.now_rest[i])
        return -1 if self.next_count == 0 and not self.next_accepts else self._intern()

    def open_threads(self, state: cython.int) -> list:
        """The DYNAMIC threads of a state as ``(atom, rest)`` pairs."""
        at: cython.int = self.state_at[state]
        i: cython.int
        found = []
        for i in range(at, at + self.state_count[state]):
            if (self.thread_atom[i] >> TAG) == DYNAMIC:
                found.append((self.thread_atom[i], self.thread_rest[i]))
        return found

    def advance_special(self, state: cython.int, number: cython.int) -> int:
        """The state after control token ``number``, or -1."""
        i: cython.int
        wanted: cython.longlong = (SPECIAL << TAG) | number
        self._load(state)
        self.next_count = 0
        self.next_accepts = False
        found: cython.bint = False
        for i in range(self.now_count):
            if self.now_atom[i] == wanted:
                found = True
                self._enter_node(self.now_rest[i])
        return self._intern() if found else -1

    def accepts(self, state: cython.int) -> bool:
        """Whether the text may end here."""
        return self.state_accepts[state] != 0

    def thread_count(self, state: cython.int) -> int:
        """How many threads a state has; 0 means that nothing can follow."""
        return self.state_count[state]

    def threads(self, state: cython.int) -> list:
        """The threads of a state as ``(atom, rest)`` pairs."""
        at: cython.int = self.state_at[state]
        return [(self.thread_atom[at + i], self.thread_rest[at + i]) for i in range(self.state_count[state])]

    def unpack(self, atom: cython.longlong) -> tuple:
        """An atom position as ``("row", state)``, ``("literal", remaining bytes)``, ``("counted", local state,
        characters written, least)``, ``("special", number)`` or ``("dynamic", number)``."""
        tag: cython.longlong = atom >> TAG
        at: cython.int
        if tag == ROW:
            return ("row", atom)
        if tag == LITERAL:
            at = cython.cast(cython.int, atom & 0x7FFFFFFF)
            end: cython.int = at
            while self.pool[end] != POOL_END:
                end += 1
            return ("literal", bytes([self.pool[i] for i in range(at, end)]))
        if tag == COUNTED:
            number: cython.int = cython.cast(cython.int, (atom >> 40) & 0xFFFFF)
            return ("counted", atom & 0xFF, (atom >> 8) & 0xFFFFFFFF, self.least[number])
        return ("dynamic" if tag == DYNAMIC else "special", atom & 0xFFFFFFFF)

    def forced(self, state: cython.int, limit: cython.int) -> bytes:
        """The bytes that every text goes on with, at most ``limit`` of them; stops where the text may end."""
        out = bytearray()
        i: cython.int
        byte: cython.int
        choice: cython.int
        atom: cython.longlong
        self._load(state)
        self.now_accepts = self.state_accepts[state] != 0
        while len(out) < limit and not self.now_accepts and self.now_count > 0:
            choice = -1
            for i in range(self.now_count):
                atom = self.now_atom[i]
                if (atom >> TAG) == LITERAL:
                    byte = self.pool[cython.cast(cython.int, atom & 0x7FFFFFFF)]
                elif (atom >> TAG) == SPECIAL or (atom >> TAG) == DYNAMIC:
                    byte = -2
                else:
                    byte = self._only_byte(atom)
                if byte < 0 or (choice >= 0 and byte != choice):
                    choice = -2
                    break
                choice = byte
            if choice < 0:
                break
            self._advance(choice)
            self._swap()
            out.append(choice)
        return bytes(out)

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _only_byte(self, atom: cython.longlong) -> cython.int:
        """The only byte that an atom can go on with, or -2."""
        byte: cython.int
        only: cython.int = -2
        for byte in range(256):
            if self._step(atom, byte) >= 0:
                if only >= 0:
                    return -2
                only = byte
        return only

    def state_bytes(self) -> int:
        """Bytes that states and their threads take."""
        return 12 * len(self.thread_atom_array) + 9 * len(self.state_at_array) + 4 * len(self.table)

    def counters(self) -> dict:
        """Deterministic counts: states, row states, nodes with heads, threads, faults; and bytes held."""
        size = sum(
            each.itemsize * len(each)
            for each in (
                self.pool_array,
                self.head_atom_array,
                self.head_rest_array,
                self.head_at_array,
                self.head_count_array,
                self.thread_atom_array,
                self.thread_rest_array,
                self.state_at_array,
                self.state_count_array,
            )
        )
        return {
            "states": self.state_used,
            "rows": len(self.given) - self.base_count,
            "threads": self.thread_used,
            "faults": self.faults,
            "bytes": size + self.given.byte_count(),
        }


@cython.cclass
class Trie:
    """A vocabulary as a byte trie in flat pre-order arrays.

    Node 0 is the root; the subtree of node ``i`` is ``i .. i + size[i]``. Tokens with equal bytes are chained.
    Empty tokens are left out: no mask ever allows them. ``order`` lists all tokens in pre-order; those of the nodes
    ``i .. j`` are ``order[first[i] : first[j]]``. ``below`` says which groups of bytes a subtree has beneath its root
    (see `_byte_groups`), where bytes that UTF-8 does not allow are in the group OTHER; ``height``, how many levels.

    Args:
        tokens: the bytes of each token id, None for ids that are not text.
        saved: what `saved` of a trie of the same tokens gave; None: they are sorted here.

    Raises:
        ValueError: ``saved`` is not that.
    """

    byte: cython.uchar[::1]
    depth: cython.ushort[::1]
    size: cython.int[::1]
    token: cython.int[::1]
    same: cython.int[::1]
    child: cython.int[::1]
    parent: cython.int[::1]
    order: cython.int[::1]
    first: cython.int[::1]
    below: cython.ulonglong[::1]
    height: cython.ushort[::1]
    nodes: cython.int
    vocabulary: cython.int
    longest: cython.int

    def __init__(self, tokens, saved=None):
        self.vocabulary = len(tokens)
        self.same = array("i", [-1]) * max(1, len(tokens))
        self.child = array("i", [-1]) * 256
        if saved is None:
            self._sort(tokens)
        else:
            self.byte, self.depth, self.token, self.same = saved
            self.nodes = len(self.byte)
            if not len(self.depth) == len(self.token) == self.nodes or len(self.same) != max(1, len(tokens)):
                raise ValueError("this is the trie of another vocabulary")
        self._link()

    @cython.cfunc
    def _sort(self, tokens) -> object:
        """Bytes, depths and tokens in pre-order."""
        order = sorted([number for number, data in enumerate(tokens) if data], key=tokens.__getitem__)
        pieces = [tokens[number] for number in order]
        # All in one piece, which is read faster than so many objects; a byte more, since a buffer may not be empty.
        text: cython.uchar[::1] = bytearray(b"".join(pieces) + b"-")
        room: cython.int = len(text)
        rooms = [_grown(None, code, room) for code in "BHi"]
        self.byte, self.depth, self.token = rooms
        path: cython.int[::1] = array("i", [0]) * (2 + max([len(data) for data in pieces], default=0))
        self.token[0] = -1
        nodes: cython.int = 1
        open_depth: cython.int = 0
        before: cython.int = 0
        at: cython.int = 0
        number: cython.int
        common: cython.int
        length: cython.int
        i: cython.int
        for number, data in zip(order, pieces):  # noqa: B905 (they are equally many)
            length = len(data)
            common = 0
            while common < open_depth and common < length and text[at + common] == text[before + common]:
                common += 1
            for i in range(common, length):
                self.byte[nodes] = text[at + i]
                self.depth[nodes] = i + 1
                self.token[nodes] = -1
                path[i + 1] = nodes
                nodes += 1
            open_depth = length
            i = path[length]
            if self.token[i] < 0:
                self.token[i] = number
            else:  # the same bytes again: chain
                self.same[number] = self.same[self.token[i]]
                self.same[self.token[i]] = number
            before = at
            at += length
        # The rooms were as large as all tokens together: give back what shared beginnings saved.
        self.byte, self.depth, self.token = [each[:nodes] for each in rooms]
        self.nodes = nodes
        return None

    @cython.cfunc
    def _link(self) -> object:
        """Subtree sizes, parents, the root's children, the order of the tokens, and groups, from the depths."""
        nodes: cython.int = self.nodes
        here: cython.int = 0
        depth: cython.int
        i: cython.int
        self.longest = 0
        for i in range(nodes):
            if self.depth[i] > self.longest:
                self.longest = self.depth[i]
        self.size = _grown(None, "i", nodes)
        self.parent = _grown(None, "i", nodes)
        self.order = _grown(None, "i", self.vocabulary + 1)
        self.first = _grown(None, "i", nodes + 1)
        self.below = _grown(None, "Q", nodes)
        self.height = _grown(None, "H", nodes)
        groups: cython.ulonglong[::1] = GROUPS
        # Of the path to the present node: the nodes, their own groups, and how many bytes their characters lack.
        path: cython.int[::1] = _grown(None, "i", self.longest + 1)
        own: cython.ulonglong[::1] = _grown(None, "Q", self.longest + 1)
        lack: cython.int[::1] = _grown(None, "i", self.longest + 1)
        tokens: cython.int = 0
        token: cython.int
        for i in range(1, nodes):
            depth = self.depth[i]
            if not 1 <= depth <= here + 1 or not -1 <= self.token[i] < self.vocabulary:
                raise ValueError("this is not a trie in pre-order")
            while here >= depth:
                self.size[path[here]] = i - path[here]
                self._raise(path[here - 1], path[here], own[here])
                here -= 1
            self.parent[i] = path[here]
            lack[depth] = self._lacks(i, lack[here])
            own[depth] = groups[self.byte[i]] if lack[depth] >= 0 else OTHER
            if depth > 2 and lack[depth] == 0 and (self.byte[i] == 0xA8 or self.byte[i] == 0xA9):
                if self.byte[path[here]] == 0x80 and self.byte[path[here - 1]] == 0xE2:
                    own[depth] |= SEPARATOR
            path[depth] = i
            here = depth
            if depth == 1:
                self.child[self.byte[i]] = i
            self.first[i] = tokens
            token = self.token[i]
            while token >= 0:
                if tokens == self.vocabulary or token >= self.vocabulary:
                    raise ValueError("these are not the tokens of a vocabulary")
                self.order[tokens] = token
                tokens += 1
                token = self.same[token]
        self.first[nodes] = tokens
        while here >= 0:
            self.size[path[here]] = nodes - path[here]
            if here > 0:
                self._raise(path[here - 1], path[here], own[here])
            here -= 1
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def _raise(self, parent: cython.int, node: cython.int, own: cython.ulonglong) -> cython.void:
        """A parent learns what is below its child, whose own byte is in group ``own``."""
        self.below[parent] |= self.below[node] | own
        if self.height[parent] < self.height[node] + 1:
            self.height[parent] = self.height[node] + 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _lacks(self, node: cython.int, before: cython.int) -> cython.int:
        """How many bytes the character lacks that node's byte is part of, if it lacked so many before; -1: UTF-8 (RFC
        3629) does not allow it, read from the root on."""
        byte: cython.int = self.byte[node]
        if before < 0:
            return -1
        if before == 0:
            if byte < 0x80:
                return 0
            if byte < 0xC2 or byte > 0xF4:
                return -1
            return 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
        lead: cython.int = self.byte[self.parent[node]]
        low: cython.int = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high: cython.int = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        return before - 1 if low <= byte <= high else -1

    def saved(self) -> tuple:
        """Arrays from which `Trie` makes the same trie again, without sorting: bytes, depths, tokens and chains."""
        return array("B", bytes(self.byte)), _copied("H", self.depth), _copied("i", self.token), _copied("i", self.same)

    def byte_count(self) -> int:
        """Bytes that the trie takes."""
        return 29 * self.nodes + 4 * len(self.same) + 4 * len(self.order)


@cython.cclass
class Table:
    """What an atom position allows, wherever it stands: tokens that stay inside, and where it may end.

    ``parts`` has one after the other: the trie nodes at which the atom may end (from there on the bytes belong to what
    follows); the tokens that end where the atom must end (the closing quote of a string); the bytes of the nodes'
    children, ascending; from where on the children of each byte are listed, and to where; these children.
    """

    dense: cython.uint[::1]
    ids: cython.int[::1]
    count: cython.int
    is_dense: cython.bint
    parts: cython.int[::1]
    end_count: cython.int
    closing_count: cython.int
    exit_count: cython.int
    size: cython.longlong

    def saved(self) -> tuple:
        """Arrays from which `load_table` makes the same table again."""
        inside = array("i")
        if self.is_dense:
            inside = _copied("I", self.dense)
        elif self.count:
            inside = _copied("i", self.ids)
        parts = _copied("i", self.parts) if self.end_count else array("i")
        closing = parts[self.end_count : self.end_count + self.closing_count]
        return array("i", [self.is_dense, self.count]), inside, parts[: self.end_count], closing


@cython.cfunc
def _new_table() -> Table:
    """A table of nothing; arrays that would be empty are left out."""
    table: Table = Table.__new__(Table)
    table.count = 0
    table.is_dense = False
    table.end_count = 0
    table.closing_count = 0
    table.exit_count = 0
    table.size = 400
    return table


@cython.cfunc
def _set_parts(
    trie: Trie,
    table: Table,
    ends: cython.int[::1],
    closing: cython.int[::1],
    at: cython.int[::1],
) -> object:
    """Give a table its ends, closing tokens, and the ends' children sorted by byte (a counting sort).

    So many of the ends and tokens as the table says; ``at`` is room for 256 numbers.
    """
    n: cython.int = table.end_count
    i: cython.int
    j: cython.int
    stop: cython.int
    total: cython.int = 0
    groups: cython.int = 0
    for i in range(256):
        at[i] = 0
    for i in range(n):
        j = ends[i] + 1
        stop = ends[i] + trie.size[ends[i]]
        while j < stop:
            if at[trie.byte[j]] == 0:
                groups += 1
            at[trie.byte[j]] += 1
            total += 1
            j += trie.size[j]
    table.exit_count = groups
    if n == 0:
        return None
    here: cython.int = n + table.closing_count
    room: cython.int = here + 2 * groups + 1 + total
    parts: cython.int[::1] = array("i", [0]) * room
    for i in range(n):
        parts[i] = ends[i]
    for i in range(table.closing_count):
        parts[n + i] = closing[i]
    stop = here + 2 * groups + 1
    for i in range(256):
        if at[i]:
            parts[here] = i
            parts[here + groups] = stop
            here += 1
            stop += at[i]
            at[i] = stop - at[i]
    parts[here + groups] = stop
    for i in range(n):
        j = ends[i] + 1
        stop = ends[i] + trie.size[ends[i]]
        while j < stop:
            parts[at[trie.byte[j]]] = j
            at[trie.byte[j]] += 1
            j += trie.size[j]
    table.parts = parts
    table.size += 4 * room
    return None


def load_table(trie: Trie, saved: tuple) -> Table:
    """The table that `Table.saved` was asked of, over a trie of the same vocabulary."""
    kind, inside, ends, closing = saved
    table: Table = _new_table()
    table.is_dense = kind[0]
    table.count = kind[1]
    if table.is_dense:
        table.dense = inside
    elif inside:
        table.ids = inside
    table.size += 4 * len(inside)
    table.end_count = len(ends)
    table.closing_count = len(closing)
    # A buffer may not be empty.
    _set_parts(trie, table, ends or array("i", [0]), closing or array("i", [0]), array("i", [0]) * 256)
    return table


@cython.cfunc
def _bits(bits: cython.uint[::1], words: cython.int) -> cython.uint[::1]:
    new: cython.uint[::1] = array("I", [0]) * words
    i: cython.int
    for i in range(words):
        new[i] = bits[i]
    return new


@cython.cclass
class Counts:
    """Tokens that stay inside a JSON string (from between two characters on), by their number of characters, and the
    trie nodes of closing quotes with the number of characters before them.

    The tokens of at most ``n`` characters are the first ``until[n]``.
    """

    token: cython.int[::1]
    token_chars: cython.int[::1]
    tokens: cython.int
    end: cython.int[::1]
    end_chars: cython.int[::1]
    ends: cython.int
    longest: cython.int
    until: cython.int[::1]

    def saved(self) -> tuple:
        """Arrays from which `load_counts` makes the same counts again."""
        numbers = array("i", [self.tokens, self.ends, self.longest])
        tokens = _copied("i", self.token), _copied("i", self.token_chars)
        return (*tokens, _copied("i", self.end), _copied("i", self.end_chars), numbers)


def load_counts(saved: tuple) -> Counts:
    """The counts that `Counts.saved` was asked of."""
    counts: Counts = Counts.__new__(Counts)
    counts.token, counts.token_chars, counts.end, counts.end_chars, numbers = saved
    counts.tokens, counts.ends, counts.longest = numbers
    _sort_counts(counts)
    return counts


@cython.cfunc
def _sort_counts(counts: Counts) -> object:
    """Bring the tokens in the order of their characters (a counting sort, stable)."""
    until: cython.int[::1] = array("i", [0]) * (counts.longest + 2)
    tokens: cython.int[::1] = array("i", [0]) * (counts.tokens + 1)
    chars: cython.int[::1] = array("i", [0]) * (counts.tokens + 1)
    i: cython.int
    at: cython.int
    for i in range(counts.tokens):
        until[counts.token_chars[i] + 1] += 1
    for i in range(1, counts.longest + 2):
        until[i] += until[i - 1]
    for i in range(counts.tokens):
        at = until[counts.token_chars[i]]
        until[counts.token_chars[i]] += 1
        tokens[at] = counts.token[i]
        chars[at] = counts.token_chars[i]
    counts.token, counts.token_chars, counts.until = tokens, chars, until
    return None


@cython.cclass
class Marks:
    """Where a vocabulary leaves a class of characters in a JSON string, by a quote, a backslash or another character.

    ``plain`` has a bit for each token of characters of the class alone, read from between two characters. ``node`` are
    the trie nodes on the way out, or behind, in pre-order; ``after`` says for each where in that list its subtree is
    over.
    """

    plain: cython.uint[::1]
    count: cython.int
    node: cython.int[::1]
    after: cython.int[::1]
    nodes: cython.int


@cython.cclass
class Runs:
    """`Counts` for strings of one class of characters, to be asked for any subtree.

    ``token_node`` and ``end_node`` are in pre-order. ``between`` says for each trie node how many characters were
    read if it lies between two characters of a string of the class (its bytes read from there on), else -1.
    """

    token_node: cython.int[::1]
    token: cython.int[::1]
    token_chars: cython.int[::1]
    tokens: cython.int
    end_node: cython.int[::1]
    end_chars: cython.int[::1]
    ends: cython.int
    longest: cython.int
    between: cython.short[::1]


@cython.cfunc
@cython.exceptval(check=False)
def _first_from(ordered: cython.int[::1], size: cython.int, node: cython.int) -> cython.int:
    """The index of the first of ``size`` ascending nodes that is not before ``node``."""
    low: cython.int = 0
    high: cython.int = size
    middle: cython.int
    while low < high:
        middle = (low + high) >> 1
        if ordered[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low


@cython.cclass
class Mask:
    """The allowed tokens of one state: the union of some tables and some single tokens.

    ``unsure`` are those among them that only an exact step can decide, since their bytes reach a DYNAMIC place;
    ``named``: those that hold a whole name, which it may be enough to compare with the names so far; ``watched``: some
    reach a place that only a repeated name could forbid. ``doubts`` holds these three for `Masks.fill`.

    A mask that is scattered over many parts is ``joined`` when it is asked for again: from then on it is one copy.
    """

    tables: list
    ids: cython.int[::1]
    count: cython.int
    doubts: object
    is_settled: cython.bint
    is_scattered: cython.bint
    is_joined: cython.bint
    joined: cython.uint[::1]
    tick: cython.longlong
    size: cython.longlong


@cython.cclass
class Masks:
    """Masks of an automaton's states over a vocabulary, memoised under a memory bound.

    Args:
        automaton: the automaton.
        trie: the vocabulary's trie.
        finals: ids that are allowed where the text may end.
        specials: token ids of the automaton's control tokens, by their number.
        shared: tables that do not depend on the grammar, by the key that `Rows.shared` gives.
        limit: bytes that memoised masks and tables may take.
    """

    automaton: Automaton
    trie: Trie
    finals: object
    specials: object
    shared: object
    tables: dict
    memo: list
    clock: cython.longlong
    held: cython.longlong
    limit: cython.longlong
    flushes: cython.longlong
    built: cython.longlong
    visited: cython.longlong
    words: cython.int
    out: cython.int[::1]
    out_array: object
    out_count: cython.int
    stack: cython.longlong[::1]
    beside: cython.longlong[::1]
    end: cython.int[::1]
    end_array: object
    end_count: cython.int
    closing: cython.int[::1]
    closing_count: cython.int
    scratch: cython.int[::1]
    unsure: set
    named: set
    watched: cython.bint
    crossed: cython.int
    grave: cython.int
    statics: dict
    places: dict
    runs: list
    target: object
    view: cython.uint[::1]
    leaves: cython.ulonglong[::1]
    usual: cython.int[::1]
    is_wide: cython.uchar[::1]

    def __init__(self, automaton: Automaton, trie: Trie, finals, specials, shared, limit):
        self.automaton = automaton
        self.trie = trie
        self.finals = tuple(finals)
        self.specials = dict(specials)
        self.shared = shared
        self.tables = {}
        self.memo = []
        self.clock = 0
        self.held = 0
        self.limit = limit
        self.flushes = 0
        self.built = 0
        self.visited = 0
        self.words = (trie.vocabulary + 31) // 32
        self.out_array = _grown(None, "i", 4096)
        self.out = self.out_array
        self.out_count = 0
        self.stack = _grown(None, "q", trie.longest + 2)
        self.beside = _grown(None, "q", trie.longest + 2)
        self.end_array = _grown(None, "i", 1024)
        self.end = self.end_array
        self.end_count = 0
        self.closing = _grown(None, "i", 256)
        self.closing_count = 0
        self.scratch = _grown(None, "i", 256)
        self.unsure = set()
        self.named = set()
        self.watched = False
        self.crossed = 0
        self.grave = 0
        self.statics = {}
        self.places = {}
        self.runs = []
        self.target = None
        # of each row state that was asked for: the state that most bytes lead to, and the groups (see `Trie`) of those
        # that do not; whether it is known what characters beyond ASCII do
        self.usual = _grown(None, "i", 64)
        self.leaves = _grown(None, "Q", 64)
        self.is_wide = _grown(None, "B", 64)

    def set_special(self, number: int, token: int) -> None:
        """Say which token id a control token of the automaton has; before any mask that needs it."""
        self.specials[number] = token

    # -- the walk ----------------------------------------------------------------------------------------------

    @cython.cfunc
    def _emit(self, token: cython.int) -> object:
        while token >= 0:
            self._emit_one(token)
            token = self.trie.same[token]
        return None

    @cython.cfunc
    def _emit_one(self, token: cython.int) -> object:
        if self.crossed > 1:
            (self.unsure if self.grave else self.named).add(token)
        if self.out_count == len(self.out_array):
            self.out_array = _grown(self.out_array, "i", 2 * self.out_count)
            self.out = self.out_array
        self.out[self.out_count] = token
        self.out_count += 1
        return None

    @cython.cfunc
    def _emit_all(self, begin: cython.int, stop: cython.int) -> object:
        """Emit the tokens from index ``begin`` to ``stop`` in the trie's order."""
        i: cython.int
        if self.out_count + stop - begin > len(self.out_array):
            self.out_array = _grown(self.out_array, "i", 2 * (self.out_count + stop - begin))
            self.out = self.out_array
        for i in range(begin, stop):
            self.out[self.out_count + i - begin] = self.trie.order[i]
        self.out_count += stop - begin
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _stays(self, node: cython.int, state: cython.int) -> cython.int:
        """1 if all tokens below trie ``node``, where row state ``state`` is, stay inside: then none needs to be looked
        at. All their bytes lead from each state to the usual next one.

        Such are the loops and the counts of a pattern; how it began does not matter.
        """
        trie: Trie = self.trie
        below: cython.ulonglong = trie.below[node]
        here: cython.int = state
        _i: cython.int
        for _i in range(trie.height[node]):
            if here >= len(self.leaves):
                self._make_room(here)
            if self.leaves[here] == 0:
                if trie.size[node] < SOME:
                    return 0
                self._find_leaves(here)
            if below & self.leaves[here]:
                break
            if self.usual[here] == here:
                return 1
            here = self.usual[here]
            if self.automaton._may_end(here):
                return 0
        else:
            return 1
        if below & self.leaves[here] & ~(HIGH | SEPARATOR) or trie.size[node] < LARGE or self.is_wide[here]:
            return 0
        if here != state or self.usual[here] != here:
            return 0
        self._find_wide(state)
        return 0 if below & self.leaves[state] else 1

    @cython.cfunc
    def _make_room(self, state: cython.longlong) -> object:
        """Have room for what is known of a row state."""
        room = max(2 * state, self.automaton.row_room)
        if state >= len(self.leaves):
            self.leaves = _grown(array("Q", self.leaves), "Q", room)
            self.usual = _grown(array("i", self.usual), "i", room)
            self.is_wide = _grown(array("B", self.is_wide), "B", room)
        return None

    @cython.cfunc
    def _find_leaves(self, state: cython.int) -> object:
        """Note the row state that most bytes of ASCII lead to from a row state, and the groups of the others."""
        groups: cython.ulonglong[::1] = GROUPS
        left: cython.ulonglong = HIGH | SEPARATOR | OTHER
        usual: cython.longlong = 0
        then: cython.longlong
        ahead: cython.int = 0  # the majority vote of Boyer and Moore (1981)
        byte: cython.int
        for byte in range(128):
            then = self.automaton._step(state, byte)
            if then <= 0:
                continue
            if ahead == 0:
                usual = then
            ahead += 1 if then == usual else -1
        for byte in range(128):
            if usual == 0 or self.automaton._step(state, byte) != usual:
                left |= groups[byte]
        self.leaves[state] = left
        self.usual[state] = cython.cast(cython.int, usual)
        return None

    @cython.cfunc
    def _find_wide(self, state: cython.int) -> object:
        """Find out whether every character beyond ASCII leads from a row state back to it: then it is not left by
        them, neither are the states within a character. ECMAScript's dot leaves out U+2028 and U+2029: they do not
        count, but are noted."""
        automaton: Automaton = self.automaton
        self.is_wide[state] = 1
        two: cython.longlong = automaton._step(state, 0xC2)
        three: cython.longlong = automaton._step(state, 0xE1)
        four: cython.longlong = automaton._step(state, 0xF1)
        if two <= 0 or three <= 0 or four <= 0 or automaton._may_end(state):
            return None
        if not (self._leads(two, 0x80, 0xBF, state) and self._leads(three, 0x80, 0xBF, two)):
            return None
        if not (self._leads(four, 0x80, 0xBF, three) and self._leads(state, 0xC2, 0xDF, two)):
            return None
        if not (self._leads(state, 0xE3, 0xEC, three) and self._leads(state, 0xEE, 0xEF, three)):
            return None
        if not (self._leads(state, 0xF1, 0xF3, four) and self._leads(automaton._step(state, 0xE0), 0xA0, 0xBF, two)):
            return None
        if not self._leads(automaton._step(state, 0xED), 0x80, 0x9F, two):
            return None
        if not self._leads(automaton._step(state, 0xF0), 0x90, 0xBF, three):
            return None
        if not self._leads(automaton._step(state, 0xF4), 0x80, 0x8F, three):
            return None
        most: cython.longlong = automaton._step(state, 0xE2)
        left: cython.ulonglong = self.leaves[state] & ~HIGH
        if most == three:
            left &= ~SEPARATOR
        else:
            if not self._leads(most, 0x81, 0xBF, two):
                return None
            most = automaton._step(most, 0x80)
            if not (self._leads(most, 0x80, 0xA7, state) and self._leads(most, 0xAA, 0xBF, state)):
                return None
        self._make_room(max(two, three, four))
        for then in (state, two, three, four):
            self.leaves[then] = left
            self.usual[then] = then
            self.is_wide[then] = 1
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leads(self, start: cython.longlong, low: cython.int, high: cython.int, to: cython.longlong) -> cython.int:
        """1 if the bytes between two all lead from one row state to another."""
        byte: cython.int
        if start < 0:
            return 0
        for byte in range(low, high + 1):
            if self.automaton._step(start, byte) != to:
                return 0
        return 1

    @cython.cfunc
    def _cross(self, node: cython.int, rest: cython.int) -> object:
        """Emit the tokens below trie ``node`` that go on with ``rest``."""
        automaton: Automaton = self.automaton
        if self.trie.size[node] == 1:
            if not self.statics and not automaton.source.is_dynamic:
                return None
            automaton._need_heads(rest)
            if not automaton.node_null[rest] & 2:
                return None
        automaton._need_heads(rest)
        at: cython.int = automaton.head_at[rest]
        i: cython.int
        for i in range(at, at + automaton.head_count[rest]):
            self._walk(node, automaton.head_atom[i], automaton.head_rest[i])
        return None

    @cython.cfunc
    def _static(self, atom: cython.longlong, rest: cython.int) -> tuple:
        """For a DYNAMIC place: the node of all that it could let follow, and its kind (`Kind` of nodes.py)."""
        found = self.statics.get((atom, rest))
        if found is None:
            found = self.statics[atom, rest] = self.automaton.source.static(atom & 0xFFFFFFFF, rest)
        return found

    @cython.cfunc
    def _doubt(self, node: cython.int, kind: cython.int, whole: cython.bint) -> object:
        """Note the token that ends at a DYNAMIC place, if it may be forbidden and is not watched for."""
        token: cython.int
        # A whole name within one token cannot be watched for.
        if self.crossed > 0 or kind == 3 or (kind == 1 and whole):
            token = self.trie.token[node]
            while token >= 0:
                (self.unsure if self.grave or kind != 1 else self.named).add(token)
                token = self.trie.same[token]
        return None

    @cython.cfunc
    def _walk_dynamic(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Go on below trie ``node`` behind a DYNAMIC place, as if all that it could let follow did follow."""
        beyond, kind = self._static(atom, rest)
        self._doubt(node, kind, True)
        grave: cython.int = 0 if kind == 1 else 1
        self.crossed += 2
        self.grave += grave
        self._cross(node, beyond)
        self.grave -= grave
        self.crossed -= 2
        return None

    @cython.cfunc
    def _walk(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Emit the tokens below trie ``node`` that go on with ``atom rest``."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        tag: cython.longlong = atom >> TAG
        i: cython.int = node + 1
        end: cython.int = node + trie.size[node]
        if tag == SPECIAL:
            return None
        if tag == DYNAMIC:
            return self._walk_dynamic(node, atom, rest)
        if tag == LITERAL:  # one path: no need to look at siblings
            byte: cython.int = automaton.pool[cython.cast(cython.int, atom & 0x7FFFFFFF)]
            if node == 0:
                i = trie.child[byte]
                if i < 0:
                    return None
            else:
                while i < end and trie.byte[i] < byte:
                    i += trie.size[i]
                if i >= end or trie.byte[i] != byte:
                    return None
            self._arrive(i, automaton._step(atom, byte), rest)
            return None
        base: cython.int = trie.depth[node]
        depth: cython.int
        then: cython.longlong
        while i < end:
            self.visited += 1
            depth = trie.depth[i]
            then = automaton._step(atom if depth == base + 1 else self.stack[depth - 1], trie.byte[i])
            if then < 0:
                i += trie.size[i]
                continue
            if trie.token[i] >= 0:
                self._emit(trie.token[i])
            if automaton._may_end(then):
                self._cross(i, rest)
                if then == DONE:
                    i += trie.size[i]
                    continue
            self.stack[depth] = then
            i += 1
        return None

    @cython.cfunc
    def _arrive(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """A walk has just read trie ``node`` and is at ``atom``: emit its token and go on below."""
        if atom < 0:
            return None
        if self.trie.token[node] >= 0:
            self._emit(self.trie.token[node])
        if self.automaton._may_end(atom):
            self._cross(node, rest)
        if atom != DONE and self.trie.size[node] > 1:
            self._walk(node, atom, rest)
        return None

    # -- tables ------------------------------------------------------------------------------------------------

    @cython.cfunc
    def _table(self, atom: cython.longlong) -> Table:
        found = self.tables.get(atom)
        if found is not None:
            return found
        key = None
        tag: cython.longlong = atom >> TAG
        free = None
        open_class: cython.int = -1
        if tag == ROW:
            key, free, open_class = self.automaton.given.shared(atom)
            if key is not None:
                found = self.shared.get(key)
        elif tag == COUNTED and (atom & 0xFF) == LOCAL_BODY:
            found = self._counted_table(atom)
        if found is None:
            if tag == ROW:
                self.automaton._step(atom, 0)  # the row, and the class, are known from here on
                if self._has_runs(cython.cast(cython.int, atom)):
                    found = self._class_table(atom)
                elif free is not None and self._is_near(atom, free):
                    found = self._near_table(atom, free)
                elif open_class >= 0:
                    found = self._open_table(atom, open_class)
            if found is None:
                found = self._build_table(atom)
            if key is not None:
                self.shared[key] = found
        if key is None:
            self.held += cython.cast(Table, found).size
        self.tables[atom] = found
        return found

    @cython.cfunc
    def _build_table(self, atom: cython.longlong) -> Table:
        """One walk of the whole trie, pruned at dead bytes."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        table: Table = _new_table()
        self.built += 1
        saved: cython.int = self.out_count
        i: cython.int = 1
        stop: cython.int
        depth: cython.int
        then: cython.longlong
        self.end_count = 0
        if (atom >> TAG) == ROW:
            self._walk_rows(cython.cast(cython.int, atom))
            i = trie.nodes
        self.stack[0] = atom
        while i < trie.nodes:
            self.visited += 1
            depth = trie.depth[i]
            stop = i + trie.size[i]
            then = automaton._step(self.stack[depth - 1], trie.byte[i])
            if then < 0 or then == DONE:
                if then == DONE:
                    self._end(i, True)
                i = stop
                continue
            self._emit_all(trie.first[i], trie.first[i + 1])
            self.stack[depth] = then
            i += 1
        count: cython.int = self.out_count - saved
        table.count = count
        table.is_dense = count > self.words
        if table.is_dense:
            table.dense = array("I", [0]) * self.words
            for i in range(saved, self.out_count):
                table.dense[self.out[i] >> 5] |= cython.cast(cython.uint, 1) << (self.out[i] & 31)
            table.size += 4 * self.words
        else:
            if count:
                table.ids = self.out_array[saved : self.out_count]
            table.size += 4 * count
        self.out_count = saved
        self._set_ends(table, table)
        return table

    @cython.cfunc
    def _walk_rows(self, state: cython.int) -> object:
        """Emit the tokens that stay inside the text of a row state, and note where it may end."""
        automaton: Automaton = self.automaton
        trie: Trie = self.trie
        byte: cython.uchar[::1] = trie.byte
        depths: cython.ushort[::1] = trie.depth
        size: cython.int[::1] = trie.size
        first: cython.int[::1] = trie.first
        order: cython.int[::1] = trie.order
        base_rows: cython.int[::1] = automaton.base_rows
        stack: cython.longlong[::1] = self.stack
        at: cython.longlong
        i: cython.int = 1
        j: cython.int
        stop: cython.int
        then: cython.int
        visited: cython.int = 0
        stack[0] = self._row_at(state)
        while i < trie.nodes:
            visited += 1
            at = stack[depths[i] - 1]
            if at >= 0:
                then = automaton.rows[at + byte[i]]
            else:
                then = base_rows[byte[i] - 256 - at]
            stop = i + size[i]
            if then <= 0:
                if then == 0:
                    self._end(i, True)
                i = stop
                continue
            if automaton.facts[_FACTS * then + _MAY_END]:
                self._end(i, False)
            if self.out_count + first[stop] - first[i] > len(self.out_array):
                self.out_array = _grown(self.out_array, "i", 2 * (self.out_count + first[stop] - first[i]))
                self.out = self.out_array
            for j in range(first[i], first[i + 1]):
                self.out[self.out_count] = order[j]
                self.out_count += 1
            if stop > i + 1:
                if self._stays(i, then):
                    for j in range(first[i + 1], first[stop]):
                        self.out[self.out_count] = order[j]
                        self.out_count += 1
                    if automaton.facts[_FACTS * then + _MAY_END]:
                        for j in range(i + 1, stop):
                            self._end(j, False)
                    i = stop
                    continue
                if stop - i >= LARGE and self._is_counted(then) and self._reads_on(i, then):
                    i = stop
                    continue
                stack[depths[i]] = self._row_at(then)
            i += 1
        self.visited += visited
        return None

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _row_at(self, state: cython.int) -> cython.longlong:
        """Where the row of a state is: an index of `Automaton.rows`, or -256 less an index of the rows that many
        automata share."""
        automaton: Automaton = self.automaton
        if state < automaton.base_count:
            return -256 * (state + 1)
        automaton._step(state, 0)  # from here on its row is known
        return automaton.facts[_FACTS * state + _ROW_AT]

    @cython.cfunc
    def _end(self, node: cython.int, done: cython.bint) -> object:
        """Note a trie node at which the atom of the table in the making may end, or must (``done``)."""
        if done:
            token: cython.int = self.trie.token[node]
            while token >= 0:
                if self.closing_count == len(self.closing):
                    self.closing = _grown(array("i", self.closing), "i", 2 * self.closing_count)
                self.closing[self.closing_count] = token
                self.closing_count += 1
                token = self.trie.same[token]
        if self.end_count == len(self.end_array):
            self.end_array = _grown(self.end_array, "i", 2 * self.end_count)
            self.end = self.end_array
        self.end[self.end_count] = node
        self.end_count += 1
        return None

    @cython.cfunc
    def _set_ends(self, table: Table, like: Table) -> object:
        """Give a table the noted ends, and what follows from them: from ``like``, if that is another with the same."""
        i: cython.int
        table.end_count = self.end_count
        table.closing_count = self.closing_count
        self.closing_count = 0
        self.end_count = 0
        if like is not table and table.end_count and like.end_count == table.end_count:
            for i in range(table.end_count):
                if like.parts[i] != self.end[i]:
                    break
            else:
                table.closing_count = like.closing_count
                table.exit_count = like.exit_count
                table.parts = like.parts
                return None
        return _set_parts(self.trie, table, self.end, self.closing, self.scratch)

    @cython.cfunc
    def _runs(self, number: cython.int) -> Runs:
        """The `Runs` of a class of characters; taken once for the vocabulary."""
        while len(self.runs) <= number:
            self.runs.append(None)
        found = self.runs[number]
        if found is None:
            key, star = self.automaton.given.character_class(number)
            known = self.shared.setdefault("runs", {})
            found = known.get(key)
            if found is None:
                found = self._take_runs(star)
                if len(known) >= MOST_RUNS:
                    del known[next(iter(known))]
                known[key] = found
            self.runs[number] = found
        return found

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _has_runs(self, state: cython.int) -> cython.int:
        """1 if from a row state on so many characters of one class follow, and its `Runs` are known, or worth to be
        taken: there is no other way to be quick, or the class was often met."""
        automaton: Automaton = self.automaton
        number: cython.int = automaton.facts[_FACTS * state + _CLASS] - 1
        if number < 0:
            return 0
        if self._is_counted(state) or (number < len(self.runs) and self.runs[number] is not None):
            return 1
        key, _ = automaton.given.character_class(number)
        if key in self.shared.setdefault("runs", {}):
            return 1
        met: dict = self.shared.setdefault("met", {})
        if len(met) > MOST_COUNTED:
            met.clear()
        met[key] = met.get(key, 0) + 1
        return 1 if met[key] > OFTEN else 0

    @cython.cfunc
    def _take_runs(self, star: cython.int) -> Runs:
        """One walk of the whole trie from row state ``star``, the free string of a class between two characters."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        runs: Runs = Runs.__new__(Runs)
        runs.longest = 0
        rooms = [_grown(None, "i", each) for each in (*[trie.vocabulary + 1] * 3, trie.nodes, trie.nodes)]
        token_nodes: cython.int[::1] = rooms[0]
        tokens: cython.int[::1] = rooms[1]
        token_chars: cython.int[::1] = rooms[2]
        ends: cython.int[::1] = rooms[3]
        end_chars: cython.int[::1] = rooms[4]
        token_count: cython.int = 0
        end_count: cython.int = 0
        between: cython.short[::1] = array("h", [-1]) * trie.nodes
        chars: cython.int[::1] = array("i", [0]) * (trie.longest + 2)
        i: cython.int = 1
        depth: cython.int
        here: cython.longlong
        then: cython.longlong
        token: cython.int
        between[0] = 0
        stack: cython.longlong[::1] = array("q", [0]) * (trie.longest + 2)  # a walk may be under way on the other
        stack[0] = star
        while i < trie.nodes:
            self.visited += 1
            depth = trie.depth[i]
            here = stack[depth - 1]
            then = automaton._step(here, trie.byte[i])
            if then < 0:
                i += trie.size[i]
                continue
            if then == DONE:
                ends[end_count] = i
                end_chars[end_count] = chars[depth - 1]
                end_count += 1
                i += trie.size[i]
                continue
            chars[depth] = chars[depth - 1] + (1 if here == star else 0)
            if chars[depth] > runs.longest:
                runs.longest = chars[depth]
            if then == star:
                between[i] = chars[depth]
            token = trie.token[i]
            while token >= 0:
                token_nodes[token_count] = i
                tokens[token_count] = token
                token_chars[token_count] = chars[depth]
                token_count += 1
                token = trie.same[token]
            stack[depth] = then
            i += 1
        runs.tokens = token_count
        runs.ends = end_count
        # One item more than there are, since a buffer may not be empty.
        runs.token_node, runs.token, runs.token_chars = [each[: token_count + 1] for each in rooms[:3]]
        runs.end_node, runs.end_chars = [each[: end_count + 1] for each in rooms[3:]]
        runs.between = between
        return runs

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_counted(self, state: cython.int) -> cython.int:
        """1 if from a row state on so many characters of one class follow, and `_stays` cannot tell about them, since
        some are beyond ASCII."""
        automaton: Automaton = self.automaton
        if state >= automaton.row_room or automaton.facts[_FACTS * state + _CLASS] == 0:
            return 0
        if automaton.facts[_FACTS * state + _MOST] < 0:
            return 0
        return 1 if automaton._step(state, 0xC3) > 0 or automaton._step(state, 0xE4) > 0 else 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _reads_on(self, node: cython.int, state: cython.int) -> cython.int:
        """Emit the tokens below ``node``, and note where they may end, from `Runs`: 1 if that could be done.

        From row state ``state``, just reached, so many characters of one class follow.
        """
        automaton: Automaton = self.automaton
        if state >= automaton.row_room or automaton.facts[_FACTS * state + _CLASS] == 0:
            return 0
        runs: Runs = self._runs(automaton.facts[_FACTS * state + _CLASS] - 1)
        begin: cython.int = runs.between[node]
        if begin < 0:
            return 0
        stop: cython.int = node + self.trie.size[node]
        least: cython.int = begin + automaton.facts[_FACTS * state + _LEAST]
        most: cython.int = runs.longest
        if automaton.facts[_FACTS * state + _MOST] >= 0 and begin + automaton.facts[_FACTS * state + _MOST] < most:
            most = begin + automaton.facts[_FACTS * state + _MOST]
        at: cython.int = _first_from(runs.token_node, runs.tokens, node + 1)
        while at < runs.tokens and runs.token_node[at] < stop:
            if runs.token_chars[at] <= most:
                self._emit_one(runs.token[at])
            at += 1
        at = _first_from(runs.end_node, runs.ends, node + 1)
        while at < runs.ends and runs.end_node[at] < stop:
            if least <= runs.end_chars[at] <= most:
                self._end(runs.end_node[at], True)
            at += 1
        return 1

    @cython.cfunc
    def _class_table(self, atom: cython.longlong) -> Table:
        """The table between two characters of a string of so many characters of one class: see `_counted_table`."""
        automaton: Automaton = self.automaton
        state: cython.int = cython.cast(cython.int, atom)
        runs: Runs = self._runs(automaton.facts[_FACTS * state + _CLASS] - 1)
        left: cython.int = runs.longest
        if 0 <= automaton.facts[_FACTS * state + _MOST] < left:
            left = automaton.facts[_FACTS * state + _MOST]
        table: Table = _new_table()
        i: cython.int
        key = ("inside", automaton.facts[_FACTS * state + _CLASS], left)
        inside = self.tables.get(key)
        self.built += 1
        if inside is None:
            table.dense = _grown(None, "I", self.words)
            table.size += 4 * self.words
            for i in range(runs.tokens):
                if runs.token_chars[i] <= left:
                    table.dense[runs.token[i] >> 5] |= cython.cast(cython.uint, 1) << (runs.token[i] & 31)
                    table.count += 1
            self.tables[key] = table
        else:
            table.dense = cython.cast(Table, inside).dense
            table.count = cython.cast(Table, inside).count
        table.is_dense = True
        self.end_count = 0
        for i in range(runs.ends):
            if automaton.facts[_FACTS * state + _LEAST] <= runs.end_chars[i] <= left:
                self._end(runs.end_node[i], True)
        self._set_ends(table, table)
        return table

    @cython.cfunc
    def _open_table(self, atom: cython.longlong, number: cython.int) -> Table:
        """The table between two characters of a JSON string that may go on with any characters of a class: they all
        stay inside, so it only remains to walk to quotes, backslashes, and what is not of the class."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        marks: Marks = self._marks(number)
        table: Table = _new_table()
        self.built += 1
        table.is_dense = True
        table.dense = _bits(marks.plain, self.words)
        table.count = marks.count
        table.size += 4 * self.words
        i: cython.int = 0
        node: cython.int
        depth: cython.int
        token: cython.int
        then: cython.longlong
        self.end_count = 0
        while i < marks.nodes:
            self.visited += 1
            node = marks.node[i]
            depth = trie.depth[node]
            then = automaton._step(atom if depth == 1 else self.stack[depth - 1], trie.byte[node])
            if then < 0 or then == DONE:
                if then == DONE:
                    self._end(node, True)
                i = marks.after[i]
                continue
            token = trie.token[node]
            while token >= 0:
                if not table.dense[token >> 5] >> (token & 31) & 1:
                    table.dense[token >> 5] |= cython.cast(cython.uint, 1) << (token & 31)
                    table.count += 1
                token = trie.same[token]
            self.stack[depth] = then
            i += 1
        self._set_ends(table, table)
        return table

    @cython.cfunc
    def _marks(self, number: cython.int) -> Marks:
        """The `Marks` of a class of characters; taken once for the vocabulary."""
        key, star = self.automaton.given.character_class(number)
        known = self.shared.setdefault("marks", {})
        found = known.get(key)
        if found is None:
            found = self._take_marks(star)
            if len(known) >= MOST_RUNS:
                del known[next(iter(known))]
            known[key] = found
        return found

    @cython.cfunc
    def _take_marks(self, star: cython.longlong) -> Marks:
        """One walk of the whole trie from row state ``star``, the free string of a class between two characters."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        marks: Marks = Marks.__new__(Marks)
        plain: cython.uint[::1] = _grown(None, "I", self.words)
        state: cython.int[::1] = array("i", [0]) * (trie.longest + 2)
        stack: cython.longlong[::1] = array("q", [0]) * (trie.longest + 2)  # a walk may be under way on the other
        wanted: cython.uchar[::1] = _grown(None, "B", trie.nodes)
        state[0] = LOCAL_BODY
        stack[0] = star
        marks.count = 0
        i: cython.int = 1
        parent: cython.int
        here: cython.int
        then: cython.longlong
        token: cython.int
        while i < trie.nodes:
            here = automaton.local[state[trie.depth[i] - 1] * 256 + trie.byte[i]]
            if here == -1:
                i += trie.size[i]
                continue
            then = automaton._step(stack[trie.depth[i] - 1], trie.byte[i])
            if trie.byte[i] == 0x22 or trie.byte[i] == 0x5C or then < 0:
                parent = i
                while parent > 0 and not wanted[parent]:
                    wanted[parent] = 1
                    parent = trie.parent[parent]
                for parent in range(i + 1, i + trie.size[i]):
                    wanted[parent] = 1
                i += trie.size[i]
                continue
            stack[trie.depth[i]] = then
            token = trie.token[i]
            while token >= 0:
                plain[token >> 5] |= cython.cast(cython.uint, 1) << (token & 31)
                marks.count += 1
                token = trie.same[token]
            state[trie.depth[i]] = here
            if then == star and trie.size[i] > 1 and self._stays(i, cython.cast(cython.int, star)):
                for parent in range(trie.first[i + 1], trie.first[i + trie.size[i]]):
                    token = trie.order[parent]
                    plain[token >> 5] |= cython.cast(cython.uint, 1) << (token & 31)
                    marks.count += 1
                i += trie.size[i]
                continue
            i += 1
        marks.nodes = 0
        for i in range(trie.nodes):
            marks.nodes += wanted[i]
        marks.node = _grown(None, "i", marks.nodes + 1)
        marks.after = _grown(None, "i", marks.nodes + 1)
        parent = 0
        for i in range(trie.nodes):
            if wanted[i]:
                marks.node[parent] = i
                parent += 1
        marks.node[parent] = marks.after[parent] = trie.nodes
        for i in range(marks.nodes):
            marks.after[i] = _first_from(marks.node, marks.nodes, marks.node[i] + trie.size[marks.node[i]])
        marks.plain = plain
        return marks

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_near(self, atom: cython.longlong, free: cython.longlong) -> cython.int:
        """Whether most bytes lead from ``atom`` to where they lead from ``free``, the free string."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        byte: cython.int
        same: cython.int = 0
        for byte in range(256):
            if trie.child[byte] >= 0 and automaton._step(atom, byte) == automaton._step(free, byte):
                same += trie.size[trie.child[byte]]
                if 2 * same > trie.nodes:
                    return 1
        return 0

    @cython.cfunc
    def _near_table(self, atom: cython.longlong, free: cython.longlong) -> Table:
        """The table of an atom as its difference to the free string, of which it is a part: where both are in the
        same state nothing differs, and nothing is visited."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        base: Table = self._table(free)
        automaton._step(free, 0)
        runs: Runs = self._runs(automaton.facts[_FACTS * cython.cast(cython.int, free) + _CLASS] - 1)
        table: Table = _new_table()
        self.built += 1
        table.count = base.count
        table.is_dense = True
        table.dense = _bits(base.dense, self.words)
        table.size += 4 * self.words
        beside: cython.longlong[::1] = self.beside
        beside[0] = free
        self.stack[0] = atom
        i: cython.int = 1
        stop: cython.int
        at: cython.int
        depth: cython.int
        wide: cython.longlong
        then: cython.longlong
        self.end_count = 0
        while i < trie.nodes:
            self.visited += 1
            depth = trie.depth[i]
            stop = i + trie.size[i]
            wide = automaton._step(beside[depth - 1], trie.byte[i])
            if wide < 0:
                i = stop
                continue
            then = automaton._step(self.stack[depth - 1], trie.byte[i])
            if then == wide:
                at = _first_from(runs.end_node, runs.ends, i)
                while at < runs.ends and runs.end_node[at] < stop:
                    self._end(runs.end_node[at], True)
                    at += 1
                i = stop
                continue
            if then < 0:
                at = _first_from(runs.token_node, runs.tokens, i)
                while at < runs.tokens and runs.token_node[at] < stop:
                    table.dense[runs.token[at] >> 5] &= ~(cython.cast(cython.uint, 1) << (runs.token[at] & 31))
                    table.count -= 1
                    at += 1
                i = stop
                continue
            beside[depth] = wide
            self.stack[depth] = then
            i += 1
        self._set_ends(table, base)
        return table

    @cython.cfunc
    def _counted_table(self, atom: cython.longlong) -> Table:
        """The table of a counted string between two characters, from counts that were taken once for the vocabulary.

        A token stays inside if it has no more characters than are left; the string may end where a quote follows no
        more characters than are left and no fewer than are needed.
        """
        counts: Counts = self._counts()
        automaton: Automaton = self.automaton
        number: cython.int = cython.cast(cython.int, (atom >> 40) & 0xFFFFF)
        written: cython.longlong = (atom >> 8) & 0xFFFFFFFF
        needed: cython.longlong = automaton.least[number] - written
        left: cython.longlong = counts.longest
        if automaton.most[number] != UNBOUNDED and automaton.most[number] - written < left:
            left = automaton.most[number] - written
        if needed < 0:
            needed = 0
        if needed > counts.longest:
            needed = counts.longest + 1
        known = self.shared.setdefault("counted", {})
        key = (left, needed)
        found = known.get(key)
        if found is not None:
            return found
        table: Table = _new_table()
        self.built += 1
        i: cython.int
        inside = self.shared.get(("inside", left))
        if inside is None:
            table.count = counts.until[left]
            if 2 * table.count < counts.tokens or left == counts.longest:
                table.dense = array("I", [0]) * self.words
                for i in range(table.count):
                    table.dense[counts.token[i] >> 5] |= cython.cast(cython.uint, 1) << (counts.token[i] & 31)
            else:  # few are too long
                table.dense = _bits(self._free_bits(counts), self.words)
                for i in range(table.count, counts.tokens):
                    table.dense[counts.token[i] >> 5] &= ~(cython.cast(cython.uint, 1) << (counts.token[i] & 31))
            self.shared[("inside", left)] = table
        else:
            table.dense = cython.cast(Table, inside).dense
            table.count = cython.cast(Table, inside).count
        table.is_dense = True
        self.end_count = 0
        for i in range(counts.ends):
            if needed <= counts.end_chars[i] <= left:
                self._end(counts.end[i], True)
        self._set_ends(table, table)
        if len(known) >= MOST_COUNTED:
            del known[next(iter(known))]
        known[key] = table
        return table

    @cython.cfunc
    def _free_bits(self, counts: Counts) -> cython.uint[::1]:
        """A bit for each token that stays inside a JSON string."""
        found = self.shared.get(("inside", counts.longest))
        table: Table
        i: cython.int
        if found is None:
            table = _new_table()
            table.count = counts.tokens
            table.dense = array("I", [0]) * self.words
            for i in range(counts.tokens):
                table.dense[counts.token[i] >> 5] |= cython.cast(cython.uint, 1) << (counts.token[i] & 31)
            found = self.shared["inside", counts.longest] = table
        table = found
        return table.dense

    @cython.cfunc
    def _counts(self) -> Counts:
        """How many characters each token has inside a JSON string; taken once for the vocabulary."""
        found = self.shared.get("counts")
        if found is not None:
            return found
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        counts: Counts = Counts.__new__(Counts)
        counts.longest = 0
        rooms = [_grown(None, "i", each) for each in (*[trie.vocabulary + 1] * 2, trie.nodes, trie.nodes)]
        tokens: cython.int[::1] = rooms[0]
        token_chars: cython.int[::1] = rooms[1]
        ends: cython.int[::1] = rooms[2]
        end_chars: cython.int[::1] = rooms[3]
        token_count: cython.int = 0
        end_count: cython.int = 0
        state: cython.int[::1] = array("i", [0]) * (trie.longest + 2)
        chars: cython.int[::1] = array("i", [0]) * (trie.longest + 2)
        state[0] = LOCAL_BODY
        i: cython.int = 1
        depth: cython.int
        here: cython.int
        then: cython.int
        token: cython.int
        while i < trie.nodes:
            depth = trie.depth[i]
            here = state[depth - 1]
            then = automaton.local[here * 256 + trie.byte[i]]
            if then == -1:
                i += trie.size[i]
                continue
            chars[depth] = chars[depth - 1] + (1 if here == LOCAL_BODY and then != LOCAL_DONE else 0)
            if chars[depth] > counts.longest:
                counts.longest = chars[depth]
            if then == LOCAL_DONE:
                ends[end_count] = i
                end_chars[end_count] = chars[depth]
                end_count += 1
                i += trie.size[i]
                continue
            token = trie.token[i]
            while token >= 0:
                tokens[token_count] = token
                token_chars[token_count] = chars[depth]
                token_count += 1
                token = trie.same[token]
            state[depth] = then
            i += 1
        counts.tokens = token_count
        counts.ends = end_count
        # One item more than there are, since a buffer may not be empty.
        counts.token, counts.token_chars = [each[: token_count + 1] for each in rooms[:2]]
        counts.end, counts.end_chars = [each[: end_count + 1] for each in rooms[2:]]
        _sort_counts(counts)
        self.shared["counts"] = counts
        return counts

    @cython.cfunc
    def _cross_table(self, table: Table, rest: cython.int) -> object:
        """Emit the tokens that cross the end of a table's atom into ``rest``."""
        automaton: Automaton = self.automaton
        if table.end_count == 0:
            return None
        automaton._need_heads(rest)
        start: cython.int = automaton.head_at[rest]
        h: cython.int
        i: cython.int
        k: cython.int
        byte: cython.int
        only: cython.int
        groups: cython.int = table.exit_count
        first: cython.int = table.end_count + table.closing_count
        atom: cython.longlong
        then: cython.longlong
        for h in range(start, start + automaton.head_count[rest]):
            atom = automaton.head_atom[h]
            only = -1
            if (atom >> TAG) == SPECIAL:
                continue
            if (atom >> TAG) == DYNAMIC:
                self._cross_table_dynamic(table, atom, automaton.head_rest[h])
                continue
            if (atom >> TAG) == LITERAL:
                only = automaton.pool[cython.cast(cython.int, atom & 0x7FFFFFFF)]
            for k in range(first, first + groups):
                byte = table.parts[k]
                if only >= 0 and byte != only:
                    continue
                then = automaton._step(atom, byte)
                if then < 0:
                    continue
                for i in range(table.parts[k + groups], table.parts[k + groups + 1]):
                    self._arrive(table.parts[i], then, automaton.head_rest[h])
        return None

    @cython.cfunc
    def _cross_table_dynamic(self, table: Table, atom: cython.longlong, rest: cython.int) -> object:
        """`_cross_table` for a DYNAMIC place."""
        beyond, kind = self._static(atom, rest)
        i: cython.int
        if self.crossed > 0 or kind == 3:
            for i in range(table.end_count):
                self._doubt(table.parts[i], kind, False)
        weight: cython.int = 1 if kind == 1 else 2
        if kind == 1:
            self.watched = True
        self.crossed += weight
        self.grave += weight - 1
        self._cross_table(table, beyond)
        self.grave -= weight - 1
        self.crossed -= weight
        return None

    # -- masks -------------------------------------------------------------------------------------------------

    @cython.cfunc
    def _mask(self, state: cython.int) -> Mask:
        while len(self.memo) <= state:
            self.memo.append(None)
        found = self.memo[state]
        if found is None:
            if self.held > self.limit:
                self._evict()
            found = self._build_mask(state)
            self.memo[state] = found
            self.held += cython.cast(Mask, found).size
        mask: Mask = found
        self.clock += 1
        mask.tick = self.clock
        return mask

    @cython.cfunc
    def _build_mask(self, state: cython.int) -> Mask:
        automaton: Automaton = self.automaton
        mask: Mask = Mask.__new__(Mask)
        mask.tables = []
        self.out_count = 0
        self.watched = False
        self.crossed = 0
        self.grave = 0
        i: cython.int
        atom: cython.longlong
        rest: cython.int
        table: Table
        j: cython.int
        for i in range(automaton.state_count[state]):
            atom = automaton.thread_atom[automaton.state_at[state] + i]
            rest = automaton.thread_rest[automaton.state_at[state] + i]
            if (atom >> TAG) == SPECIAL:
                token = self.specials.get(atom & 0xFFFFFFFF)
                if token is not None:
                    self._emit(token)
            elif (atom >> TAG) == LITERAL:
                self._walk(0, atom, rest)
            else:
                table = self._table(atom)
                if table.count:
                    mask.tables.append(table)
                for j in range(table.end_count, table.end_count + table.closing_count):
                    self._emit_one(table.parts[j])
                self._cross_table(table, rest)
        if automaton.state_accepts[state]:
            for token in self.finals:
                self._emit(token)
        mask.count = self.out_count
        if self.out_count:
            mask.ids = self.out_array[: self.out_count]
        mask.size = 250 + 4 * mask.count
        mask.is_settled = not (self.watched or self.unsure or self.named)
        mask.doubts = None
        mask.is_joined = False
        mask.is_scattered = self._is_scattered(mask)
        if not mask.is_settled:
            mask.doubts = [tuple(sorted(self.unsure)), tuple(sorted(self.named - self.unsure)), self.watched, None]
            mask.size += 40 * (len(self.unsure) + len(self.named))
            self.unsure = set()
            self.named = set()
        return mask

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_scattered(self, mask: Mask) -> cython.bint:
        """Whether a mask takes notably longer to write than one copy does."""
        dense: cython.int = 0
        single: cython.int = mask.count
        for each in mask.tables:
            if cython.cast(Table, each).is_dense:
                dense += 1
            else:
                single += cython.cast(Table, each).count
        return dense > 1 or single > SCATTERED

    @cython.cfunc
    def _evict(self) -> object:
        """Forget the masks that were used least recently, half of them, and all tables that no mask holds."""
        self.flushes += 1
        ticks = sorted([cython.cast(Mask, each).tick for each in self.memo if each is not None])
        border = ticks[len(ticks) // 2] if ticks else 0
        kept: dict = {}
        self.held = 0
        state: cython.int
        for state in range(len(self.memo)):
            each = self.memo[state]
            if each is None:
                continue
            if cython.cast(Mask, each).tick <= border:
                self.memo[state] = None
                continue
            self.held += cython.cast(Mask, each).size
            for table in cython.cast(Mask, each).tables:
                kept[id(table)] = table
        self.tables = {atom: table for atom, table in self.tables.items() if id(table) in kept}
        for table in self.tables.values():
            self.held += cython.cast(Table, table).size
        return None

    def below(self, data: bytes, out: cython.uint[::1]) -> list:
        """The tokens of a mask that begin with ``data``, which is not empty."""
        trie: Trie = self.trie
        i: cython.int
        token: cython.int
        found: list = []
        known = self.places.get(data)
        if known is None:
            known = self._place(data)
            if len(data) <= LONGEST_PLACE:
                if len(self.places) >= MOST_PLACES:
                    self.places.clear()
                self.places[data] = known
        node: cython.int = known
        if node < 0:
            return found
        for i in range(node, node + trie.size[node]):
            token = trie.token[i]
            while token >= 0:
                if out[token >> 5] >> (token & 31) & 1:
                    found.append(token)
                token = trie.same[token]
        return found

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _place(self, data: bytes) -> cython.int:
        """The trie node to which ``data`` leads, or -1."""
        trie: Trie = self.trie
        node: cython.int = trie.child[data[0]]
        i: cython.int
        end: cython.int
        byte: cython.int
        if node < 0:
            return -1
        for byte in data[1:]:
            i = node + 1
            end = node + trie.size[node]
            while i < end and trie.byte[i] != byte:
                i += trie.size[i]
            if i >= end:
                return -1
            node = i
        return node

    def is_settled(self, state: cython.int) -> bool:
        """Whether the mask of a state is known, and depends on nothing else."""
        found = self.memo[state] if state < len(self.memo) else None
        return found is not None and cython.cast(Mask, found).is_settled

    def fill_known(self, state: cython.int, out) -> bool:
        """`fill` for a mask that is known and settled; False, and nothing written, if it is not.

        Compiled, this runs without giving up the interpreter's lock, so it needs no other.
        """
        if state >= len(self.memo):
            return False
        found = self.memo[state]
        if found is None:
            return False
        mask: Mask = cython.cast(Mask, found)
        if not mask.is_settled or (mask.is_scattered and not mask.is_joined):
            return False
        self.clock += 1
        mask.tick = self.clock
        if out is not self.target:  # most callers give the same array each time
            self.view = out
            self.target = out
        self._write(mask, self.view)
        return True

    def fill(self, state: cython.int, out: cython.uint[::1]) -> object:
        """Write the mask of ``state``: bit ``t % 32`` of word ``t // 32`` says whether token ``t`` is allowed.

        Returns:
            ``[unsure, named, watched, None]``: the tokens of the mask that only an exact step can decide, those that
            hold a whole name, and whether names are watched for (see `Mask`). It is the same list each time, and its
            last item is the caller's, to keep what follows from the others. None unless a token can reach a DYNAMIC
            place.
        """
        is_new: cython.bint = state >= len(self.memo) or self.memo[state] is None
        mask: Mask = self._mask(state)
        if mask.is_scattered and not mask.is_joined and not is_new:
            self._join(mask)
        self._write(mask, out)
        return mask.doubts

    @cython.cfunc
    def _join(self, mask: Mask) -> object:
        """Keep a mask as what is written for it."""
        joined: cython.uint[::1] = _grown(None, "I", self.words)
        self._write(mask, joined)
        mask.joined = joined
        mask.is_joined = True
        mask.size += 4 * self.words
        self.held += 4 * self.words
        return None

    @cython.cfunc
    def _write(self, mask: Mask, out: cython.uint[::1]) -> object:
        table: Table
        source: cython.uint[::1]
        i: cython.int
        first: cython.bint = True
        words: cython.int = self.words
        if mask.is_joined:
            source = mask.joined
            for i in range(words):
                out[i] = source[i]
            for i in range(words, len(out)):
                out[i] = 0
            return None
        for each in mask.tables:
            table = cython.cast(Table, each)
            if table.is_dense:
                source = table.dense
                if first:
                    for i in range(words):
                        out[i] = source[i]
                else:
                    for i in range(words):
                        out[i] |= source[i]
                first = False
        if first:
            for i in range(words):
                out[i] = 0
        for i in range(words, len(out)):
            out[i] = 0
        for each in mask.tables:
            table = cython.cast(Table, each)
            if not table.is_dense:
                for i in range(table.count):
                    out[table.ids[i] >> 5] |= cython.cast(cython.uint, 1) << (table.ids[i] & 31)
        for i in range(mask.count):
            out[mask.ids[i] >> 5] |= cython.cast(cython.uint, 1) << (mask.ids[i] & 31)
        return None

    def byte_count(self) -> int:
        """Bytes that masks, tables and scratch space take, those aside that the vocabulary keeps for all grammars."""
        scratch = 4 * len(self.out_array) + 4 * len(self.end_array) + 8 * len(self.stack)
        return self.held + 8 * len(self.memo) + 200 * len(self.places) + scratch + 4_000

    def counters(self) -> dict:
        """Deterministic counts: tables built, trie nodes visited, flushes; and bytes held."""
        return {"tables": self.built, "visited": self.visited, "flushes": self.flushes, "bytes": self.held}
