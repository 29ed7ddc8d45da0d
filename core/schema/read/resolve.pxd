# Declarations of `resolve` for other compiled modules.

from .located cimport Located

cdef class Document:
    cdef readonly object schema
    cdef readonly object registry
    cdef readonly bint dynamic
    cdef readonly int age
    cdef readonly bint is_draft_3
    cdef readonly bint ref_hides_siblings
    cdef readonly bint contains_evaluates
    cdef readonly Located root
    cdef public object entries
    cdef public bint has_common
    cdef readonly dict users
    cdef readonly list risky
    cdef readonly list forking
    cdef readonly set disjoint
    cdef readonly set demanding
    # the value of $schema, and the keyword that gives a schema an address
    cdef object _named
    cdef str _id
    # by reference: what it leads to
    cdef dict _targets
    # by the key of a schema with an address of its own: the scope inside it, in a tuple; None: the same as around it
    cdef dict _entered
    # the keywords of the dialect, and the scope of the root, once they were asked for
    cdef frozenset _known
    cdef object _base

    cpdef bint knows(self, str keyword)
    cpdef Located resolve(self, Located located, str keyword=*)
    cpdef bint is_resource(self, object schema)
    cpdef Located enter(self, Located located)
