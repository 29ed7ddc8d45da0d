# Declarations of `mask_engine` for other compiled modules.

from ..automaton cimport encoding
from ..automaton.states cimport Automaton
from ..compiled.int_map cimport IntMap
from .masks cimport Masks
from .token_costs cimport TokenCosts

cdef class MaskEngine:
    cdef object _program
    cdef object _index
    cdef frozenset _eos
    cdef object _token_ids
    cdef Automaton _automaton
    cdef object _lock
    cdef Masks _masks
    # the masks of the tokens of at most `BRIEF` bytes (None until first use), and the states that have only these
    cdef Masks _brief
    cdef set _briefs
    # the automaton's numbers of control tokens, by token; and the number of the store's names that are in it already
    cdef dict _specials
    cdef int _known
    # the costs of tokens (None until first use)
    cdef TokenCosts _costs
    # memoised steps: the state after a token, if no dependent node was reached
    cdef IntMap _steps

    cpdef object special_number(self, long long token_id)
    cdef long long _step(self, long long state, long long token) except -9
    cdef object _keep_step(self, long long state, long long token, long long target)
    cdef object _shorten(self, long long state, object vocabulary)
    cdef TokenCosts token_costs(self)
