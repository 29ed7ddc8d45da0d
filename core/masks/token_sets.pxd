# Declarations of `token_sets` for other compiled modules.

from ..compiled.arrays cimport copied, grown
from ..compiled.memory cimport free, longs
from ..automaton cimport encoding
from ..automaton.positions cimport Positions
from ..automaton.blocks cimport row_item
from .comparison cimport Comparison
from .draft cimport Draft
from .run_sets cimport RunSets
from .subtrees cimport Subtrees
from .character_counts cimport TokenCounts, ClassExits, ClassRuns, CharacterCounts, first_from
from .token_set cimport TokenSet, dense_copy, new_dense_set, new_token_set, share_parts
from .trie cimport Trie
from .trie_walk cimport TrieWalk

cdef class TokenSets:
    cdef Positions automaton
    cdef Trie trie
    cdef TrieWalk walk
    cdef Subtrees loops
    cdef CharacterCounts characters
    cdef object index
    cdef dict known
    # bytes of the token sets that are not shared
    cdef long long held
    cdef long long built
    cdef long long visited
    cdef int words
    cdef Draft draft
    cdef Comparison differences
    cdef RunSets runs
    # True if of the spans of the draft only those tokens count that are in the free string, too
    cdef bint is_like
    # scratch
    cdef long long* stack

    cdef object keep(self, dict kept)
    cdef TokenSet token_set(self, long long atom)
    cdef object _row_set(self, int state, object free)
    cdef TokenSet _build(self, long long atom, object free)
    cdef object _fill(self, TokenSet token_set, int saved)
    cdef object _fill_dense(self, TokenSet token_set, TokenSet base, int saved)
    cdef object _walk_rows(self, int state, TokenSet base)
    cdef object _emit_like(self, int begin, int until, TokenSet base)
    cdef int _reads_on(self, int node, int state) except -1
    cdef TokenSet _class_set(self, long long atom)
    cdef object _bounded_set(self, long long atom)
    cdef bint _reads(self, long long wide, long long atom, bytes data) except -1
    cdef TokenSet _open_set(self, long long atom, int number)
    cdef TokenSet _dense_base(self, long long free)
    cdef int _is_beside(self, long long atom, long long home) except -1
    cdef unsigned int[::1] _bits(self, TokenSet token_set)
    cdef TokenSet _counted_set(self, long long atom)
    cdef unsigned int[::1] _free_bits(self, TokenCounts counts)
