# What other compiled modules see of `survey` in C.

from ..compiled.arrays cimport copied, grown
from ..automaton cimport encoding
from ..automaton.positions cimport Atoms
from .self_loops cimport Loops
from .trie cimport Trie

cdef class Counts:
    cdef int[::1] token
    cdef int[::1] token_chars
    cdef int tokens
    cdef int[::1] end
    cdef int[::1] end_chars
    cdef int ends
    cdef int longest
    cdef int[::1] until

cdef class Marks:
    cdef unsigned int[::1] plain
    cdef int count
    cdef int[::1] node
    cdef int[::1] after
    cdef int nodes

cdef class Runs:
    cdef int[::1] token_node
    cdef int[::1] token
    cdef int[::1] token_chars
    cdef int tokens
    cdef int[::1] end_node
    cdef int[::1] end_chars
    cdef int ends
    cdef int longest
    cdef short[::1] between

cdef int first_from(int[::1] ordered, int size, int node) noexcept

cdef class Survey:
    cdef Atoms automaton
    cdef Trie trie
    cdef Loops loops
    cdef object index
    # by the automaton's number of a class
    cdef list taken
    cdef long long visited

    cdef Counts counts(self)
    cdef Runs runs(self, int number)
    cdef int has_runs(self, int state) except -1
    cdef Runs _take_runs(self, int star)
    cdef int is_counted(self, int state) except -1
    cdef Marks marks(self, int number)
    cdef Marks _take_marks(self, long long star)
