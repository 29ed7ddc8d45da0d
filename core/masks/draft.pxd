# Declarations of `draft` for other compiled modules.

from ..compiled.arrays cimport grown
from ..compiled.memory cimport free, ints, more
from .token_set cimport TokenSet, dense_copy, set_parts
from .trie cimport Trie

cdef class Draft:
    cdef Trie trie
    cdef int words
    # the trie nodes at which the text may end, and the tokens that end where it must
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
    # tokens that the set from which this one is made has too many
    cdef int* less
    cdef int less_count
    cdef int less_room
    # scratch
    cdef int* scratch

    cdef object begin(self)
    cdef object span(self, int begin, int until)
    cdef object end(self, int node, bint done)
    cdef int end_like(self, TokenSet base, int had, int stop) except -1
    cdef object sort_ends(self)
    cdef object set_ends(self, TokenSet token_set)
    cdef object drop(self, int token)
    cdef object set_less(self, TokenSet token_set, TokenSet base)
