# Memory for numbers of one type, in C (see `memory`). Sizes are counted in numbers, and are above zero. It comes from
# Python's allocator, so that `tracemalloc` sees it.

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.string cimport memcpy, memset

ctypedef fused number:
    unsigned char
    short
    int
    long long
    unsigned long long

cdef inline void* zeros(Py_ssize_t size, Py_ssize_t width) except NULL:
    cdef void* made = PyMem_Calloc(size, width)
    if made == NULL:
        raise MemoryError
    return made

cdef inline void free(void* old) noexcept:
    PyMem_Free(old)

cdef inline unsigned char* octets(Py_ssize_t size) except NULL:
    return <unsigned char*> zeros(size, 1)

cdef inline short* shorts(Py_ssize_t size) except NULL:
    return <short*> zeros(size, sizeof(short))

cdef inline int* ints(Py_ssize_t size) except NULL:
    return <int*> zeros(size, sizeof(int))

cdef inline long long* longs(Py_ssize_t size) except NULL:
    return <long long*> zeros(size, sizeof(long long))

cdef inline unsigned long long* ulongs(Py_ssize_t size) except NULL:
    return <unsigned long long*> zeros(size, sizeof(long long))

cdef inline number* more(number* old, Py_ssize_t had, Py_ssize_t size) except NULL:
    cdef number* made = <number*> PyMem_Realloc(old, size * sizeof(number))
    if made == NULL:
        raise MemoryError
    memset(made + had, 0, (size - had) * sizeof(number))
    return made

cdef inline number* twin(number* old, Py_ssize_t used, Py_ssize_t size) except NULL:
    cdef number* made = <number*> PyMem_Malloc(size * sizeof(number))
    if made == NULL:
        raise MemoryError
    memcpy(made, old, used * sizeof(number))
    memset(made + used, 0, (size - used) * sizeof(number))
    return made

cdef inline bytes as_bytes(int* numbers, Py_ssize_t count):
    return (<char*> numbers)[: count * <Py_ssize_t> sizeof(int)]

cdef inline int read_bytes(int* numbers, bytes data) except -1:
    memcpy(numbers, <char*> data, len(data))
    return <int> (len(data) // <Py_ssize_t> sizeof(int))
