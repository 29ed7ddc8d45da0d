# Declarations of `frontier` for other compiled modules.

from ..compiled.memory cimport free, ints, more, octets

cdef class Frontier:
    cdef int count
    cdef int* terms
    cdef int* parents
    cdef int room
    # by the numbers of terms: 1 for those that were met
    cdef unsigned char* met
    cdef int met_room

    cdef int begin(self, int term) except -1
    cdef int meet(self, int term, int parent) except -1
