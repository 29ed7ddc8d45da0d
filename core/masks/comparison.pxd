# Declarations of `comparison` for other compiled modules.

from ..compiled.memory cimport free, longs
from ..automaton cimport encoding
from ..automaton.positions cimport Positions
from .character_counts cimport first_from
from .draft cimport Draft
from .subtrees cimport Subtrees
from .token_set cimport TokenSet, dense_copy, new_dense_set, new_token_set, share_parts
from .trie cimport Trie

cdef class Comparison:
    cdef Positions automaton
    cdef Trie trie
    cdef Subtrees loops
    cdef Draft draft
    cdef long long visited
    # scratch: the positions on the way to a trie node, of the one set and of the other
    cdef long long* stack
    cdef long long* beside

    cdef int is_near(self, long long atom, long long free, int share) except -1
    cdef int _is_alike(self, long long one, long long other) except -1
    cdef TokenSet near_set(self, long long atom, long long free, TokenSet base)
    cdef object _compare(self, int i, TokenSet base)
    cdef object compare(self, int node, long long atom, long long free, TokenSet base)
    cdef TokenSet beside_set(self, long long atom, long long home, TokenSet base)
    cdef object _lose(self, TokenSet base, int node, int stop)
    cdef TokenSet difference(self, TokenSet base)
    cdef TokenSet lacking_set(self, long long atom, long long free, TokenSet base, list words)
    cdef object _lack_escapes(self, int node, long long atom, long long free, TokenSet base)
    cdef int _child(self, int node, int byte) except -2
