# Declarations of `positions` for other compiled modules.

from ..compiled.memory cimport free, longs, more, shorts
from . cimport encoding
from .blocks cimport row_item
from .byte_rows cimport ByteRows

cdef class Positions:
    # row states
    cdef ByteRows byte_rows
    # the number of the first ones, which many automata share: their rows are known
    cdef int base_count
    # the pool of literals
    cdef short* pool
    cdef int pool_used
    cdef int pool_room
    # counted strings
    cdef signed char[::1] local
    cdef long long* least
    cdef long long* most
    cdef int counted_used
    cdef int counted_room
    cdef long long faults

    cdef long long _row_index(self, int state) except -9
    cdef long long after(self, long long atom, int byte) except -9
    cdef long long row_at(self, int state) except -9
    cdef bint may_end(self, long long atom) noexcept
    cdef int _only_byte(self, long long atom) except -9
