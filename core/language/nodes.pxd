# Declarations of `nodes` for other compiled modules.

from ..compiled.hashing cimport BASIS, mix
from ..compiled.int_map cimport IntMap
from ..compiled.memory cimport free, ints, longs, more
from . cimport node_kinds
from .terms cimport Terms

cdef class Nodes:
    cdef readonly Terms terms
    cdef readonly dict known
    cdef readonly dict builders
    cdef readonly dict shorter
    cdef readonly list limits
    cdef public object weight
    cdef public int plenty
    cdef readonly int EMPTY
    cdef readonly int EPSILON
    cdef readonly bint is_shared
    cdef int _room
    # nodes: rows of integers (see `node_kinds`), and their numbers by their hashes
    cdef int _count
    cdef int* _cells
    cdef int _cells_room
    cdef IntMap _interned
    # bytes, names, rules until they are expanded, and resolvers of places; and the nodes by each of them
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
    # of each node the number of its heads, then for each an atomic node and the node of the rest
    cdef int* _heads
    cdef int _heads_used
    cdef int _heads_room
    # rules in expansion; and a stack of search frames and unfinished lists
    cdef set _opening
    # the provisional answers of searches, as pairs of a node and its mark before; and the lowest frame on which they
    # depend, as pairs of the number of the first of some neighbouring ones and the frame
    cdef list _provisional
    cdef list _groups
    cdef public long long met
    cdef int* _stack
    cdef int _stack_room
    cdef int _top

    cdef int _check(self, int node) except -1
    cdef void _learn(self, int node, int has_text, int nullable) noexcept
    cdef int _push(self, int value) except -1
    cdef int _new(self, int kind, int a, int b, int c) except -1
    cdef int _enter(self, int kind, int a, int b, int c, unsigned long long hashed) except -1
    cdef int _find(self, int kind, int a, int b, int c, unsigned long long hashed) except -2
    cdef bint _same_parts(self, int at, int count, int start, int size) noexcept
    cdef int _same_words(self, int one, int end, int other, int stop) except -1
    cdef int _make(self, int kind, int a, int b, int c) except -1
    cpdef int literal(self, bytes data) except -1
    cdef int _literal(self, bytes data) except -1
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
    cpdef int expand(self, int node) except -1
    cdef int _expand(self, int node) except -1
    cdef int _without(self, int node, object error, int before) except -1
    cpdef bint nullable(self, int node) except -1
    cpdef bint is_empty(self, int node) except -1
    cdef int _answer(self, int node, int question) except -1
    cdef void _leave(self) noexcept
    cdef int _meet(self, int node) except -1
    cdef int _settle(self, Py_ssize_t first, int verdict, int question) except -1
    cdef int _postpone(self, int node, int lowest, Py_ssize_t first) except -1
    cdef int _depends(self, Py_ssize_t number) except -1
    cdef int _search(self, int node, int question) except -1
    cdef bint _is_any(self, int node) noexcept
    cdef int _child(self, int node, int number, int question) except -3
    cdef bint _is_whole(self, int word, int depth) noexcept
    cpdef int lay_heads(self, int node) except -1
    cdef int _need_heads(self, int node) except -1
    cdef int _begin(self, int node) except -1
    cdef int _first(self, int node, int at) except -2
    cdef int _gather(self, int node) except -1
    cdef int _add(self, int node, int right) except -1
    cdef int _add_words(self, int first, int end, int depth) except -1
