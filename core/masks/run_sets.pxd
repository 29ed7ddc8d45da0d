# Declarations of `run_sets` for other compiled modules.

from ..compiled.arrays cimport copied, grown
from ..compiled.memory cimport free, longs, octets
from ..automaton cimport encoding
from ..automaton.positions cimport Positions
from .comparison cimport Comparison
from .draft cimport Draft
from .subtrees cimport Subtrees
from .token_set cimport TokenSet, new_dense_set
from .trie cimport Trie

cdef class RunSurvey:
    cdef int[::1] token
    cdef int[::1] until
    cdef int[::1] exit
    cdef int[::1] start
    cdef int longest
    # bits of tokens (see `inside`), by the number of characters
    cdef dict masks

    cdef unsigned int[::1] inside(self, int most, int words)

cdef class RunSets:
    cdef Positions automaton
    cdef Trie trie
    cdef Subtrees loops
    cdef Comparison differences
    cdef Draft draft
    cdef dict surveys
    cdef int words
    cdef long long visited
    # the chosen class, the states of its run, and how many of its characters may come
    cdef unsigned char* members
    cdef int count
    cdef unsigned char* odd
    cdef int odd_count
    cdef long long* chain
    cdef int most
    # scratch: the positions on the way to a trie node
    cdef long long* stack

    cdef object found(self, long long atom, long long free, TokenSet base)
    cdef bint _choose(self, int state, long long free) except -1
    cdef int _gather(self, int state, long long to) except -1
    cdef bint _is_ascii(self, long long atom) except -1
    cdef RunSurvey _survey(self)
    cdef bint _follow(self, long long atom, int longest) except -1
    cdef bint _leads_only(self, int byte, long long to) except -1
    cdef TokenSet _run_set(self, RunSurvey survey)
    cdef bint _is_below_odd(self, int node) except -1
    cdef int _clear(self, int node, unsigned int[::1] bits) except -1
    cdef object _walk(self, int node, long long before, TokenSet token_set)
    cdef TokenSet _lacking_set(self, long long free, TokenSet base, RunSurvey survey)
