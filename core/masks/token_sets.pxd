# Declarations of `token_sets` for other compiled modules.

from ..compiled.arrays cimport copied, grown
from ..compiled.memory cimport free, longs
from ..automaton cimport encoding
from ..automaton.positions cimport Positions
from ..automaton.blocks cimport row_item
from ..automaton.byte_rows cimport ByteRows
from .bits cimport flip_bit, has_bit
from .class_survey cimport Chain, ClassSurvey, survey_class
from .comparison cimport Comparison
from .subtrees cimport Subtrees
from .token_set cimport Draft, TokenSet, new_dense_set, new_token_set
from .trie cimport Trie
from .trie_walk cimport TrieWalk

cdef class TokenSets:
    cdef Positions automaton
    cdef Trie trie
    cdef TrieWalk walk
    cdef Subtrees subtrees
    cdef object index
    cdef dict known
    # by the id of each known token set: True if it counts in `held`, False if the index holds it
    cdef dict is_own
    # bytes of the token sets that the index does not hold
    cdef long long held
    # token sets by route
    cdef long long shared
    cdef long long lacked
    cdef long long compared
    cdef long long surveyed
    cdef long long walked
    cdef long long visited
    cdef int words
    cdef Draft draft
    cdef Comparison comparison
    cdef Chain chain
    # scratch: by depth, the positions on the path to a trie node, and the nodes of the path
    cdef long long* stack
    cdef long long* node_at

    cdef object keep(self, dict kept)
    cdef TokenSet token_set(self, long long atom)
    cdef object _row_set(self, int state, object free)
    cdef TokenSet _walk(self, long long atom, object free)
    cdef object _walk_rows(self, int state)
    cdef object _fill(self, TokenSet token_set, int saved)
    cdef object _fill_dense(self, TokenSet token_set, TokenSet base)
    cdef ClassSurvey _survey(self, int number)
    cdef bint _is_wide(self, int state) except -1
    cdef TokenSet _counted_set(self, long long atom)
    cdef TokenSet _run_set(self, int number, long long least, long long most)
    cdef TokenSet _survey_set(self, int state, ClassSurvey survey, int most, bint is_chain)
    cdef object _add_if_inside(self, long long atom, int token, TokenSet token_set)
    cdef bint _has_few_exits(self, ClassSurvey survey) except -1
    cdef bint _is_exception(self, int node) except -1
    cdef object _clear(self, int node, TokenSet token_set)
    cdef long long _position_before(self, int node, TokenSet token_set) except -9
    cdef object _add_at(self, int node, TokenSet token_set)
    cdef object _add_below(self, int node, TokenSet token_set)
    cdef TokenSet _dense(self, long long atom)
