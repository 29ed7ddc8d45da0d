# Declarations of `token_sets` for other compiled modules.

from ..compiled.arrays cimport copied, grown
from ..compiled.memory cimport free, ints, longs, more
from ..automaton cimport encoding
from ..automaton.positions cimport Positions
from ..automaton.blocks cimport row_item
from .self_loops cimport SelfLoops
from .character_counts cimport TokenCounts, ClassExits, ClassRuns, CharacterCounts, first_from
from .token_set cimport TokenSet, dense_copy, new_dense_set, new_token_set, set_parts, share_parts
from .trie cimport Trie
from .trie_walk cimport TrieWalk

cdef class TokenSets:
    cdef Positions automaton
    cdef Trie trie
    cdef TrieWalk walk
    cdef SelfLoops loops
    cdef CharacterCounts characters
    cdef object index
    cdef dict known
    # bytes of the token sets that are not shared
    cdef long long held
    cdef long long built
    cdef long long visited
    cdef int words
    # of the token set in construction: the ends of its atom, and the tokens that end where it must
    cdef int* end
    cdef int end_count
    cdef int end_room
    cdef int* closing
    cdef int closing_count
    cdef int closing_room
    # spans of the trie's order whose tokens stay inside, two numbers each
    cdef int* span
    cdef int span_count
    cdef int span_room
    # True if only those of them count that are in the free string, too
    cdef bint is_like
    # tokens that a shared set has too many
    cdef int* less
    cdef int less_count
    cdef int less_room
    # scratch
    cdef long long* stack
    cdef long long* beside
    cdef int* scratch

    cdef object keep(self, dict kept)
    cdef TokenSet token_set(self, long long atom)
    cdef TokenSet _build(self, long long atom, object free)
    cdef object _fill(self, TokenSet token_set, int saved)
    cdef object _fill_dense(self, TokenSet token_set, TokenSet base, int saved)
    cdef object _walk_rows(self, int state, TokenSet base)
    cdef object _emit_like(self, int begin, int until, TokenSet base)
    cdef object _note_span(self, int begin, int until)
    cdef object _end(self, int node, bint done)
    cdef object _set_ends(self, TokenSet token_set)
    cdef object _drop(self, int token)
    cdef object _set_less(self, TokenSet token_set, TokenSet base)
    cdef int _reads_on(self, int node, int state) except -1
    cdef TokenSet _class_set(self, long long atom)
    cdef object _bounded_set(self, long long atom)
    cdef bint _reads(self, long long wide, long long atom, bytes data) except -1
    cdef TokenSet _open_set(self, long long atom, int number)
    cdef int _is_near(self, long long atom, long long free, int share) except -1
    cdef int _is_alike(self, long long one, long long other) except -1
    cdef TokenSet _near_set(self, long long atom, long long free)
    cdef TokenSet _dense_base(self, long long free)
    cdef object _compare(self, int i, TokenSet base)
    cdef int _is_beside(self, long long atom, long long home) except -1
    cdef TokenSet _beside_set(self, long long atom, long long home)
    cdef int _end_like(self, TokenSet base, int had, int stop) except -1
    cdef object _lose(self, TokenSet base, int node, int stop)
    cdef TokenSet _difference(self, TokenSet base)
    cdef TokenSet _lacking_set(self, long long atom, long long free, list words)
    cdef object _lack_escapes(self, int node, long long atom, long long free, TokenSet base)
    cdef int _child(self, int node, int byte) except -2
    cdef unsigned int[::1] _bits(self, TokenSet token_set)
    cdef TokenSet _counted_set(self, long long atom)
    cdef unsigned int[::1] _free_bits(self, TokenCounts counts)
