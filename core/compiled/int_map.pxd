# Declarations of `int_map` for other compiled modules.

from .memory cimport free, ints, twin, ulongs

cdef class IntMap:
    # a key of 0 is a free slot
    cdef unsigned long long* keys
    cdef int* values
    cdef int shift
    cdef int mask
    cdef int count

    cdef object _make_room(self, int bits)
    cdef IntMap copy(self)
    cdef int _slot(self, unsigned long long key) noexcept
    cdef int first(self, unsigned long long key) noexcept
    cdef int after(self, int slot) noexcept
    cdef int get(self, unsigned long long key, int default) noexcept
    cdef object add(self, unsigned long long key, int value)
    cdef void _enter(self, unsigned long long key, int value) noexcept
    cdef long long byte_count(self) noexcept
