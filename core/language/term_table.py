# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What is made of terms: union, intersection, complement, concatenation, repetition; and their derivative rows.

A derivative row is a piecewise constant function from code points to terms; all rows lie in one flat pool. It is made
from those of the parts, by one sweep over their boundaries.

Compiled where that is possible (Cython in pure-Python mode). What others ask of terms is in `terms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..errors import LimitError

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.toolgrammar.core.compiled.arrays import copied, grown
    from cython.cimports.toolgrammar.core.language import term_kinds
    from cython.cimports.toolgrammar.core.language.term_pool import TermPool
else:
    from ..compiled.arrays import copied, grown
    from . import term_kinds
    from .term_pool import TermPool

from .term_pool import plain_text

COMPILED: bool = bool(cython.compiled)


#: How deep terms may lie in one another.
DEEP = cython.declare(cython.int, 2_000)
#: How many combinations of targets one sweep over several rows remembers.
REMEMBERED = cython.declare(cython.int, 8)


@cython.cclass
class TermTable(TermPool):
    """Terms, the operations on them, and their derivative rows.

    Args:
        room: how many terms the store may hold.
    """

    # derivative rows: where they begin (0: not derived yet), and the segments of all
    row_at: cython.int[::1]
    row_count: cython.int[::1]
    starts: cython.int[::1]
    targets: cython.int[::1]
    row_used: cython.int
    row_first: cython.int
    segments_of: dict
    # deferred terms: by their keys, and what makes them
    keys: dict
    builders: dict
    # scratch: the cursors of a sweep; how many rows of parts are waited for
    sweep: cython.int[::1]
    depth: cython.int

    def __init__(self, room):
        super().__init__(room)
        self.row_at = grown(None, "i", 64)
        self.row_count = grown(None, "i", 64)
        self.starts = grown(None, "i", 256)
        self.targets = grown(None, "i", 256)
        self.row_used = 1
        self.keys, self.builders = {}, {}
        self._begin()
        self._copies(term_kinds.ANY, 0, term_kinds.NONE, 0)

    @cython.cfunc
    def _begin(self) -> object:
        self.segments_of = {}
        self.sweep = grown(None, "i", 64)
        self.depth = 0
        self.row_first = self.row_used
        return None

    def copy_to(self, other: TermTable) -> None:
        """Let a new store begin with all terms so far, under the same numbers; what was learnt of them is known
        there."""
        self._copy_pool(other)
        other.row_used = self.row_used
        other.row_at = copied("i", self.row_at)
        other.row_count = copied("i", self.row_count)
        other.starts = copied("i", self.starts)
        other.targets = copied("i", self.targets)
        other.keys, other.builders = self.keys.copy(), self.builders.copy()
        other._begin()

    # -- operations --------------------------------------------------------------------------------------------

    def alt(self, parts: Iterable[int]) -> int:
        """Union."""
        n: cython.int = 0
        for part in list(parts):
            n = self._spread(term_kinds.ALT, self._own(part), n)
        return self._alt(n)

    def and_(self, parts: Iterable[int]) -> int:
        """Intersection."""
        n: cython.int = 0
        for part in list(parts):
            n = self._spread(term_kinds.AND, self._own(part), n)
        return self._and(n)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _spread(self, kind: cython.int, part: cython.int, n: cython.int) -> cython.int:
        """Put one more part of a union or intersection into ``flat``, behind its first ``n`` numbers; how many there
        are then."""
        i: cython.int
        if self.kind[part] != kind:
            if part == (term_kinds.EMPTY if kind == term_kinds.ALT else term_kinds.ALL):
                return n
            self._want(n + 4)
            self.flat[n] = part
            return n + 1
        at: cython.int = self.arg_at[part]
        many: cython.int = self.arg_count[part]
        self._want(n + many + 4)
        for i in range(many):
            self.flat[n + i] = self.args[at + i]
        return n + many

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _alt(self, n: cython.int) -> cython.int:
        """The union of the first ``n`` parts in ``flat``."""
        i: cython.int
        left: cython.int = 0
        classes: cython.int = 0
        nullable: cython.bint = False
        regular: cython.bint = True
        if n > 1:
            n = self._in_order(n)
        if n == 0:
            return term_kinds.EMPTY
        if n == 1:
            return self.flat[0]
        if self._flat_has(term_kinds.ALL, n):
            return term_kinds.ALL
        for i in range(n):
            if self.kind[self.flat[i]] == term_kinds.CHARS:
                classes += 1
        if classes > 1:  # [a] | [b] is [ab]
            self.bound_count = 0
            for i in range(n):
                if self.kind[self.flat[i]] == term_kinds.CHARS:
                    self._meet_class(self.flat[i], 1)
                else:
                    self.flat[left] = self.flat[i]
                    left += 1
            self.flat[left] = self._class(left + 1)
            n = self._in_order(left + 1)
        for i in range(n):
            if self.traits[self.flat[i]] & term_kinds.NULLABLE and self.flat[i] != term_kinds.EPSILON:
                nullable = True
            if not self.traits[self.flat[i]] & term_kinds.REGULAR:
                regular = False
        if self.flat[0] == term_kinds.EPSILON:
            if nullable:
                n -= 1
                for i in range(n):
                    self.flat[i] = self.flat[i + 1]
            nullable = True
        return self.flat[0] if n == 1 else self._make(term_kinds.ALT, 0, n, nullable, regular)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _and(self, n: cython.int) -> cython.int:
        """The intersection of the first ``n`` parts in ``flat``."""
        i: cython.int
        runs: cython.int
        nullable: cython.bint = True
        while True:
            if n > 1:
                n = self._in_order(n)
            if n == 0:
                return term_kinds.ALL
            if self.flat[0] == term_kinds.EMPTY:
                return term_kinds.EMPTY
            if n == 1:
                return self.flat[0]
            nullable = True
            for i in range(n):
                if not self.traits[self.flat[i]] & term_kinds.NULLABLE:
                    nullable = False
                    break
            if self.flat[0] == term_kinds.EPSILON:
                return term_kinds.EPSILON if nullable else term_kinds.EMPTY
            runs = 0
            for i in range(n):
                if self.kind[self.flat[i]] == term_kinds.NOT:
                    if self._flat_has(self._arg(self.flat[i], 0), n):
                        return term_kinds.EMPTY
                elif self._is_run(self.flat[i]):
                    runs += 1
            if runs < 2:
                return self._make(term_kinds.AND, 0, n, nullable, False)
            n = self._common_run(n)  # [ab]{2,} and [bc]{0,9} is [b]{2,9}

    @cython.cfunc
    @cython.inline
    def _is_run(self, term: cython.int) -> cython.bint:
        """Whether a term is "so many characters of a class"."""
        kind: cython.int = self.kind[term]
        return kind == term_kinds.CHARS or (
            kind == term_kinds.REPEAT and self.kind[self._arg(term, 0)] == term_kinds.CHARS
        )

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _common_run(self, n: cython.int) -> cython.int:
        """Put the intersection of those of the first ``n`` parts in ``flat`` that are runs in their place; how many
        parts there are then."""
        i: cython.int
        part: cython.int
        left: cython.int = 0
        least: cython.int = 0
        most: cython.int = term_kinds.NONE
        low: cython.int
        high: cython.int
        self.bound_count = 0
        self._meet_class(term_kinds.ANY, 1)
        for i in range(n):
            part = self.flat[i]
            if not self._is_run(part):
                self.flat[left] = part
                left += 1
                continue
            low = high = 1
            if self.kind[part] == term_kinds.REPEAT:
                low, high = self._arg(part, 1), self._arg(part, 2)
                part = self._arg(part, 0)
            self._meet_class(part, 2)
            least = max(least, low)
            if high != term_kinds.NONE:
                most = high if most == term_kinds.NONE else min(most, high)
        part = self._copies(self._class(left), least, most, left)
        return self._spread(term_kinds.AND, part, left)

    def deferred(self, key: object, build: Callable[..., int], *, loops: bool = False) -> int:
        """What ``build`` makes of this store once it is looked into: not empty, without the empty string, and without
        intersection and complement. ``key`` identifies it here; ``loops``: what is built may hold the term itself."""
        found = self.keys.get(key)
        if found is None:
            self.flat[0] = len(self.keys)
            term: cython.int = self._make(term_kinds.DEFERRED, 0, 1, False, True)
            self.keys[key] = found = term
            self.builders[term] = build
            if loops:
                self.traits[term] = self.traits[term] & ~term_kinds.REGULAR
        return found

    # -- derivative rows ---------------------------------------------------------------------------------------

    def segments(self, term: cython.int) -> tuple:
        """The whole derivative row of ``term``."""
        found = self.segments_of.get(term)
        if found is None:
            self.depth = 0
            self._row(self._own(term))
            at: cython.int = self.row_at[term]
            stop: cython.int = at + self.row_count[term]
            starts = tuple([self.starts[i] for i in range(at, stop)])
            found = self.segments_of[term] = starts, tuple([self.targets[i] for i in range(at, stop)])
        return found

    def derivative(self, term: cython.int, code_point: cython.int) -> int:
        """What may follow after one character."""
        self.depth = 0
        return self._next(self._own(term), code_point)

    def matches(self, term: cython.int, text: object) -> bool:
        """Whether ``text`` is in the language."""
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
        """One more segment of the row in the making; neighbours with the same target are one."""
        n: cython.int = self.row_used
        if n > self.row_first and self.starts[n - 1] == start:
            n -= 1
        if n == self.row_first or self.targets[n - 1] != target:
            if n == len(self.starts):
                self.targets = grown(self.targets, "i", 2 * n)
                self.starts = grown(self.starts, "i", 2 * n)
            self.starts[n] = start
            self.targets[n] = target
            n += 1
        self.row_used = n
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _row(self, term: cython.int) -> cython.int:
        """See to it that the row of a term is known."""
        if term < len(self.row_at) and self.row_at[term] != 0:
            return 0
        if self.depth == DEEP:
            self.depth = 0
            raise LimitError("a pattern has parts that lie too deep in one another", hint="simplify the pattern")
        self.depth += 1
        right: cython.int
        waiting: list = []
        # Of many parts that may be empty, one behind the other, the last comes first.
        while self.kind[term] == term_kinds.SEQ and self.traits[self._arg(term, 0)] & term_kinds.NULLABLE:
            right = self._arg(term, 1)
            if right < len(self.row_at) and self.row_at[right] != 0:
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
        kind: cython.int = self.kind[term]
        first: cython.int = self.arg_at[term]
        n: cython.int = self.arg_count[term]
        source: cython.int = term
        i: cython.int
        stop: cython.int
        rest: cython.int = term_kinds.EMPTY
        # The rows of the parts come first: while this one is made, no other is.
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
                i = self._arg(term, 2)
                rest = self._copies(
                    source, max(self._arg(term, 1) - 1, 0), i - 1 if i != term_kinds.NONE else term_kinds.NONE, 0
                )
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
        elif source == term:
            self._put(0, term_kinds.EMPTY)
        else:
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
        if len(self.row_at) < len(self.kind):
            self.row_count = grown(self.row_count, "i", len(self.kind))
            self.row_at = grown(self.row_at, "i", len(self.kind))
        self.row_count[term] = self.row_used - self.row_first
        self.row_at[term] = self.row_first
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _derive_words(self, which: cython.int, first: cython.int, stop: cython.int, depth: cython.int) -> cython.int:
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
        self, of: cython.int, places: cython.int, remainder: cython.int, behind: cython.int
    ) -> cython.int:
        digit: cython.int
        target: cython.int
        self._put(0, term_kinds.EMPTY)
        if behind == -2:
            self._put(0x2E, self._multiple(of, places, remainder, 0))
            self._put(0x2F, term_kinds.EMPTY)
        for digit in range(10):
            if behind == places:  # beyond the last place that counts: zeros
                target = self._multiple(of, places, remainder, behind) if digit == 0 else term_kinds.EMPTY
            else:
                target = self._multiple(of, places, (remainder * 10 + digit) % of, -2 if behind < 0 else behind + 1)
            self._put(0x30 + digit, target)
        self._put(0x3A, term_kinds.EMPTY)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _merge(self, kind: cython.int, first: cython.int, n: cython.int) -> cython.int:
        """The row of a term from the rows of its parts, by one sweep over all their boundaries."""
        i: cython.int
        at: cython.int
        bound: cython.int = 0
        value: cython.int
        place: cython.int = 0  # what is remembered, from 2 * n on: the targets, and what they make
        known: cython.int = 0
        size: cython.int = 2 * n + REMEMBERED * (n + 1)
        if size > len(self.sweep):
            self.sweep = grown(self.sweep, "i", size)
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
        """What the targets under the cursors make in the row of a term of a kind."""
        i: cython.int
        used: cython.int = 0
        if kind == term_kinds.SEQ:
            i = self._seq(self.targets[self.sweep[0]], self.args[first + 1])
            used = self._spread(term_kinds.ALT, i, used)
            used = self._spread(term_kinds.ALT, self.targets[self.sweep[1]], used)
            return self._alt(used)
        for i in range(n):
            used = self._spread(kind, self.targets[self.sweep[i]], used)
        return self._alt(used) if kind == term_kinds.ALT else self._and(used)

    def nullable(self, term: cython.int) -> bool:
        """Whether the empty string is in the language."""
        return (self.traits[self._own(term)] & term_kinds.NULLABLE) != 0

    def run_bounds(self, term: cython.int) -> object:
        """``(class, least, most)`` when the language is "so many characters of this class, each any of them"; the class
        as a term. Else None."""
        if self.kind[self._own(term)] == term_kinds.CHARS:
            return term, 1, 1
        if not self._is_run(term):
            return None
        most: cython.int = self._arg(term, 2)
        return self._arg(term, 0), self._arg(term, 1), None if most == term_kinds.NONE else most

    def shape(self, term: cython.int) -> tuple:
        """The kind of a term (see `termkinds`), and its arguments: of a class its ranges, of words these, of a deferred
        term what it stands for."""
        kind: cython.int = self.kind[self._own(term)]
        at: cython.int = self.arg_at[term]
        if kind == term_kinds.CHARS:
            return kind, self.ranges(term)
        if kind == term_kinds.DEFERRED:
            return kind, (self.builders[term](self),)
        if kind == term_kinds.WORDS:
            depth: cython.int = self.args[at + 3]
            words: tuple = self.lists[self.args[at]]
            return kind, tuple([words[i][depth:] for i in range(self.args[at + 1], self.args[at + 2])])
        return kind, tuple([self.args[i] for i in range(at, at + self.arg_count[term])])

    def known(self, term: cython.int) -> int:
        """What is known of a term without looking for it: see `termkinds`. REGULAR: also without multiples."""
        return self.traits[self._own(term)] & ~(term_kinds.REGULAR if self.has_multiple else 0)

    # -- emptiness ---------------------------------------------------------------------------------------------

    def is_empty(self, term: cython.int) -> bool:
        """Whether no string is in the language. Exact, also under intersection and complement."""
        known: cython.int = self.traits[self._own(term)] & (term_kinds.LIVE | term_kinds.DEAD)
        self.depth = 0
        return known == term_kinds.DEAD if known else self._search_dead(term)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _search_dead(self, term: cython.int) -> cython.bint:
        """Breadth-first search for a nullable derivative; marks what it learns on the way."""
        parent: dict = {term: -1}
        queue: list = [term]
        number: cython.int = 0
        state: cython.int
        target: cython.int
        i: cython.int
        step: cython.int
        while number < len(queue):
            state = queue[number]
            number += 1
            self._row(state)
            for i in range(self.row_at[state], self.row_at[state] + self.row_count[state]):
                target = self.targets[i]
                if self.traits[target] & term_kinds.DEAD:
                    continue
                if self.traits[target] & term_kinds.LIVE:
                    step = state
                    while step != -1:
                        self.traits[step] |= term_kinds.LIVE
                        step = parent[step]
                    return False
                if target not in parent:
                    parent[target] = state
                    queue.append(target)
        for step in queue:
            self.traits[step] |= term_kinds.DEAD
        return True
