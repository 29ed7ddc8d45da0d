# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Token sets of positions: made by a walk of the whole trie, or from facts about the vocabulary.

Compiled where that is possible; ``token_sets.pxd`` declares its C interface.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..automaton.blocks import row_item
    from ..automaton.positions import Positions
    from ..compiled.arrays import copied, grown
    from ..compiled.memory import free, longs
    from .character_counts import CharacterCounts, ClassExits, ClassRuns, TokenCounts, first_from
    from .comparison import Comparison
    from .draft import Draft
    from .run_sets import RunSets
    from .subtrees import Subtrees
    from .token_set import TokenSet, dense_copy, new_dense_set, new_token_set, share_parts
    from .trie import Trie
    from .trie_walk import TrieWalk

#: Minimum number of trie nodes in a subtree for which `ClassRuns` pay off.
LARGE = cython.declare(cython.int, 64)
#: Maximum number of tokens that are read one by one, where a bound on the length of a string may forbid them.
MAX_UNSURE = cython.declare(cython.int, 512)
#: Minimum part of the trie's nodes, as its reciprocal, whose difference between two positions is not small: to walk
#: along both would take as long as to walk along one through all.
BESIDE = cython.declare(cython.int, 32)
#: Maximum number of token sets of counted strings that one vocabulary keeps.
MAX_COUNTED = cython.declare(cython.int, 256)


