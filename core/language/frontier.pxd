# Declarations of `frontier` for other compiled modules.

from ..compiled.memory cimport free, ints, more, octets

cdef class Frontier:
    cdef int count
    cdef int* terms
    cdef int* parents
    cdef int room
    cdef unsigned char* marks
    cdef int mark_room

    cdef int begin(self, int term) except -1
    cdef int meet(self, int term, int parent) except -1
