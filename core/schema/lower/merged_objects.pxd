# Declarations of `merged_objects` for other compiled modules.

from ...language.nodes cimport Nodes
from ..normal.conjunction cimport ObjectPart, Objects

cdef class Member:
    cdef readonly str name
    cdef readonly tuple goal
    cdef readonly bint required
    cdef readonly tuple meets

cdef class Region:
    cdef readonly int names
    cdef readonly tuple goal
    cdef readonly tuple meets
    cdef readonly bint roomy

cdef class ObjectShape:
    cdef readonly tuple members
    cdef readonly tuple others
    cdef readonly tuple demands
    cdef readonly object least
    cdef readonly object most

cdef class MergedObjects:
    cdef readonly object lowering
    cdef readonly Nodes nodes
    cdef bint _open
    cdef dict _known
    # see `_together`
    cdef dict _sets
    cdef dict _besides
    # by patterns of names: see `_split`
    cdef dict _splits

    cpdef ObjectShape of(self, Objects objects)
    cdef ObjectShape _merge(self, Objects objects)
    cdef ObjectShape _alone(self, ObjectPart part, Objects objects)
