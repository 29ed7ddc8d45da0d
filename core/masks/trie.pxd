# Declarations of `trie` for other compiled modules.

from ..compiled.arrays cimport copied, grown
from ..automaton cimport encoding

cdef bint is_space(int code) noexcept

cdef int first_from(int[::1] ordered, int size, int node) noexcept

cdef class Trie:
    cdef unsigned char[::1] byte
    cdef unsigned short[::1] depth
    cdef int[::1] size
    cdef int[::1] token
    cdef int[::1] same
    cdef int[::1] child
    cdef int[::1] parent
    cdef int[::1] order
    cdef int[::1] first
    cdef unsigned long long[::1] below
    cdef unsigned short[::1] height
    cdef unsigned long long[::1] marks
    cdef int nodes
    cdef int vocabulary
    cdef int longest

    cdef object _sort(self, object tokens)
    cdef object _link(self)
    cdef void _add_to_parent(self, int parent, int node, unsigned long long own) noexcept
    cdef int child_by(self, int node, int byte) noexcept
    cdef int _lacks(self, int node, int before) noexcept
