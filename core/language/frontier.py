# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Frontier of a breadth-first search: the visited terms in order, each with its parent.

Compiled where that is possible; ``frontier.pxd`` declares its C interface.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.memory import free, ints, more, octets


@cython.cclass
class Frontier:
    """The terms that a search has reached: ``terms[:count]``, and ``parents``, the index in ``terms`` of the term from
    which each was reached first (-1: none). ``marks`` has, by term, 0 if it is not reached, else 1 or a value of the
    caller's."""

    def __init__(self) -> None:
        self.count = 0
        self.room, self.terms, self.parents = 64, ints(64), ints(64)
        self.mark_room, self.marks = 512, octets(512)

    def __dealloc__(self) -> None:
        free(self.terms)
        free(self.parents)
        free(self.marks)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def begin(self, term: cython.int) -> cython.int:
        """Reset the frontier to one term."""
        i: cython.int
        for i in range(self.count):
            self.marks[self.terms[i]] = 0
        self.count = 0
        return self.meet(term, -1)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def meet(self, term: cython.int, parent: cython.int) -> cython.int:
        """Append a term with the term from which it was reached (``parent``), unless it is already there."""
        if term >= self.mark_room:
            self.marks = more(self.marks, self.mark_room, 2 * term)
            self.mark_room = 2 * term
        if self.marks[term]:
            return 0
        if self.count == self.room:
            self.terms = more(self.terms, self.room, 2 * self.room)
            self.parents = more(self.parents, self.room, 2 * self.room)
            self.room *= 2
        self.marks[term] = 1
        self.terms[self.count] = term
        self.parents[self.count] = parent
        self.count += 1
        return 0
