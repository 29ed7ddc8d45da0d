# Declarations of `arrays` for other compiled modules.

cdef object grown(object old, str code, Py_ssize_t size)
cdef object copied(str code, object view)
