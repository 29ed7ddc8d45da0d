# Declarations of `self_loops` for other compiled modules.

from ..compiled.arrays cimport copied, grown
from ..automaton cimport encoding
from ..automaton.positions cimport Positions
from .trie cimport Trie

cdef class SelfLoops:
    cdef Positions atoms
    cdef Trie trie
    # of each row state that was asked for: the state that most bytes lead to, and the groups (see `GROUPS`) of those
    # that do not; whether it is known what characters beyond ASCII do
    cdef int[::1] usual
    cdef unsigned long long[::1] leaves
    cdef unsigned char[::1] is_wide
    # how many plain bytes it takes at least to leave its text (0: not known); where its exits are noted (0: nowhere)
    cdef unsigned char[::1] safe
    cdef int[::1] exits_at
    cdef int[::1] exits
    cdef object exits_array
    cdef int exits_used
    # scratch
    cdef int[::1] reached

    cdef long long bytes_held(self) except -1
    cdef int stays(self, int node, int state) except -1
    cdef object _find_safe(self, int state)
    cdef object _find_exits(self, int state)
    cdef object _make_room(self, long long state)
    cdef object _find_leaves(self, int state)
    cdef object _find_wide(self, int state)
    cdef int _leads(self, long long start, int low, int high, long long to) except -1
