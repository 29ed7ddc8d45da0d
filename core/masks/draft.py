# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Draft of a token set: what is noted of it while it is made.

Compiled where that is possible; ``draft.pxd`` declares its C interface.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.arrays import grown
    from ..compiled.memory import free, ints, more
    from .token_set import TokenSet, dense_copy, set_parts
    from .trie import Trie


#: Maximum number of tokens by which a token set is kept as its difference to another.
MAX_LESS = cython.declare(cython.int, 512)


@cython.cclass
class Draft:
    """What is noted of a token set while it is made: ends, spans of tokens, and tokens that another set has too many.

    Args:
        trie: the vocabulary's trie.
    """

    def __init__(self, trie: Trie):
        self.trie = trie
        self.words = (trie.vocabulary + 31) // 32
        self.end_room, self.ends = 256, ints(256)
        self.closing_room, self.closing = 256, ints(256)
        self.span_room, self.spans = 256, ints(256)
        self.less_room, self.less = 64, ints(64)
        self.scratch = ints(256)
        self.end_count = self.closing_count = self.span_count = self.less_count = 0

    def __dealloc__(self):
        free(self.ends)
        free(self.closing)
        free(self.spans)
        free(self.less)
        free(self.scratch)

    @cython.cfunc
    def begin(self) -> object:
        """Forget what was noted; an error may have left some."""
        self.end_count = self.closing_count = self.span_count = self.less_count = 0
        return None

    @cython.cfunc
    def span(self, begin: cython.int, until: cython.int) -> object:
        """Note that the tokens from one index of the trie's order to another stay inside."""
        if begin == until:
            return None
        if self.span_count == self.span_room:
            self.spans = more(self.spans, self.span_room, 2 * self.span_room)
            self.span_room *= 2
        self.spans[self.span_count] = begin
        self.spans[self.span_count + 1] = until
        self.span_count += 2
        return None

    @cython.cfunc
    def end(self, node: cython.int, done: cython.bint) -> object:
        """Note a trie node at which the atom may end, or must (``done``)."""
        if done:
            i: cython.int
            for i in range(self.trie.first[node], self.trie.first[node + 1]):
                if self.closing_count == self.closing_room:
                    self.closing = more(self.closing, self.closing_room, 2 * self.closing_room)
                    self.closing_room *= 2
                self.closing[self.closing_count] = self.trie.order[i]
                self.closing_count += 1
        if self.end_count == self.end_room:
            self.ends = more(self.ends, self.end_room, 2 * self.end_room)
            self.end_room *= 2
        self.ends[self.end_count] = node
        self.end_count += 1
        return None

    @cython.cfunc
    def sort_ends(self) -> object:
        """Bring the noted ends, which were not, in the trie's order."""
        ends = sorted([self.ends[i] for i in range(self.end_count)])
        i: cython.int
        for i in range(self.end_count):
            self.ends[i] = ends[i]
        return None

    @cython.cfunc
    def set_ends(self, token_set: TokenSet) -> object:
        """Give a token set the noted ends."""
        token_set.end_count = self.end_count
        token_set.closing_count = self.closing_count
        self.closing_count = 0
        self.end_count = 0
        return set_parts(self.trie, token_set, self.ends, self.closing, self.scratch)

    @cython.cfunc
    def drop(self, token: cython.int) -> object:
        """Note a token that the set in construction lacks, unlike the one that it is made from."""
        if self.less_count == self.less_room:
            self.less = more(self.less, self.less_room, 2 * self.less_room)
            self.less_room *= 2
        self.less[self.less_count] = token
        self.less_count += 1
        return None

    @cython.cfunc
    def set_less(self, token_set: TokenSet, base: TokenSet) -> object:
        """Give a token set the tokens of ``base``, which are many, without the noted ones, all of which it has."""
        token_set.is_dense = True
        token_set.count = base.count - self.less_count
        token_set.dense = base.dense
        token_set.less_count = base.less_count + self.less_count
        if token_set.less_count == 0:
            return None
        less: cython.int[::1] = grown(base.less if base.less_count else None, "i", token_set.less_count)
        i: cython.int
        for i in range(self.less_count):
            less[base.less_count + i] = self.less[i]
        token_set.less = less
        token_set.size += 4 * token_set.less_count
        if token_set.less_count > MAX_LESS:
            token_set.dense = dense_copy(token_set)
            token_set.less_count = 0
            token_set.size += 4 * self.words
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def end_like(self, base: TokenSet, had: cython.int, stop: cython.int) -> cython.int:
        """Note the ends of ``base`` from number ``had`` on that are before trie node ``stop``; return how many ends it
        has up to there."""
        while had < base.end_count and base.parts[had] < stop:
            self.end(base.parts[had], True)
            had += 1
        return had
