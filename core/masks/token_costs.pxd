# Declarations of `token_costs` for other compiled modules.

from ..compiled.arrays cimport grown
from ..automaton cimport encoding
from ..automaton.states cimport Automaton
from .fewest_tokens cimport FewestTokens, Spelling
from .subtrees cimport Subtrees
from .trie cimport Trie

cdef class Costs:
    cdef readonly int longest
    cdef readonly list unsure
    cdef list levels
    cdef int rest
    cdef int[::1] spans
    cdef int span_count
    cdef list alone
    cdef dict masks

cdef class TokenCosts:
    cdef object program
    cdef Automaton automaton
    cdef Trie trie
    cdef Subtrees subtrees
    cdef object special
    cdef tuple finals
    cdef readonly FewestTokens fewest
    # by state: the costs, and the number of tokens that complete it
    cdef readonly dict known
    cdef dict least
    # by the number of missing characters, the canonical counted string; and by node, whether a dependent node begins it
    cdef dict canonical
    cdef dict is_before_dependent
    cdef long long held
    cdef int words
    # the walk: by depth on the current path, the states (-1: one thread) or the threads, and the classes
    cdef int[::1] at_state
    cdef long long[::1] at_atom
    cdef int[::1] at_rest
    cdef int[::1] at_class
    cdef dict classes
    cdef int[::1] span
    cdef object span_array
    cdef int span_count

    cdef Spelling _completion(self, int state)
    cdef list _with_spare(self, int state, list parts)
    cdef bint _has_spare(self, int state, int quote, int end) except -1
    cdef int _beyond(self, int state) except -9
    cdef long long _canonical(self, long long atom, int rest) except -9
    cdef int _state_of(self, long long atom, int rest) except -9
    cdef object _arrive(self, int depth, int state)
    cdef int _class_at(self, int depth) except -9
    cdef object _note(self, int begin, int stop, int number)
    cdef object _walk(self, int state)
    cdef Costs _build(self, int state)
    cdef object _fitting(self, Costs costs, int count)
