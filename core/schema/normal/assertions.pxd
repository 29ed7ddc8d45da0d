# Declarations of `assertions` for other compiled modules.

from .conjunction cimport ArrayPart, Arrays, ObjectPart, Objects

cdef class Assertions:
    cdef readonly object document
    cdef readonly object unenforced
    cdef readonly bint formats
    # by place: what was read there
    cdef dict _own
    cdef dict _objects
    cdef dict _arrays
    # by the identity of a value: the value, and its formula
    cdef dict _constants
    cdef object _terms

    cpdef bint asserts(self, object located, str keyword)
    cpdef object assertions(self, object located)
    cdef object _read(self, object located)
    cdef object _count(self, object located, str keyword)
    cdef tuple _patterns(self, object located)
    cpdef bint asserts_format(self, object located)
    cpdef object values(self, object located)
    cdef Objects _object_facts(self, object located, int about)
    cdef Arrays _array_facts(self, object located, int about)
    cpdef list contains(self, object located)
    cdef object _numbers(self, object numbers, object located)
    cpdef bint matches(self, str pattern, str name)
    cpdef ObjectPart object_part(self, object located)
    cpdef ArrayPart array_part(self, object located)

cpdef bint asserts_only(object schema, str keyword)
