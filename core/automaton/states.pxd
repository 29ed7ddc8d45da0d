# Declarations of `states` for other compiled modules.

from ..compiled.arrays cimport grown
from ..compiled.hashing cimport BASIS, mix
from ..compiled.int_map cimport IntMap
from ..language.nodes cimport Nodes
from . cimport encoding
from .positions cimport Positions

cdef class Automaton(Positions):
    cdef object source
    cdef Nodes nodes
    # heads of nodes
    cdef int[::1] head_at
    cdef int[::1] head_count
    cdef unsigned char[::1] node_null
    cdef long long[::1] node_atom
    cdef int node_room
    cdef int[::1] found
    cdef object found_array
    cdef long long[::1] head_atom
    cdef int[::1] head_rest
    cdef object head_atom_array
    cdef object head_rest_array
    cdef object head_at_array
    cdef object head_count_array
    cdef object node_null_array
    cdef object node_atom_array
    cdef int head_used
    # states: hash-consed sets of threads
    cdef long long[::1] thread_atom
    cdef int[::1] thread_rest
    cdef object thread_atom_array
    cdef object thread_rest_array
    cdef int thread_used
    cdef int[::1] state_at
    cdef int[::1] state_count
    cdef unsigned char[::1] state_accepts
    cdef object state_at_array
    cdef object state_count_array
    cdef object state_accepts_array
    cdef int state_used
    cdef IntMap interned
    cdef dict cuts
    # scratch
    cdef long long[::1] now_atom
    cdef int[::1] now_rest
    cdef int now_count
    cdef bint now_accepts
    cdef bint is_open
    cdef long long[::1] next_atom
    cdef int[::1] next_rest
    cdef int next_count
    cdef bint next_accepts

    cdef object _grow_nodes(self, int needed)
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
