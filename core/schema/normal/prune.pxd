# Declarations of `prune` for other compiled modules.

from .conjunction cimport Conjunction, Objects

cdef class MemberFacts:
    cdef frozenset held
    cdef frozenset denied
    cdef frozenset allowed
    cdef frozenset excluded

    cdef MemberFacts meet(self, MemberFacts other)
    cdef bint is_false(self)

cdef class Contradictions:
    cdef object _assertions
    # by sign: the scalars that a subschema lists
    cdef dict _allowed
    cdef dict _excluded
    cdef dict _meanings
    cdef dict _facts
    # counts
    cdef public long long meets

    cpdef bint exclude(self, Conjunction left, Conjunction right)
    cpdef object meet(self, Conjunction left, Conjunction right)
    cpdef bint between(self, Objects left, Objects right)
    cdef bint _differ(self, Objects left, Objects right, object name)
    cdef frozenset _values_of(self, Objects objects, object name)
    cdef bint _is_void(self, Objects objects)
    cpdef object inherit(self, Objects both, Objects left, Objects right)
    cpdef bint holds(self, Conjunction known, object formula)
    cpdef bint implies(self, Objects objects, object name, object formula)
    cpdef bint denies(self, Objects objects, object name, object formula)
    cpdef object meaning(self, object formula)
    cdef bint _implies_part(self, Objects objects, object part)
    cdef bint _implied(self, Objects objects, object name, object formula)
    cdef MemberFacts _of(self, Objects objects, object name)
    cdef MemberFacts _fact(self, object formula)
    cdef MemberFacts _read_fact(self, object formula)
    cdef object _meaning(self, object located)
    cdef object _read_meaning(self, object located)
    cdef frozenset _listed(self, object located, bint positive)
    cdef object _read(self, object located, bint positive)
