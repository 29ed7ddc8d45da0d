# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Grammar nodes: languages of *written* text over bytes, hash-consed and expanded lazily.

A node is a small integer; equal nodes are the same integer. ``node_kinds.py`` lists the kinds.

Queries: `nullable`, `is_empty` (short-circuited) and `heads` (head normal form, from Antimirov's partial derivatives:
pairs of an atomic node with which a text may begin and the node of the rest).

Compiled where that is possible (Cython in pure-Python mode)."""

from __future__ import annotations

from .node_search import left_recursion
from .terms import MAX_TERMS

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.memory import free, ints, more
    from . import node_kinds
    from .node_search import NodeSearch
    from .node_store import cell

#: True if this module is compiled.
COMPILED: bool = bool(cython.compiled)

#: A pair of the head normal form: an atomic node (LITERAL, TEXT, COUNTED, SPECIAL, DYNAMIC), and the node of the rest.
Head = tuple[int, int]


@cython.cclass
class Nodes(NodeSearch):
    """The store of grammar nodes, with the queries of their languages.

    Attributes:
        is_shared: many grammars share the store.
        known: memoised nodes of parts that many grammars share.
        builders: the builders of nodes in this store, by their sources, so that equal sources share their rules. Each
            has a method ``release``, which breaks reference cycles.
        plenty: number of nodes above which `is_scarce` holds.
        weight: estimated bytes of builders and their documents, added by their makers.

    Args:
        terms: the store of terms; None: a new one.
        shared: many grammars will share the store, which may hold ``SHARED_ROOM`` more nodes and terms.
    """

    def __init__(self, terms=None, *, shared=False):
        NodeSearch.__init__(self, terms)
        self.is_shared = shared
        self._room += node_kinds.SHARED_ROOM if shared else 0
        self.terms.room += node_kinds.SHARED_ROOM if shared else 0
        self.known = {}
        self.builders = {}
        self.weight = 0
        self.plenty = self._room
        self._heads_room, self._heads = 256, ints(256)
        self._heads_used = 1  # 0 is shared by all nodes without heads
        for node in (node_kinds.EMPTY, node_kinds.EPSILON):
            self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = 1

    def __dealloc__(self):
        free(self._heads)

    @property
    def is_scarce(self):
        """True if few nodes are left, so that alternatives which need many should be omitted."""
        return self._count > self.plenty

    def grow(self):
        """Raise the limits by one more full store of nodes and terms."""
        self._room += node_kinds.MAX_NODES
        self.terms.room += MAX_TERMS

    def hurry(self):
        """From now on, treat a language as empty if only a long search could show a text of it."""
        self.terms.is_hurried = True

    def clear(self):
        """Forget everything, which breaks the reference cycles between the store and its builders."""
        for builder in self.builders.values():
            builder.release()
        self.builders.clear()
        self.known.clear()
        self._clear_nodes()

    # -- heads -------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _words_before(self, first: cython.int, end: cython.int, depth: cython.int, byte: cython.int) -> cython.int:
        """Return the first of some neighbouring words, equal up to ``depth``, whose next byte is at least ``byte``."""
        middle: cython.int
        word: bytes
        while first < end:
            middle = (first + end) // 2
            word = self._words[middle]
            if word[depth] < byte:
                first = middle + 1
            else:
                end = middle
        return first

    def heads(self, node: cython.int):
        """Return the head normal form of a node. Law: the language is the union of ``atom rest`` over the heads, and
        the empty text if `nullable`; no ``atom rest`` is empty."""
        self._check(node)
        self._need_heads(node)
        at: cython.int = cell(self, node, node_kinds.HEADS)
        count: cython.int = self._heads[at - 1]
        return tuple([(self._heads[at + 2 * i], self._heads[at + 2 * i + 1]) for i in range(count)])

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def head_index(self, node: cython.int) -> cython.int:
        """Return the index of a node's heads in the array ``_heads``: their number, then an atomic node and the node of
        the rest for each."""
        self._check(node)
        self._need_heads(node)
        return cell(self, node, node_kinds.HEADS) - 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _need_heads(self, node: cython.int) -> cython.int:
        """Compute the heads of a node unless they are known. Those of its first parts are computed before, depth-first
        on the stack: pairs of a node and the number of its first parts that were looked at."""
        start: cython.int = self._top
        at: cython.int = start
        child: cython.int
        if cell(self, node, node_kinds.HEADS) > 0:
            return 0
        try:
            self._begin_heads(node)
            while self._top > start:
                at = self._top - 2
                node = self._stack[at]
                child = self._next_first(node, at)
                if child >= 0:
                    self._begin_heads(child)
                else:
                    self._compute_heads(node)
                    self._top = at
        finally:
            if self._top > at + 2:  # incomplete heads, after an error
                self._top = at + 2
            while self._top > start:  # after an error
                self._top -= 2
                if cell(self, self._stack[self._top], node_kinds.HEADS) == node_kinds.SEARCHED:
                    self._cells[self._stack[self._top] * node_kinds.WIDTH + node_kinds.HEADS] = 0
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin_heads(self, node: cython.int) -> cython.int:
        if cell(self, node, node_kinds.HEADS) == node_kinds.SEARCHED:
            raise left_recursion()
        self._push(node)
        self._push(0)
        self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = node_kinds.SEARCHED
        return 0

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _next_first(self, node: cython.int, at: cython.int) -> cython.int:
        """Return the next node with which ``node`` may begin and whose heads are not known yet; -1 if there is none.
        ``at`` is the stack index of its pair (`_need_heads`), whose number advances."""
        kind: cython.int = cell(self, node, node_kinds.KIND)
        a: cython.int = cell(self, node, node_kinds.A)
        b: cython.int = cell(self, node, node_kinds.B)
        child: cython.int
        number: cython.int
        while True:
            number = self._stack[at + 1]
            self._stack[at + 1] = number + 1
            if kind == node_kinds.ALT:
                if number == b:
                    return -1
                child = self._parts[a + number]
            elif kind == node_kinds.SEQ:
                if number == 2 or self._answer(b, node_kinds.HAS_TEXT) == node_kinds.NO:
                    return -1
                if number == 1 and self._answer(a, node_kinds.NULLABLE) == node_kinds.NO:
                    return -1
                child = b if number else a
            elif number or kind <= node_kinds.DYNAMIC:  # these have one first part; an atomic node has none
                return -1
            elif kind == node_kinds.REPEAT:
                child = a
            elif kind == node_kinds.LAZY:
                child = self._expand(node)
            elif self._is_whole(a, cell(self, node, node_kinds.C)):
                child = self._follows[a]
            else:
                return -1
            if cell(self, child, node_kinds.KIND) > node_kinds.DYNAMIC and cell(self, child, node_kinds.HEADS) <= 0:
                if kind == node_kinds.LAZY or self._answer(child, node_kinds.HAS_TEXT) == node_kinds.YES:
                    return child

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _compute_heads(self, node: cython.int) -> cython.int:
        """Compute the heads of a node from those of its first parts, which are known, and append them to ``_heads``:
        their number, then pairs of an atomic node and the node of the rest. A rule shares those of its expansion."""
        kind: cython.int = cell(self, node, node_kinds.KIND)
        a: cython.int = cell(self, node, node_kinds.A)
        b: cython.int = cell(self, node, node_kinds.B)
        start: cython.int = self._top
        i: cython.int
        if kind == node_kinds.LAZY:
            a = self._expand(node)
            if cell(self, a, node_kinds.KIND) > node_kinds.DYNAMIC:
                self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = cell(self, a, node_kinds.HEADS)
                return 0
            self._add(a, node_kinds.EPSILON)
        elif kind == node_kinds.SEQ:
            if self._answer(b, node_kinds.HAS_TEXT) == node_kinds.YES:
                self._add(a, b)
                if self._answer(a, node_kinds.NULLABLE) == node_kinds.YES:
                    self._add(b, node_kinds.EPSILON)
                    self._distinct(start, 2)
        elif kind == node_kinds.ALT:
            for i in range(a, a + b):
                self._add(self._parts[i], node_kinds.EPSILON)
            self._distinct(start, 2)
        elif kind == node_kinds.REPEAT:
            i = cell(self, node, node_kinds.C)
            self._add(a, self._repeat(a, b - 1 if b else 0, -1 if i < 0 else i - 1))
        elif kind == node_kinds.WORDS:
            self._add_words(a, b, cell(self, node, node_kinds.C))
        else:
            self._push(node)
            self._push(node_kinds.EPSILON)
        size: cython.int = self._top - start
        at: cython.int = self._heads_used
        if size == 0:
            self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = 1  # the shared index 0, plus one
            return 0
        if at + size + 1 > self._heads_room:
            room: cython.int = 2 * at + size
            self._heads = more(self._heads, self._heads_room, room)
            self._heads_room = room
        self._heads[at] = size // 2
        for i in range(size):
            self._heads[at + 1 + i] = self._stack[start + i]
        self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = at + 1
        self._heads_used = at + 1 + size
        self._top = start
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add(self, node: cython.int, right: cython.int) -> cython.int:
        """Push the heads of a node as pairs, each rest followed by ``right``; none if its language is empty. An atomic
        node is its own head."""
        i: cython.int
        if self._answer(node, node_kinds.HAS_TEXT) == node_kinds.NO:
            return 0
        if cell(self, node, node_kinds.KIND) <= node_kinds.DYNAMIC:
            self._push(node)
            self._push(right)
            return 0
        at: cython.int = cell(self, node, node_kinds.HEADS)
        for i in range(at, at + 2 * self._heads[at - 1], 2):
            self._push(self._heads[i])
            self._push(self._seq(self._heads[i + 1], right))
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add_words(self, first: cython.int, end: cython.int, depth: cython.int) -> cython.int:
        """Push one head for each next byte: the longest common prefix of the words with it (``[first, stop)``), then
        the union of their rests."""
        stop: cython.int
        common: cython.int
        at: cython.int
        rest: cython.int
        joined: cython.int
        byte: cython.int
        word: bytes
        other: bytes
        if self._is_whole(first, depth):
            self._add(self._follows[first], node_kinds.EPSILON)
            first += 1
        while first < end:
            word = self._words[first]
            byte = word[depth]
            stop = self._words_before(first + 1, end, depth, byte + 1)
            rest = self._follows[first]
            common = len(word)
            if stop > first + 1:
                other = self._words[stop - 1]
                at = depth + 1
                while at < common and word[at] == other[at]:  # they are sorted: the first and the last decide
                    at += 1
                common = at
                rest = self._list(first, stop, common)
            if self._answer(rest, node_kinds.HAS_TEXT) == node_kinds.YES:
                if common == len(word) and stop == first + 1:  # a single word: it joins what follows, as in `seq`
                    is_seq: cython.bint = cell(self, rest, node_kinds.KIND) == node_kinds.SEQ
                    joined = self._joined(word[depth:], cell(self, rest, node_kinds.A) if is_seq else rest)
                    if joined >= 0:
                        self._push(joined)
                        self._push(cell(self, rest, node_kinds.B) if is_seq else node_kinds.EPSILON)
                        first = stop
                        continue
                self._push(self.literal(word[depth:common]))
                self._push(rest)
            first = stop
        return 0
