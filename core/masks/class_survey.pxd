# Declarations of `class_survey` for other compiled modules.

from ..compiled.arrays cimport copied, grown
from ..compiled.memory cimport free, longs, octets
from ..automaton cimport encoding
from ..automaton.positions cimport Positions
from .bits cimport flip_bit
from .subtrees cimport Subtrees
from .trie cimport Trie

cdef class ClassSurvey:
    cdef int[::1] token
    cdef int[::1] until
    cdef int[::1] partial
    cdef int[::1] exit
    cdef int[::1] chars
    cdef int[::1] start
    cdef int longest
    # bits of tokens (see `inside`), by the number of characters
    cdef object masks

    cdef unsigned int[::1] inside(self, int most, int words)

cdef ClassSurvey survey_class(Positions automaton, Trie trie, Subtrees subtrees, long long star, long long free)

cdef int _list_below(
    Trie trie, int node, int[::1] begun, int[::1] token, int[::1] sizes, int tokens, object partial
) except -1

cdef bint _is_partial(Trie trie, int node) except -1

cdef ClassSurvey _sorted_survey(
    int[::1] token,
    int[::1] sizes,
    int tokens,
    object partial,
    int[::1] exit,
    int[::1] chars,
    unsigned char[::1] leads,
    int exits,
    int longest,
)

cdef class Chain:
    cdef Positions automaton
    cdef Trie trie
    cdef Subtrees subtrees
    # C, its exceptions, the states, and the maximum number of characters of C
    cdef unsigned char* members
    cdef int count
    cdef unsigned char* exception
    cdef int exceptions
    cdef long long* states
    cdef int most

    cdef bint choose(self, int state, long long free) except -1
    cdef int _set_class(self, int state, long long to) except -1
    cdef list flips(self)
    cdef bint follow(self, long long state, int longest) except -1
    cdef bint is_dead(self, int byte) except -1
