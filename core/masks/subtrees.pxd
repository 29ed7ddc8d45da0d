# Declarations of `subtrees` for other compiled modules.

from ..compiled.memory cimport free, ints, more, octets, ulongs
from ..automaton cimport encoding
from ..automaton.blocks cimport row_of
from ..automaton.positions cimport Positions
from .trie cimport Trie, is_space

cdef class Subtrees:
    cdef Positions atoms
    cdef Trie trie
    # of each row state, once asked for: its usual successor, the groups (see `GROUPS`) of bytes that lead elsewhere, and
    # 1 if non-ASCII characters were analysed
    cdef Py_ssize_t room
    cdef int* usual
    cdef unsigned long long* leaves
    cdef unsigned char* is_wide
    # the minimum number of plain bytes to the end of its text (0: not known); the index of its exits (0: not known)
    cdef unsigned char* safe
    cdef int* exits_at
    cdef int* exits
    cdef int exits_used
    cdef int exits_room
    # of each row state, twice (see `stays`), the index of the groups of bytes that lead out of its text
    # (0: not known, -1: too many); the sets of groups, after their number, what is returned where all of them lack, and
    # the groups each of which leads out alone
    cdef int* needs_at
    cdef unsigned long long* needs
    cdef int needs_used
    cdef int needs_room
    # scratch
    cdef int* reached
    cdef int* way_state
    cdef unsigned long long* way_groups
    cdef int* way_size
    cdef int ways
    cdef unsigned long long* found
    cdef int founds
    cdef unsigned long long single
    cdef bint is_full

    cdef long long bytes_held(self) except -1
    cdef unsigned long long left_by(self, int state) except? 0
    cdef int usual_from(self, int state) except -1
    cdef int home(self, int state) except -1
    cdef object widen(self, int state)
    cdef int stays(self, int node, int state, int like) except -1
    cdef int _lacks_needs(self, int node, int state, int like) except -1
    cdef object _find_needs(self, int state, int like)
    cdef bint _begin_ways(self, int home, int like, bint is_end) except -1
    cdef object _follow(self, int i, int home, int like)
    cdef object _bring_least(self, int i)
    cdef object _note_way(self, int state, unsigned long long groups, int followed)
    cdef object _move_way(self, int source, int target)
    cdef object _note_need(self, unsigned long long groups)
    cdef object _join_needs(self, unsigned long long groups)
    cdef object _find_safe(self, int state)
    cdef object _find_exits(self, int state)
    cdef object _make_room(self, long long state)
    cdef object _find_leaves(self, int state)
    cdef object _find_wide(self, int state)
    cdef int _leads_but(self, long long start, int first, long long to) except -1
    cdef int _leads(self, long long start, int low, int high, long long to) except -1
