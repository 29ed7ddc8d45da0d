# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Languages of *written* text: hash-consed grammar nodes over bytes, expanded lazily.

A node is a small integer; equal nodes are the same integer. What kinds there are says ``kinds.py``, how they are made
and kept ``nodetable.py``.

Questions: `nullable`, `is_empty` (short-circuited: it looks no further than it must) and `heads` (Antimirov's partial
derivatives, in head normal form: what a text may begin with, and what then remains).

Compiled where that is possible (Cython in pure-Python mode). Whatever goes from node to node does so on a stack of its
own: grammars may be thousands of levels deep.
"""

from __future__ import annotations

from ..errors import GrammarError

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.toolgrammar.core.compiled.arrays import grown
    from cython.cimports.toolgrammar.core.language import node_kinds
    from cython.cimports.toolgrammar.core.language.node_table import NodeTable
else:
    from ..compiled.arrays import grown
    from . import node_kinds
    from .node_table import NodeTable

#: Whether this module was compiled when it was installed.
COMPILED: bool = bool(cython.compiled)

#: One way a text may begin: an atomic node (LITERAL, TEXT, COUNTED, SPECIAL, DYNAMIC), then another node.
Head = tuple[int, int]


def _left_recursion() -> GrammarError:
    return GrammarError("a rule refers to itself without writing anything", hint="remove the circular reference")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _cell(nodes: Nodes, node: cython.int, column: cython.int) -> cython.int:
    return nodes._cells[node * node_kinds.WIDTH + column]


@cython.cclass
class Nodes(NodeTable):
    """The hash-consing store of grammar nodes.

    Attributes:
        terms: the store of the terms used by TEXT nodes.
        is_shared: many grammars share the store.
        EMPTY: the empty language.
        EPSILON: the language of the empty text.
        known: nodes of what many grammars share, by whatever stands for it.
        builders: who builds nodes here, by what they build: the parts of one grammar that are equal share their rules.
            They have a method ``release``, which lets go of whatever knows them.
        weight: bytes that builders and their documents take (estimated by those who add them).
        head_pool: where `lay_heads` lays heads; another array when it has grown.

    Args:
        terms: the store of terms; None: a new one.
        shared: many grammars will share the store: it may hold ``SHARED_ROOM`` more than one grammar may need.
    """

    head_pool = cython.declare(object, visibility="readonly")
    # its integers: of each node how many heads, then for each an atomic node and what remains
    _heads: cython.int[::1]
    _heads_used: cython.int
    # rules that are being expanded
    _opening: set

    def __init__(self, terms=None, *, shared=False):
        NodeTable.__init__(self, terms, shared)
        self._opening = set()
        self.head_pool = grown(None, "i", 256)
        self._heads = self.head_pool
        self._heads_used = 1  # no heads: the same for all that have none
        for node in (node_kinds.EMPTY, node_kinds.EPSILON):
            self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = 1

    # -- questions ---------------------------------------------------------------------------------------------

    def expand(self, node: cython.int):
        """What a LAZY node stands for (never itself LAZY).

        Raises:
            GrammarError: the rule refers to itself before anything is written (left recursion).
        """
        self._check(node)
        return self._expand(node)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _expand(self, node: cython.int) -> cython.int:
        current: cython.int = _cell(self, node, node_kinds.C) - 1
        if current >= 0:
            return current
        if node in self._opening:
            raise _left_recursion()
        chain: list = []
        current = node
        self._opening.add(node)
        try:
            while _cell(self, current, node_kinds.KIND) == node_kinds.LAZY:
                if _cell(self, current, node_kinds.C):
                    current = _cell(self, current, node_kinds.C) - 1
                    break
                if current in chain:
                    raise _left_recursion()
                chain.append(current)
                current = self._things[_cell(self, current, node_kinds.A)]()
                self._check(current)
        finally:
            self._opening.discard(node)
        for each in chain:
            node = each
            self._cells[node * node_kinds.WIDTH + node_kinds.C] = current + 1
            self._things[_cell(self, node, node_kinds.A)] = None  # free what the closure holds
        return current

    def nullable(self, node: cython.int):
        """Whether the empty text is in the language."""
        self._check(node)
        return self._answer(node, node_kinds.NULLABLE) == node_kinds.YES

    def is_empty(self, node: cython.int):
        """Whether the language has no text at all.

        Looks no further than it must: an optional part is never visited, the first non-empty alternative
        decides. Recursion is the least fixpoint (a rule that can only finish through itself is empty).
        """
        self._check(node)
        return self._answer(node, node_kinds.HAS_TEXT) == node_kinds.NO

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _answer(self, node: cython.int, question: cython.int) -> cython.int:
        """Whether a language has a text, or the empty text."""
        known: cython.int = _cell(self, node, question)
        if known:
            return known
        if question == node_kinds.HAS_TEXT:  # known of its parts?
            part: cython.int = _cell(self, node, node_kinds.B)
            if _cell(self, node, node_kinds.KIND) == node_kinds.LAZY:
                known = 0 if part < 0 else _cell(self, part, node_kinds.HAS_TEXT)
            elif _cell(self, node, node_kinds.KIND) == node_kinds.SEQ:
                known = _cell(self, part, node_kinds.HAS_TEXT)
                part = _cell(self, _cell(self, node, node_kinds.A), node_kinds.HAS_TEXT)
                if known == node_kinds.NO or part == node_kinds.NO:
                    known = node_kinds.NO
                else:
                    known = node_kinds.YES if known and part else 0
            if known:
                self._cells[node * node_kinds.WIDTH + question] = known
                return known
        start: cython.int = self._top
        try:
            return self._search(node, question)
        finally:
            while self._top > start:  # left by an error
                self._leave()

    @cython.cfunc
    @cython.exceptval(check=False)
    def _leave(self) -> cython.void:
        """Take the last node in progress from the stack."""
        self._top -= 4
        self._cells[self._stack[self._top] * node_kinds.WIDTH + node_kinds.MARK] = self._stack[self._top + 3]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _meet(self, node: cython.int) -> cython.int:
        """Put a node on the stack: the node, which of its children is next, the lowest node in progress that it leaned
        on, and where the node stands in a search that this one interrupts."""
        at: cython.int = self._top
        self._push(node)
        self._push(0)
        self._push(at)
        self._push(_cell(self, node, node_kinds.MARK))
        self._cells[node * node_kinds.WIDTH + node_kinds.MARK] = at + 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _search(self, node: cython.int, question: cython.int) -> cython.int:
        """Depth-first on the stack. Nodes in progress count as "no"; a "no" that leaned on one of them further up is
        provisional."""
        start: cython.int = self._top
        at: cython.int
        child: cython.int
        mark: cython.int
        lowest: cython.int
        verdict: cython.int
        answer: cython.int = 0  # of the child that was asked last
        self._meet(node)
        while True:
            at = self._top - 4
            node = self._stack[at]
            verdict = 0
            while not verdict:
                if answer and answer == (node_kinds.YES if self._is_any(node) else node_kinds.NO):
                    verdict = answer
                    break
                answer = 0
                child = self._child(node, self._stack[at + 1], question)
                if child < 0:  # no more children: -1 for "no", -2 for "yes"
                    verdict = -child
                    break
                self._stack[at + 1] += 1
                answer = _cell(self, child, question)
                if not answer:
                    mark = _cell(self, child, node_kinds.MARK) - 1
                    if mark < start:
                        self._meet(child)
                        break
                    answer = node_kinds.NO
                    if mark < self._stack[at + 2]:
                        self._stack[at + 2] = mark
            if not verdict:
                continue
            answer = verdict
            lowest = self._stack[at + 2]
            self._leave()
            if verdict == node_kinds.YES or lowest >= at:
                self._cells[node * node_kinds.WIDTH + question] = verdict
            if at == start:
                return verdict
            if verdict == node_kinds.NO and lowest < self._stack[at - 2]:
                self._stack[at - 2] = lowest

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _is_any(self, node: cython.int) -> cython.bint:
        """Whether one child that says yes decides; else one that says no does."""
        return (
            _cell(self, node, node_kinds.KIND) == node_kinds.ALT
            or _cell(self, node, node_kinds.KIND) == node_kinds.WORDS
        )

    @cython.cfunc
    @cython.exceptval(-3, check=False)
    def _child(self, node: cython.int, number: cython.int, question: cython.int) -> cython.int:
        """The child that is to be asked, or the answer without one: -1 for "no", -2 for "yes"."""
        kind: cython.int = _cell(self, node, node_kinds.KIND)
        a: cython.int = _cell(self, node, node_kinds.A)
        b: cython.int = _cell(self, node, node_kinds.B)
        if kind == node_kinds.SEQ:
            return a if number == 0 else b if number == 1 else -2
        if kind == node_kinds.ALT:
            return self._parts[a + number] if number < b else -1
        if kind == node_kinds.WORDS:
            if question == node_kinds.NULLABLE:
                return self._follows[a] if number == 0 and self._is_whole(a, _cell(self, node, node_kinds.C)) else -1
            return self._follows[a + number] if a + number < b else -1
        if number:
            return -2
        if kind == node_kinds.REPEAT:
            return -2 if b == 0 else a
        if kind == node_kinds.LAZY:
            return self._expand(node) if question == node_kinds.NULLABLE or b < 0 else b
        if kind == node_kinds.DYNAMIC:
            return b
        return -2 if b == 0 and self.terms.nullable(a) else -1  # TEXT

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _is_whole(self, word: cython.int, depth: cython.int) -> cython.bint:
        return len(cython.cast(bytes, self._words[word])) == depth

    # -- heads -------------------------------------------------------------------------------------------------

    def heads(self, node: cython.int):
        """Every way a text of ``node`` may begin, as `Head` pairs. Law: the language is the union of ``atom rest`` over
        the heads, and the empty text if `nullable`; no head leads to an empty language."""
        self._check(node)
        self._need_heads(node)
        at: cython.int = _cell(self, node, node_kinds.HEADS)
        count: cython.int = self._heads[at - 1]
        return tuple([(self._heads[at + 2 * i], self._heads[at + 2 * i + 1]) for i in range(count)])

    def lay_heads(self, node: cython.int):
        """Where in `head_pool` the heads of ``node`` are: their number, then for each its atom and what remains."""
        self._check(node)
        self._need_heads(node)
        return _cell(self, node, node_kinds.HEADS) - 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _need_heads(self, node: cython.int) -> cython.int:
        """Make sure that the heads of a node are known: first those of what it begins with."""
        start: cython.int = self._top
        at: cython.int = start
        child: cython.int
        if _cell(self, node, node_kinds.HEADS) > 0:
            return 0
        try:
            self._begin(node)
            while self._top > start:
                at = self._top - 2
                node = self._stack[at]
                child = self._first(node, at)
                if child >= 0:
                    self._begin(child)
                else:
                    self._gather(node)
                    self._top = at
        finally:
            if self._top > at + 2:  # heads that were being gathered when an error came
                self._top = at + 2
            while self._top > start:  # left by an error
                self._top -= 2
                if _cell(self, self._stack[self._top], node_kinds.HEADS) < 0:
                    self._cells[self._stack[self._top] * node_kinds.WIDTH + node_kinds.HEADS] = 0
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin(self, node: cython.int) -> cython.int:
        if _cell(self, node, node_kinds.HEADS) < 0:
            raise _left_recursion()
        self._push(node)
        self._push(0)
        self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = -1
        return 0

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _first(self, node: cython.int, at: cython.int) -> cython.int:
        """The next of the nodes with which ``node`` may begin whose heads are not known yet, or -1."""
        kind: cython.int = _cell(self, node, node_kinds.KIND)
        a: cython.int = _cell(self, node, node_kinds.A)
        b: cython.int = _cell(self, node, node_kinds.B)
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
            elif number or kind <= node_kinds.DYNAMIC:
                return -1
            elif kind == node_kinds.REPEAT:
                child = a
            elif kind == node_kinds.LAZY:
                child = self._expand(node)
            elif self._is_whole(a, _cell(self, node, node_kinds.C)):
                child = self._follows[a]
            else:
                return -1
            if _cell(self, child, node_kinds.KIND) > node_kinds.DYNAMIC and _cell(self, child, node_kinds.HEADS) <= 0:
                if kind == node_kinds.LAZY or self._answer(child, node_kinds.HAS_TEXT) == node_kinds.YES:
                    return child

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _gather(self, node: cython.int) -> cython.int:
        """Lay the heads of a node, once those of what it begins with are known."""
        kind: cython.int = _cell(self, node, node_kinds.KIND)
        a: cython.int = _cell(self, node, node_kinds.A)
        b: cython.int = _cell(self, node, node_kinds.B)
        start: cython.int = self._top
        i: cython.int
        if kind == node_kinds.LAZY:
            a = self._expand(node)
            if _cell(self, a, node_kinds.KIND) > node_kinds.DYNAMIC:
                self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = _cell(self, a, node_kinds.HEADS)
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
            i = _cell(self, node, node_kinds.C)
            self._add(a, self._repeat(a, b - 1 if b else 0, -1 if i < 0 else i - 1))
        elif kind == node_kinds.WORDS:
            self._add_words(a, b, _cell(self, node, node_kinds.C))
        else:
            self._push(node)
            self._push(node_kinds.EPSILON)
        size: cython.int = self._top - start
        at: cython.int = self._heads_used
        if size == 0:
            self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = 1
            return 0
        if at + size + 1 > len(self._heads):
            self.head_pool = grown(self.head_pool, "i", 2 * at + size)
            self._heads = self.head_pool
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
        """Push the heads of a node, if it has a text, followed by what is not empty."""
        i: cython.int
        if self._answer(node, node_kinds.HAS_TEXT) == node_kinds.NO:
            return 0
        if _cell(self, node, node_kinds.KIND) <= node_kinds.DYNAMIC:
            self._push(node)
            self._push(right)
            return 0
        at: cython.int = _cell(self, node, node_kinds.HEADS)
        for i in range(at, at + 2 * self._heads[at - 1], 2):
            self._push(self._heads[i])
            self._push(self._seq(self._heads[i + 1], right))
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add_words(self, first: cython.int, end: cython.int, depth: cython.int) -> cython.int:
        """One head per next byte: the longest common prefix of the group, then the rest of the group."""
        low: cython.int
        high: cython.int
        middle: cython.int
        common: cython.int
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
            low = first + 1
            high = end
            while low < high:  # words are sorted: bisect for the end of the group
                middle = (low + high) // 2
                other = self._words[middle]
                if other[depth] == byte:
                    low = middle + 1
                else:
                    high = middle
            rest = self._follows[first]
            common = len(word)
            if low > first + 1:
                other = self._words[low - 1]
                byte = depth + 1
                while byte < common and word[byte] == other[byte]:
                    byte += 1
                common = byte
                rest = self._list(first, low, common)
            if self._answer(rest, node_kinds.HAS_TEXT) == node_kinds.YES:
                if common == len(word) and low == first + 1:  # a single word: it joins what follows, as in `seq`
                    is_seq: cython.bint = _cell(self, rest, node_kinds.KIND) == node_kinds.SEQ
                    joined = self._joined(word[depth:], _cell(self, rest, node_kinds.A) if is_seq else rest)
                    if joined >= 0:
                        self._push(joined)
                        self._push(_cell(self, rest, node_kinds.B) if is_seq else node_kinds.EPSILON)
                        first = low
                        continue
                self._push(self._literal(word[depth:common]))
                self._push(rest)
            first = low
        return 0
