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
    # the masks of tokens of at most `BRIEF` bytes, None until they are needed; and the states that have these alone
    cdef Masks _brief
    cdef set _briefs
    cdef dict _specials
    # what tokens cost, None until it is needed
    cdef TokenCosts _costs
    cdef int _known
    # where tokens led from states that no dependent node followed
    cdef IntMap _steps

    cpdef object special_number(self, long long token_id)
    cdef long long _step(self, long long state, long long token) except -9
    cdef object _keep_step(self, long long state, long long token, long long then)
    cdef object _shorten(self, long long state, object vocabulary)
    cdef TokenCosts token_costs(self)
