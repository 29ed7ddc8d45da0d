# `blocks` in C.

cimport cython
from . cimport layout

@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
cdef inline int row_item(long long[::1] blocks, int at) noexcept:
    return (<int*> <size_t> blocks[at >> layout.BLOCK])[at & layout.IN_BLOCK]
