# Declarations of `token_set` for other compiled modules.

from ..compiled.arrays cimport copied
from ..compiled.memory cimport free, ints, read_bytes
from .trie cimport Trie

cdef class TokenSet:
    cdef unsigned int[::1] dense
    cdef int[::1] ids
    cdef int count
    cdef bint is_dense
    cdef int[::1] less
    cdef int less_count
    cdef int[::1] parts
    cdef int end_count
    cdef int closing_count
    cdef int exit_count
    cdef long long size

cdef TokenSet new_token_set()

cdef object share_parts(TokenSet token_set, TokenSet like)

cdef unsigned int[::1] dense_copy(TokenSet token_set)

cdef object set_parts(Trie trie, TokenSet token_set, int* ends, int* closing, int* at)

cdef TokenSet new_dense_set(unsigned int[::1] bits, int count)
