# Declarations of `objects` for other compiled modules.

from ...language.nodes cimport Nodes
from ..normal.conjunction cimport Objects
from .merged_objects cimport MergedObjects, ObjectShape
from .object_plan cimport ObjectPlan

cdef class ObjectLowering

cdef class _Place:
    cdef ObjectLowering objects
    cdef ObjectPlan plan
    cdef object at
    cdef bint first
    cdef object members
    cdef object open
    cdef frozenset alike
    cdef frozenset names
    cdef object start

cdef class _Named:
    cdef _Place place
    cdef Py_ssize_t number
    cdef object name

cdef class _Table:
    cdef ObjectLowering objects
    cdef ObjectPlan plan

cdef class ObjectLowering:
    cdef readonly object lowering
    cdef readonly Nodes nodes
    cdef readonly bint any_order
    cdef object _members
    cdef bint _direct
    cdef MergedObjects _merged
    cdef dict _plans
    cdef bytes _lead
    cdef bytes _ending
    cdef object _loose_comma
    cdef object _loose_space
    cdef object _colon
    cdef object _opening
    cdef object _closing

    cpdef ObjectShape shape(self, Objects objects)
    cpdef int node(self, Objects objects, frozenset excluded=*)
    cdef int _node(self, ObjectPlan plan)
    cdef int _after(
        self, ObjectPlan plan, object at, object members, object open, frozenset alike, frozenset names, object start
    )
    cdef int _rule(self, _Place place)
    cpdef int in_order(
        self,
        ObjectPlan plan,
        Py_ssize_t start,
        object at,
        bint first,
        object members,
        object open,
        frozenset alike,
        frozenset names,
    )
    cdef object _skeleton(self, ObjectPlan plan)
    cdef object _instead(self, _Place place)
    cdef bint _has_enough(self, _Place place)
    cdef bint _has_region(self, ObjectPlan plan)
    cpdef int expand(self, _Place place)
    cdef object _add(self, list entries, _Place place, Py_ssize_t number)
    cdef tuple _words(self, ObjectPlan plan, Py_ssize_t number)
    cdef int _named(self, _Place place, Py_ssize_t number, object name)
    cpdef int expand_named(self, _Place place, Py_ssize_t number, object name)
    cdef object _unmet(self, _Place place, Py_ssize_t end)
    cdef int _value(self, ObjectPlan plan, Py_ssize_t number)
    cdef int _written_value(self, object name, tuple goal)
    cdef bint _is_sure(self, ObjectPlan plan, Py_ssize_t number)

cpdef bytes spelled_name(str name)
