# Declarations of `node_search` for other compiled modules.

from . cimport node_kinds
from .node_store cimport NodeStore, cell

cdef class NodeSearch(NodeStore):
    cdef readonly list limits
    # rules in expansion
    cdef set _opening
    # the provisional answers of searches, as pairs of a node and its previous mark; and their lowest frames, as pairs
    # of the index of the first answer of a group and the frame
    cdef list _provisional
    cdef list _groups
    cdef public long long met

    cdef void _learn(self, int node, int has_text, int nullable) noexcept
    cpdef int expand(self, int node) except -1
    cdef int _expand(self, int node) except -1
    cdef int _as_empty_as(self, int node) except -3
    cdef int _without(self, int node, object error, int before) except -1
    cpdef bint nullable(self, int node) except -1
    cpdef bint is_empty(self, int node) except -1
    cdef int _answer(self, int node, int question) except -1
    cdef void _pop_frame(self) noexcept
    cdef int _push_frame(self, int node) except -1
    cdef int _settle(self, Py_ssize_t first, int verdict, int question) except -1
    cdef int _make_provisional(self, int node, int lowest, Py_ssize_t first) except -1
    cdef int _depends(self, Py_ssize_t number) except -1
    cdef int _search(self, int node, int question) except -1
    cdef bint _is_any(self, int node) noexcept
    cdef int _child(self, int node, int number, int question) except -3
    cdef bint _is_whole(self, int word, int depth) noexcept
