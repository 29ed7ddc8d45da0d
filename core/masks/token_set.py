# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Token set of a position q: T(q), the tokens that stay inside the atom, and E(q), the trie nodes where it may end.

Compiled where that is possible; ``token_set.pxd`` declares its C interface.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.arrays import copied, grown
    from ..compiled.memory import free, ints, more, read_bytes
    from .bits import flip_bit, has_bit
    from .trie import Trie

#: Maximum number of tokens by which a token set may differ from another to be stored as the difference.
MAX_LESS = cython.declare(cython.int, 512)


@cython.cclass
class TokenSet:
    """T(q) and E(q) of a position q.

    If ``is_dense``, T(q) is the bits of ``dense``, which other token sets may share, without the ``less_count`` tokens
    of ``less``; else it is ``ids``.

    ``parts`` is a concatenation of: the ``end_count`` nodes of E(q); the ``closing_count`` tokens that end at a node
    where the atom must end (for example, with the closing quote of a string); the ``exit_count`` distinct bytes of
    these nodes' children, ascending; for each byte, the bounds of its children in the list of children; that list.
    """

    def saved(self) -> tuple:
        """Return the arrays for `load_token_set`."""
        inside = array("i")
        if self.is_dense:
            inside = copied("I", dense_copy(self))
        elif self.count:
            inside = copied("i", self.ids)
        parts = copied("i", self.parts) if self.end_count else array("i")
        closing = parts[self.end_count : self.end_count + self.closing_count]
        return array("i", [self.is_dense, self.count]), inside, parts[: self.end_count], closing


@cython.cfunc
def new_token_set() -> TokenSet:
    """Return an empty token set, without arrays."""
    token_set: TokenSet = TokenSet.__new__(TokenSet)
    token_set.count = 0
    token_set.is_dense = False
    token_set.less_count = 0
    token_set.end_count = 0
    token_set.closing_count = 0
    token_set.exit_count = 0
    token_set.size = 400
    return token_set


@cython.cfunc
def share_parts(token_set: TokenSet, like: TokenSet) -> object:
    """Let a token set share the ends of another."""
    token_set.end_count = like.end_count
    token_set.closing_count = like.closing_count
    token_set.exit_count = like.exit_count
    if like.end_count:
        token_set.parts = like.parts
    return None


@cython.cfunc
def dense_copy(token_set: TokenSet) -> cython.uint[::1]:
    """Return a copy of the bits of a dense token set."""
    bits: cython.uint[::1] = copied("I", token_set.dense)
    i: cython.int
    for i in range(token_set.less_count):
        flip_bit(bits, token_set.less[i])
    return bits


@cython.cfunc
def set_parts(
    trie: Trie,
    token_set: TokenSet,
    ends: cython.p_int,
    closing: cython.p_int,
    at: cython.p_int,
) -> object:
    """Set the ``parts`` of a token set (see `TokenSet`); a counting sort brings the children of its ends in order.

    ``end_count`` and ``closing_count`` are already set; ``at`` is scratch space for 256 numbers: by byte, the number of
    children, then the index in ``parts`` of the next one.
    """
    n: cython.int = token_set.end_count
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
    token_set.exit_count = groups
    if n == 0:
        return None
    here: cython.int = n + token_set.closing_count  # of the next byte; `stop`: of the end of the children so far
    room: cython.int = here + 2 * groups + 1 + total
    parts: cython.int[::1] = array("i", [0]) * room
    for i in range(n):
        parts[i] = ends[i]
    for i in range(token_set.closing_count):
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
    token_set.parts = parts
    token_set.size += 4 * room
    return None


def load_token_set(trie: Trie, saved: tuple) -> TokenSet:
    """Return the token set that `saved` stored, over a trie of the same vocabulary."""
    kind, inside, ends, closing = saved
    token_set: TokenSet = new_token_set()
    token_set.is_dense = kind[0]
    token_set.count = kind[1]
    if token_set.is_dense:
        token_set.dense = inside
    elif inside:
        token_set.ids = inside
    token_set.size += 4 * len(inside)
    token_set.end_count = len(ends)
    token_set.closing_count = len(closing)
    end_nodes: cython.p_int = ints(len(ends) + 1)
    tokens: cython.p_int = ints(len(closing) + 1)
    at: cython.p_int = ints(256)
    read_bytes(end_nodes, ends.tobytes())
    read_bytes(tokens, closing.tobytes())
    set_parts(trie, token_set, end_nodes, tokens, at)
    free(end_nodes)
    free(tokens)
    free(at)
    return token_set


@cython.cfunc
def new_differing_set(base: TokenSet, flips: list) -> TokenSet:
    """Return a token set, still without ends: the symmetric difference of a dense one and ``flips``, distinct
    tokens."""
    token_set: TokenSet
    token: cython.int
    i: cython.int
    less: cython.int = 0
    if base.less_count == 0 and len(flips) <= MAX_LESS:
        for each in flips:
            less += has_bit(base.dense, each)
        if less == len(flips):  # it only lacks tokens: share the bits
            token_set = new_token_set()
            token_set.is_dense, token_set.dense = True, base.dense
            token_set.count, token_set.less_count = base.count - less, less
            if less:
                token_set.less = grown(None, "i", less)
                for i in range(less):
                    token_set.less[i] = flips[i]
                token_set.size += 4 * less
            return token_set
    token_set = new_dense_set(base.dense if base.less_count == 0 else dense_copy(base), base.count)
    for each in flips:
        token = each
        token_set.count += -1 if has_bit(token_set.dense, token) else 1
        flip_bit(token_set.dense, token)
    return token_set


@cython.cfunc
def new_dense_set(bits: cython.uint[::1], count: cython.int) -> TokenSet:
    """Return a token set with a copy of these bits, ``count`` of which are set; still without ends."""
    token_set: TokenSet = new_token_set()
    token_set.dense = copied("I", bits)
    token_set.is_dense = True
    token_set.count = count
    token_set.size += 4 * len(bits)
    return token_set


@cython.cclass
class Draft:
    """Scratch space for a token set under construction: the ends, and spans of tokens that stay inside.

    Args:
        trie: the vocabulary's trie.
    """

    def __init__(self, trie: Trie):
        self.trie = trie
        self.end_room, self.ends = 256, ints(256)
        self.closing_room, self.closing = 256, ints(256)
        self.span_room, self.spans = 256, ints(256)
        self.scratch = ints(256)
        self.end_count = self.closing_count = self.span_count = 0

    def __dealloc__(self):
        free(self.ends)
        free(self.closing)
        free(self.spans)
        free(self.scratch)

    @cython.cfunc
    def begin(self) -> object:
        """Reset, also after an error."""
        self.end_count = self.closing_count = self.span_count = 0
        return None

    @cython.cfunc
    def span(self, begin: cython.int, until: cython.int) -> object:
        """Add the tokens in a range of the trie's order to T(q)."""
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
        """Add a trie node to E(q). ``done``: the atom must end there, so the node's tokens end with it, and are listed
        as ``closing``."""
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
        """Sort the ends, which were added in another order, into the trie's order."""
        ends = sorted([self.ends[i] for i in range(self.end_count)])
        i: cython.int
        for i in range(self.end_count):
            self.ends[i] = ends[i]
        return None

    @cython.cfunc
    def set_ends(self, token_set: TokenSet) -> object:
        """Set the ends of a token set."""
        token_set.end_count = self.end_count
        token_set.closing_count = self.closing_count
        self.closing_count = 0
        self.end_count = 0
        return set_parts(self.trie, token_set, self.ends, self.closing, self.scratch)
