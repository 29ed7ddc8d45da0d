# Declarations of `positions` for other compiled modules.

from ..compiled.arrays cimport grown
from . cimport encoding
from .blocks cimport row_item

cdef class Positions:
    # row states
    cdef object given
    cdef long long[::1] rows
    cdef int[::1] facts
    cdef int row_room
    cdef int row_version
    # the first row states, which many automata share: their rows are known
    cdef int[::1] base_rows
    cdef int base_count
    # the pool of literals
    cdef short[::1] pool
    cdef object pool_array
    cdef int pool_used
    # counted strings
    cdef signed char[::1] local
    cdef long long[::1] least
    cdef long long[::1] most
    cdef int counted_used
    cdef long long faults

    cdef object _read_rows(self, int version)
    cdef object _row_fault(self, int state)
    cdef long long after(self, long long atom, int byte) except -9
    cdef long long row_at(self, int state) except -9
    cdef bint may_end(self, long long atom) noexcept
    cdef int _only_byte(self, long long atom) except -9
