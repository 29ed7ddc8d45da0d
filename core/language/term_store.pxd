# Declarations of `term_store` for other compiled modules.

from ..compiled.hashing cimport BASIS, mix
from ..compiled.int_map cimport IntMap
from ..compiled.memory cimport free, ints, more, octets, twin
from . cimport term_kinds

cdef class TermStore:
    cdef readonly dict memo
    cdef public int room
    cdef bint has_multiple
    # terms: the kind, traits (see `term_kinds`), the arguments, a range of `args`, and the derivative row: its index (0:
    # not derived yet) and number of segments
    cdef int count
    cdef int term_room
    cdef unsigned char* kind
    cdef unsigned char* traits
    cdef int* arg_at
    cdef int* arg_count
    cdef int* row_at
    cdef int* row_count
    cdef int* args
    cdef int arg_used
    cdef int arg_room
    # the terms by their hashes: those of this store, and those of the store that it is a copy of
    cdef IntMap interned
    cdef IntMap seeded
    # memoised: terms of classes and of words, ranges of classes, and the lists of words
    cdef dict sets
    cdef dict spelled
    cdef dict ranges_of
    cdef list lists
    # the number of words in the lists
    cdef long long listed
    # deferred terms: by their keys, and their builders
    cdef dict keys
    cdef dict builders
    # scratch: the arguments of the term in construction, and sets of characters as the code points where they flip
    cdef int* flat
    cdef int flat_room
    cdef int* bounds
    cdef int bound_count
    cdef int bound_room
    cdef int* spare
    cdef int spare_room

    cdef object _scratch(self)
    cdef object _copy_terms(self, TermStore other)
    cdef int _make(self, int kind, int at, int n, bint nullable, bint regular) except -1
    cdef int _find(self, IntMap table, int kind, int at, int n, unsigned long long hashed) except -2
    cdef int _add(self, int kind, int at, int n, bint nullable, bint regular, unsigned long long hashed) except -1
    cdef int _arg(self, int term, int which) noexcept
    cdef int _own(self, int term) except -1
    cdef int _reserve(self, int size) except -1
    cdef bint _flat_has(self, int term, int n) noexcept
    cdef int _in_order(self, int n) except -1
    cpdef int chars_of(self, object flips) except -1
    cdef int _bound(self, int code) except -1
    cdef int _class(self, int at) except -1
    cdef int _meet_class(self, int chars, int wanted) except -1
    cpdef int literal(self, object text) except -1
    cpdef int words(self, object texts) except -1
    cdef int _list(self, tuple ordered) except -1
    cdef int _words(self, int which, int first, int stop, int depth) except -1
    cdef int _find_words(self, IntMap table, unsigned long long hashed) except -2
    cdef bint _same_words(self, int term) except -1
    cpdef int seq(self, int left, int right) except -1
    cdef int _seq(self, int left, int right) except -1
    cdef int _pair(self, int left, int right, int at) except -1
    cpdef int not_(self, int part) except -1
    cdef int _not(self, int part) except -1
    cpdef int repeat(self, int part, object least, object most) except -1
    cdef int _copies(self, int part, int least, int most, int at) except -1
    cdef int _multiple(self, int of, int places, int remainder, int decimals) except -1
    cpdef int alt(self, object parts) except -1
    cpdef int and_(self, object parts) except -1
    cdef int _spread(self, int kind, int part, int n) except -1
    cdef int _alt(self, int n) except -1
    cdef int _and(self, int n) except -1
    cdef bint _is_run(self, int term)
    cdef int _common_run(self, int n) except -1
    cpdef bint nullable(self, int term) except -1
    cpdef object run_bounds(self, int term)
    cpdef object length_bounds(self, int term)
