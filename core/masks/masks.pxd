# Declarations of `masks` for other compiled modules.

from ..compiled.arrays cimport grown
from ..compiled.memory cimport free, ints, more
from ..automaton cimport encoding
from ..automaton.states cimport Automaton
from .token_set cimport TokenSet, dense_copy
from .token_sets cimport TokenSets
from .trie cimport Trie
from .trie_walk cimport TrieWalk

cdef class Mask:
    cdef int first
    cdef int token_sets
    cdef int at
    cdef int count
    cdef int doubts
    cdef bint is_settled
    cdef bint is_scattered
    cdef bint is_joined
    cdef unsigned int[::1] joined
    cdef long long tick
    cdef long long size

cdef class Masks:
    cdef Automaton automaton
    cdef Trie trie
    cdef TrieWalk walk
    cdef TokenSets token_sets
    cdef object finals
    cdef object specials
    cdef list memo
    cdef list parts
    cdef int* ids
    cdef int id_count
    cdef int id_room
    cdef list doubts
    cdef long long clock
    cdef long long held
    cdef long long limit
    cdef long long flushes
    cdef int words
    cdef object target
    cdef unsigned int[::1] view

    cdef Mask _mask(self, int state)
    cdef Mask _build_mask(self, int state)
    cdef bint _is_scattered(self, Mask mask) noexcept
    cdef object _evict(self)
    cpdef list below(self, list endings, unsigned int[::1] out)
    cpdef bint fill_known(self, int state, object out) except -1
    cdef Mask known(self, int state)
    cdef unsigned int[::1] viewed(self, object out)
    cpdef object fill(self, int state, unsigned int[::1] out)
    cdef object _join(self, Mask mask)
    cdef object _write(self, Mask mask, unsigned int[::1] out)
