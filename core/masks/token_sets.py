# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Token sets of positions: T(q), the tokens that stay inside the atom, and E(q), the trie nodes where it may end.

There are five routes to the token set of a position, tried in this order; each is faster than the later ones where it
applies (``docs/masks.md``):

1. *shared*: the set is the same in every grammar: free strings, counted strings, runs of one class, seed states.
2. *lacking*: the free string without excluded words.
3. *comparison*: the difference to the set of the free string, or of the home state (the target of most bytes).
4. *survey*: strings that continue with any characters of a class C; visits only the subtrees where tokens leave C*.
5. *walk*: the whole trie, except dead subtrees and subtrees that stay inside.

Literals have no token set (see `masks`). An ``atom`` is a position inside one, an integer (see
``automaton/encoding.py``); that of a row state is the number of the state.

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
    from ..automaton.byte_rows import ByteRows
    from ..automaton.positions import Positions
    from ..compiled.arrays import copied, grown
    from ..compiled.memory import free, longs
    from .bits import flip_bit, has_bit
    from .class_survey import Chain, ClassSurvey, survey_class
    from .comparison import Comparison
    from .subtrees import Subtrees
    from .token_set import Draft, TokenSet, new_dense_set, new_token_set
    from .trie import Trie
    from .trie_walk import TrieWalk

#: Reciprocal of the maximum share of trie nodes below the bytes that lead to different positions: for comparisons with
#: the free string, and with the home state.
NEAR_FREE = cython.declare(cython.int, 2)
NEAR_HOME = cython.declare(cython.int, 32)
#: Maximum number of tokens that are tested one by one, because a length bound may forbid them.
MAX_UNSURE = cython.declare(cython.int, 512)
#: Reciprocal of the minimum share of trie nodes below the bytes of a class for which a survey pays off.
WIDE = cython.declare(cython.int, 16)
#: Reciprocal of the maximum share of trie nodes below the exits that are not dead on a chain.
FEW_EXITS = cython.declare(cython.int, 4)


