# Declarations of `blocks` for other compiled modules.

cimport cython
from . cimport encoding

@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
cdef inline int row_item(long long* blocks, int at) noexcept:
    return (<int*> <size_t> blocks[at >> encoding.BLOCK])[at & encoding.IN_BLOCK]

@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
cdef inline int* row_of(long long* blocks, int* base, long long at) noexcept:
    if at < 0:
        return base + (-256 - at)
    return <int*> <size_t> blocks[at >> encoding.BLOCK] + (at & encoding.IN_BLOCK)
