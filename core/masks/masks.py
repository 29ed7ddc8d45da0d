# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Masks: for each state of an automaton, the set of tokens that keep the output valid.

By lemma 1 of ``docs/masks.md``, mask(q, r) = T(q) ∪ { tokens below E(q) that continue with r }. `token_sets` computes
T(q) and E(q) once for a position q, independently of the node r after the atom; `trie_walk` walks the trie along r from
the nodes of E(q). This module joins both and memoises the mask of each state. For a literal, which few tokens fit, the
walk begins at the root instead, without a token set. In the code, ``atom`` is a position q, an integer (see
``automaton/encoding.py``), and ``rest`` the node r.

Compiled where that is possible; ``masks.pxd`` declares its C interface.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

from ..dependent.doubts import Doubts

if cython.compiled:  # the others are declared
    from cython.cimports.libc.string import memcpy
else:
    from ..automaton import encoding
    from ..automaton.states import Automaton
    from ..compiled.arrays import grown
    from ..compiled.memory import free, ints, more
    from .token_set import TokenSet, dense_copy
    from .token_sets import TokenSets
    from .trie import Trie
    from .trie_walk import TrieWalk

COMPILED: bool = bool(cython.compiled)

#: Indices of the doubts of a mask: none; only tokens that end a name which was begun before them.
NO_DOUBTS = cython.declare(cython.int, -1)
WATCHED_ALONE = cython.declare(cython.int, 0)

#: Maximum number of tokens outside of dense sets that are written one by one; a mask with more is joined (see `Mask`).
SCATTERED = cython.declare(cython.int, 128)


@cython.cfunc
@cython.inline
def _copy(source: cython.uint[::1], out: cython.uint[::1], words: cython.int) -> object:
    """Copy at least one word."""
    if cython.compiled:
        memcpy(cython.address(out[0]), cython.address(source[0]), 4 * words)
    else:
        for i in range(words):
            out[i] = source[i]
    return None


@cython.cclass
class Mask:
    """The allowed tokens of one state: the union of some token sets and some single tokens.

    Its parts are ranges in arrays of `Masks`: ``token_sets`` sets from index ``first``, ``count`` single tokens from
    index ``at``, and the `Doubts` at index ``doubts`` (NO_DOUBTS: none; then it is ``is_settled``).

    A mask of many parts is ``joined`` into one dense copy when it is written a second time.

    There are many masks; the garbage collector tracks none of them, because they have only numbers.
    """


