# What other compiled modules see of `arrays` in C.

cdef object grown(object old, str code, Py_ssize_t size)
cdef object copied(str code, object view)
