# Declarations of `lowering` for other compiled modules.

from ...language.nodes cimport Nodes
from ..normal.conjunction cimport Conjunction
from ..normal.inhabited cimport Inhabited
from ..normal.normalise cimport Normaliser
from .arrays cimport ArrayLowering
from .merged_objects cimport MergedObjects
from .objects cimport ObjectLowering

cdef class Lowering

cdef class _Subschema:
    cdef Lowering lowering
    cdef object located

cdef class _Values:
    cdef Lowering lowering
    cdef tuple goal

cdef class Lowering:
    cdef readonly Normaliser normaliser
    cdef readonly object options
    cdef readonly Nodes nodes
    cdef readonly int number
    cdef object _numbers
    cdef readonly bint flexible
    cdef readonly int space
    cdef readonly bytes comma
    cdef readonly bytes fixed_colon
    cdef readonly int colon
    cdef readonly object syntax
    cdef readonly MergedObjects merged
    cdef readonly ObjectLowering objects
    cdef readonly ArrayLowering arrays
    cdef object _values
    cdef dict _strings
    # the results of `_written_as`, by goal and key of the value
    cdef dict _chosen
    cdef dict _known
    # the values of subschemas by their keys, which hold as long as the subschemas are kept
    cdef dict _subschemas
    cdef list _kept
    cdef dict _typed
    cdef object _root
    cdef Inhabited _inhabited
    cdef Inhabited _elsewhere
    cdef dict _lists
    cdef bint _direct
    cdef bint _plain_integers

    cpdef int value(self, tuple goal)
    cpdef int subschema(self, object located)
    cdef int _described(self, object located)
    cdef int _scalar(self, str kind, bint integer)
    cpdef int expand(self, object located)
    cpdef object synonym(self, object located)
    cpdef list options_of(self, object located)
    cpdef bint is_sure(self, tuple goal)
    cdef bint _is_sure(self, object located)
    cpdef list branches(self, tuple goal)
    cpdef bint is_false(self, tuple goal)
    cpdef int _value(self, tuple goal)
    cpdef int branch(self, Conjunction branch)
    cpdef list allowed(self, Conjunction branch)
    cdef object _chosen_strings(self, Conjunction branch)
    cdef int _scalars(self, Conjunction branch)
    cpdef int listed(self, list values, bint integers=*)
    cdef bint _is_loose(self, object value, bint loose_numbers)
    cdef bint _any_spelling(self, object numbers)
    cdef int _equal(self, object value)
    cdef bytes _spell(self, object value)
    cpdef int string(self, int term)
    cdef int _written_strings(self, Conjunction branch)
    cpdef tuple string_parts(self, Conjunction branch)
    cpdef int string_term(self, Conjunction branch)
    cpdef int strings(self, tuple goal)
    cdef int _number_term(self, Conjunction branch)
