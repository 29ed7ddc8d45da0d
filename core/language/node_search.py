# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Two questions about grammar nodes: has the language a text, and has it the empty text? Rules are expanded for them.

The answers are a least fixpoint, found by a depth-first search (as in Tarjan's algorithm for strongly connected
components).

Compiled where that is possible (Cython in pure-Python mode)."""

from __future__ import annotations

from ..errors import GrammarError, LimitError, SchemaError

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from . import node_kinds
    from .node_store import NodeStore, cell

#: Minimum share of a store's terms with which one rule counts as too large by itself.
_ITS_SHARE = 0.7

#: The fields of a frame of `NodeSearch._search` (a low-link frame, as in Tarjan's algorithm for strongly connected
#: components): the node, the number of its next child, the lowest frame on which its answer depends (low-link), its
#: mark in the outer search that this one interrupts, and the number of provisional answers before it.
_NODE = cython.declare(cython.int, 0)
_NEXT = cython.declare(cython.int, 1)
_LOWEST = cython.declare(cython.int, 2)
_MARK = cython.declare(cython.int, 3)
_BEFORE = cython.declare(cython.int, 4)
_FRAME = cython.declare(cython.int, 5)
#: Maximum number of exceeded limits that are remembered.
_MAX_LIMITS = cython.declare(cython.int, 100)


def left_recursion() -> GrammarError:
    """Return the error for a rule that begins with itself."""
    return GrammarError("a rule refers to itself without writing anything", hint="remove the circular reference")


@cython.cclass
class NodeSearch(NodeStore):
    """The store of grammar nodes, with the questions of emptiness.

    Attributes:
        limits: the limits that were exceeded; the language is narrowed by what exceeded them (for example, a rule
            that exceeds a limit on expansion is empty).
        met: number of nodes that searches visited: a deterministic count of work.
    """

    def __init__(self, terms=None):
        NodeStore.__init__(self, terms)
        self.limits = []
        self._learn(node_kinds.EMPTY, node_kinds.NO, node_kinds.NO)
        self._learn(node_kinds.EPSILON, node_kinds.YES, node_kinds.YES)
        self._opening = set()
        self._provisional = []
        self._groups = []
        self.met = 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _learn(self, node: cython.int, has_text: cython.int, nullable: cython.int) -> cython.void:
        """Set the final answers (YES or NO) to the questions if a node has a text, and if the empty text is one."""
        self._cells[node * node_kinds.WIDTH + node_kinds.HAS_TEXT] = has_text
        self._cells[node * node_kinds.WIDTH + node_kinds.NULLABLE] = nullable

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def expand(self, node: cython.int) -> cython.int:
        """Return the expansion of a LAZY node, which is never LAZY itself.

        Raises:
            GrammarError: the rule refers to itself before anything is written (left recursion).
        """
        self._check(node)
        return self._expand(node)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _expand(self, node: cython.int) -> cython.int:
        """Do `expand`. A rule that returns another LAZY node is followed to the first node that is none, which becomes
        the expansion of all rules on the chain. A rule that exceeds a limit is narrowed (`_without`); one that is met
        while it is being expanded is left-recursive."""
        current: cython.int = cell(self, node, node_kinds.C) - 1
        if current >= 0:
            return current
        if node in self._opening:
            raise left_recursion()
        chain: list = []
        number: cython.int
        current = node
        self._opening.add(node)
        try:
            while cell(self, current, node_kinds.KIND) == node_kinds.LAZY:
                number = cell(self, current, node_kinds.C)
                if number > 0:  # its expansion, plus one
                    current = number - 1
                    break
                if current in chain:
                    raise left_recursion()
                chain.append(current)
                before = len(self.terms)
                try:
                    rule = self._things[cell(self, current, node_kinds.A)]
                    current = rule(-1 - number) if number else rule()  # below 0: the number of a rule of a family
                except (LimitError, SchemaError) as error:
                    current = self._without(current, error, before)
                except RecursionError:
                    current = self._without(current, LimitError("a rule is nested too deeply"), before)
                self._check(current)
        finally:
            self._opening.discard(node)
        for each in chain:
            node = each
            if cell(self, node, node_kinds.C) == 0:  # not of a family, which the other rules need
                self._things[cell(self, node, node_kinds.A)] = None  # release the closure
            self._cells[node * node_kinds.WIDTH + node_kinds.C] = current + 1
        return current

    @cython.cfunc
    @cython.exceptval(-3, check=False)
    def _as_empty_as(self, node: cython.int) -> cython.int:
        """Return the node that is empty iff a LAZY node is; -1: only its expansion tells. A family is asked once; a
        limit that it exceeds meets the expansion too, which is narrowed then."""
        instead: cython.int = cell(self, node, node_kinds.B)
        if instead != node_kinds.UNASKED:
            return instead
        instead = -1
        number: cython.int = cell(self, node, node_kinds.C)
        if number < 0:  # else it is expanded
            try:
                instead = self._things[cell(self, node, node_kinds.A)].as_empty_as(-1 - number)
            except (LimitError, SchemaError, RecursionError):
                instead = -1
            if instead >= 0:
                self._check(instead)
        self._cells[node * node_kinds.WIDTH + node_kinds.B] = instead
        return instead

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _without(self, node: cython.int, error, before: cython.int) -> cython.int:
        """Return the narrowed language of a rule that exceeded a limit: that of its ``otherwise()``, else the empty
        one.

        Raise the error if the rule must not be empty (``as_empty_as``) and has no ``otherwise()``, or if other rules
        filled the store.

        Args:
            node: the rule.
            error: the limit.
            before: the number of terms before the rule was expanded.
        """
        if self._count >= self._room:
            raise error
        is_its_own: cython.bint = self.terms.is_hurried or len(self.terms) < self.terms.room
        if not is_its_own and len(self.terms) - before < _ITS_SHARE * self.terms.room:
            raise error
        rule = self._things[cell(self, node, node_kinds.A)]
        instead = rule.otherwise() if hasattr(rule, "otherwise") else None
        if instead is None:
            if self._as_empty_as(node) >= 0:
                raise error
            instead = node_kinds.EMPTY
        self.exceed(error)
        return instead

    def exceed(self, error) -> object:
        """Record a limit for which the language is narrowed."""
        if len(self.limits) < _MAX_LIMITS and all(error.message != each.message for each in self.limits):
            self.limits.append(error.with_traceback(None))
        return None

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def nullable(self, node: cython.int) -> cython.bint:
        """Return True if the empty text is in the language."""
        self._check(node)
        return self._answer(node, node_kinds.NULLABLE) == node_kinds.YES

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def is_empty(self, node: cython.int) -> cython.bint:
        """Return True if the language has no text at all.

        Short-circuited: an optional part is never visited, the first non-empty alternative decides. Recursion is the
        least fixpoint (a rule that can only finish through itself is empty).
        """
        self._check(node)
        return self._answer(node, node_kinds.HAS_TEXT) == node_kinds.NO

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _answer(self, node: cython.int, question: cython.int) -> cython.int:
        """Return YES or NO to a question about a node: HAS_TEXT (its language is not empty) or NULLABLE (it has the
        empty text). An answer that is not known is searched (`_search`)."""
        known: cython.int = cell(self, node, question)
        if known:
            return known
        if question == node_kinds.HAS_TEXT:  # decided by its parts, if they are known
            if cell(self, node, node_kinds.KIND) == node_kinds.LAZY:
                like: cython.int = self._as_empty_as(node)
                known = 0 if like < 0 else cell(self, like, node_kinds.HAS_TEXT)
            elif cell(self, node, node_kinds.KIND) == node_kinds.SEQ:
                left: cython.int = cell(self, cell(self, node, node_kinds.A), node_kinds.HAS_TEXT)
                right: cython.int = cell(self, cell(self, node, node_kinds.B), node_kinds.HAS_TEXT)
                if left == node_kinds.NO or right == node_kinds.NO:
                    known = node_kinds.NO
                else:
                    known = node_kinds.YES if left and right else 0
            if known:
                self._cells[node * node_kinds.WIDTH + question] = known
                return known
        start: cython.int = self._top
        first: cython.Py_ssize_t = len(self._provisional)
        try:
            return self._search(node, question)
        finally:
            while self._top > start:  # after an error
                self._pop_frame()
            self._settle(first, 0, question)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _pop_frame(self) -> cython.void:
        """Pop the top frame of a search."""
        self._top -= _FRAME
        self._cells[self._stack[self._top] * node_kinds.WIDTH + node_kinds.MARK] = self._stack[self._top + _MARK]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _push_frame(self, node: cython.int) -> cython.int:
        """Push the frame of a node."""
        at: cython.int = self._top
        self._push(node)
        self._push(0)
        self._push(at)
        self._push(cell(self, node, node_kinds.MARK))
        self._push(len(self._provisional))
        self._cells[node * node_kinds.WIDTH + node_kinds.MARK] = at + 1  # in progress: its frame, plus one
        self.met += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _settle(self, first: cython.Py_ssize_t, verdict: cython.int, question: cython.int) -> cython.int:
        """Remove the provisional answers from index ``first``; a verdict above 0 becomes their final answer."""
        node: cython.int
        while len(self._provisional) > first:
            node, mark = self._provisional.pop()
            self._cells[node * node_kinds.WIDTH + node_kinds.MARK] = mark
            if verdict:
                self._cells[node * node_kinds.WIDTH + question] = verdict
        while self._groups and self._groups[len(self._groups) - 1][0] >= first:
            self._groups.pop()
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _make_provisional(self, node: cython.int, lowest: cython.int, first: cython.Py_ssize_t) -> cython.int:
        """Make the "no" of a popped node provisional, until the lowest frame on which it depends has an answer. The
        provisional answers from index ``first``, which were found below the node, join its group (see `_depends`)."""
        while self._groups and self._groups[len(self._groups) - 1][0] >= first:
            self._groups.pop()
        self._groups.append((first, lowest))
        self._provisional.append((node, cell(self, node, node_kinds.MARK)))
        self._cells[node * node_kinds.WIDTH + node_kinds.MARK] = -len(self._provisional)  # its number, from 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _depends(self, number: cython.Py_ssize_t) -> cython.int:
        """Return the lowest frame on which a provisional answer depends, that of its group.

        ``number`` is the index of the answer in ``_provisional``. ``_groups`` has a pair for each group of answers, in
        order: the index of the first one, and the frame."""
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = len(self._groups)
        while low < high:  # the last group that begins at or before the answer
            middle: cython.Py_ssize_t = (low + high) // 2
            if self._groups[middle][0] <= number:
                low = middle + 1
            else:
                high = middle
        return self._groups[low - 1][1]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _search(self, node: cython.int, question: cython.int) -> cython.int:
        """Return YES or NO to a question about a node, by a depth-first search (a least fixpoint).

        Nodes in progress count as "no"; a "no" that depends on one of them is provisional. It becomes final when the
        lowest frame on which it depends answers "no", and is dropped as soon as that frame, or another above it,
        answers "yes". Each "yes" is final, so that a search takes polynomial time.
        """
        start: cython.int = self._top
        first: cython.Py_ssize_t = len(self._provisional)
        at: cython.int
        child: cython.int
        mark: cython.int
        lowest: cython.int
        verdict: cython.int
        answer: cython.int = 0  # the answer of the last child
        self._push_frame(node)
        while True:
            at = self._top - _FRAME
            node = self._stack[at + _NODE]
            verdict = 0
            while not verdict:
                if answer and answer == (node_kinds.YES if self._is_any(node) else node_kinds.NO):
                    verdict = answer
                    break
                answer = 0
                child = self._child(node, self._stack[at + _NEXT], question)
                if child < 0:  # no child is left to decide
                    verdict = -child
                    break
                self._stack[at + _NEXT] += 1
                answer = cell(self, child, question)
                if not answer:
                    mark = cell(self, child, node_kinds.MARK)
                    if mark > start:  # in progress
                        mark -= 1
                    elif mark < -first:  # a provisional answer of this search
                        mark = self._depends(-mark - 1)
                    else:  # not in this search (a mark of an outer search is saved in the frame)
                        self._push_frame(child)
                        break
                    answer = node_kinds.NO
                    if mark < self._stack[at + _LOWEST]:
                        self._stack[at + _LOWEST] = mark
            if not verdict:
                continue
            answer = verdict
            lowest = self._stack[at + _LOWEST]
            before: cython.Py_ssize_t = self._stack[at + _BEFORE]
            self._pop_frame()
            if verdict == node_kinds.YES or lowest >= at:
                self._cells[node * node_kinds.WIDTH + question] = verdict
                if len(self._provisional) > before:
                    self._settle(before, verdict if verdict == node_kinds.NO else 0, question)
            else:
                self._make_provisional(node, lowest, before)
            if at == start:
                return verdict
            if verdict == node_kinds.NO and lowest < self._stack[at - _FRAME + _LOWEST]:
                self._stack[at - _FRAME + _LOWEST] = lowest

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_any(self, node: cython.int) -> cython.bint:
        """Return True if one "yes" of a child decides (a union); False if one "no" does (a concatenation)."""
        return (
            cell(self, node, node_kinds.KIND) == node_kinds.ALT or cell(self, node, node_kinds.KIND) == node_kinds.WORDS
        )

    @cython.cfunc
    @cython.exceptval(-3, check=False)
    def _child(self, node: cython.int, number: cython.int, question: cython.int) -> cython.int:
        """Return the next node on which the answer of ``node`` to a question depends, by its number. A "no" of one part
        decides for a SEQ, a "yes" for an ALT; if none decided, the number is past the last child, and the result is the
        answer: `ANSWER_YES` or `ANSWER_NO`."""
        kind: cython.int = cell(self, node, node_kinds.KIND)
        a: cython.int = cell(self, node, node_kinds.A)
        b: cython.int = cell(self, node, node_kinds.B)
        if kind == node_kinds.SEQ:
            return a if number == 0 else b if number == 1 else node_kinds.ANSWER_YES
        if kind == node_kinds.ALT:
            return self._parts[a + number] if number < b else node_kinds.ANSWER_NO
        if kind == node_kinds.WORDS:
            if question == node_kinds.NULLABLE:
                is_whole: cython.bint = number == 0 and self._is_whole(a, cell(self, node, node_kinds.C))
                return self._follows[a] if is_whole else node_kinds.ANSWER_NO
            return self._follows[a + number] if a + number < b else node_kinds.ANSWER_NO
        if number:
            return node_kinds.ANSWER_YES
        if kind == node_kinds.REPEAT:
            return node_kinds.ANSWER_YES if b == 0 else a
        if kind == node_kinds.LAZY:
            b = -1 if question == node_kinds.NULLABLE else self._as_empty_as(node)
            return self._expand(node) if b < 0 else b
        if kind == node_kinds.DYNAMIC:
            return b
        return node_kinds.ANSWER_YES if b == 0 and self.terms.nullable(a) else node_kinds.ANSWER_NO  # TEXT

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_whole(self, word: cython.int, depth: cython.int) -> cython.bint:
        return len(cython.cast(bytes, self._words[word])) == depth
