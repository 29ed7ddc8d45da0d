# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Comparison: the token set of a position as its difference to a known one.

Let q and p be positions with q·u = p·u for a text u. Then a token that begins with u is in T(q) if and only if it is in
T(p), and likewise for the ends. Only the trie nodes before such a merge are visited (lemma 3 of ``docs/masks.md``).

An ``atom`` is a position inside one, an integer (see ``automaton/encoding.py``). Compiled where that is possible;
``comparison.pxd`` declares the C interface, and says what the fields hold.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..automaton.positions import Positions
    from ..compiled.memory import free, longs
    from .bits import has_bit
    from .subtrees import Subtrees
    from .token_set import Draft, TokenSet, dense_copy, new_differing_set, share_parts
    from .trie import Trie, first_from

from .trie import GROUPS

#: Minimum number of trie nodes in a subtree for which the subtree test pays off.
LARGE = cython.declare(cython.int, 64)


@cython.cclass
class Comparison:
    """Token sets as differences to a known dense one.

    `is_near` tells if that pays off, `compare` makes the set of an atom, and `lacking` that of a string without some
    words. Both do it by `begin`, then `below` for each subtree that may differ, then `finish`.

    Args:
        automaton: the automaton.
        trie: the vocabulary's trie.
        subtrees: the automaton's subtree test.
        draft: scratch space.
    """

    def __init__(self, automaton: Positions, trie: Trie, subtrees: Subtrees, draft: Draft):
        self.automaton = automaton
        self.trie = trie
        self.subtrees = subtrees
        self.draft = draft
        self.visited = 0
        self.base = self.flips = self.lost = self.gained = None
        self.stack, self.known = longs(trie.longest + 2), longs(trie.longest + 2)

    def __dealloc__(self):
        free(self.stack)
        free(self.known)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_near(self, atom: cython.longlong, other: cython.longlong, share: cython.int) -> cython.bint:
        """Return True if the token sets of two row states differ little: fewer than 1 of ``share`` trie nodes are below
        a first byte after which the states differ. After a printable ASCII byte that both read, they count as the same
        if most lower-case letters then lead both to one position (`_is_alike`): after one more character they meet."""
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        byte: cython.int
        differ: cython.int = 0
        last: cython.longlong = 0
        is_alike: cython.bint = False
        new: cython.longlong
        known: cython.longlong
        for byte in range(256):
            new = automaton.after(atom, byte)
            known = automaton.after(other, byte)
            if new != known and trie.child[byte] >= 0 and not (new > 0 and known > 0 and 0x20 <= byte < 0x7F):
                differ += trie.size[trie.child[byte]]
                if share * differ >= trie.nodes:
                    return False
        for byte in range(0x20, 0x7F):
            new = automaton.after(atom, byte)
            known = automaton.after(other, byte)
            if new == known or new <= 0 or known <= 0 or trie.child[byte] < 0:
                continue
            if new != last:  # most bytes lead to one position
                is_alike = self._is_alike(new, known)
                last = new
            if not is_alike:
                differ += trie.size[trie.child[byte]]
                if share * differ >= trie.nodes:
                    return False
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_alike(self, one: cython.longlong, other: cython.longlong) -> cython.bint:
        """Return True if most lower-case letters lead from two positions to the same one."""
        byte: cython.int
        same: cython.int = 0
        for byte in range(0x61, 0x7B):
            if self.automaton.after(one, byte) == self.automaton.after(other, byte):
                same += 1
        return same > 26 // 2

    @cython.cfunc
    def begin(self, base: TokenSet) -> object:
        """Begin a new token set, as its difference to ``base``."""
        self.base = base
        self.bits = base.dense if base.less_count == 0 else dense_copy(base)
        self.flips, self.lost, self.gained = [], [], []
        return None

    @cython.cfunc
    def compare(self, atom: cython.longlong, other: cython.longlong, base: TokenSet) -> TokenSet:
        """Return the token set of ``atom`` from ``base``, that of ``other``."""
        byte: cython.int
        self.begin(base)
        for byte in range(256):
            if self.trie.child[byte] >= 0:
                self.below(self.trie.child[byte], atom, other)
        return self.finish()

    @cython.cfunc
    def below(self, node: cython.int, atom: cython.longlong, other: cython.longlong) -> object:
        """Walk the subtree of a trie node along both positions (``atom`` of the new set and ``other`` of ``base``,
        before the node's byte), and record tokens and ends in which their sets differ. It stops where both are the
        same, or where all tokens below stay inside from both."""
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        i: cython.int = node
        at: cython.int
        depth: cython.int = trie.depth[node]
        until: cython.int = node + trie.size[node]
        new: cython.longlong
        old: cython.longlong
        self.stack[depth - 1], self.known[depth - 1] = atom, other
        while i < until:
            depth = trie.depth[i]
            new, old = self.stack[depth - 1], self.known[depth - 1]
            new = automaton.after(new, trie.byte[i]) if new > 0 else encoding.DEAD
            old = automaton.after(old, trie.byte[i]) if old > 0 else encoding.DEAD
            if new == old:
                i += trie.size[i]
                continue
            self.visited += 1
            if old == encoding.DONE:
                self.lost.append(i)
            if new == encoding.DONE:
                self.gained.append(i)
            if new <= 0 and old > 0:  # the new set has nothing below
                self._exclude(i, i + trie.size[i])
                i += trie.size[i]
                continue
            if new <= 0 or (old > 0 and trie.size[i] >= LARGE and self._both_stay(i, new, old)):
                i += trie.size[i]
                continue
            if old <= 0:  # `base` has nothing below
                for at in range(trie.first[i], trie.first[i + 1]):
                    self.flips.append(trie.order[at])
            self.stack[depth], self.known[depth] = new, old
            i += 1
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _both_stay(self, node: cython.int, new: cython.longlong, known: cython.longlong) -> cython.bint:
        """Return True if all tokens below a trie node stay inside from two row states."""
        return self.subtrees.stays(node, cython.cast(cython.int, new)) and self.subtrees.stays(
            node, cython.cast(cython.int, known)
        )

    @cython.cfunc
    def _exclude(self, node: cython.int, stop: cython.int) -> object:
        """Record that the new set lacks the tokens and ends of ``base`` in the nodes ``[node, stop)``."""
        trie: Trie = self.trie
        base: TokenSet = self.base
        at: cython.int
        for at in range(trie.first[node], trie.first[stop]):
            if has_bit(self.bits, trie.order[at]):
                self.flips.append(trie.order[at])
        if base.end_count:
            for at in range(first_from(base.parts, base.end_count, node), first_from(base.parts, base.end_count, stop)):
                self.lost.append(base.parts[at])
        return None

    @cython.cfunc
    def finish(self) -> TokenSet:
        """Return the new token set: ``base`` with the membership of the tokens ``flips`` reversed, and with the ends
        ``gained`` instead of ``lost``. The atom must end at each end (by its closing quote), because only states of
        JSON strings are compared."""
        base: TokenSet = self.base
        token_set: TokenSet = new_differing_set(base, self.flips)
        if not self.lost and not self.gained:
            share_parts(token_set, base)
            return token_set
        lost: set = set(self.lost)
        ends = [base.parts[i] for i in range(base.end_count) if base.parts[i] not in lost]
        if self.gained:
            ends = sorted([*ends, *self.gained])
        self.draft.begin()
        for node in ends:
            self.draft.end(node, True)
        self.draft.set_ends(token_set)
        return token_set

    @cython.cfunc
    def lacking(self, atom: cython.longlong, free: cython.longlong, base: TokenSet, words: list) -> TokenSet:
        """Return the token set of a JSON string that may be any but given words, from ``base``, that of the free
        string.

        Every prefix has a continuation, so the set lacks only the ends after the words. Besides, only paths with
        escapes are compared, because an escape leads to the same position as its character.

        Args:
            atom: the position, before the opening quote or between two characters.
            free: the position in the free string there.
            base: the token set of ``free``.
            words: the words, sorted, without their part before the position.
        """
        trie: Trie = self.trie
        start: cython.int = 0
        if self.automaton.after(free, 0x61) < 0:  # before the opening quote
            start = trie.child[0x22]
            atom = self.automaton.after(atom, 0x22)
            free = self.automaton.after(free, 0x22)
        self.begin(base)
        if start < 0:  # no token has a quote at its beginning
            return self.finish()
        path: list = [start]  # the trie nodes of the prefix of the word before that tokens have
        before: bytes = b""
        word: bytes
        node: cython.int
        at: cython.int
        self._compare_escapes(start, atom, free)
        for word in words:
            at = 0  # length of the common prefix, then of the prefix that is walked
            while at + 1 < len(path) and at < len(word) and word[at] == before[at]:
                at += 1
            del path[at + 1 :]
            node = path[at]
            while at < len(word):
                node = trie.child_by(node, cython.cast(cython.uchar, word[at]))
                if node < 0:
                    break
                path.append(node)
                at += 1
                self._compare_escapes(node, atom, free)
            else:
                node = trie.child_by(node, 0x22)
                if node >= 0:
                    self.lost.append(node)
            before = word
        return self.finish()

    @cython.cfunc
    def _compare_escapes(self, node: cython.int, atom: cython.longlong, free: cython.longlong) -> object:
        """Compare the escapes below a trie node that is between two characters. A string that lacks words allows the
        same escapes before and after each character of a word (see `ByteRows`)."""
        if self.trie.below[node] & GROUPS[0x5C]:
            found: cython.int = self.trie.child_by(node, 0x5C)
            if found >= 0:
                self.below(found, atom, free)
        return None
