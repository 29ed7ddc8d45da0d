# Declarations of `bits` for other compiled modules.

cimport cython

@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
cdef inline bint has_bit(unsigned int[::1] bits, int token) noexcept:
    return (bits[token >> 5] >> (token & 31)) & 1

@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
cdef inline int flip_bit(unsigned int[::1] bits, int token) noexcept:
    bits[token >> 5] ^= (<unsigned int> 1) << (token & 31)
    return 0
