# Declarations of `self_loops` for other compiled modules.

from ..compiled.memory cimport free, ints, more, octets, ulongs
from ..automaton cimport encoding
from ..automaton.positions cimport Positions
from .trie cimport Trie, is_space

cdef class SelfLoops:
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
    # of each row state, the index of the groups of bytes that lead out of its text (0: not known, -1: too many), and
    # that of its links; the groups, after their number; the links, after their number and their ``home``
    cdef int* needs_at
    cdef unsigned long long* needs
    cdef int needs_used
    cdef int needs_room
    cdef int* links_at
    cdef unsigned long long* links
    cdef int links_used
    cdef int links_room
    # scratch
    cdef int* reached
    cdef int* way_state
    cdef unsigned long long* way_groups
    cdef int ways
    cdef unsigned long long* found
    cdef int founds
    # the state about which ways were searched last (0: none), and the number of them, and what was found
    cdef int searched
    cdef int home_ways
    cdef unsigned long long* home_found
    cdef int home_founds

    cdef long long bytes_held(self) except -1
    cdef unsigned long long left_by(self, int state) except? 0
    cdef int stays(self, int node, int state) except -1
    cdef int _lacks_needs(self, int node, int state) except -1
    cdef object _find_needs(self, int state)
    cdef int _search(self, int i, int home) except -1
    cdef object _note_way(self, int state, unsigned long long groups)
    cdef object _note_need(self, unsigned long long groups)
    cdef object _find_links(self, int state, int home)
    cdef object _find_safe(self, int state)
    cdef object _find_exits(self, int state)
    cdef object _make_room(self, long long state)
    cdef object _find_leaves(self, int state)
    cdef object _find_wide(self, int state)
    cdef int _leads_but(self, long long start, int first, long long to) except -1
    cdef int _leads(self, long long start, int low, int high, long long to) except -1
