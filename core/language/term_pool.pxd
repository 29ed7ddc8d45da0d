# What compiled modules see of `termpool` in C.

from ..compiled.arrays cimport copied, grown
from ..compiled.hashing cimport BASIS, mix
from . cimport term_kinds

cdef class TermPool:
    cdef int limit
    cdef bint has_multiple
    # terms: the kind, what is known (see `termkinds`), and the arguments, a range of `args`
    cdef int count
    cdef unsigned char[::1] kind
    cdef unsigned char[::1] traits
    cdef int[::1] arg_at
    cdef int[::1] arg_count
    cdef unsigned int[::1] hashes
    cdef int[::1] args
    cdef int arg_used
    cdef int[::1] table
    # what was asked for: terms of classes and of words, and ranges of classes; the lists of words
    cdef dict sets
    cdef dict ranges_of
    cdef list lists
    cdef dict spelled
    # scratch: the arguments of the term that is made, and a set of characters as the code points where it flips
    cdef int[::1] flat
    cdef int[::1] bounds
    cdef int bound_count
    cdef int[::1] spare

    cdef object _scratch(self)
    cdef object _copy_pool(self, TermPool other)
    cdef int _make(self, int kind, int at, int n, bint nullable, bint regular) except -1
    cdef int _add(self, int kind, int at, int n, bint nullable, bint regular, unsigned int short) except -1
    cdef int _enter(self, int term) noexcept
    cdef int _arg(self, int term, int which) noexcept
    cdef int _own(self, int term) except -1
    cdef int _want(self, int size) except -1
    cdef bint _flat_has(self, int term, int n) noexcept
    cdef int _in_order(self, int n) except -1
    cdef int _bound(self, int code) except -1
    cdef int _class(self, int at) except -1
    cdef int _meet_class(self, int chars, int wanted) except -1
    cdef int _list(self, tuple ordered) except -1
    cdef int _words(self, int which, int first, int stop, int depth) except -1
    cdef bint _same_words(self, int term) except -1
    cdef int _seq(self, int left, int right) except -1
    cdef int _pair(self, int left, int right, int at) except -1
    cdef int _not(self, int part) except -1
    cdef int _copies(self, int part, int least, int most, int at) except -1
    cdef int _multiple(self, int of, int places, int remainder, int behind) except -1
