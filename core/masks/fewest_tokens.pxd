# Declarations of `fewest_tokens` for other compiled modules.

from ..compiled.arrays cimport grown
from .trie cimport Trie

cdef class Spelling:
    cdef int[::1] codes
    cdef int[::1] least
    cdef int[::1] token
    cdef int[::1] size
    cdef int length
    cdef Spelling tail

cdef class FewestTokens:
    cdef Trie trie
    cdef object special
    cdef readonly Spelling end
    cdef dict tails
    cdef long long held

    cdef Spelling spell(self, object codes, Spelling tail)
    cdef Spelling of_text(self, object rope)
