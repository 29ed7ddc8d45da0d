# Declarations of `located` for other compiled modules.

cdef class Located:
    cdef readonly object schema
    cdef readonly object scope
    cdef readonly object key
    cdef public bint entered
    # the pointer: a text, or the steps from a place above
    cdef str _start
    cdef object _above
    cdef tuple _steps

    cpdef Located under(self, str keyword)
    cpdef list items(self, str keyword)
    cpdef dict members(self, str keyword)
    cpdef Located below(self, object schema, tuple steps)
    cpdef object inner_key(self, object schema)

cdef class SignedSchema:
    cdef readonly Located located
    cdef readonly bint positive

cpdef SignedSchema signed(Located located, bint positive=*)
