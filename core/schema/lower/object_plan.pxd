# Declarations of `object_plan` for other compiled modules.

cdef class ObjectPlan:
    cdef readonly tuple members
    cdef readonly Py_ssize_t size
    cdef readonly list names
    cdef readonly object required
    cdef readonly tuple others
    cdef readonly Py_ssize_t demands
    cdef readonly list absent
    cdef readonly list open_to
    cdef readonly object least
    cdef readonly object most
    cdef readonly bint plain
    cdef readonly list sure
    cdef readonly list words
    cdef readonly list values
    cdef readonly dict follow
    cdef readonly list following
    cdef readonly list region_names
    cdef readonly dict places
    cdef public object start
    cdef public object skeleton
    cdef public object endless
    # by member: the demands that it may meet, as bits; members that are optional; those that decide no demand
    cdef list _able
    cdef object _optional
    cdef object _silent

    cpdef tuple goal(self, Py_ssize_t number)
    cpdef tuple meets(self, Py_ssize_t number)
