# Declarations of `inhabited` for other compiled modules.


cdef class Inhabited:
    cdef object _document
    # by the identity of each schema: what was found, while these schemas are kept
    cdef dict _known
    cdef list _kept
    cdef int _depth

    cpdef bint is_sure(self, object schema)
    cdef bint _judge(self, dict schema)
    cdef bint _applied(self, dict schema, str word)
    cdef bint _has_members(self, dict schema, set words)
    cdef bint _has_items(self, dict schema, set words)
