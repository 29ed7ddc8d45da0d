# Declarations of `character_counts` for other compiled modules.

from ..compiled.arrays cimport copied, grown
from ..compiled.memory cimport free, octets
from ..automaton cimport encoding
from ..automaton.blocks cimport row_item
from ..automaton.positions cimport Positions
from .subtrees cimport Subtrees
from .trie cimport Trie

cdef class TokenCounts:
    cdef int[::1] token
    cdef int[::1] token_chars
    cdef int tokens
    cdef int[::1] end
    cdef int[::1] end_chars
    cdef int ends
    cdef int longest
    cdef int[::1] until
    cdef short[::1] chars

cdef class ClassExits:
    cdef unsigned int[::1] plain
    cdef int count
    cdef int[::1] node
    cdef int[::1] after
    cdef int nodes

cdef class ClassRuns:
    cdef int[::1] token_at
    cdef short[::1] chars
    cdef int tokens
    cdef int[::1] end_node
    cdef int[::1] end_chars
    cdef int ends
    cdef int longest

cdef int first_from(int[::1] ordered, int size, int node) noexcept

cdef class CharacterCounts:
    cdef Positions automaton
    cdef Trie trie
    cdef Subtrees loops
    cdef object index
    # by the automaton's number of a class
    cdef list taken
    cdef long long visited

    # scratch: the bytes of a path in the trie
    cdef unsigned char* path

    cdef TokenCounts counts(self)
    cdef ClassRuns runs(self, int number)
    cdef int has_runs(self, int state) except -1
    cdef TokenCounts _find_counts(self, int star)
    cdef int is_wide_run(self, int state) except -1
    cdef long long _after_path(self, long long state, int size) except -9
    cdef int _load(self, int node) noexcept
    cdef ClassRuns _find_runs(self, int star)
    cdef int chars_before(self, int number, int node) except -9
    cdef bint _is_beyond_ascii(self, int state) except -1
    cdef int is_counted(self, int state) except -1
    cdef ClassExits exits(self, int number)
    cdef ClassExits _find_exits(self, long long star)
