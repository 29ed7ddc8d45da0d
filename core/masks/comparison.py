# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Token sets that differ little from another one.

Compiled where that is possible; ``comparison.pxd`` declares its C interface.
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
    from .character_counts import first_from
    from .draft import Draft
    from .subtrees import Subtrees
    from .token_set import TokenSet, dense_copy, new_dense_set, new_token_set, share_parts
    from .trie import Trie

from .trie import GROUPS

#: Minimum number of trie nodes in a subtree for which it pays off to ask whether it differs at all.
LARGE = cython.declare(cython.int, 64)


@cython.cclass
class Comparison:
    """Token sets made from another one by what differs: where two positions have gone over into the same one, nothing
    is visited.

    Args:
        automaton: the automaton.
        trie: the vocabulary's trie.
        loops: the automaton's self loops.
        draft: for what is noted of a token set while it is made.
    """

    def __init__(self, automaton: Positions, trie: Trie, loops: Subtrees, draft: Draft):
        self.automaton = automaton
        self.trie = trie
        self.loops = loops
        self.draft = draft
        self.visited = 0
        self.stack, self.beside = longs(trie.longest + 2), longs(trie.longest + 2)

    def __dealloc__(self):
        free(self.stack)
        free(self.beside)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_near(self, atom: cython.longlong, free: cython.longlong, share: cython.int) -> cython.int:
        """Return 1 if less than one in ``share`` texts leads from ``atom`` and from ``free`` to different positions,
        after the first few bytes: so it is in the free string and where some names are left out."""
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        byte: cython.int
        same: cython.int = 0
        lost: cython.int = 0
        nodes: cython.int = trie.nodes
        then: cython.longlong
        wide: cython.longlong
        if automaton.after(free, 0x61) < 0:  # before the opening quote
            atom = automaton.after(atom, 0x22)
            free = automaton.after(free, 0x22)
            if atom <= 0:
                return 0
        for byte in range(256):
            if trie.child[byte] < 0:
                continue
            then = automaton.after(atom, byte)
            if then == automaton.after(free, byte):
                same += trie.size[trie.child[byte]]
                if share * (nodes - same) < nodes:
                    return 1
            elif then <= 0 or byte < 0x20 or byte >= 0x7F:
                lost += trie.size[trie.child[byte]]
                if share * lost >= nodes:
                    return 0
        before: cython.longlong = 0
        is_alike: cython.bint = False
        for byte in range(0x20, 0x7F):
            then = automaton.after(atom, byte)
            wide = automaton.after(free, byte)
            if then > 0 and then != wide and trie.child[byte] >= 0:
                if then != before:
                    is_alike = self._is_alike(then, wide)
                    before = then
                if is_alike:
                    same += trie.size[trie.child[byte]]
                    if share * (nodes - same) < nodes:
                        return 1
                else:
                    lost += trie.size[trie.child[byte]]
                    if share * lost >= nodes:
                        return 0
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_alike(self, one: cython.longlong, other: cython.longlong) -> cython.int:
        """Return 1 if most small letters lead from two positions to the same one."""
        byte: cython.int
        same: cython.int = 0
        for byte in range(0x61, 0x7B):
            if self.automaton.after(one, byte) == self.automaton.after(other, byte):
                same += 1
        return 1 if same > 13 else 0

    @cython.cfunc
    def near_set(self, atom: cython.longlong, free: cython.longlong, base: TokenSet) -> TokenSet:
        """Return the token set of an atom as its difference to ``base``, that of the free string, which contains it:
        where both reach the same position nothing differs, and nothing is visited. ``free`` is the position of the free
        string before the opening quote, or between two characters, as ``atom`` is."""
        trie: Trie = self.trie
        byte: cython.int
        self.draft.begin()
        if self.automaton.after(atom, 0x61) > 0:  # not before the opening quote
            self.loops.widen(cython.cast(cython.int, atom))
        self.beside[0] = free
        self.stack[0] = atom
        for byte in range(256):
            if trie.child[byte] >= 0 and self.automaton.after(atom, byte) != self.automaton.after(free, byte):
                self._compare(trie.child[byte], base)
        return self.difference(base)

    @cython.cfunc
    def _compare(self, i: cython.int, base: TokenSet) -> object:
        """Note the tokens and the ends of the free string that the atom lacks in the subtree of trie node ``i``. The
        positions before that node are in ``beside`` and ``stack``."""
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        bits: cython.uint[::1] = base.dense
        beside: cython.p_longlong = self.beside
        until: cython.int = i + trie.size[i]
        kept: cython.int
        at: cython.int
        depth: cython.int
        token: cython.int
        wide: cython.longlong
        then: cython.longlong
        while i < until:
            self.visited += 1
            depth = trie.depth[i]
            wide = automaton.after(beside[depth - 1], trie.byte[i])
            then = automaton.after(self.stack[depth - 1], trie.byte[i])
            if wide < 0 or then == wide:
                i += trie.size[i]
            elif then < 0:
                for at in range(trie.first[i], trie.first[i + trie.size[i]]):
                    token = trie.order[at]
                    if bits[token >> 5] >> (token & 31) & 1:
                        self.draft.drop(token)
                self._lose(base, i, i + trie.size[i])
                i += trie.size[i]
            elif trie.size[i] >= LARGE and (kept := self.loops.stays(i, cython.cast(cython.int, then), 1)):
                if kept == 2:
                    self._lose(base, i + 1, i + trie.size[i])
                i += trie.size[i]
            else:
                beside[depth] = wide
                self.stack[depth] = then
                i += 1
        return None

    @cython.cfunc
    def compare(self, node: cython.int, atom: cython.longlong, free: cython.longlong, base: TokenSet) -> object:
        """Do `_compare` in the subtree of trie node ``node``, where ``atom`` and ``free`` are the positions before
        it."""
        self.beside[self.trie.depth[node] - 1] = free
        self.stack[self.trie.depth[node] - 1] = atom
        return self._compare(node, base)

    @cython.cfunc
    def beside_set(self, atom: cython.longlong, home: cython.longlong, base: TokenSet) -> TokenSet:
        """Return the token set of a row state between two characters of a JSON string, from that of another one,
        ``base`` of ``home``: where both have reached the same position nothing differs, and nothing is visited."""
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        token_set: TokenSet = new_dense_set(base.dense if base.less_count == 0 else dense_copy(base), base.count)
        bits: cython.uint[::1] = token_set.dense
        beside: cython.p_longlong = self.beside
        i: cython.int = 1
        at: cython.int
        depth: cython.int
        token: cython.int
        had: cython.int = 0  # the ends of ``home`` that were met
        wide: cython.longlong
        then: cython.longlong
        bit: cython.uint
        self.draft.begin()
        beside[0] = home
        self.stack[0] = atom
        while i < trie.nodes:
            self.visited += 1
            depth = trie.depth[i]
            wide = beside[depth - 1]
            if wide > 0:
                wide = automaton.after(wide, trie.byte[i])
            then = self.stack[depth - 1]
            if then > 0:
                then = automaton.after(then, trie.byte[i])
            if then == wide:
                had = self.draft.end_like(base, had, i + trie.size[i])
                i += trie.size[i]
                continue
            if wide == encoding.DONE:
                had += 1
            if then == encoding.DONE:
                self.draft.end(i, True)
            if (then > 0) != (wide > 0):
                for at in range(trie.first[i], trie.first[i + 1]):
                    token = trie.order[at]
                    bit = cython.cast(cython.uint, 1) << (token & 31)
                    bits[token >> 5] ^= bit
                    token_set.count += 1 if then > 0 else -1
            beside[depth] = wide if wide > 0 else encoding.DEAD
            self.stack[depth] = then if then > 0 else encoding.DEAD
            i += 1
        self.draft.set_ends(token_set)
        return token_set

    @cython.cfunc
    def _lose(self, base: TokenSet, node: cython.int, stop: cython.int) -> object:
        """Note that the ends of the free string from one trie node to another are none of the atom."""
        if base.end_count:
            self.draft.span(first_from(base.parts, base.end_count, node), first_from(base.parts, base.end_count, stop))
        return None

    @cython.cfunc
    def difference(self, base: TokenSet) -> TokenSet:
        """Return the token set that is ``base`` without the noted tokens and ends."""
        token_set: TokenSet = new_token_set()
        self.draft.set_less(token_set, base)
        if self.draft.span_count == 0:
            share_parts(token_set, base)
            return token_set
        at: cython.int = 0
        begin: cython.int
        stop: cython.int
        spans = sorted([(self.draft.spans[i], self.draft.spans[i + 1]) for i in range(0, self.draft.span_count, 2)])
        for begin, stop in [*spans, (base.end_count, base.end_count)]:
            while at < begin:
                self.draft.end(base.parts[at], True)
                at += 1
            at = max(at, stop)
        self.draft.set_ends(token_set)
        return token_set

    @cython.cfunc
    def lacking_set(
        self,
        atom: cython.longlong,
        free: cython.longlong,
        base: TokenSet,
        words: list,
    ) -> TokenSet:
        """Return the token set of a string that may be any but some words: `near_set`, from the words alone.

        Every text inside such a string may go on, so it lacks the ends behind the words, and what differs behind a
        backslash, which is the same before and after each character of a word (see `ByteRows`).
        """
        trie: Trie = self.trie
        start: cython.int = 0
        if self.automaton.after(free, 0x61) < 0:  # before the opening quote
            start = trie.child[0x22]
            atom = self.automaton.after(atom, 0x22)
            free = self.automaton.after(free, 0x22)
        self.draft.begin()
        if start < 0:
            return self.difference(base)
        path: list = [start]  # the nodes of the beginning of a word
        before: bytes = b""
        word: bytes
        node: cython.int
        at: cython.int
        self._lack_escapes(start, atom, free, base)
        for word in words:
            at = 0
            while at + 1 < len(path) and at < len(word) and word[at] == before[at]:
                at += 1
            del path[at + 1 :]
            node = path[at]
            while at < len(word):
                node = self._child(node, word[at])
                if node < 0:
                    break
                path.append(node)
                at += 1
                self._lack_escapes(node, atom, free, base)
            else:
                node = self._child(node, 0x22)
                if node >= 0:
                    self._lose(base, node, node + 1)
            before = word
        return self.difference(base)

    @cython.cfunc
    def _lack_escapes(self, node: cython.int, atom: cython.longlong, free: cython.longlong, base: TokenSet) -> object:
        """Do `_compare` behind a backslash that follows trie node ``node``, which is between two characters."""
        if self.trie.below[node] & GROUPS[0x5C]:
            found: cython.int = self._child(node, 0x5C)
            if found >= 0:
                self.compare(found, atom, free, base)
        return None

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _child(self, node: cython.int, byte: cython.int) -> cython.int:
        """Return the child of a trie node by a byte; -1 if there is none."""
        trie: Trie = self.trie
        if node == 0:
            return trie.child[byte]
        i: cython.int = node + 1
        end: cython.int = node + trie.size[node]
        while i < end and trie.byte[i] < byte:
            i += trie.size[i]
        return i if i < end and trie.byte[i] == byte else -1
