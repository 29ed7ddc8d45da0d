# Declarations of `conjunction` for other compiled modules.

cdef class AnyOf:
    cdef readonly tuple parts
    cdef Py_hash_t _hash

cdef class AllOf:
    cdef readonly tuple parts
    cdef Py_hash_t _hash

cdef class ObjectPart:
    cdef readonly object properties
    cdef readonly object patterns
    cdef readonly object additional
    cdef readonly bint names_properties

cdef class Exists:
    cdef readonly object formula
    cdef readonly object name
    cdef readonly object pattern
    cdef readonly object beside
    cdef readonly object failing
    cdef Py_hash_t _hash

    cdef tuple _key(self)

cdef class AnyExists:
    cdef readonly tuple options
    cdef readonly frozenset absent
    cdef Py_hash_t _hash

cdef class ArrayPart:
    cdef readonly tuple prefix
    cdef readonly object items

cdef class Strings:
    cdef readonly object least
    cdef readonly object most
    cdef readonly tuple patterns
    cdef readonly tuple formats
    cdef readonly tuple not_patterns
    cdef readonly tuple not_formats

    cdef tuple _key(self)

cdef class Findings:
    cdef public dict members
    cdef public object is_void
    cdef public dict excluded

cdef class Objects:
    cdef readonly tuple parts
    cdef readonly tuple unevaluated
    cdef readonly tuple exists
    cdef readonly tuple names
    cdef readonly tuple required
    cdef readonly frozenset absent
    cdef readonly object least
    cdef readonly object most
    cdef readonly tuple any_exists
    cdef Py_hash_t _hash
    # computed when they are first asked for
    cdef frozenset _needed
    cdef frozenset _named
    cdef Findings _findings

    cdef tuple _key(self)
    cdef frozenset names_needed(self)
    cdef frozenset names_asked(self)
    cdef Findings notes(self)

cdef class Arrays:
    cdef readonly tuple parts
    cdef readonly tuple unevaluated
    cdef readonly tuple contains
    cdef readonly object least
    cdef readonly object most
    cdef readonly bint unique
    cdef Py_hash_t _hash

    cdef tuple _key(self)

cdef class Conjunction:
    cdef readonly frozenset types
    cdef readonly object values
    cdef readonly tuple not_values
    cdef readonly object numbers
    cdef readonly Strings strings
    cdef readonly Arrays arrays
    cdef readonly Objects objects

    cpdef Conjunction of_types(self, frozenset types)

cpdef object meet(Conjunction left, Conjunction right)
