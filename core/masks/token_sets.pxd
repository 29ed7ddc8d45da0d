# What other compiled modules see of `tables` in C.

from ..compiled.arrays cimport copied, grown
from ..automaton cimport encoding
from ..automaton.positions cimport Atoms
from ..automaton.blocks cimport row_item
from .self_loops cimport Loops
from .character_counts cimport Counts, Marks, Runs, Survey, first_from
from .token_set cimport Table, copied_bits, new_table, set_parts
from .trie cimport Trie
from .trie_walk cimport Walk

cdef class Tables:
    cdef Atoms automaton
    cdef Trie trie
    cdef Walk walk
    cdef Loops loops
    cdef Survey survey
    cdef object index
    cdef dict known
    # bytes that tables take which nobody shares
    cdef long long held
    cdef long long built
    cdef long long visited
    cdef int words
    # where the atom of the table in the making may end, and tokens that end where it must
    cdef int[::1] end
    cdef object end_array
    cdef int end_count
    cdef int[::1] closing
    cdef int closing_count
    # spans of the trie's order whose tokens stay inside, two numbers each
    cdef int[::1] span
    cdef int span_count
    # scratch
    cdef long long[::1] stack
    cdef long long[::1] beside
    cdef int[::1] scratch

    cdef object keep(self, dict kept)
    cdef Table table(self, long long atom)
    cdef Table _build_table(self, long long atom, object free)
    cdef object _fill(self, Table table, int saved)
    cdef object _fill_dense(self, Table table, Table base, int saved)
    cdef object _walk_rows(self, int state)
    cdef object _note_span(self, int begin, int until)
    cdef long long _row_at(self, int state) except -9
    cdef object _end(self, int node, bint done)
    cdef object _set_ends(self, Table table, Table like)
    cdef int _reads_on(self, int node, int state) except -1
    cdef Table _class_table(self, long long atom)
    cdef Table _open_table(self, long long atom, int number)
    cdef int _is_near(self, long long atom, long long free) except -1
    cdef Table _near_table(self, long long atom, long long free)
    cdef Table _counted_table(self, long long atom)
    cdef unsigned int[::1] _free_bits(self, Counts counts)
