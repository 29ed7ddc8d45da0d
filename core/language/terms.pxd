# Declarations of `terms` for other compiled modules.

from ..compiled.memory cimport free, ints, more, twin
from . cimport term_kinds
from .frontier cimport Frontier
from .term_store cimport TermStore

cdef class Terms(TermStore):
    cdef readonly dict toward
    cdef public bint is_hurried
    # the answer of `seems_dead` was not decided
    cdef bint is_unsure
    # the segments of all derivative rows
    cdef int* starts
    cdef int* targets
    cdef int row_used
    cdef int row_room
    cdef int row_first
    # the rows as tuples, and the number of segments in them
    cdef dict segments_of
    cdef long long segments_held
    # scratch: the cursors of a sweep, and the nesting of rows in derivation
    cdef int* sweep
    cdef int sweep_room
    cdef int depth
    # of searches; None while one runs
    cdef Frontier frontier

    cdef object _begin_rows(self)
    cpdef tuple segments(self, int term)
    cdef int row_of(self, int term) except -1
    cpdef int derivative(self, int term, int code_point) except -1
    cpdef bint matches(self, int term, object text) except -1
    cdef int _next(self, int term, int code_point) except -1
    cdef int _put(self, int start, int target) except -1
    cdef int _row(self, int term) except -1
    cdef int _derive(self, int term) except -1
    cdef int _derive_words(self, int which, int first, int stop, int depth) except -1
    cdef int _derive_multiple(self, int of, int places, int remainder, int decimals) except -1
    cdef int _merge(self, int kind, int first, int n) except -1
    cdef int _combined(self, int kind, int first, int n) except -1
    cpdef bint is_empty(self, int term) except -1
    cdef bint _is_dead(self, int term) except -1
    cdef bint seems_dead(self, int term) except -1
    cdef bint _search_dead(self, int term) except -1
