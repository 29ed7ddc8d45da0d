# Declarations of `arrays` for other compiled modules.

from ...language.nodes cimport Nodes
from ..normal.conjunction cimport Arrays

cdef class ArrayLowering

cdef class _ArrayPlan:
    cdef Arrays arrays
    cdef bint is_plain
    cdef dict goals
    cdef object limit
    cdef dict places
    cdef object few
    cdef object late
    cdef dict late_items
    cdef dict classes
    cdef object strings

cdef class _Place:
    cdef ArrayLowering lowering
    cdef _ArrayPlan plan
    cdef object count
    cdef tuple counted
    cdef object written
    cdef tuple left
    cdef frozenset alike

cdef class ArrayLowering:
    cdef readonly object lowering
    cdef readonly Nodes nodes
    cdef dict _plans
    cdef int _opening
    cdef int _closing
    cdef int _comma

    cpdef int node(self, Arrays arrays, frozenset excluded=*)
    cdef int _rest(self, _Place place)
    cdef bint _may_close(self, _Place place)
    cdef tuple _goal(self, _ArrayPlan plan, object count)
    cpdef int expand(self, _Place place)
