# Declarations of `token_costs` for other compiled modules.

from ..compiled.arrays cimport grown
from ..automaton cimport encoding
from ..automaton.states cimport Automaton
from .subtrees cimport Subtrees
from .trie cimport Trie

cdef class Spelling:
    cdef int[::1] codes
    cdef int[::1] least
    cdef int[::1] token
    cdef int[::1] size
    cdef int length

cdef class Costs:
    cdef int levels
    cdef int[::1] cost
    cdef int[::1] at
    cdef int[::1] ids
    cdef list dense
    cdef int rest
    cdef int longest
    cdef bint is_steady
    cdef int least
    cdef int unsure_count
    cdef long long[::1] unsure_ids
    cdef long long[::1] unsure_states
    cdef bint is_named
    cdef list heads
    cdef object own
    cdef list escaped
    cdef dict opened
    cdef long long size

cdef class TokenCosts:
    cdef object program
    cdef Automaton automaton
    cdef Trie trie
    cdef Subtrees subtrees
    cdef tuple tokens
    cdef object special
    cdef tuple finals
    cdef dict known
    cdef dict alike
    cdef dict costs
    cdef dict heads
    cdef dict tails
    cdef long long held
    cdef Spelling nothing
    cdef unsigned int[::1] kept
    cdef int words
    # the walk: of the path to the present node, the states (-1: one thread) or the threads, and the numbers of classes
    cdef int[::1] at_state
    cdef long long[::1] at_atom
    cdef int[::1] at_rest
    cdef int[::1] at_class
    cdef dict classes
    cdef int[::1] span
    cdef object span_array
    cdef int span_count

    cdef Spelling _spelled(self, object codes, Spelling tail)
    cdef Spelling _tail(self, object rope)
    cdef Spelling _closing(self, object plan)
    cdef int _cost(self, int state) except -9
    cdef object _head(self, int state, object plan)
    cdef int _beyond(self, int state) except -9
    cdef int _after(self, int state, bytes data) except -9
    cdef list doubtful(self, Costs costs, list endings, list names)
    cdef long long _alike_atom(self, long long atom)
    cdef int _state_of(self, long long atom, int rest) except -9
    cdef object _arrive(self, int depth, int state)
    cdef int _class_at(self, int depth) except -9
    cdef object _note(self, int begin, int stop, int number)
    cdef object _walk(self, int state)
    cdef Costs _build(self, int state)
    cdef bint _is_steady(self, int state, Costs found) except -1
    cdef Costs of(self, int state)
    cdef Costs known_of(self, int state)
    cdef int clear(self, Costs costs, unsigned int[::1] row, int room) noexcept
    cdef list unsure_groups(self, Costs costs, unsigned int[::1] row)
    cdef object clear_unsure(self, Costs costs, unsigned int[::1] row)
