# Declarations of `normalise` for other compiled modules.

from .assertions cimport Assertions
from .conjunction cimport AnyOf, Conjunction
from .prune cimport Contradictions

cdef class Normaliser(Assertions):
    cdef object __weakref__
    cdef public long long steps
    cdef public int one_of_as_union
    cdef public long long compared
    cdef public long long pairs
    cdef readonly Contradictions contradictions
    cdef readonly dict expanded
    cdef readonly dict excluded
    cdef bint _open_objects
    cdef dict _overlaps
    cdef dict _negations
    # the alternatives of a formula; None while they are computed
    cdef dict _alternatives
    cdef dict _others
    # by the identity of alternatives: these, and all of them as one formula
    cdef dict _together

    cpdef list branches(self, tuple goal)
    cdef bint _holds_one(self, Conjunction known, AnyOf formula)
    cdef list _alone(self, object formula)
    cdef object _gathered(self, list ways)
    cdef tuple _entered(
        self, Conjunction conjunction, tuple rest, object seen, object formula, frozenset above, tuple scopes
    )
    cdef object _decided(self, Conjunction known, object condition)
    cdef tuple _held(
        self, Conjunction conjunction, tuple rest, object seen, object located, frozenset above, tuple scopes
    )
    cdef object _negation(self, object located)
    cdef list _applied(self, object located, tuple scopes)
    cdef bint _is_decided_late(self, object located)
    cdef list _ways(self, object formula)
