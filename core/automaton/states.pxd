# Declarations of `states` for other compiled modules.

from ..compiled.hashing cimport BASIS, mix
from ..compiled.int_map cimport IntMap
from ..compiled.memory cimport free, ints, longs, more, octets
from ..language.nodes cimport Nodes
from . cimport encoding
from .positions cimport Positions

cdef class Automaton(Positions):
    cdef object source
    cdef Nodes nodes
    # by node: the index of its heads (0: not known) and their number; flags: it is nullable (1), it begins with a
    # dependent node (2); and for an atomic node its position plus 1 (0: not known)
    cdef int* head_at
    cdef int* head_count
    cdef unsigned char* node_null
    cdef long long* node_atom
    cdef int node_room
    # the heads of nodes: pairs of a position and the node of the rest
    cdef long long* head_atom
    cdef int* head_rest
    cdef int head_used
    cdef int head_room
    # states: hash-consed sets of threads
    cdef long long* thread_atom
    cdef int* thread_rest
    cdef int thread_used
    cdef int thread_room
    cdef int* state_at
    cdef int* state_count
    cdef unsigned char* state_accepts
    cdef int state_used
    cdef int state_room
    cdef IntMap interned
    cdef dict cuts
    cdef readonly set remnants
    # scratch: the threads of the current set and of the next one
    cdef long long* now_atom
    cdef int* now_rest
    cdef int now_count
    cdef int now_room
    cdef bint now_accepts
    cdef bint is_open
    cdef long long* next_atom
    cdef int* next_rest
    cdef int next_count
    cdef int next_room
    cdef bint next_accepts

    cdef object _grow_nodes(self, int needed)
    cdef bint knows_heads(self, int node) noexcept
    cdef object need_heads(self, int node)
    cdef long long _atom_of(self, int node) except -9
    cdef object _push(self, long long atom, int rest)
    cdef object _enter_node(self, int node)
    cdef void _sort(self) noexcept
    cdef object _merge(self)
    cdef int _intern(self) except -9
    cdef int own(self, int state) except -1
    cdef object _load(self, int state)
    cdef object _swap(self)
    cdef object _advance(self, int byte)
    cpdef int cut(self, int state) except? -1
    cpdef int advance(self, int state, bytes data, bint whole=*) except? -1
    cpdef bint accepts(self, int state) except -1