@cython.cclass
class TokenSets:
    """The token sets of positions over a vocabulary, made on demand.

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
        self.subtrees = Subtrees(automaton, trie)
        self.index = index
        self.known = {}
        self.is_own = {}
        self.held = 0
        self.shared = self.lacked = self.compared = self.surveyed = self.walked = 0
        self.visited = 0
        self.words = (trie.vocabulary + 31) // 32
        self.draft = Draft(trie)
        self.comparison = Comparison(automaton, trie, self.subtrees, self.draft)
        self.chain = Chain(automaton, trie, self.subtrees)
        self.stack, self.node_at = longs(trie.longest + 2), longs(trie.longest + 2)

    def __dealloc__(self):
        free(self.stack)
        free(self.node_at)

    @cython.cfunc
    def keep(self, kept: dict) -> object:
        """Drop all token sets except those in ``kept``, by `id`, and count the bytes of the others anew."""
        self.known = {atom: token_set for atom, token_set in self.known.items() if id(token_set) in kept}
        found = {id(token_set): token_set for token_set in self.known.values()}
        self.is_own = {number: self.is_own[number] for number in found}
        self.held = 0
        for number, token_set in found.items():
            if self.is_own[number]:
                self.held += cython.cast(TokenSet, token_set).size
        return None

    @cython.cfunc
    def token_set(self, atom: cython.longlong) -> TokenSet:
        """Return the token set of a position, by the cheapest route: memoised for the position; kept by the index, if
        it is the same in every store; derived from known sets (`_counted_set`, `_row_set`); a walk of the trie."""
        found = self.known.get(atom)
        if found is not None:
            return found
        tag: cython.longlong = atom >> encoding.TAG
        key: object = None
        free: object = None
        if tag == encoding.COUNTED and (atom & encoding.LOCAL_MASK) == encoding.LOCAL_BODY:
            found = self._counted_set(atom)
        elif tag == encoding.ROW:
            key, free = self.automaton.byte_rows.shared(atom)
            if key is not None:
                found = self.index.token_sets.get(key)
                if found is not None:
                    self.shared += 1
            if found is None:
                found = self._row_set(cython.cast(cython.int, atom), free)
        if found is None:
            found = self._walk(atom, free)
        if key is not None:
            self.index.token_sets[key] = found
        if id(found) not in self.is_own:  # several positions may share one
            self.is_own[id(found)] = key is None
            if key is None:
                self.held += cython.cast(TokenSet, found).size
        self.known[atom] = found
        return found

    @cython.cfunc
    def _row_set(self, state: cython.int, free: object) -> object:
        """Return the token set of a row state by one of the routes before the walk; None if none applies.

        Args:
            state: the state.
            free: the corresponding state of the free string (before the opening quote, or between two characters); None
                if there is none.
        """
        rows: ByteRows = self.automaton.byte_rows
        words: object
        bounded: object
        opened: object
        home: cython.int
        number: cython.int
        unbounded: cython.int = state
        needed: cython.int
        most: cython.int = self.trie.longest
        base: TokenSet
        survey: ClassSurvey
        if free is None or free == state:
            return None
        words = rows.excluded(state)
        self.automaton.after(state, 0)  # derives the row
        base = self._dense(free)
        if words is not None:
            self.lacked += 1
            return self.comparison.lacking(state, free, base, words)
        if self.automaton.after(free, 0x61) != free:  # before the opening quote
            return None
        # If exactly C{m,n} and the closing quote follow, the survey of C is enough: the set is shared.
        number = rows.fact(state, encoding.CLASS) - 1
        if number >= 0 and self._is_wide(state):
            return self._run_set(number, rows.fact(state, encoding.LEAST), rows.fact(state, encoding.MOST))
        if self.comparison.is_near(state, free, NEAR_FREE):
            self.compared += 1
            return self.comparison.compare(state, free, base)
        home = self.subtrees.home(state)
        if home > 0 and home in self.known and self.comparison.is_near(state, home, NEAR_HOME):
            self.compared += 1
            return self.comparison.compare(state, home, self._dense(home))
        if number < 0 and (bounded := rows.without_bound(state)) is not None:
            unbounded, needed, most = bounded
            if needed <= 0 and most >= self.trie.longest:  # no token reaches the bound
                self.shared += 1
                return self.token_set(unbounded)
        opened = rows.open_class(unbounded)  # a survey of the class with which the string may go on without end
        if opened is not None:
            survey = self._survey(opened)
            most = min(most, survey.longest)
            if most >= 0 and survey.until[survey.longest] - survey.until[most] <= MAX_UNSURE:
                return self._survey_set(state, survey, most, False)
        if not self.chain.choose(state, free):  # or of a class that leads along a chain of states
            return None
        survey = self._survey(rows.class_number(rows.terms.chars_of(self.chain.flips())))
        if self.chain.follow(state, survey.longest) and self._has_few_exits(survey):
            return self._survey_set(state, survey, self.chain.most, True)
        return None

    # -- walk --------------------------------------------------------------------------------------------------

    @cython.cfunc
    def _walk(self, atom: cython.longlong, free: object) -> TokenSet:
        """Return the token set of a position by a walk of the whole trie.

        Args:
            atom: the position.
            free: the corresponding position in the free string, if the atom is a JSON string; then T(atom) ⊆ T(free).
        """
        walk: TrieWalk = self.walk
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        token_set: TokenSet = new_token_set()
        base: TokenSet = new_token_set() if free is None or free == atom else self.token_set(free)
        self.walked += 1
        saved: cython.int = walk.out_count
        i: cython.int = 1
        depth: cython.int
        target: cython.longlong
        count: cython.int = 0  # tokens in the spans of the draft
        self.draft.begin()
        if (atom >> encoding.TAG) == encoding.ROW:  # into spans; else node by node, emitting the tokens
            self._walk_rows(cython.cast(cython.int, atom))
            for i in range(0, self.draft.span_count, 2):
                count += self.draft.spans[i + 1] - self.draft.spans[i]
            i = trie.nodes  # done
        self.stack[0] = atom
        while i < trie.nodes:
            self.visited += 1
            depth = trie.depth[i]
            target = automaton.after(self.stack[depth - 1], trie.byte[i])
            if target < 0 or target == encoding.DONE:
                if target == encoding.DONE:
                    self.draft.end(i, True)
                i += trie.size[i]
                continue
            self.walk.emit_all(trie.first[i], trie.first[i + 1])
            self.stack[depth] = target
            i += 1
        if base.is_dense and 2 * count > base.count:  # most tokens of T(free): clear the others in a copy of it
            self._fill_dense(token_set, base)
        else:
            for i in range(0, self.draft.span_count, 2):
                walk.emit_all(self.draft.spans[i], self.draft.spans[i + 1])
            self._fill(token_set, saved)
        walk.out_count = saved
        self.draft.set_ends(token_set)
        return token_set

    @cython.cfunc
    def _walk_rows(self, state: cython.int) -> object:
        """Walk the trie from a row state, and add T(q) and E(q) to the draft; T(q) as spans of the trie's order, so
        that a subtree whose tokens all stay inside (`Subtrees.stays`) costs one step."""
        automaton: Positions = self.automaton
        trie: Trie = self.trie
        byte: cython.uchar[::1] = trie.byte
        depths: cython.ushort[::1] = trie.depth
        size: cython.int[::1] = trie.size
        first: cython.int[::1] = trie.first
        base_rows: cython.p_int = automaton.byte_rows.base
        stack: cython.p_longlong = self.stack
        at: cython.longlong
        i: cython.int = 1
        j: cython.int
        stop: cython.int
        target: cython.int
        is_end: cython.bint
        visited: cython.int = 0
        # The current span of the trie's order.
        begin: cython.int = 0
        until: cython.int = 0
        stack[0] = automaton.row_at(state)
        while i < trie.nodes:
            visited += 1
            at = stack[depths[i] - 1]
            if at >= 0:
                target = row_item(automaton.byte_rows.rows, at + byte[i])
            else:  # a shared row (see `Positions.row_at`)
                target = base_rows[byte[i] - 256 - at]
            stop = i + size[i]
            if target <= 0:
                if target == 0:
                    self.draft.end(i, True)
                i = stop
                continue
            if first[i] != until:
                self.draft.span(begin, until)
                begin = first[i]
            until = first[i + 1]
            is_end = automaton.byte_rows.facts[encoding.FACTS * target + encoding.MAY_END] != 0
            if is_end:
                self.draft.end(i, False)
            if stop > i + 1:
                if self.subtrees.stays(i, target):
                    until = first[stop]
                    if is_end:
                        for j in range(i + 1, stop):
                            self.draft.end(j, False)
                    i = stop
                    continue
                stack[depths[i]] = automaton.row_at(target)
            i += 1
        self.draft.span(begin, until)
        self.visited += visited
        return None

    @cython.cfunc
    def _fill(self, token_set: TokenSet, saved: cython.int) -> object:
        """Set the tokens of a token set to those that the walk emitted after its first ``saved`` ones: as bits if that
        is shorter than a list of ids."""
        walk: TrieWalk = self.walk
        i: cython.int
        count: cython.int = walk.out_count - saved
        token_set.count = count
        token_set.is_dense = count > self.words
        if token_set.is_dense:
            token_set.dense = array("I", [0]) * self.words
            for i in range(saved, walk.out_count):
                flip_bit(token_set.dense, walk.out[i])
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
    def _fill_dense(self, token_set: TokenSet, base: TokenSet) -> object:
        """Set the tokens of a token set to those of the draft's spans, most of ``base``: clear the others in a copy."""
        order: cython.int[::1] = self.trie.order
        bits: cython.uint[::1] = copied("I", base.dense)
        i: cython.int
        j: cython.int
        at: cython.int = 0
        until: cython.int
        cleared: cython.int = 0
        for i in range(0, self.draft.span_count + 2, 2):  # the gaps before, between and after the spans
            until = self.draft.spans[i] if i < self.draft.span_count else self.trie.first[self.trie.nodes]
            for j in range(at, until):
                if has_bit(bits, order[j]):
                    flip_bit(bits, order[j])
                    cleared += 1
            if i < self.draft.span_count:
                at = self.draft.spans[i + 1]
        token_set.count = base.count - cleared
        token_set.is_dense = True
        token_set.dense = bits
        token_set.size += 4 * self.words
        return None

    # -- class surveys -----------------------------------------------------------------------------------------

    @cython.cfunc
    def _survey(self, number: cython.int) -> ClassSurvey:
        """Return the survey of a class, given by its number in the store of rows; made once for a vocabulary."""
        ranges, star = self.automaton.byte_rows.character_class(number)
        found = self.index.surveys.get(ranges)
        if found is None:
            found = survey_class(self.automaton, self.trie, self.subtrees, star, self.automaton.byte_rows.free_body())
            self.index.surveys.put(ranges, found)
        return found

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_wide(self, state: cython.int) -> cython.bint:
        """Return True if more than 1 of `WIDE` trie nodes is below the bytes that may follow a row state, so that a
        walk would be long."""
        trie: Trie = self.trie
        nodes: cython.int = 0
        byte: cython.int
        for byte in range(256):
            if trie.child[byte] >= 0 and self.automaton.after(state, byte) > 0:
                nodes += trie.size[trie.child[byte]]
        return WIDE * nodes > trie.nodes

    @cython.cfunc
    def _counted_set(self, atom: cython.longlong) -> TokenSet:
        """Return the token set of a COUNTED position between two characters: a run of any characters."""
        automaton: Positions = self.automaton
        number: cython.int = cython.cast(cython.int, (atom >> encoding.NUMBER_AT) & encoding.NUMBER_MASK)
        written: cython.longlong = (atom >> encoding.WRITTEN_AT) & encoding.UNBOUNDED
        least: cython.longlong = max(0, automaton.least[number] - written)
        most: cython.longlong = automaton.most[number] - written
        if automaton.most[number] == encoding.UNBOUNDED:
            most = -1
        return self._run_set(automaton.byte_rows.class_number(automaton.byte_rows.terms.ANY), least, most)

    @cython.cfunc
    def _run_set(self, number: cython.int, least: cython.longlong, most: cython.longlong) -> TokenSet:
        """Return the token set of a JSON string that continues with C{least,most} and its closing quote (``most`` -1:
        unbounded); ``number`` is that of C.

        T(q) is the tokens of at most ``most`` characters of C; the string may end at a quote after ``least`` to
        ``most`` characters. A new set counts as surveyed, and a known one as shared.
        """
        survey: ClassSurvey = self._survey(number)
        # Bounds beyond the longest token make no difference, so that many strings share a set.
        left: cython.int = survey.longest if most < 0 or most > survey.longest else cython.cast(cython.int, most)
        needed: cython.int = cython.cast(cython.int, min(least, survey.longest + 1))
        key = (self.automaton.byte_rows.character_class(number)[0], left, needed)
        found = self.index.runs.get(key)
        if found is not None:
            self.shared += 1
            return found
        self.surveyed += 1
        i: cython.int
        token_set: TokenSet = new_token_set()
        token_set.is_dense, token_set.count = True, survey.until[left]
        token_set.dense = survey.inside(left, self.words)
        self.draft.begin()
        for i in range(survey.start[0x22], survey.start[0x23]):
            if needed <= survey.chars[i] <= left:
                self.draft.end(survey.exit[i], True)
        self.draft.set_ends(token_set)
        self.index.runs.put(key, token_set)
        return token_set

    @cython.cfunc
    def _survey_set(self, state: cython.int, survey: ClassSurvey, most: cython.int, is_chain: cython.bint) -> TokenSet:
        """Return the token set of a row state between two characters in which every string of at most ``most``
        characters of C stays inside: the tokens in C{0,most}, and tokens below the exits of C (lemma 2).

        With ``is_chain``, C is the class of `Chain`, and longer strings of C are dead.
        """
        trie: Trie = self.trie
        chain: Chain = self.chain
        token_set: TokenSet = new_dense_set(survey.inside(most, self.words), survey.until[most])
        byte: cython.int
        i: cython.int
        node: cython.int
        groups: cython.int = 0
        self.surveyed += 1
        self.draft.begin()
        self.stack[0], self.node_at[0] = state, 0
        for i in range(1, trie.longest + 2):
            self.node_at[i] = -1
        if is_chain:
            for i in range(chain.exceptions):
                self._clear(trie.child[chain.exception[i]], token_set)
        for byte in range(256):
            if survey.start[byte] == survey.start[byte + 1] or (is_chain and chain.is_dead(byte)):
                continue
            groups += 1
            for i in range(survey.start[byte], survey.start[byte + 1]):
                node = survey.exit[i]
                if not is_chain or (survey.chars[i] <= most and not self._is_exception(node)):
                    self._add_below(node, token_set)
        if is_chain:
            for i in range(chain.exceptions):
                groups += 1
                self._add_below(trie.child[chain.exception[i]], token_set)
            for i in range(len(survey.partial) - 1):  # other characters may begin with the same bytes
                self._add_if_inside(state, survey.partial[i], token_set)
        else:
            for i in range(survey.until[most], survey.until[survey.longest]):
                self._add_if_inside(state, survey.token[i], token_set)
        if groups > 1:  # in order within each group
            self.draft.sort_ends()
        self.draft.set_ends(token_set)
        return token_set

    @cython.cfunc
    def _add_if_inside(self, atom: cython.longlong, token: cython.int, token_set: TokenSet) -> object:
        """Add a token to a dense token set if it stays inside from a position."""
        data: bytes = self.index.tokens[token]
        at: cython.Py_ssize_t
        byte: cython.uchar
        if has_bit(token_set.dense, token):
            return None
        self.visited += len(data)
        for at in range(len(data)):
            byte = data[at]
            atom = self.automaton.after(atom, byte)
            if atom <= 0:
                return None
        flip_bit(token_set.dense, token)
        token_set.count += 1
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _has_few_exits(self, survey: ClassSurvey) -> cython.bint:
        """Return True if at most 1 / `FEW_EXITS` of the trie's nodes are below the survey's exits, without exits by
        bytes that are dead in all states of ``chain``."""
        nodes: cython.int = 0
        byte: cython.int
        i: cython.int
        for byte in range(256):
            if survey.start[byte] < survey.start[byte + 1] and not self.chain.is_dead(byte):
                for i in range(survey.start[byte], survey.start[byte + 1]):
                    nodes += self.trie.size[survey.exit[i]]
                if FEW_EXITS * nodes > self.trie.nodes:
                    return False
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_exception(self, node: cython.int) -> cython.bint:
        """Return True if a trie node is in the subtree of an exception of the chain."""
        i: cython.int
        first: cython.int
        for i in range(self.chain.exceptions):
            first = self.trie.child[self.chain.exception[i]]
            if first <= node < first + self.trie.size[first]:
                return True
        return False

    @cython.cfunc
    def _clear(self, node: cython.int, token_set: TokenSet) -> object:
        """Remove the tokens of a trie node's subtree from a dense token set."""
        trie: Trie = self.trie
        at: cython.int
        for at in range(trie.first[node], trie.first[node + trie.size[node]]):
            if has_bit(token_set.dense, trie.order[at]):
                flip_bit(token_set.dense, trie.order[at])
                token_set.count -= 1
        return None

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _position_before(self, node: cython.int, token_set: TokenSet) -> cython.longlong:
        """Return the position before the byte of a trie node, or `DEAD`. ``stack`` and ``node_at`` are the last path.
        Tokens that end on the path stay inside, and are added."""
        trie: Trie = self.trie
        depth: cython.int = trie.depth[node] - 1
        parent: cython.int = trie.parent[node]
        if self.node_at[depth] == parent:
            return self.stack[depth]
        target: cython.longlong = self._position_before(parent, token_set)
        if target > 0:
            target = self.automaton.after(target, trie.byte[parent])
            self.visited += 1
            if target > 0:
                self._add_at(parent, token_set)
        self.stack[depth], self.node_at[depth] = target, parent
        return target

    @cython.cfunc
    def _add_at(self, node: cython.int, token_set: TokenSet) -> object:
        """Add the tokens that end at a trie node to a dense token set."""
        at: cython.int
        token: cython.int
        for at in range(self.trie.first[node], self.trie.first[node + 1]):
            token = self.trie.order[at]
            if not has_bit(token_set.dense, token):
                flip_bit(token_set.dense, token)
                token_set.count += 1
        return None

    @cython.cfunc
    def _add_below(self, node: cython.int, token_set: TokenSet) -> object:
        """Add the tokens of a trie node's subtree that stay inside to a dense token set, and the subtree's ends to the
        draft. Nothing is added if the path to the node leaves the atom."""
        automaton: Positions = self.automaton
        trie: Trie = self.trie
        order: cython.int[::1] = trie.order
        bits: cython.uint[::1] = token_set.dense
        i: cython.int = node
        at: cython.int
        depth: cython.int
        stop: cython.int = node + trie.size[node]
        until: cython.int
        added: cython.int = 0
        target: cython.longlong
        if self._position_before(node, token_set) <= 0:
            return None
        while i < stop:
            self.visited += 1
            depth = trie.depth[i]
            target = automaton.after(self.stack[depth - 1], trie.byte[i])
            if target <= 0:
                if target == encoding.DONE:
                    self.draft.end(i, True)
                i += trie.size[i]
                continue
            until = i + 1
            if trie.size[i] > 1 and self.subtrees.stays(i, cython.cast(cython.int, target)):
                until = i + trie.size[i]
            for at in range(trie.first[i], trie.first[until]):
                if not has_bit(bits, order[at]):
                    flip_bit(bits, order[at])
                    added += 1
            self.stack[depth], self.node_at[depth] = target, i
            i = until
        token_set.count += added
        return None

    # -- known sets --------------------------------------------------------------------------------------------

    @cython.cfunc
    def _dense(self, atom: cython.longlong) -> TokenSet:
        """Return the token set of a position, converted to a dense one."""
        token_set: TokenSet = self.token_set(atom)
        bits: cython.uint[::1]
        i: cython.int
        if not token_set.is_dense:
            bits = grown(None, "I", self.words)
            for i in range(token_set.count):
                flip_bit(bits, token_set.ids[i])
            token_set.dense, token_set.is_dense = bits, True
        return token_set
