# Declarations of `self_loops` for other compiled modules.

from ..compiled.arrays cimport copied, grown
from ..automaton cimport encoding
from ..automaton.positions cimport Positions
from .trie cimport Trie, is_space

cdef class SelfLoops:
    cdef Positions atoms
    cdef Trie trie
    # of each row state, once asked for: its usual successor, the groups (see `GROUPS`) of bytes that lead elsewhere, and
    # 1 if non-ASCII characters were analysed
    cdef int[::1] usual
    cdef unsigned long long[::1] leaves
    cdef unsigned char[::1] is_wide
    # the minimum number of plain bytes to the end of its text (0: not known); the index of its exits (0: not known)
    cdef unsigned char[::1] safe
    cdef int[::1] exits_at
    cdef int[::1] exits
    cdef object exits_array
    cdef int exits_used
    # scratch
    cdef int[::1] reached

    cdef long long bytes_held(self) except -1
    cdef unsigned long long left_by(self, int state) except? 0
    cdef int stays(self, int node, int state) except -1
    cdef object _find_safe(self, int state)
    cdef object _find_exits(self, int state)
    cdef object _make_room(self, long long state)
    cdef object _find_leaves(self, int state)
    cdef object _find_wide(self, int state)
    cdef int _leads_but(self, long long start, int first, long long to) except -1
    cdef int _leads(self, long long start, int low, int high, long long to) except -1
