# Declarations of `token_set` for other compiled modules.

from ..compiled.arrays cimport copied, grown
from ..compiled.memory cimport free, ints, more, read_bytes
from .bits cimport flip_bit, has_bit
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

cdef TokenSet new_differing_set(TokenSet base, list flips)

cdef TokenSet new_dense_set(unsigned int[::1] bits, int count)

cdef class Draft:
    cdef Trie trie
    # the nodes of E(q), and the tokens that end where the atom must end
    cdef int* ends
    cdef int end_count
    cdef int end_room
    cdef int* closing
    cdef int closing_count
    cdef int closing_room
    # spans of the trie's order whose tokens stay inside, two numbers each
    cdef int* spans
    cdef int span_count
    cdef int span_room
    # scratch
    cdef int* scratch

    cdef object begin(self)
    cdef object span(self, int begin, int until)
    cdef object end(self, int node, bint done)
    cdef object sort_ends(self)
    cdef object set_ends(self, TokenSet token_set)
