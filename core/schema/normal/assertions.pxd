# Declarations of `assertions` for other compiled modules.

from ..read.located cimport Located
from ..read.resolve cimport Document
from .conjunction cimport ArrayPart, Arrays, ObjectPart, Objects

cdef class Assertions:
    cdef readonly Document document
    cdef readonly object unenforced
    cdef readonly bint formats
    # by place: what was read there
    cdef dict _own
    cdef dict _objects
    cdef dict _arrays
    # by the identity of a value: the value, and its formula
    cdef dict _constants
    cdef object _terms

    cpdef bint asserts(self, Located located, str keyword)
    cpdef object assertions(self, Located located)
    cdef object _read(self, Located located)
    cdef object _count(self, Located located, str keyword)
    cdef tuple _patterns(self, Located located)
    cpdef bint asserts_format(self, Located located)
    cpdef object values(self, Located located)
    cdef Objects _object_facts(self, Located located, int about)
    cdef Arrays _array_facts(self, Located located, int about)
    cpdef list contains(self, Located located)
    cdef object _numbers(self, object numbers, Located located)
    cpdef bint matches(self, str pattern, str name)
    cpdef ObjectPart object_part(self, Located located)
    cpdef ArrayPart array_part(self, Located located)

cpdef bint asserts_only(object schema, str keyword)
