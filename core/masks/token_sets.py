# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""How the tables of atom positions are made: by a walk of the whole trie, or from what is known of the vocabulary.

Compiled where that is possible; ``tables.pxd`` says what others see of it in C.
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
    from ..automaton.positions import Atoms
    from ..compiled.arrays import copied, grown
    from .character_counts import Counts, Marks, Runs, Survey, first_from
    from .self_loops import Loops
    from .token_set import Table, copied_bits, new_table, set_parts
    from .trie import Trie
    from .trie_walk import Walk

#: From how many trie nodes on a subtree is worth an answer from `Runs`.
LARGE = cython.declare(cython.int, 64)
#: How many tables of counted strings one vocabulary keeps.
MOST_COUNTED = cython.declare(cython.int, 256)


@cython.cclass
class Tables:
    """The tables of atom positions over a vocabulary, made when they are first asked for.

    Args:
        automaton: the automaton.
        index: the vocabulary's index, which keeps the tables that do not depend on the grammar.
        walk: the walk of the same automaton and trie.
    """

    def __init__(self, automaton: Atoms, index, walk: Walk):
        self.automaton = automaton
        trie: Trie = index.trie
        self.trie = trie
        self.walk = walk
        self.loops = Loops(automaton, trie)
        self.survey = Survey(automaton, trie, self.loops, index)
        self.index = index
        self.known = {}
        self.held = 0
        self.built = 0
        self.visited = 0
        self.words = (trie.vocabulary + 31) // 32
        self.end_array = grown(None, "i", 1024)
        self.end = self.end_array
        self.end_count = 0
        self.closing = grown(None, "i", 256)
        self.closing_count = 0
        self.stack = grown(None, "q", trie.longest + 2)
        self.beside = grown(None, "q", trie.longest + 2)
        self.span = grown(None, "i", 1024)
        self.span_count = 0
        self.scratch = grown(None, "i", 256)

    @cython.cfunc
    def keep(self, kept: dict) -> object:
        """Forget all tables but some, given by their identity."""
        self.known = {atom: table for atom, table in self.known.items() if id(table) in kept}
        self.held = 0
        for table in self.known.values():
            self.held += cython.cast(Table, table).size
        return None

    @cython.cfunc
    def table(self, atom: cython.longlong) -> Table:
        """The table of an atom position."""
        found = self.known.get(atom)
        if found is not None:
            return found
        key = None
        tag: cython.longlong = atom >> encoding.TAG
        free = None
        open_class: cython.int = -1
        if tag == encoding.ROW:
            key, free, open_class = self.automaton.given.shared(atom)
            if key is not None:
                found = self.index.tables.get(key)
        elif tag == encoding.COUNTED and (atom & 0xFF) == encoding.LOCAL_BODY:
            found = self._counted_table(atom)
        if found is None:
            if tag == encoding.ROW:
                self.automaton.after(atom, 0)  # the row, and the class, are known from here on
                if self.survey.has_runs(cython.cast(cython.int, atom)):
                    found = self._class_table(atom)
                elif free is not None and self.table(free).is_dense and self._is_near(atom, free):
                    found = self._near_table(atom, free)
                elif open_class >= 0:
                    found = self._open_table(atom, open_class)
            if found is None:
                found = self._build_table(atom, free)
            if key is not None:
                self.index.tables[key] = found
        if key is None:
            self.held += cython.cast(Table, found).size
        self.known[atom] = found
        return found

    @cython.cfunc
    def _build_table(self, atom: cython.longlong, free: object) -> Table:
        """One walk of the whole trie, pruned at dead bytes.

        Args:
            atom: the position.
            free: that of the free string, if this is between two characters of a JSON string: what stays inside it
                stays inside the free one.
        """
        walk: Walk = self.walk
        trie: Trie = self.trie
        automaton: Atoms = self.automaton
        table: Table = new_table()
        base: Table = new_table() if free is None else self.table(free)
        self.built += 1
        saved: cython.int = walk.out_count
        i: cython.int = 1
        stop: cython.int
        depth: cython.int
        then: cython.longlong
        self.end_count = 0
        self.span_count = 0
        count: cython.int = 0
        if (atom >> encoding.TAG) == encoding.ROW:
            self._walk_rows(cython.cast(cython.int, atom))
            for i in range(0, self.span_count, 2):
                count += self.span[i + 1] - self.span[i]
            i = trie.nodes
        self.stack[0] = atom
        while i < trie.nodes:
            self.visited += 1
            depth = trie.depth[i]
            stop = i + trie.size[i]
            then = automaton.after(self.stack[depth - 1], trie.byte[i])
            if then < 0 or then == encoding.DONE:
                if then == encoding.DONE:
                    self._end(i, True)
                i = stop
                continue
            self.walk.emit_all(trie.first[i], trie.first[i + 1])
            self.stack[depth] = then
            i += 1
        if base.is_dense and 2 * count > base.count:
            self._fill_dense(table, base, saved)
        else:
            for i in range(0, self.span_count, 2):
                walk.emit_all(self.span[i], self.span[i + 1])
            self._fill(table, saved)
        walk.out_count = saved
        self._set_ends(table, table)
        return table

    @cython.cfunc
    def _fill(self, table: Table, saved: cython.int) -> object:
        """Give a table the tokens that were emitted from the ``saved``-th on."""
        walk: Walk = self.walk
        i: cython.int
        count: cython.int = walk.out_count - saved
        table.count = count
        table.is_dense = count > self.words
        if table.is_dense:
            table.dense = array("I", [0]) * self.words
            for i in range(saved, walk.out_count):
                table.dense[walk.out[i] >> 5] |= cython.cast(cython.uint, 1) << (walk.out[i] & 31)
            table.size += 4 * self.words
        else:
            if count:
                table.ids = walk.out_array[saved : walk.out_count]
            table.size += 4 * count
        return None

    @cython.cfunc
    def _fill_dense(self, table: Table, base: Table, saved: cython.int) -> object:
        """`_fill` for most tokens of the free string's table, ``base``: those between the spans are taken away."""
        walk: Walk = self.walk
        order: cython.int[::1] = self.trie.order
        bits: cython.uint[::1] = copied_bits(base.dense, self.words)
        i: cython.int
        j: cython.int
        at: cython.int = 0
        until: cython.int
        for i in range(0, self.span_count + 2, 2):
            until = self.span[i] if i < self.span_count else self.trie.first[self.trie.nodes]
            for j in range(at, until):
                bits[order[j] >> 5] &= ~(cython.cast(cython.uint, 1) << (order[j] & 31))
            if i < self.span_count:
                at = self.span[i + 1]
                table.count += at - until
        for i in range(saved, walk.out_count):
            bits[walk.out[i] >> 5] |= cython.cast(cython.uint, 1) << (walk.out[i] & 31)
        table.count += walk.out_count - saved
        table.is_dense = True
        table.dense = bits
        table.size += 4 * self.words
        return None

    @cython.cfunc
    def _walk_rows(self, state: cython.int) -> object:
        """Note the tokens that stay inside the text of a row state, as spans, and where it may end; emit those that
        class runs give."""
        automaton: Atoms = self.automaton
        trie: Trie = self.trie
        byte: cython.uchar[::1] = trie.byte
        depths: cython.ushort[::1] = trie.depth
        size: cython.int[::1] = trie.size
        first: cython.int[::1] = trie.first
        base_rows: cython.int[::1] = automaton.base_rows
        stack: cython.longlong[::1] = self.stack
        at: cython.longlong
        i: cython.int = 1
        j: cython.int
        stop: cython.int
        then: cython.int
        is_end: cython.bint
        visited: cython.int = 0
        # Of a span of tokens that lie together in the trie's order.
        begin: cython.int = 0
        until: cython.int = 0
        stack[0] = self._row_at(state)
        while i < trie.nodes:
            visited += 1
            at = stack[depths[i] - 1]
            if at >= 0:
                then = row_item(automaton.rows, at + byte[i])
            else:
                then = base_rows[byte[i] - 256 - at]
            stop = i + size[i]
            if then <= 0:
                if then == 0:
                    self._end(i, True)
                i = stop
                continue
            if first[i] != until:
                self._note_span(begin, until)
                begin = first[i]
            until = first[i + 1]
            is_end = automaton.facts[encoding.FACTS * then + encoding.MAY_END] != 0
            if is_end:
                self._end(i, False)
            if stop > i + 1:
                if self.loops.stays(i, then):
                    until = first[stop]
                    if is_end:
                        for j in range(i + 1, stop):
                            self._end(j, False)
                    i = stop
                    continue
                if stop - i >= LARGE and self.survey.is_counted(then) and self._reads_on(i, then):
                    i = stop
                    continue
                stack[depths[i]] = self._row_at(then)
            i += 1
        self._note_span(begin, until)
        self.visited += visited
        return None

    @cython.cfunc
    def _note_span(self, begin: cython.int, until: cython.int) -> object:
        """Note that the tokens from one index of the trie's order to another stay inside."""
        if begin == until:
            return None
        if self.span_count == len(self.span):
            self.span = grown(copied("i", self.span), "i", 2 * self.span_count)
        self.span[self.span_count] = begin
        self.span[self.span_count + 1] = until
        self.span_count += 2
        return None

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _row_at(self, state: cython.int) -> cython.longlong:
        """Where the row of a state is: an index of `Automaton.rows`, or -256 less an index of the rows that many
        automata share."""
        automaton: Atoms = self.automaton
        if state < automaton.base_count:
            return -256 * (state + 1)
        automaton.after(state, 0)  # from here on its row is known
        return automaton.facts[encoding.FACTS * state + encoding.ROW_AT]

    @cython.cfunc
    def _end(self, node: cython.int, done: cython.bint) -> object:
        """Note a trie node at which the atom of the table in the making may end, or must (``done``)."""
        if done:
            token: cython.int = self.trie.token[node]
            while token >= 0:
                if self.closing_count == len(self.closing):
                    self.closing = grown(self.closing, "i", 2 * self.closing_count)
                self.closing[self.closing_count] = token
                self.closing_count += 1
                token = self.trie.same[token]
        if self.end_count == len(self.end_array):
            self.end_array = grown(self.end_array, "i", 2 * self.end_count)
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
        return set_parts(self.trie, table, self.end, self.closing, self.scratch)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _reads_on(self, node: cython.int, state: cython.int) -> cython.int:
        """Emit the tokens below ``node``, and note where they may end, from `Runs`: 1 if that could be done.

        From row state ``state``, just reached, so many characters of one class follow.
        """
        automaton: Atoms = self.automaton
        at_state: cython.int = encoding.FACTS * state
        if state >= automaton.row_room or automaton.facts[at_state + encoding.CLASS] == 0:
            return 0
        runs: Runs = self.survey.runs(automaton.facts[at_state + encoding.CLASS] - 1)
        begin: cython.int = runs.between[node]
        if begin < 0:
            return 0
        stop: cython.int = node + self.trie.size[node]
        least: cython.int = begin + automaton.facts[at_state + encoding.LEAST]
        most: cython.int = runs.longest
        if automaton.facts[at_state + encoding.MOST] >= 0 and begin + automaton.facts[at_state + encoding.MOST] < most:
            most = begin + automaton.facts[at_state + encoding.MOST]
        at: cython.int = first_from(runs.token_node, runs.tokens, node + 1)
        while at < runs.tokens and runs.token_node[at] < stop:
            if runs.token_chars[at] <= most:
                self.walk.emit_one(runs.token[at])
            at += 1
        at = first_from(runs.end_node, runs.ends, node + 1)
        while at < runs.ends and runs.end_node[at] < stop:
            if least <= runs.end_chars[at] <= most:
                self._end(runs.end_node[at], True)
            at += 1
        return 1

    @cython.cfunc
    def _class_table(self, atom: cython.longlong) -> Table:
        """The table between two characters of a string of so many characters of one class: see `_counted_table`."""
        automaton: Atoms = self.automaton
        state: cython.int = cython.cast(cython.int, atom)
        at_state: cython.int = encoding.FACTS * state
        runs: Runs = self.survey.runs(automaton.facts[at_state + encoding.CLASS] - 1)
        left: cython.int = runs.longest
        if 0 <= automaton.facts[at_state + encoding.MOST] < left:
            left = automaton.facts[at_state + encoding.MOST]
        table: Table = new_table()
        i: cython.int
        key = ("inside", automaton.facts[at_state + encoding.CLASS], left)
        inside = self.known.get(key)
        self.built += 1
        if inside is None:
            table.dense = grown(None, "I", self.words)
            table.size += 4 * self.words
            for i in range(runs.tokens):
                if runs.token_chars[i] <= left:
                    table.dense[runs.token[i] >> 5] |= cython.cast(cython.uint, 1) << (runs.token[i] & 31)
                    table.count += 1
            self.known[key] = table
        else:
            table.dense = cython.cast(Table, inside).dense
            table.count = cython.cast(Table, inside).count
        table.is_dense = True
        self.end_count = 0
        for i in range(runs.ends):
            if automaton.facts[at_state + encoding.LEAST] <= runs.end_chars[i] <= left:
                self._end(runs.end_node[i], True)
        self._set_ends(table, table)
        return table

    @cython.cfunc
    def _open_table(self, atom: cython.longlong, number: cython.int) -> Table:
        """The table between two characters of a JSON string that may go on with any characters of a class: they all
        stay inside, so it only remains to walk to quotes, backslashes, and what is not of the class."""
        trie: Trie = self.trie
        automaton: Atoms = self.automaton
        marks: Marks = self.survey.marks(number)
        table: Table = new_table()
        self.built += 1
        table.is_dense = True
        table.dense = copied_bits(marks.plain, self.words)
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
            then = automaton.after(atom if depth == 1 else self.stack[depth - 1], trie.byte[node])
            if then < 0 or then == encoding.DONE:
                if then == encoding.DONE:
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
    @cython.exceptval(-1, check=False)
    def _is_near(self, atom: cython.longlong, free: cython.longlong) -> cython.int:
        """Whether most bytes lead from ``atom`` to where they lead from ``free``, the free string."""
        trie: Trie = self.trie
        automaton: Atoms = self.automaton
        byte: cython.int
        same: cython.int = 0
        for byte in range(256):
            if trie.child[byte] >= 0 and automaton.after(atom, byte) == automaton.after(free, byte):
                same += trie.size[trie.child[byte]]
                if 2 * same > trie.nodes:
                    return 1
        return 0

    @cython.cfunc
    def _near_table(self, atom: cython.longlong, free: cython.longlong) -> Table:
        """The table of an atom as its difference to the free string, of which it is a part: where both are in the
        same state nothing differs, and nothing is visited."""
        trie: Trie = self.trie
        automaton: Atoms = self.automaton
        base: Table = self.table(free)
        automaton.after(free, 0)
        runs: Runs = self.survey.runs(
            automaton.facts[encoding.FACTS * cython.cast(cython.int, free) + encoding.CLASS] - 1
        )
        table: Table = new_table()
        self.built += 1
        table.count = base.count
        table.is_dense = True
        table.dense = copied_bits(base.dense, self.words)
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
            wide = automaton.after(beside[depth - 1], trie.byte[i])
            if wide < 0:
                i = stop
                continue
            then = automaton.after(self.stack[depth - 1], trie.byte[i])
            if then == wide:
                at = first_from(runs.end_node, runs.ends, i)
                while at < runs.ends and runs.end_node[at] < stop:
                    self._end(runs.end_node[at], True)
                    at += 1
                i = stop
                continue
            if then < 0:
                at = first_from(runs.token_node, runs.tokens, i)
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
        counts: Counts = self.survey.counts()
        automaton: Atoms = self.automaton
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
        table: Table = new_table()
        self.built += 1
        i: cython.int
        inside = self.index.inside.get(left)
        if inside is None:
            table.count = counts.until[left]
            if 2 * table.count < counts.tokens or left == counts.longest:
                table.dense = array("I", [0]) * self.words
                for i in range(table.count):
                    table.dense[counts.token[i] >> 5] |= cython.cast(cython.uint, 1) << (counts.token[i] & 31)
            else:  # few are too long
                table.dense = copied_bits(self._free_bits(counts), self.words)
                for i in range(table.count, counts.tokens):
                    table.dense[counts.token[i] >> 5] &= ~(cython.cast(cython.uint, 1) << (counts.token[i] & 31))
            self.index.inside[left] = table
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
        found = self.index.inside.get(counts.longest)
        table: Table
        i: cython.int
        if found is None:
            table = new_table()
            table.count = counts.tokens
            table.dense = array("I", [0]) * self.words
            for i in range(counts.tokens):
                table.dense[counts.token[i] >> 5] |= cython.cast(cython.uint, 1) << (counts.token[i] & 31)
            found = self.index.inside[counts.longest] = table
        table = found
        return table.dense