@cython.cclass
class Masks:
    """Masks of an automaton's states over a vocabulary, memoised under a memory bound.

    ``memo`` has the masks by state; ``parts``, ``ids`` and ``doubts`` are the arrays in which `Mask` has its parts.

    Args:
        automaton: the automaton.
        index: the vocabulary's index.
        finals: ids that are allowed where the text may end.
        specials: token ids of the automaton's control tokens, by number.
        limit: maximum size of the memoised masks and token sets, in bytes.
    """

    def __init__(self, automaton: Automaton, index, finals, specials, limit):
        trie: Trie = index.trie
        self.automaton = automaton
        self.trie = trie
        self.walk = TrieWalk(automaton, trie)
        self.token_sets = TokenSets(automaton, index, self.walk)
        self.finals = tuple(finals)
        self.specials = dict(specials)
        self.memo = []
        self.parts = []
        self.id_room, self.ids = 256, ints(256)
        self.id_count = 0
        self.doubts = [Doubts((), (), True)]  # at WATCHED_ALONE
        self.clock = 0
        self.held = 0
        self.limit = limit
        self.flushes = 0
        self.words = (trie.vocabulary + 31) // 32
        self.target = None

    def __dealloc__(self):
        free(self.ids)

    def set_special(self, number: int, token: int) -> None:
        """Set the token id of a control token of the automaton; call it before any mask needs the token."""
        self.specials[number] = token

    def survey(self, chars: cython.int) -> None:
        """Make the survey of a class of characters (a term) in advance of the first mask that needs it."""
        self.token_sets._survey(self.automaton.byte_rows.class_number(chars))

    @cython.cfunc
    def _mask(self, state: cython.int) -> Mask:
        """Return the mask of a state, built if it is not memoised, and mark it as the most recently used (its
        ``tick``). If masks and token sets exceed ``limit``, the less recently used are evicted first."""
        self.automaton.own(state)
        while len(self.memo) <= state:
            self.memo.append(None)
        found = self.memo[state]
        if found is None:
            if self.held + self.token_sets.held > self.limit:
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
        """Build the mask of a state from its threads.

        A thread at a control token or in a literal adds single tokens: the token's id; the tokens of a walk from the
        trie's root. Any other adds T(q) by reference, and as single tokens those that end where its atom must end
        (``closing``) and those below E(q) that continue with the node after the atom. Tokens that the text so far may
        forbid are in the mask too, with the `Doubts` that find them.
        """
        automaton: Automaton = self.automaton
        walk: TrieWalk = self.walk
        mask: Mask = Mask.__new__(Mask)
        mask.first = len(self.parts)
        walk.begin()
        i: cython.int
        atom: cython.longlong
        rest: cython.int
        token_set: TokenSet
        j: cython.int
        for i in range(automaton.state_count[state]):
            atom = automaton.thread_atom[automaton.state_at[state] + i]
            rest = automaton.thread_rest[automaton.state_at[state] + i]
            if (atom >> encoding.TAG) == encoding.SPECIAL:
                token = self.specials.get(atom & encoding.PAYLOAD)
                if token is not None:
                    walk.emit(token)
            elif (atom >> encoding.TAG) == encoding.LITERAL:
                walk.walk(0, atom, rest)
            else:
                token_set = self.token_sets.token_set(atom)
                if token_set.count:
                    self.parts.append(token_set)
                for j in range(token_set.end_count, token_set.end_count + token_set.closing_count):
                    walk.emit_one(token_set.parts[j])
                walk.cross_set(token_set, rest)
        if automaton.state_accepts[state]:
            for token in self.finals:
                walk.emit(token)
        mask.token_sets = len(self.parts) - mask.first
        mask.at = self.id_count
        mask.count = walk.out_count
        if self.id_count + mask.count > self.id_room:
            room: cython.int = 2 * (self.id_count + mask.count)
            self.ids = more(self.ids, self.id_room, room)
            self.id_room = room
        for i in range(mask.count):
            self.ids[self.id_count + i] = walk.out[i]
        self.id_count += mask.count
        mask.size = 150 + 6 * mask.count
        mask.is_joined, mask.tick = False, 0
        mask.is_scattered = self._is_scattered(mask)
        mask.doubts = WATCHED_ALONE if walk.watched else NO_DOUBTS
        if walk.unsure or walk.named or walk.deciding:
            mask.doubts = len(self.doubts)
            named = tuple(sorted(walk.named - walk.unsure))
            deciding = tuple(dict.fromkeys(walk.deciding))
            self.doubts.append(Doubts(tuple(sorted(walk.unsure)), named, bool(walk.watched), deciding))
            mask.size += 200 + 40 * (len(walk.unsure) + len(walk.named))
        mask.is_settled = mask.doubts == NO_DOUBTS
        return mask

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_scattered(self, mask: Mask) -> cython.bint:
        """Return True if a mask has several dense token sets, or more than `SCATTERED` tokens outside of dense sets, so
        that writing it takes notably longer than copying one joined set."""
        i: cython.int
        dense: cython.int = 0
        single: cython.int = mask.count
        for i in range(mask.first, mask.first + mask.token_sets):
            token_set: TokenSet = cython.cast(TokenSet, self.parts[i])
            if token_set.is_dense:
                dense += 1
            else:
                single += token_set.count
        return dense > 1 or single > SCATTERED

    @cython.cfunc
    def _evict(self) -> object:
        """Drop the less recently used half of the masks, and all token sets that no remaining mask uses."""
        self.flushes += 1
        ticks = sorted([cython.cast(Mask, each).tick for each in self.memo if each is not None])
        border = ticks[len(ticks) // 2] if ticks else 0
        kept: dict = {}
        parts: list = []
        doubts: list = self.doubts[: WATCHED_ALONE + 1]
        ids: cython.p_int = ints(self.id_room)
        id_count: cython.int = 0
        i: cython.int
        state: cython.int
        mask: Mask
        self.held = 0
        # Other threads read masks without a lock (see `fill_known`): this loop allocates nothing that could start the
        # garbage collector, which could run other code.
        for state in range(len(self.memo)):
            each = self.memo[state]
            if each is None:
                continue
            mask = cython.cast(Mask, each)
            if mask.tick <= border:
                self.memo[state] = None
                continue
            self.held += mask.size
            for i in range(mask.count):
                ids[id_count + i] = self.ids[mask.at + i]
            mask.at = id_count
            id_count += mask.count
            for i in range(mask.first, mask.first + mask.token_sets):
                parts.append(self.parts[i])
            mask.first = len(parts) - mask.token_sets
            if mask.doubts > WATCHED_ALONE:
                doubts.append(self.doubts[mask.doubts])
                mask.doubts = len(doubts) - 1
        free(self.ids)
        self.ids = ids
        self.id_count = id_count
        self.parts = parts
        self.doubts = doubts
        for token_set in parts:
            kept[id(token_set)] = token_set
        self.token_sets.keep(kept)
        return None

    @cython.ccall
    def below(self, endings: list, out: cython.uint[::1]) -> list:
        """Return the endings (see `Written.endings`) with which tokens of a mask begin, each with these tokens: a walk
        of the trie along the sorted names, so that its work is the prefixes that both share."""
        trie: Trie = self.trie
        i: cython.int
        node: cython.int
        token: cython.int
        low: cython.Py_ssize_t
        high: cython.Py_ssize_t
        size: cython.Py_ssize_t
        depth: cython.Py_ssize_t
        end: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        middle: cython.Py_ssize_t
        byte: cython.int
        names: list
        name: bytes
        found: list = []
        for names, low, high, size in endings:
            todo: list = [(0, low, high, size)]  # a trie node, the names whose bytes lead there, and up to which byte
            while todo:
                node, low, high, depth = todo.pop()
                name = names[low]
                if low + 1 == high:  # one name: no more ranges to divide
                    while depth < len(name) and node >= 0:
                        node = trie.child_by(node, name[depth])
                        depth += 1
                    if node < 0:
                        continue
                if len(name) == depth:  # a whole name: all tokens below begin with its ending
                    tokens: list = []
                    for i in range(trie.first[node], trie.first[node + trie.size[node]]):
                        token = trie.order[i]
                        if out[token >> 5] >> (token & 31) & 1:
                            tokens.append(token)
                    if tokens:
                        found.append((name[size:], tokens))
                    low += 1
                while low < high:  # the names with one next byte
                    name = names[low]
                    byte = name[depth]
                    end = low + 1
                    stop = high
                    while end < stop:
                        middle = (end + stop) // 2
                        name = names[middle]
                        if name[depth] == byte:
                            end = middle + 1
                        else:
                            stop = middle
                    node_below: cython.int = trie.child_by(node, byte)
                    if node_below >= 0:
                        todo.append((node_below, low, end, depth + 1))
                    low = end
        return found

    def is_settled(self, state: cython.int) -> bool:
        """Return True if the mask of a state is memoised, and has no doubts."""
        found = self.memo[state] if 0 <= state < len(self.memo) else None
        return found is not None and cython.cast(Mask, found).is_settled

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def fill_known(self, state: cython.int, out: object) -> cython.bint:
        """Do `fill` for a mask that is memoised and settled; for others, return False and write nothing.

        The compiled form needs no lock if there is a GIL (see `compiled.gil`).
        """
        mask: Mask = self.known(state)
        if mask is None:
            return False
        self._write(mask, self.viewed(out))
        return True

    @cython.cfunc
    def known(self, state: cython.int) -> Mask:
        """Return the mask of a state if it is memoised, settled (without doubts) and quick to write (not scattered, or
        joined); else None."""
        if state < 0 or state >= len(self.memo):
            return None
        found = self.memo[state]
        if found is None:
            return None
        mask: Mask = cython.cast(Mask, found)
        if not mask.is_settled or (mask.is_scattered and not mask.is_joined):
            return None
        self.clock += 1
        mask.tick = self.clock
        return mask

    @cython.cfunc
    def viewed(self, out: object) -> cython.uint[::1]:
        """Return a caller's array as words."""
        if out is not self.target:  # most callers pass the same array each time
            self.view = out
            # The old view is kept until all is written: releasing it might let another thread run.
            self.target, _before = out, self.target
        return self.view

    @cython.ccall
    def fill(self, state: cython.int, out: cython.uint[::1]) -> object:
        """Write the mask of ``state``: bit ``t % 32`` of word ``t // 32`` is set iff token ``t`` is allowed.

        Returns:
            The tokens that the text so far may forbid (`Doubts`); None if there are none.
        """
        is_new: cython.bint = not 0 <= state < len(self.memo) or self.memo[state] is None
        mask: Mask = self._mask(state)
        if mask.is_scattered and not mask.is_joined and not is_new:  # most masks are written only once
            self._join(mask)
        self._write(mask, out)
        return None if mask.doubts == NO_DOUBTS else self.doubts[mask.doubts]

    @cython.cfunc
    def _join(self, mask: Mask) -> object:
        """Replace the parts of a mask by one dense copy."""
        joined: cython.uint[::1] = grown(None, "I", self.words)
        self._write(mask, joined)
        mask.joined = joined
        mask.is_joined = True
        mask.size += 4 * self.words
        self.held += 4 * self.words
        return None

    @cython.cfunc
    def _write(self, mask: Mask, out: cython.uint[::1]) -> object:
        """Write a mask as bits into ``out``, of at least ``words`` words; further words are cleared. The first dense
        token set is copied, which also clears what ``out`` held; the other parts are added to it. Raise ValueError if
        ``out`` is too short."""
        token_set: TokenSet
        source: cython.uint[::1]
        i: cython.int
        j: cython.int
        first: cython.bint = True
        words: cython.int = self.words
        if len(out) < words:
            raise ValueError(f"a mask takes {words} words of 32 bits, not {len(out)}")
        if mask.is_joined:
            _copy(mask.joined, out, words)
            for i in range(words, len(out)):
                out[i] = 0
            return None
        for i in range(mask.first, mask.first + mask.token_sets):
            token_set = cython.cast(TokenSet, self.parts[i])
            if token_set.is_dense:
                if first:
                    _copy(token_set.dense, out, words)
                    for j in range(token_set.less_count):
                        out[token_set.less[j] >> 5] ^= cython.cast(cython.uint, 1) << (token_set.less[j] & 31)
                else:
                    source = token_set.dense if token_set.less_count == 0 else dense_copy(token_set)
                    for j in range(words):
                        out[j] |= source[j]
                first = False
        if first:
            for i in range(words):
                out[i] = 0
        for i in range(words, len(out)):
            out[i] = 0
        for i in range(mask.first, mask.first + mask.token_sets):
            token_set = cython.cast(TokenSet, self.parts[i])
            if not token_set.is_dense:
                for j in range(token_set.count):
                    out[token_set.ids[j] >> 5] |= cython.cast(cython.uint, 1) << (token_set.ids[j] & 31)
        for i in range(mask.at, mask.at + mask.count):
            out[self.ids[i] >> 5] |= cython.cast(cython.uint, 1) << (self.ids[i] & 31)
        return None

    def byte_count(self) -> int:
        """Return the bytes of masks, token sets and scratch space, without the vocabulary's index."""
        walk: TrieWalk = self.walk
        token_sets: TokenSets = self.token_sets
        scratch = 4 * (walk.out_room + token_sets.draft.end_room + token_sets.draft.span_room) + 8 * self.trie.longest
        held = self.held + token_sets.held + token_sets.subtrees.bytes_held()
        return held + 8 * len(self.memo) + scratch + 4_000

    def counters(self) -> dict:
        """Return deterministic counts: visited trie nodes, token sets in all and by route (see `token_sets`),
        evictions; and the bytes of masks and token sets."""
        token_sets: TokenSets = self.token_sets
        return {
            "visited": self.walk.visited + token_sets.visited + token_sets.comparison.visited,
            "token_sets": token_sets.lacked + token_sets.compared + token_sets.surveyed + token_sets.walked,
            "shared": token_sets.shared,
            "lacking": token_sets.lacked,
            "compared": token_sets.compared,
            "surveyed": token_sets.surveyed,
            "walked": token_sets.walked,
            "flushes": self.flushes,
            "bytes": self.held + token_sets.held,
        }