@cython.cclass
class TokenSets:
    """The token sets of atom positions over a vocabulary, made on demand.

    Args:
        automaton: the automaton.
        index: the vocabulary's index, which keeps the token sets that do not depend on the grammar.
        walk: the walk of the same automaton and trie.
    """

    def __init__(self, automaton: Positions, index, walk: TrieWalk):
        self.automaton = automaton
        trie: Trie = index.trie
        self.trie = trie
        self.walk = walk
        self.loops = Subtrees(automaton, trie)
        self.characters = CharacterCounts(automaton, trie, self.loops, index)
        self.index = index
        self.known = {}
        self.held = 0
        self.built = 0
        self.visited = 0
        self.words = (trie.vocabulary + 31) // 32
        self.draft = Draft(trie)
        self.differences = Comparison(automaton, trie, self.loops, self.draft)
        self.runs = RunSets(automaton, trie, self.loops, self.differences, self.draft, index.run_surveys)
        self.is_like = False
        self.stack = longs(trie.longest + 2)

    def __dealloc__(self):
        free(self.stack)

    @cython.cfunc
    def keep(self, kept: dict) -> object:
        """Forget all token sets except some, given by their ids."""
        self.known = {atom: token_set for atom, token_set in self.known.items() if id(token_set) in kept}
        self.held = 0
        for token_set in {id(each): each for each in self.known.values()}.values():  # atoms may share one
            self.held += cython.cast(TokenSet, token_set).size
        return None

    @cython.cfunc
    def token_set(self, atom: cython.longlong) -> TokenSet:
        """Return the token set of an atom position."""
        found = self.known.get(atom)
        if found is not None:
            return found
        key = None
        tag: cython.longlong = atom >> encoding.TAG
        free = None
        if tag == encoding.ROW:
            key, free = self.automaton.given.shared(atom)
            if key is not None:
                found = self.index.token_sets.get(key)
        elif tag == encoding.COUNTED and (atom & 0xFF) == encoding.LOCAL_BODY:
            found = self._counted_set(atom)
        if found is None and free is not None:
            found = self._bounded_set(atom)
            if found is not None and atom in self.known:
                return found
        if found is None:
            if tag == encoding.ROW:
                found = self._row_set(cython.cast(cython.int, atom), free)
            if found is None:
                found = self._build(atom, free)
            if key is not None:
                self.index.token_sets[key] = found
        if key is None:
            self.held += cython.cast(TokenSet, found).size
        self.known[atom] = found
        return found

    @cython.cfunc
    def _row_set(self, state: cython.int, free: object) -> object:
        """Return the token set of a row state, made from what is known of the vocabulary or of other states; None if
        that takes as long as `_build`, whose arguments these are."""
        home: cython.int
        open_class: cython.int
        found: object = None
        words = None if free is None else self.automaton.given.excluded(state)
        self.automaton.after(state, 0)  # derives the row, and finds the class
        if self.characters.has_runs(state):
            return self._class_set(state)
        if free is not None:
            base: TokenSet = self._dense_base(free)
            if words is not None:
                found = self.differences.lacking_set(state, free, base, words)
            else:
                found = self.runs.found(state, free, base)
                if found is None and self.differences.is_near(state, free, 2):
                    found = self.differences.near_set(state, free, base)
            if found is not None:
                self.built += 1
                return found
            open_class = self.automaton.given.open_class(state)
            if open_class >= 0:
                return self._open_set(state, open_class)
            home = self.loops.home(state)
            if home > 0 and self._is_beside(state, home):
                self.built += 1
                return self.differences.beside_set(state, home, self.token_set(home))
        return self._class_set(state) if self.characters.is_wide_run(state) else None

    @cython.cfunc
    def _build(self, atom: cython.longlong, free: object) -> TokenSet:
        """Walk the whole trie once, pruned at dead bytes.

        Args:
            atom: the position.
            free: the position in the free string, if this is one between two characters of a JSON string: all that
                stays inside it stays inside the free string.
        """
        walk: TrieWalk = self.walk
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        token_set: TokenSet = new_token_set()
        base: TokenSet = new_token_set() if free is None else self.token_set(free)
        self.built += 1
        saved: cython.int = walk.out_count
        i: cython.int = 1
        stop: cython.int
        depth: cython.int
        then: cython.longlong
        self.draft.begin()
        self.is_like = False
        count: cython.int = 0
        if (atom >> encoding.TAG) == encoding.ROW:
            self._walk_rows(cython.cast(cython.int, atom), base)
            for i in range(0, self.draft.span_count, 2):
                count += self.draft.spans[i + 1] - self.draft.spans[i]
            i = trie.nodes
        self.stack[0] = atom
        while i < trie.nodes:
            self.visited += 1
            depth = trie.depth[i]
            stop = i + trie.size[i]
            then = automaton.after(self.stack[depth - 1], trie.byte[i])
            if then < 0 or then == encoding.DONE:
                if then == encoding.DONE:
                    self.draft.end(i, True)
                i = stop
                continue
            self.walk.emit_all(trie.first[i], trie.first[i + 1])
            self.stack[depth] = then
            i += 1
        if base.is_dense and 2 * count > base.count:
            self._fill_dense(token_set, base, saved)
        else:
            for i in range(0, self.draft.span_count, 2):
                if self.is_like:
                    self._emit_like(self.draft.spans[i], self.draft.spans[i + 1], base)
                else:
                    walk.emit_all(self.draft.spans[i], self.draft.spans[i + 1])
            self._fill(token_set, saved)
        walk.out_count = saved
        self.draft.set_ends(token_set)
        return token_set

    @cython.cfunc
    def _fill(self, token_set: TokenSet, saved: cython.int) -> object:
        """Give a token set the tokens that were emitted after the first ``saved`` ones."""
        walk: TrieWalk = self.walk
        i: cython.int
        count: cython.int = walk.out_count - saved
        token_set.count = count
        token_set.is_dense = count > self.words
        if token_set.is_dense:
            token_set.dense = array("I", [0]) * self.words
            for i in range(saved, walk.out_count):
                token_set.dense[walk.out[i] >> 5] |= cython.cast(cython.uint, 1) << (walk.out[i] & 31)
            token_set.size += 4 * self.words
        else:
            if count:
                ids: cython.int[::1] = grown(None, "i", count)
                for i in range(count):
                    ids[i] = walk.out[saved + i]
                token_set.ids = ids
            token_set.size += 4 * count
        return None

    @cython.cfunc
    def _fill_dense(self, token_set: TokenSet, base: TokenSet, saved: cython.int) -> object:
        """Give a token set the tokens of ``base``, the free string's, except those between the spans; and those that
        were emitted after the first ``saved`` ones."""
        walk: TrieWalk = self.walk
        order: cython.int[::1] = self.trie.order
        bits: cython.uint[::1] = copied("I", base.dense)
        i: cython.int
        j: cython.int
        at: cython.int = 0
        until: cython.int
        cleared: cython.int = 0
        for i in range(0, self.draft.span_count + 2, 2):
            until = self.draft.spans[i] if i < self.draft.span_count else self.trie.first[self.trie.nodes]
            for j in range(at, until):
                cleared += bits[order[j] >> 5] >> (order[j] & 31) & 1
                bits[order[j] >> 5] &= ~(cython.cast(cython.uint, 1) << (order[j] & 31))
            if i < self.draft.span_count:
                at = self.draft.spans[i + 1]
        for i in range(saved, walk.out_count):
            bits[walk.out[i] >> 5] |= cython.cast(cython.uint, 1) << (walk.out[i] & 31)
        token_set.count = base.count - cleared + walk.out_count - saved
        token_set.is_dense = True
        token_set.dense = bits
        token_set.size += 4 * self.words
        return None

    @cython.cfunc
    def _walk_rows(self, state: cython.int, base: TokenSet) -> object:
        """Note the tokens that stay inside the text of a row state, as spans, and its ends; emit the tokens that come
        from class runs. Of the tokens in the spans, if ``is_like`` is set then, only those count that are in ``base``,
        the token set of the free string."""
        automaton: Positions = self.automaton
        trie: Trie = self.trie
        byte: cython.uchar[::1] = trie.byte
        depths: cython.ushort[::1] = trie.depth
        size: cython.int[::1] = trie.size
        first: cython.int[::1] = trie.first
        base_rows: cython.p_int = automaton.given.base
        stack: cython.p_longlong = self.stack
        at: cython.longlong
        i: cython.int = 1
        j: cython.int
        stop: cython.int
        then: cython.int
        is_end: cython.bint
        kept: cython.int
        visited: cython.int = 0
        # The bounds of a span of neighbours in the trie's order.
        begin: cython.int = 0
        until: cython.int = 0
        stack[0] = automaton.row_at(state)
        while i < trie.nodes:
            visited += 1
            at = stack[depths[i] - 1]
            if at >= 0:
                then = row_item(automaton.given.rows, at + byte[i])
            else:
                then = base_rows[byte[i] - 256 - at]
            stop = i + size[i]
            if then <= 0:
                if then == 0:
                    self.draft.end(i, True)
                i = stop
                continue
            if first[i] != until:
                self.draft.span(begin, until)
                begin = first[i]
            until = first[i + 1]
            is_end = automaton.given.facts[encoding.FACTS * then + encoding.MAY_END] != 0
            if is_end:
                self.draft.end(i, False)
            if stop > i + 1:
                kept = self.loops.stays(i, then, base.is_dense)
                if kept:
                    self.is_like |= kept > 1
                    until = first[stop]
                    if is_end:
                        for j in range(i + 1, stop):
                            self.draft.end(j, False)
                    elif kept == 3:
                        self.draft.end_like(base, first_from(base.parts, base.end_count, i + 1), stop)
                    i = stop
                    continue
                if stop - i >= LARGE and self.characters.is_counted(then) and self._reads_on(i, then):
                    i = stop
                    continue
                stack[depths[i]] = automaton.row_at(then)
            i += 1
        self.draft.span(begin, until)
        self.visited += visited
        return None

    @cython.cfunc
    def _emit_like(self, begin: cython.int, until: cython.int, base: TokenSet) -> object:
        """Emit the tokens of a span that are in ``base``, a dense token set."""
        order: cython.int[::1] = self.trie.order
        i: cython.int
        for i in range(begin, until):
            if base.dense[order[i] >> 5] >> (order[i] & 31) & 1:
                self.walk.emit_one(order[i])
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _reads_on(self, node: cython.int, state: cython.int) -> cython.int:
        """Emit the tokens below ``node``, and note their ends, by `ClassRuns`; return 1 if that is possible.

        A bounded run of one class follows row state ``state``, in which the node is.
        """
        automaton: Positions = self.automaton
        if automaton.given.fact(state, encoding.CLASS) == 0:
            return 0
        runs: ClassRuns = self.characters.runs(automaton.given.fact(state, encoding.CLASS) - 1)
        begin: cython.int = self.characters.chars_before(automaton.given.fact(state, encoding.CLASS) - 1, node)
        if begin < 0:
            return 0
        stop: cython.int = node + self.trie.size[node]
        least: cython.int = begin + automaton.given.fact(state, encoding.LEAST)
        most: cython.int = runs.longest
        if (
            automaton.given.fact(state, encoding.MOST) >= 0
            and begin + automaton.given.fact(state, encoding.MOST) < most
        ):
            most = begin + automaton.given.fact(state, encoding.MOST)
        token: cython.int
        at: cython.int = first_from(runs.token_at, runs.tokens, self.trie.first[node + 1])
        while at < runs.tokens and runs.token_at[at] < self.trie.first[stop]:
            token = self.trie.order[runs.token_at[at]]
            if runs.chars[token] <= most:
                self.walk.emit_one(token)
            at += 1
        at = first_from(runs.end_node, runs.ends, node + 1)
        while at < runs.ends and runs.end_node[at] < stop:
            if least <= runs.end_chars[at] <= most:
                self.draft.end(runs.end_node[at], True)
            at += 1
        return 1

    @cython.cfunc
    def _class_set(self, atom: cython.longlong) -> TokenSet:
        """Return the token set between two characters of a bounded string of one class: as `_counted_set`, by
        `ClassRuns`."""
        automaton: Positions = self.automaton
        state: cython.int = cython.cast(cython.int, atom)
        runs: ClassRuns = self.characters.runs(automaton.given.fact(state, encoding.CLASS) - 1)
        left: cython.int = runs.longest
        if 0 <= automaton.given.fact(state, encoding.MOST) < left:
            left = automaton.given.fact(state, encoding.MOST)
        token_set: TokenSet = new_token_set()
        i: cython.int
        token: cython.int
        order: cython.int[::1] = self.trie.order
        key = ("inside", automaton.given.fact(state, encoding.CLASS), left)
        inside = self.known.get(key)
        self.built += 1
        if inside is None:
            token_set.dense = grown(None, "I", self.words)
            token_set.size += 4 * self.words
            for i in range(runs.tokens):
                token = order[runs.token_at[i]]
                if runs.chars[token] <= left:
                    token_set.dense[token >> 5] |= cython.cast(cython.uint, 1) << (token & 31)
                    token_set.count += 1
            self.known[key] = token_set
        else:
            token_set.dense = cython.cast(TokenSet, inside).dense
            token_set.count = cython.cast(TokenSet, inside).count
        token_set.is_dense = True
        self.draft.begin()
        for i in range(runs.ends):
            if automaton.given.fact(state, encoding.LEAST) <= runs.end_chars[i] <= left:
                self.draft.end(runs.end_node[i], True)
        self.draft.set_ends(token_set)
        return token_set

    @cython.cfunc
    def _bounded_set(self, atom: cython.longlong) -> object:
        """Return the token set between two characters of a JSON string of bounded length, from that of the same string
        without the bound (see ``length_bounds.py``), which is shared and then among the known ones if no token is
        too long; None if there is no such string, or if too many tokens are unsure."""
        bounded = self.automaton.given.without_bound(atom)
        if bounded is None:
            return None
        counts: TokenCounts = self.characters.counts()
        longest: cython.longlong = counts.longest
        least: cython.longlong = bounded[1]
        most: cython.longlong = bounded[2]
        sure: cython.longlong = most - bounded[3]  # so many characters can be completed, whatever they are
        if least > most or sure < 0:
            return None
        at: cython.int = counts.until[min(sure, longest)]
        if counts.until[min(most, longest)] - at > MAX_UNSURE:
            return None
        wide: TokenSet = self.token_set(bounded[0])
        if least <= 0 and sure >= longest:
            self.known[atom] = wide
            return wide
        token_set: TokenSet = new_token_set()
        i: cython.int
        token: cython.int
        self.built += 1
        self.draft.begin()
        if wide.is_dense:
            bits: cython.uint[::1] = wide.dense if wide.less_count == 0 else dense_copy(wide)
            for i in range(at, counts.tokens):
                token = counts.token[i]
                if bits[token >> 5] >> (token & 31) & 1:
                    if counts.token_chars[i] > most or not self._reads(bounded[0], atom, self.index.tokens[token]):
                        self.draft.drop(token)
            self.draft.set_less(token_set, wide)
        elif wide.count:
            token_set.ids = grown(None, "i", wide.count)
            for i in range(wide.count):
                token = wide.ids[i]
                if counts.chars[token] > most:
                    continue
                if counts.chars[token] <= sure or self._reads(bounded[0], atom, self.index.tokens[token]):
                    token_set.ids[token_set.count] = token
                    token_set.count += 1
            token_set.size += 4 * wide.count
        if least <= 0 and most >= longest:
            share_parts(token_set, wide)
            return token_set
        for i in range(wide.end_count):
            at = first_from(counts.end, counts.ends, wide.parts[i])
            if least <= counts.end_chars[at] <= most:
                self.draft.end(wide.parts[i], True)
        if self.draft.end_count == wide.end_count:
            share_parts(token_set, wide)
        else:
            self.draft.set_ends(token_set)
        return token_set

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _reads(self, wide: cython.longlong, atom: cython.longlong, data: bytes) -> cython.bint:
        """Return True if a token stays inside the text of ``atom``; ``wide`` is the position without the bound on the
        length, which the token does not exceed."""
        i: cython.int
        for i in range(len(data)):
            wide = self.automaton.after(wide, data[i])
        if self.automaton.after(wide, 0x22) == encoding.DONE:  # complete as it is: the product has rows of its own
            return True
        for i in range(len(data)):
            atom = self.automaton.after(atom, data[i])
            if atom <= 0:
                return False
        return True

    @cython.cfunc
    def _open_set(self, atom: cython.longlong, number: cython.int) -> TokenSet:
        """Return the token set between two characters of a JSON string that any characters of a class may continue:
        they all stay inside, so only paths to quotes, backslashes and other characters are walked."""
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        exits: ClassExits = self.characters.exits(number)
        token_set: TokenSet = new_dense_set(exits.plain, exits.count)
        self.built += 1
        i: cython.int = 0
        at: cython.int
        stop: cython.int
        node: cython.int
        depth: cython.int
        token: cython.int
        then: cython.longlong
        self.draft.begin()
        while i < exits.nodes:
            self.visited += 1
            node = exits.node[i]
            depth = trie.depth[node]
            then = automaton.after(atom if depth == 1 else self.stack[depth - 1], trie.byte[node])
            if then < 0 or then == encoding.DONE:
                if then == encoding.DONE:
                    self.draft.end(node, True)
                i = exits.after[i]
                continue
            stop = trie.first[node + 1]
            stays: cython.bint = trie.size[node] > 1 and self.loops.stays(node, cython.cast(cython.int, then), -1) != 0
            if stays:
                stop = trie.first[node + trie.size[node]]
            for at in range(trie.first[node], stop):
                token = trie.order[at]
                if not token_set.dense[token >> 5] >> (token & 31) & 1:
                    token_set.dense[token >> 5] |= cython.cast(cython.uint, 1) << (token & 31)
                    token_set.count += 1
            self.stack[depth] = then
            i = exits.after[i] if stays else i + 1
        self.draft.set_ends(token_set)
        return token_set

    @cython.cfunc
    def _dense_base(self, free: cython.longlong) -> TokenSet:
        """Return the token set of a position in the free string, with its tokens as bits from now on."""
        base: TokenSet = self.token_set(free)
        if not base.is_dense:
            base.dense = self._bits(base)
            base.is_dense = True
        return base

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_beside(self, atom: cython.longlong, home: cython.longlong) -> cython.int:
        """Return 1 if the token set of ``home`` is known, and that of ``atom`` hardly differs."""
        found = self.known.get(home)
        if found is None or not cython.cast(TokenSet, found).is_dense:
            return 0
        return self.differences.is_near(atom, home, BESIDE)

    @cython.cfunc
    def _bits(self, token_set: TokenSet) -> cython.uint[::1]:
        """Return a bit for each token of a token set of few tokens."""
        bits: cython.uint[::1] = grown(None, "I", self.words)
        i: cython.int
        for i in range(token_set.count):
            bits[token_set.ids[i] >> 5] |= cython.cast(cython.uint, 1) << (token_set.ids[i] & 31)
        return bits

    @cython.cfunc
    def _counted_set(self, atom: cython.longlong) -> TokenSet:
        """Return the token set of a counted string between two characters, from the `TokenCounts` of the vocabulary.

        A token stays inside if it has no more characters than are left; the string may end where a quote follows no
        more characters than are left and no fewer than are needed.
        """
        counts: TokenCounts = self.characters.counts()
        automaton: Positions = self.automaton
        number: cython.int = cython.cast(cython.int, (atom >> 40) & 0xFFFFF)
        written: cython.longlong = (atom >> 8) & encoding.UNBOUNDED
        needed: cython.longlong = automaton.least[number] - written
        left: cython.longlong = counts.longest
        if automaton.most[number] != encoding.UNBOUNDED and automaton.most[number] - written < left:
            left = automaton.most[number] - written
        if needed < 0:
            needed = 0
        if needed > counts.longest:
            needed = counts.longest + 1
        known: dict = self.index.counted
        key = (left, needed)
        found = known.get(key)
        if found is not None:
            return found
        token_set: TokenSet = new_token_set()
        self.built += 1
        i: cython.int
        inside = self.index.inside.get(left)
        if inside is None:
            token_set.count = counts.until[left]
            if 2 * token_set.count < counts.tokens or left == counts.longest:
                token_set.dense = array("I", [0]) * self.words
                for i in range(token_set.count):
                    token_set.dense[counts.token[i] >> 5] |= cython.cast(cython.uint, 1) << (counts.token[i] & 31)
            else:  # few are too long
                token_set.dense = copied("I", self._free_bits(counts))
                for i in range(token_set.count, counts.tokens):
                    token_set.dense[counts.token[i] >> 5] &= ~(cython.cast(cython.uint, 1) << (counts.token[i] & 31))
            self.index.inside[left] = token_set
        else:
            token_set.dense = cython.cast(TokenSet, inside).dense
            token_set.count = cython.cast(TokenSet, inside).count
        token_set.is_dense = True
        self.draft.begin()
        for i in range(counts.ends):
            if needed <= counts.end_chars[i] <= left:
                self.draft.end(counts.end[i], True)
        self.draft.set_ends(token_set)
        if len(known) >= MAX_COUNTED:
            del known[next(iter(known))]
        known[key] = token_set
        return token_set

    @cython.cfunc
    def _free_bits(self, counts: TokenCounts) -> cython.uint[::1]:
        """Return a bit for each token that stays inside a JSON string."""
        found = self.index.inside.get(counts.longest)
        token_set: TokenSet
        i: cython.int
        if found is None:
            token_set = new_token_set()
            token_set.count = counts.tokens
            token_set.dense = array("I", [0]) * self.words
            for i in range(counts.tokens):
                token_set.dense[counts.token[i] >> 5] |= cython.cast(cython.uint, 1) << (counts.token[i] & 31)
            found = self.index.inside[counts.longest] = token_set
        token_set = found
        return token_set.dense
