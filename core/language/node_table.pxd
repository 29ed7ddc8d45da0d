# What `nodes` sees of `nodetable` in C.

from ..compiled.arrays cimport grown
from ..compiled.hashing cimport BASIS, mix
from . cimport node_kinds

cdef class NodeTable:
    cdef readonly object terms
    cdef readonly object known
    cdef readonly object builders
    cdef public object weight
    cdef readonly int EMPTY
    cdef readonly int EPSILON
    cdef readonly bint is_shared
    cdef int _room
    # nodes: rows of integers (see `kinds`), and the hash table over them; a search leaves its slot behind
    cdef int _count
    cdef int[::1] _cells
    cdef object _cells_array
    cdef int[::1] _table
    cdef int _slot
    # what is no integer: bytes, names, rules until they are expanded, what resolves a place; and where it is found
    cdef list _things
    cdef dict _literals
    cdef dict _specials
    cdef dict _rules
    cdef dict _places
    # the parts of ALT nodes
    cdef int[::1] _parts
    cdef object _parts_array
    cdef int _parts_used
    # the lists of WORDS nodes, one after the other: words, what follows, and sums of hashes up to there
    cdef list _words
    cdef int[::1] _follows
    cdef object _follows_array
    cdef long long[::1] _sums
    cdef object _sums_array
    # what is at work: frames of searches, and lists that are being made
    cdef int[::1] _stack
    cdef object _stack_array
    cdef int _top

    cdef int _check(self, int node) except -1
    cdef void _learn(self, int node, int has_text, int nullable) noexcept
    cdef int _push(self, int value) except -1
    cdef int _new(self, int kind, int a, int b, int c, int mixed) except -1
    cdef int _enter(self, int kind, int a, int b, int c, int mixed) except -1
    cdef int _find(self, int kind, int a, int b, int c, int mixed) except -2
    cdef bint _same_parts(self, int at, int count, int start, int size) noexcept
    cdef int _same_words(self, int one, int end, int other, int stop) except -1
    cdef int _make(self, int kind, int a, int b, int c) except -1
    cdef int _literal(self, bytes data) except -1
    cdef bytes _bytes(self, int node)
    cdef int _seq(self, int left, int right) except -1
    cdef int _pair(self, int left, int right) except -1
    cdef int _joined(self, bytes data, int follows) except -2
    cdef int _alt(self, int start) except -1
    cdef int _distinct(self, int start, int width) except -1
    cdef int _repeat(self, int part, int least, int most) except -1
    cdef int _list(self, int first, int end, int depth) except -1
