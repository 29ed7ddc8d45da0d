# Declarations of `node_store` for other compiled modules.

from ..compiled.hashing cimport BASIS, mix
from ..compiled.int_map cimport IntMap
from ..compiled.memory cimport free, ints, longs, more
from . cimport node_kinds
from .terms cimport Terms

cdef class NodeStore:
    cdef readonly Terms terms
    cdef readonly dict shorter
    cdef readonly int EMPTY
    cdef readonly int EPSILON
    cdef int _room
    # nodes: rows of integers (see `node_kinds`), and their numbers by their hashes
    cdef int _count
    cdef int* _cells
    cdef int _cells_room
    cdef IntMap _interned
    # bytes, names, rules until they are expanded, and resolvers of dependent nodes; and the nodes by each of them
    cdef list _things
    cdef dict _literals
    cdef dict _specials
    cdef dict _rules
    cdef dict _places
    # the unions that `merged` made, by their parts
    cdef dict _merged
    # the parts of ALT nodes
    cdef int* _parts
    cdef int _parts_used
    cdef int _parts_room
    # the lists of WORDS nodes, one after the other: words, the nodes that follow, and prefix sums of hashes
    cdef list _words
    cdef int* _follows
    cdef long long* _sums
    cdef int _words_room
    # search frames and unfinished lists
    cdef int* _stack
    cdef int _stack_room
    cdef int _top

    cdef object _clear_nodes(self)
    cdef int _check(self, int node) except -1
    cdef int _push(self, int value) except -1
    cdef int _new(self, int kind, int a, int b, int c) except -1
    cdef int _enter(self, int kind, int a, int b, int c, unsigned long long hashed) except -1
    cdef int _find(self, int kind, int a, int b, int c, unsigned long long hashed) except -2
    cdef bint _same_parts(self, int at, int count, int start, int size) noexcept
    cdef int _same_words(self, int one, int end, int other, int stop) except -1
    cdef int _make(self, int kind, int a, int b, int c) except -1
    cpdef int literal(self, bytes data) except -1
    cdef bytes _bytes(self, int node)
    cpdef int text(self, int term) except -1
    cpdef int json_string(self, int term) except -1
    cpdef int seq(self, int left, int right) except -1
    cdef int _seq(self, int left, int right) except -1
    cdef int _pair(self, int left, int right) except -1
    cdef int _joined(self, bytes data, int follows) except -2
    cpdef int sequence(self, object parts) except -1
    cpdef int alt(self, object parts) except -1
    cdef int _alt(self, int start) except -1
    cdef int _distinct(self, int start, int width) except -1
    cdef int _repeat(self, int part, int least, int most) except -1
    cpdef int words(self, object entries) except -1
    cdef int _list(self, int first, int end, int depth) except -1
    cpdef int lazy(self, object key, object expand, object as_empty_as=*, object as_short_as=*) except -1
    cpdef list lazy_each(self, object family, list numbers, list as_empty_as)

# One of the integers of a node.
cdef inline int cell(NodeStore nodes, int node, int column) noexcept:
    return nodes._cells[node * node_kinds.WIDTH + column]
