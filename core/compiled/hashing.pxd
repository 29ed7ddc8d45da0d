# Declarations of `hashing` for other compiled modules.

cdef extern from *:
    const unsigned long long BASIS "14695981039346656037ULL"

cdef inline unsigned long long mix(unsigned long long so_far, long long value) noexcept:
    so_far = (so_far ^ <unsigned long long> value) * 1099511628211ULL
    return so_far ^ (so_far >> 29)
