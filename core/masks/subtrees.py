# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Subtree test: do all tokens below a trie node stay inside the atom of a row state q?

Let q = q0, q1, q2, ... be a sequence in which each state is followed by its *majority successor*, and let L(q) be the
groups of the bytes by which q does not go to its majority successor (see `GROUPS`). If the groups of the bytes below
the node are disjoint from all L(qi), every path below it follows the sequence, and no node has to be visited. The
sequence has as many states as the subtree has levels, or ends earlier in a state that is its own majority successor.

Compiled where that is possible; ``subtrees.pxd`` declares its C interface.
"""

from __future__ import annotations

from .trie import GROUPS

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..automaton.positions import Positions
    from ..compiled.memory import free, ints, more, octets, ulongs
    from .trie import Trie, is_space

#: Minimum number of trie nodes in a subtree for which the majority successor of a state is computed.
SOME = cython.declare(cython.int, 16)
#: Minimum number of trie nodes in a subtree for which the non-ASCII bytes of a state are inspected.
LARGE = cython.declare(cython.int, 64)
_ALL_GROUPS = cython.declare(cython.ulonglong, 2**64 - 1)


@cython.cclass
class Subtrees:
    """The subtree test for the row states of an automaton. By state, ``majority`` has the majority successor,
    ``leaves`` L(q) (0: not computed), and ``is_wide`` 1 if its non-ASCII bytes were inspected.

    Args:
        automaton: the automaton.
        trie: the vocabulary's trie.
    """

    def __init__(self, automaton: Positions, trie: Trie):
        self.automaton = automaton
        self.trie = trie
        self.room, self.majority, self.leaves, self.is_wide = 64, ints(64), ulongs(64), octets(64)

    def __dealloc__(self):
        free(self.majority)
        free(self.leaves)
        free(self.is_wide)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def bytes_held(self) -> cython.longlong:
        """Return the bytes of the memoised facts."""
        return 13 * self.room

    @cython.cfunc
    @cython.exceptval(0, check=True)
    def left_by(self, state: cython.int) -> cython.ulonglong:
        """Return the byte groups by which a row state may be left; any string of bytes of the other groups leads back
        to it."""
        if self.majority_from(state) != state:
            return _ALL_GROUPS
        if not self.is_wide[state]:
            self._find_wide(state)
        return self.leaves[state]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def majority_from(self, state: cython.int) -> cython.int:
        """Return the majority successor of a row state: the target of more than half of the ASCII bytes that are not
        dead, if there is one; else some successor, or 0."""
        if state >= self.room:
            self._make_room(state)
        if self.leaves[state] == 0:
            self._find_leaves(state)
        return self.majority[state]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def home(self, state: cython.int) -> cython.int:
        """Return the home state of a row state: its majority successor p, if p is its own majority successor and
        another state; else 0."""
        home: cython.int = self.majority_from(state)
        return home if home > 0 and home != state and self.majority_from(home) == home else 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def stays(self, node: cython.int, state: cython.int) -> cython.bint:
        """Return True if all tokens below a trie node, reached in a row state, stay inside the atom.

        Sound, but not complete: level by level, the bytes below must all lead to the majority successor of the state.
        If it holds, the atom may end at all nodes below if it may end in the state, else at none.
        """
        trie: Trie = self.trie
        below: cython.ulonglong = trie.below[node]
        here: cython.int = state
        _i: cython.int
        for _i in range(trie.height[node]):
            if here >= self.room:
                self._make_room(here)
            if self.leaves[here] == 0:
                if trie.size[node] < SOME:
                    return False
                self._find_leaves(here)
            if below & self.leaves[here]:  # a byte below may lead elsewhere
                break
            if self.majority[here] == here:
                return True
            here = self.majority[here]
            if self.automaton.may_end(here) != self.automaton.may_end(state):
                return False
        else:  # all levels
            return True
        # If only non-ASCII bytes are in the way, they are inspected, for a large subtree and a state that is its own
        # majority successor.
        if below & self.leaves[here] & ~(encoding.HIGH | encoding.SEPARATOR):
            return False
        if here != state or self.majority[here] != here or trie.size[node] < LARGE or self.is_wide[here]:
            return False
        self._find_wide(state)
        return not below & self.leaves[state]

    @cython.cfunc
    def _make_room(self, state: cython.longlong) -> object:
        """Ensure room for the facts of a row state."""
        had: cython.Py_ssize_t = self.room
        if state >= had:
            room: cython.Py_ssize_t = max(2 * state, len(self.automaton.byte_rows))
            self.majority = more(self.majority, had, room)
            self.leaves = more(self.leaves, had, room)
            self.is_wide = more(self.is_wide, had, room)
            self.room = room
        return None

    @cython.cfunc
    def _find_leaves(self, state: cython.int) -> object:
        """Compute the majority successor of a row state (Boyer and Moore 1981), and the groups of the bytes that lead
        elsewhere."""
        groups: cython.ulonglong[::1] = GROUPS
        leaves: cython.ulonglong = (
            encoding.HIGH | encoding.SEPARATOR | encoding.OTHER
        )  # until `_find_wide` inspects them
        majority: cython.longlong = 0
        target: cython.longlong
        ahead: cython.int = 0  # by how many bytes the candidate leads
        byte: cython.int
        for byte in range(128):
            target = self.automaton.after(state, byte)
            if target <= 0:
                continue
            if ahead == 0:
                majority = target
            ahead += 1 if target == majority else -1
        for byte in range(128):
            if majority == 0 or self.automaton.after(state, byte) != majority:
                leaves |= groups[byte]
        self.leaves[state] = leaves
        self.majority[state] = cython.cast(cython.int, majority)
        return None

    @cython.cfunc
    def _find_wide(self, state: cython.int) -> object:
        """Decide if every non-ASCII character leads from a row state back to it, and compute the groups of the states
        within a character. White space, which ``\\S`` and ECMAScript's dot exclude, may lead elsewhere."""
        automaton: Positions = self.automaton
        self.is_wide[state] = 1
        # The states in which one, two and three bytes of a character are missing, each after a byte of UTF-8 that any
        # continuation may follow. Those with restricted second bytes (E0, ED, F0, F4), and with white space (C2, E1 to
        # E3, EF), are tested one by one.
        two: cython.longlong = automaton.after(state, 0xC3)
        three: cython.longlong = automaton.after(state, 0xE4)
        four: cython.longlong = automaton.after(state, 0xF1)
        if two <= 0 or three <= 0 or four <= 0 or automaton.may_end(state):
            return None
        if not (self._leads(two, 0x80, 0xBF, state) and self._leads(three, 0x80, 0xBF, two)):
            return None
        if not (self._leads(four, 0x80, 0xBF, three) and self._leads(state, 0xC3, 0xDF, two)):
            return None
        if not (self._leads(state, 0xE4, 0xEC, three) and self._leads(state, 0xF1, 0xF3, four)):
            return None
        if not (self._leads(automaton.after(state, 0xE0), 0xA0, 0xBF, two) and automaton.after(state, 0xEE) == three):
            return None
        if not self._leads(automaton.after(state, 0xED), 0x80, 0x9F, two):
            return None
        if not self._leads(automaton.after(state, 0xF0), 0x90, 0xBF, three):
            return None
        if not self._leads(automaton.after(state, 0xF4), 0x80, 0x8F, three):
            return None
        leaves: cython.ulonglong = self.leaves[state] if self.majority[state] == state else _ALL_GROUPS
        leaves &= ~(encoding.HIGH | encoding.SEPARATOR)
        lead: cython.int
        second: cython.int
        target: cython.longlong
        if automaton.after(state, 0xC2) != two:
            leaves |= encoding.SEPARATOR
            if not self._leads_but(automaton.after(state, 0xC2), 0x80, state):
                return None
        for lead in (0xE1, 0xE2, 0xE3, 0xEF):
            target = automaton.after(state, lead)
            if target == three:
                continue
            leaves |= encoding.SEPARATOR
            if target < 0:
                return None
            for second in range(0x80, 0xC0):
                if automaton.after(target, second) == two:
                    continue
                if not self._leads_but(
                    automaton.after(target, second), (lead & 0xF) << 12 | (second & 0x3F) << 6, state
                ):
                    return None
        self._make_room(max(two, three, four))
        if self.majority[state] == state:
            self.leaves[state] = leaves
        for target in (two, three, four):
            self.leaves[target] = leaves
            self.majority[target] = target
            self.is_wide[target] = 1
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leads_but(self, start: cython.longlong, first: cython.int, to: cython.longlong) -> cython.int:
        """Return 1 if the last bytes of all characters from ``first`` to ``first + 0x3F``, except white space, lead
        from one row state to another."""
        byte: cython.int
        for byte in range(0x40):
            if not is_space(first + byte) and (start < 0 or self.automaton.after(start, 0x80 + byte) != to):
                return 0
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leads(self, start: cython.longlong, low: cython.int, high: cython.int, to: cython.longlong) -> cython.int:
        """Return 1 if all bytes in ``[low, high]`` lead from one row state to another."""
        byte: cython.int
        if start < 0:
            return 0
        for byte in range(low, high + 1):
            if self.automaton.after(start, byte) != to:
                return 0
        return 1
