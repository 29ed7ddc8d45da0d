# Declarations of `comparison` for other compiled modules.

from ..compiled.memory cimport free, longs
from ..automaton cimport encoding
from ..automaton.positions cimport Positions
from .bits cimport has_bit
from .subtrees cimport Subtrees
from .token_set cimport Draft, TokenSet, dense_copy, new_differing_set, share_parts
from .trie cimport Trie, first_from

cdef class Comparison:
    cdef Positions automaton
    cdef Trie trie
    cdef Subtrees subtrees
    cdef Draft draft
    cdef long long visited
    # the known token set, dense, and the difference of the new one: tokens in exactly one of both, ends that it lacks,
    # ends that only it has
    cdef TokenSet base
    cdef unsigned int[::1] bits
    cdef list flips
    cdef list lost
    cdef list gained
    # scratch: the positions on the path to a trie node, for the new set and for the known one
    cdef long long* stack
    cdef long long* known

    cdef bint is_near(self, long long atom, long long other, int share) except -1
    cdef bint _is_alike(self, long long one, long long other) except -1
    cdef object begin(self, TokenSet base)
    cdef TokenSet compare(self, long long atom, long long other, TokenSet base)
    cdef object below(self, int node, long long atom, long long other)
    cdef bint _both_stay(self, int node, long long new, long long known) except -1
    cdef object _exclude(self, int node, int stop)
    cdef TokenSet finish(self)
    cdef TokenSet lacking(self, long long atom, long long free, TokenSet base, list words)
    cdef object _compare_escapes(self, int node, long long atom, long long free)
