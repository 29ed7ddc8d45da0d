# Declarations of `byte_rows` for other compiled modules.

from ..compiled.int_map cimport IntMap
from ..compiled.memory cimport as_bytes, free, ints, more, read_bytes, twin
from ..language.terms cimport Terms
from . cimport encoding
from .blocks cimport row_item

cdef class ByteRows:
    cdef readonly Terms terms
    # memoised: shortest bytes from a state to the end, and of terms (see `completion.strings.Firsts`); True for wide classes; term lengths
    cdef dict paths
    cdef dict raw_firsts
    cdef dict quoted_firsts
    cdef dict wide
    cdef dict lengths
    cdef int nothing
    cdef int epsilon
    # the states, `FACTS` numbers each, and their numbers by their keys (those of the seed are in its own)
    cdef int* facts
    cdef int count
    cdef int room
    cdef IntMap numbers
    # the rows: the addresses of their blocks, and the last block
    cdef long long* rows
    cdef int block_count
    cdef int block_room
    cdef int* block
    cdef int used
    # the first states, whose rows are shared with the store that this is a copy of
    cdef ByteRows seed
    cdef bint owns_base
    cdef int base_count
    cdef int base_functions
    cdef int* base
    # the functions of several pieces, and their numbers
    cdef list functions
    cdef dict function_numbers
    # scratch: the pieces of a term's derivatives, those of a function that is read, and of one in construction
    cdef int* bound
    cdef int bound_room
    cdef int bounds
    cdef int* part
    cdef int part_room
    cdef int* cut
    cdef int cut_room
    cdef int cuts
    # the number of each class of characters
    cdef dict class_numbers

    cdef object _set_unshared(self, Terms terms)
    cdef int _find(self, int kind, int rest) noexcept
    cdef int _state(self, int kind, int rest) except -9
    cdef int _add(self, int kind, int rest) except -9
    cdef int _checked(self, int state) except -1
    cdef int _put(self, int start, int state) except -9
    cdef int _put_part(self, int* source, int count, int low, int high, int shift) except -9
    cdef int _function_state(self, int kind) except -9
    cdef int fact(self, int state, int which) noexcept
    cpdef int derive(self, int state) except -1
    cdef object _add_block(self)
    cdef int _read_function(self, int rest) except -1
    cdef object _derive(self, int state, int* row, int at)
    cdef int _after_bits(self, int kind, int rest, int pieces, int number, int bits) except -9
    cdef int _reserve(self, int count) except -1
    cdef int _load(self, int term, int kind) except -9
    cdef object _derive_body(self, int state, int* row, int at)
    cdef object _derive_leads(self, int piece, int* row, int at)
    cdef int _escape(self, bint is_free) except -9
    cdef object _derive_escape(self, int rest, int* row, int at)
