# Declarations of `trie_walk` for other compiled modules.

from ..compiled.memory cimport free, ints, longs, more
from ..automaton cimport encoding
from ..automaton.states cimport Automaton
from ..language cimport node_kinds
from ..language.node_store cimport cell
from ..language.nodes cimport Nodes
from .token_set cimport TokenSet
from .trie cimport Trie

cdef class TrieWalk:
    cdef Automaton automaton
    cdef Trie trie
    # the emitted tokens
    cdef int* out
    cdef int out_count
    cdef int out_room
    # by depth, the positions on the path to the current node
    cdef long long* stack
    # the tokens that reach a dependent node (see `Doubts`), and the dependent nodes that the walk has crossed
    cdef set unsure
    cdef set named
    cdef bint watched
    cdef list deciding
    # the work list, five numbers an entry (see `_push`), and its length in numbers
    cdef long long* todo
    cdef int todo_count
    cdef int todo_room
    cdef int crossed
    cdef int unnamed
    cdef dict statics
    cdef long long visited

    cdef object begin(self)
    cdef object emit(self, int token)
    cdef object _emit_at(self, int node)
    cdef object emit_one(self, int token)
    cdef object emit_all(self, int begin, int stop)
    cdef object _cross(self, int node, int rest)
    cdef object _read_words(self, int node, int first, int end, int depth)
    cdef tuple _static(self, long long atom, int rest)
    cdef object _doubt(self, int node, int forbids, bint whole)
    cdef object _drain_in_order(self)
    cdef object _push(self, int node, long long atom, int rest)
    cdef object _drain(self)
    cdef object _step(self, int node, long long atom, int rest)
    cdef object _read_literal(self, int node, long long atom, int rest)
    cdef object _walk_dependent(self, int node, long long atom, int rest)
    cdef object walk(self, int node, long long atom, int rest)
    cdef object _arrive(self, int node, long long atom, int rest)
    cdef object cross_set(self, TokenSet token_set, int rest)
    cdef object _cross_set_dependent(self, TokenSet token_set, long long atom, int rest)
