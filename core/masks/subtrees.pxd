# Declarations of `subtrees` for other compiled modules.

from ..compiled.memory cimport free, ints, more, octets, ulongs
from ..automaton cimport encoding
from ..automaton.positions cimport Positions
from .trie cimport Trie, is_space

cdef class Subtrees:
    cdef Positions automaton
    cdef Trie trie
    # by row state: its majority successor, the groups of bytes that lead elsewhere (0: not computed), and 1 if its
    # non-ASCII bytes were inspected
    cdef Py_ssize_t room
    cdef int* majority
    cdef unsigned long long* leaves
    cdef unsigned char* is_wide

    cdef long long bytes_held(self) except -1
    cdef unsigned long long left_by(self, int state) except? 0
    cdef int majority_from(self, int state) except -1
    cdef int home(self, int state) except -1
    cdef bint stays(self, int node, int state) except -1
    cdef object _make_room(self, long long state)
    cdef object _find_leaves(self, int state)
    cdef object _find_wide(self, int state)
    cdef int _leads_but(self, long long start, int first, long long to) except -1
    cdef int _leads(self, long long start, int low, int high, long long to) except -1
