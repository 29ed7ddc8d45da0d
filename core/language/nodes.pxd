# Declarations of `nodes` for other compiled modules.

from ..compiled.memory cimport free, ints, more
from . cimport node_kinds
from .node_search cimport NodeSearch
from .node_store cimport cell

cdef class Nodes(NodeSearch):
    cdef readonly dict known
    cdef readonly dict builders
    cdef public object weight
    cdef public int plenty
    cdef readonly bint is_shared
    # for each node the number of its heads, then the pairs of an atomic node and the node of the rest
    cdef int* _heads
    cdef int _heads_used
    cdef int _heads_room

    cdef int _words_before(self, int first, int end, int depth, int byte) except -1
    cpdef int head_index(self, int node) except -1
    cdef int _need_heads(self, int node) except -1
    cdef int _begin_heads(self, int node) except -1
    cdef int _next_first(self, int node, int at) except -2
    cdef int _compute_heads(self, int node) except -1
    cdef int _add(self, int node, int right) except -1
    cdef int _add_words(self, int first, int end, int depth) except -1
