# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Terms: regular languages of *decoded* text over Unicode code points, hash-consed, with derivatives.

A term is a small integer; equal terms are the same integer, so there are finitely many derivatives (Brzozowski 1964;
Owens, Reppy, Turon 2009, "Regular-expression derivatives re-examined"). Intersection and complement are first-class.
The encoding of a term in bytes (UTF-8, JSON escapes) is in ``toolgrammar.core.automaton.byte_rows``.

A derivative row is a piecewise constant function from code points to terms. All rows are in one flat pool, and the row
of a term is merged from those of its parts by one sweep over their boundaries.

Compiled where that is possible (Cython in pure-Python mode).
"""

from __future__ import annotations

from ..basics.argument_checks import plain_text
from ..errors import LimitError

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.memory import free, ints, more, twin
    from . import term_kinds
    from .frontier import Frontier
    from .term_store import TermStore

from .multiples import leads_to_multiple

COMPILED: bool = bool(cython.compiled)

#: Maximum number of terms in one store, unless `Terms.room` is set.
MAX_TERMS = term_kinds.MAX_TERMS

#: Additional capacity, in segments, of a new copy of a store.
SPARE = cython.declare(cython.int, 256)
#: Maximum nesting of terms.
DEEP = cython.declare(cython.int, 2_000)
#: Maximum number of states of a search in a hurried store.
HURRIED = cython.declare(cython.int, 1_000)
#: Number of states that a search visits breadth-first only; nearly all searches end there.
PATIENT = cython.declare(cython.int, 256)
#: Value in `Frontier.marks` of terms whose rows were visited.
VISITED = cython.declare(cython.int, 2)
#: Maximum number of combinations of targets that one merge of rows memoises.
REMEMBERED = cython.declare(cython.int, 8)


@cython.cclass
class Terms(TermStore):
    """The store of terms with their derivatives.

    Laws (all property-tested): ``nullable(derivative(t, c))`` iff the one-character string ``c`` is in ``t``;
    `is_empty` is exact.

    Attributes:
        is_hurried: a long search for a string raises LimitError; see also `seems_dead`.
        toward: for terms in which a search found a string, the next term on its path; the paths have no cycles.
    """

    def __init__(self) -> None:
        TermStore.__init__(self)
        self.room = MAX_TERMS
        self.is_hurried = self.is_unsure = False
        self.row_room, self.starts, self.targets = 256, ints(256), ints(256)
        self.row_used = 1
        self.toward = {}
        self._begin_rows()

    @cython.cfunc
    def _begin_rows(self) -> object:
        """Allocate scratch space for derivations."""
        self.sweep_room, self.sweep = 64, ints(64)
        self.depth = 0
        self.segments_of, self.segments_held = {}, 0
        self.frontier = None
        self.row_first = self.row_used

    def __dealloc__(self) -> None:
        free(self.starts)
        free(self.targets)
        free(self.sweep)

    def copy(self) -> Terms:
        """Return a store with the same terms under the same numbers, and their rows; this store must not change
        later."""
        other: Terms = Terms.__new__(Terms)
        self._copy_terms(other)
        other.is_hurried = other.is_unsure = False
        other.row_used, other.row_room = self.row_used, self.row_used + SPARE
        other.starts = twin(self.starts, self.row_used, other.row_room)
        other.targets = twin(self.targets, self.row_used, other.row_room)
        other.toward = self.toward.copy()
        other._begin_rows()
        return other

    def byte_count(self) -> int:
        """Return the bytes of the terms and of their rows, with those of objects by their number (measured)."""
        held: cython.longlong = 8 * self.row_room + 100 * len(self.toward)
        return held + 300 * len(self.segments_of) + 40 * self.segments_held + TermStore.byte_count(self)

    # -- derivative rows ---------------------------------------------------------------------------------------

    @cython.ccall
    def segments(self, term: cython.int) -> tuple:
        """Return the whole derivative row of ``term``, a piecewise constant function, as a pair of ``starts`` and
        ``targets``: ``targets[i]`` holds on ``starts[i] <= code point < starts[i + 1]``."""
        found = self.segments_of.get(term)
        if found is None:
            at: cython.int = self.row_of(term)
            stop: cython.int = at + self.row_count[term]
            starts = tuple([self.starts[i] for i in range(at, stop)])
            self.segments_held += stop - at
            found = self.segments_of[term] = starts, tuple([self.targets[i] for i in range(at, stop)])
        return found

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def row_of(self, term: cython.int) -> cython.int:
        """Return the index of the first of a term's `segments` in the pool (``starts``, ``targets``); ``row_count`` has
        their number."""
        self.depth = 0
        self._row(self._own(term))
        return self.row_at[term]

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def derivative(self, term: cython.int, code_point: cython.int) -> cython.int:
        """Return the derivative by one character."""
        self.depth = 0
        return self._next(self._own(term), code_point)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def matches(self, term: cython.int, text: object) -> cython.bint:
        """Return True if ``text`` is in the language."""
        plain: str = plain_text(text)
        i: cython.int
        self.depth = 0
        for i in range(len(plain)):
            term = self._next(self._own(term), ord(plain[i]))
            if term == term_kinds.EMPTY:
                return False
        return (self.traits[self._own(term)] & term_kinds.NULLABLE) != 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _next(self, term: cython.int, code_point: cython.int) -> cython.int:
        """Return the derivative of a term by a character: binary search in its row."""
        self._row(term)
        low: cython.int = self.row_at[term]
        high: cython.int = low + self.row_count[term]
        middle: cython.int
        while high - low > 1:
            middle = (low + high) >> 1
            if self.starts[middle] <= code_point:
                low = middle
            else:
                high = middle
        return self.targets[low]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _put(self, start: cython.int, target: cython.int) -> cython.int:
        """Append a segment to the row under construction: characters from ``start`` on lead to ``target``. Starts
        ascend; a segment that begins at the last one's start replaces it, and adjacent segments with the same target
        are joined."""
        n: cython.int = self.row_used
        if n > self.row_first and self.starts[n - 1] == start:
            n -= 1
        if n == self.row_first or self.targets[n - 1] != target:
            if n == self.row_room:
                self.targets = more(self.targets, n, 2 * n)
                self.starts = more(self.starts, n, 2 * n)
                self.row_room = 2 * n
            self.starts[n] = start
            self.targets[n] = target
            n += 1
        self.row_used = n
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _row(self, term: cython.int) -> cython.int:
        """Derive the row of a term unless it is known. The rows of a sequence of nullable parts are derived from the
        last part on, so that a long one needs no deep recursion. Raise LimitError if parts are nested more than `DEEP`
        levels."""
        if self.row_at[term] != 0:
            return 0
        if self.depth == DEEP:
            self.depth = 0
            raise LimitError("a pattern has parts that lie too deep in one another", hint="simplify the pattern")
        self.depth += 1
        right: cython.int
        waiting: list = []
        while self.kind[term] == term_kinds.SEQ and self.traits[self._arg(term, 0)] & term_kinds.NULLABLE:
            right = self._arg(term, 1)
            if self.row_at[right] != 0:
                break
            waiting.append(term)
            term = right
        self._derive(term)
        while waiting:
            self._derive(waiting.pop())
        self.depth -= 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _derive(self, term: cython.int) -> cython.int:
        """Derive the row of a term: the derivative by each character, as segments with one target each. The rows of its
        parts are derived first, because only one row is under construction at a time."""
        kind: cython.int = self.kind[term]
        first: cython.int = self.arg_at[term]
        n: cython.int = self.arg_count[term]
        source: cython.int = term
        i: cython.int
        stop: cython.int
        rest: cython.int = term_kinds.EMPTY
        if kind == term_kinds.DEFERRED:
            source = self._own(self.builders[term](self))
            self._row(source)
        elif kind == term_kinds.SEQ or kind == term_kinds.REPEAT or kind == term_kinds.NOT:
            source = self._arg(term, 0)
            self._row(source)
            if kind == term_kinds.SEQ:
                rest = self._arg(term, 1)
                if self.traits[source] & term_kinds.NULLABLE:
                    self._row(rest)
            elif kind == term_kinds.REPEAT:
                most: cython.int = self._arg(term, 2)
                most = most if most == term_kinds.NONE else most - 1
                rest = self._copies(source, max(self._arg(term, 1) - 1, 0), most, 0)
        elif kind == term_kinds.ALT or kind == term_kinds.AND:
            for i in range(first, first + n):
                self._row(self.args[i])
        self.row_first = self.row_used
        if kind == term_kinds.CHARS:
            self._put(0, term_kinds.EMPTY)
            for i in range(n):
                if self.args[first + i] < term_kinds.END:
                    self._put(self.args[first + i], term_kinds.EMPTY if i & 1 else term_kinds.EPSILON)
        elif kind == term_kinds.WORDS:
            self._derive_words(self.args[first], self.args[first + 1], self.args[first + 2], self.args[first + 3])
        elif kind == term_kinds.MULTIPLE:
            self._derive_multiple(self.args[first], self.args[first + 1], self.args[first + 2], self.args[first + 3])
        elif (
            kind == term_kinds.ALT
            or kind == term_kinds.AND
            or (kind == term_kinds.SEQ and self.traits[source] & term_kinds.NULLABLE)
        ):
            self._merge(kind, first, n)
        elif source == term:  # EMPTY or EPSILON
            self._put(0, term_kinds.EMPTY)
        else:  # the row of the source, each target complemented, as it is, or followed by the rest
            i = self.row_at[source]
            stop = i + self.row_count[source]
            while i < stop:
                if kind == term_kinds.NOT:
                    self._put(self.starts[i], self._not(self.targets[i]))
                elif kind == term_kinds.DEFERRED:
                    self._put(self.starts[i], self.targets[i])
                else:
                    self._put(self.starts[i], self._seq(self.targets[i], rest))
                i += 1
        self.row_count[term] = self.row_used - self.row_first
        self.row_at[term] = self.row_first
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _derive_words(self, which: cython.int, first: cython.int, stop: cython.int, depth: cython.int) -> cython.int:
        """Derive the row of a WORDS term (its arguments: see `_words`). The words are sorted, so those with the same
        next character are a range."""
        words: tuple = self.lists[which]
        word: str = words[first]
        code: cython.int
        begin: cython.int
        self._put(0, term_kinds.EMPTY)
        if len(word) == depth:
            first += 1
        while first < stop:
            begin = first
            word = words[first]
            code = ord(word[depth])
            first += 1
            while first < stop:
                word = words[first]
                if ord(word[depth]) != code:
                    break
                first += 1
            self._put(code, self._words(which, begin, first, depth + 1))
            if code + 1 < term_kinds.END:
                self._put(code + 1, term_kinds.EMPTY)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _derive_multiple(
        self, of: cython.int, places: cython.int, remainder: cython.int, decimals: cython.int
    ) -> cython.int:
        """Derive the row of a MULTIPLE term: by each digit its new remainder, by the point the decimals."""
        digit: cython.int
        target: cython.int
        self._put(0, term_kinds.EMPTY)
        if decimals == term_kinds.NO_POINT:  # the point may follow
            self._put(0x2E, self._multiple(of, places, remainder, 0))
            self._put(0x2F, term_kinds.EMPTY)
        for digit in range(10):
            if decimals == places:  # only zeros may follow
                target = self._multiple(of, places, remainder, decimals) if digit == 0 else term_kinds.EMPTY
            else:
                after: cython.int = term_kinds.NO_POINT if decimals < 0 else decimals + 1
                target = self._multiple(of, places, (remainder * 10 + digit) % of, after)
            self._put(0x30 + digit, target)
        self._put(0x3A, term_kinds.EMPTY)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _merge(self, kind: cython.int, first: cython.int, n: cython.int) -> cython.int:
        """Make the row of a union, an intersection, or a sequence whose first part is nullable, from the rows of its
        parts: in one sweep over all their boundaries, the targets of the parts in each segment are combined
        (`_combined`). The last `REMEMBERED` combinations are kept, because segments alternate between few.

        ``sweep`` has, by part, the index of the current segment in its row, and the end of the row; then the
        combinations, a ring of ``n`` targets and their result each."""
        i: cython.int
        at: cython.int
        bound: cython.int = 0  # the start of the current segment
        value: cython.int
        place: cython.int = 0  # the next slot of the ring
        known: cython.int = 0  # the number of its combinations
        size: cython.int = 2 * n + REMEMBERED * (n + 1)
        if size > self.sweep_room:
            self.sweep = more(self.sweep, self.sweep_room, size)
            self.sweep_room = size
        for i in range(n):
            self.sweep[i] = at = self.row_at[self.args[first + i]]
            self.sweep[n + i] = at + self.row_count[self.args[first + i]]
        while bound < term_kinds.END:
            value = -1
            at = 2 * n
            while at < 2 * n + known * (n + 1):
                for i in range(n):
                    if self.sweep[at + i] != self.targets[self.sweep[i]]:
                        break
                else:
                    value = self.sweep[at + n]
                    break
                at += n + 1
            if value < 0:
                value = self._combined(kind, first, n)
                at = 2 * n + place * (n + 1)
                for i in range(n):
                    self.sweep[at + i] = self.targets[self.sweep[i]]
                self.sweep[at + n] = value
                place = (place + 1) % REMEMBERED
                known = min(known + 1, REMEMBERED)
            self._put(bound, value)
            bound = term_kinds.END
            for i in range(n):
                at = self.sweep[i] + 1
                if at < self.sweep[n + i] and self.starts[at] < bound:
                    bound = self.starts[at]
            for i in range(n):
                at = self.sweep[i] + 1
                if at < self.sweep[n + i] and self.starts[at] == bound:
                    self.sweep[i] = at
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _combined(self, kind: cython.int, first: cython.int, n: cython.int) -> cython.int:
        """Return the derivative in the current segment of a merge, from the targets of the parts at the cursors."""
        i: cython.int
        used: cython.int = 0
        if kind == term_kinds.SEQ:  # of xy, x nullable: (derivative of x) y, or the derivative of y
            left: cython.int = self._seq(self.targets[self.sweep[0]], self.args[first + 1])
            used = self._spread(term_kinds.ALT, left, used)
            used = self._spread(term_kinds.ALT, self.targets[self.sweep[1]], used)
            return self._alt(used)
        for i in range(n):
            used = self._spread(kind, self.targets[self.sweep[i]], used)
        return self._alt(used) if kind == term_kinds.ALT else self._and(used)

    # -- emptiness ---------------------------------------------------------------------------------------------

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def is_empty(self, term: cython.int) -> cython.bint:
        """Return True if no string is in the language. Exact, also under intersection and complement."""
        if not self.seems_dead(self._own(term)):
            return False
        return not self.is_unsure or self._search_dead(term)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def seems_dead(self, term: cython.int) -> cython.bint:
        """Return True if the language is empty, or if the store is hurried and no string is known.

        Law: a language with a known string is nullable, or has a derivative with a known string.
        """
        self.depth = 0
        self.is_unsure = False
        return self._is_dead(term)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_dead(self, term: cython.int) -> cython.bint:
        """Return `seems_dead`: of a sequence, if a part is dead; of a union, if all are; of others, by a search, or
        True if the store is hurried (``is_unsure``, so that this is not kept). Other answers are kept as traits."""
        if self.traits[term] & (term_kinds.LIVE | term_kinds.DEAD):
            return (self.traits[term] & term_kinds.DEAD) != 0
        i: cython.int
        part: cython.int = term
        kind: cython.int = self.kind[term]
        dead: cython.bint = kind == term_kinds.ALT
        if kind == term_kinds.SEQ:
            while self.kind[part] == term_kinds.SEQ and not dead and not self.traits[part] & term_kinds.LIVE:
                dead = self._is_dead(self._arg(part, 0))
                part = self._arg(part, 1)
            dead = dead or self._is_dead(part)
        elif kind == term_kinds.ALT:
            for i in range(self.arg_at[term], self.arg_at[term] + self.arg_count[term]):
                if not self._is_dead(self.args[i]):
                    dead = False
                    if self.is_hurried:  # of the other parts, the search for a shortest string may know none
                        self.memo["live", term] = self.args[i]
                    break
        elif self.is_hurried:
            dead = self.is_unsure = True
        else:
            return self._search_dead(term)
        if not dead or not self.is_unsure:
            self.traits[term] |= term_kinds.DEAD if dead else term_kinds.LIVE
        return dead

    def lead(self, term: cython.int, target: cython.int) -> None:
        """Record in `toward` that a character leads to ``target``, a language with a known string."""
        if not self.traits[self._own(term)] & term_kinds.LIVE:
            self.traits[term] |= term_kinds.LIVE
            self.toward[term] = target

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _search_dead(self, term: cython.int) -> cython.bint:
        """Return True if the language is empty: search for a derivative that is LIVE; mark the visited terms as LIVE or
        DEAD. (Nullable and regular terms are LIVE from the start, but for EMPTY, which is DEAD.)

        Breadth-first; after `PATIENT` states every second step is depth-first, because a long string (say, a date of
        more than 127 characters) is deep in a wide space.
        """
        depth: cython.int = self.depth  # `leads_to_multiple` derives rows, which resets it
        if self.has_multiple and leads_to_multiple(self, term):
            return False
        self.depth = depth
        # A deferred term that is built here may start a nested search, which needs a frontier of its own.
        reached: Frontier = Frontier() if self.frontier is None else self.frontier
        self.frontier = None
        first: cython.int = 0  # in `reached`, all states before it were visited
        index: cython.int  # in `reached`, the next state
        visited: cython.int = 0
        newest: list = []  # candidates for depth-first steps
        target: cython.int
        other: cython.int
        before: cython.int
        i: cython.int
        stop: cython.int
        reached.begin(term)
        while True:
            while first < reached.count and reached.marks[reached.terms[first]] == VISITED:
                first += 1
            if first == reached.count:
                break
            index = first
            is_deep: cython.bint = visited >= PATIENT and visited & 1
            while is_deep and newest:
                other = newest.pop()
                if reached.marks[reached.terms[other]] != VISITED:
                    index = other
                    break
            state: cython.int = reached.terms[index]
            if self.is_hurried and visited == HURRIED:
                raise LimitError("a pattern is too complex to be searched for a string", hint="simplify the pattern")
            visited += 1
            reached.marks[state] = VISITED
            self._row(state)
            stop = self.row_at[state] + self.row_count[state]
            for i in range(self.row_at[state], stop):
                target = self.targets[i]
                if self.traits[target] & term_kinds.DEAD:
                    continue
                if self.starts[i] >= term_kinds.SURROGATES and i + 1 < stop:
                    if self.starts[i + 1] <= term_kinds.SURROGATES_END:
                        continue  # complements have surrogates, strings have none
                if self.traits[target] & term_kinds.LIVE:
                    while index != -1:  # so are all states on the path; `toward` stays free of cycles
                        state = reached.terms[index]
                        if not self.traits[state] & term_kinds.LIVE:  # else a nested search has found a string
                            self.traits[state] |= term_kinds.LIVE
                            self.toward[state] = target
                        target, index = state, reached.parents[index]
                    self.frontier = reached
                    return False
                before = reached.count
                reached.meet(target, index)
                if is_deep and reached.count > before:
                    newest.append(before)
        for i in range(reached.count):
            self.traits[reached.terms[i]] |= term_kinds.DEAD
        self.frontier = reached
        return True
