# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Mask engine: a store of states, with the masks of these states over a vocabulary; shared by the matchers of a
grammar.

Compiled where that is possible; ``mask_engine.pxd`` declares its C interface.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from ..automaton.lazy_dfa import LazyAutomaton
from ..basics.forks import shared_lock
from ..vocabulary.vocabulary import Vocabulary
from .index_files import index_of
from .vocabulary_index import VocabularyIndex

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..compiled.int_map import IntMap
    from .masks import Masks
    from .token_costs import TokenCosts

if TYPE_CHECKING:
    from threading import RLock

#: Maximum size of the memoised masks of one constraint, in bytes.
MASK_MEMORY = 64 * 2**20

#: Longest token, in bytes, in the fallback mask of a state whose full mask would exceed a whole store.
BRIEF = 2

#: Maximum number of memoised steps of an engine; then all are dropped.
MAX_STEPS = cython.declare(cython.int, 1 << 15)


@cython.cclass
class MaskEngine:
    """A store of states, and the masks of these states over a vocabulary.

    It has no reference to the vocabulary, which may refer to it (see `Vocabulary.derived`). ``mask_engine.pxd`` says
    what the private fields hold.

    Args:
        program: the store.
        vocabulary: the vocabulary.
        mask_memory: maximum size of the memoised masks, in bytes.
    """

    def __init__(self, program: LazyAutomaton, vocabulary: Vocabulary, mask_memory):
        self._program = program
        self._index = index_of(vocabulary)
        self._eos = vocabulary.eos
        self._token_ids = vocabulary.special
        self._automaton = program.automaton
        self._lock = program.lock
        self._masks = Masks(program.automaton, self._index, sorted(vocabulary.eos), {}, mask_memory)
        self._brief = None
        self._briefs = set()
        self._specials = {}
        self._costs = None
        self._known = 0
        self._steps = IntMap()

    @property
    def program(self) -> LazyAutomaton:
        """The store."""
        return self._program

    @property
    def masks(self) -> Masks:
        """The masks of the store's states."""
        return self._masks

    @property
    def lock(self) -> RLock:
        """The store's lock, held during each derivation."""
        return self._lock

    @cython.ccall
    def special_number(self, token_id: cython.longlong) -> object:
        """Return the automaton's number of a control token; None if no grammar of the store names it, or for -1. First
        the names that grammars have added to the store are passed on to the masks."""
        names: list = self._program.specials
        while self._known < len(names):
            # A name that is not in this vocabulary belongs to a grammar that is bound to another one.
            known = self._token_ids.get(names[self._known])
            if known is not None:
                self._specials[known] = self._known
                self._masks.set_special(self._known, known)
                if self._brief is not None:
                    self._brief.set_special(self._known, known)
            self._known += 1
        return self._specials.get(token_id) if token_id >= 0 else None

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _step(self, state: cython.longlong, token: cython.longlong) -> cython.longlong:
        """Return the memoised state after a token, else `UNKNOWN`.

        The compiled form needs no lock if there is a GIL (see `compiled.gil`).
        """
        return self._steps.get((state << 32 | token) + 1, encoding.UNKNOWN)

    @cython.cfunc
    def _keep_step(self, state: cython.longlong, token: cython.longlong, target: cython.longlong) -> object:
        """Memoise the state after a token; the caller holds the lock."""
        if self._steps.count >= MAX_STEPS:
            self._steps = IntMap()
        if self._step(state, token) == encoding.UNKNOWN:
            self._steps.add((state << 32 | token) + 1, target)
        return None

    @cython.cfunc
    def _shorten(self, state: cython.longlong, vocabulary) -> object:
        """Restrict the mask of a state to tokens of at most `BRIEF` bytes; the caller holds the lock."""
        if self._brief is None:
            brief = Masks(self._automaton, vocabulary.derived(_brief_index), sorted(self._eos), {}, MASK_MEMORY)
            for token, number in self._specials.items():
                brief.set_special(number, token)
            self._brief = brief
        self._briefs.add(state)
        self._steps = IntMap()  # drop memoised steps from the state by longer tokens
        return None

    @cython.cfunc
    def token_costs(self) -> TokenCosts:
        """Return the costs of tokens, made on first use; the caller holds the lock."""
        if self._costs is None:
            index = self._index
            subtrees = self._masks.token_sets.subtrees
            self._costs = TokenCosts(self._program, index.trie, subtrees, self._token_ids, self._eos)
        return self._costs

    def byte_count(self) -> int:
        """Return the size of the masks, the costs of tokens and the memoised steps, in bytes."""
        brief = 0 if self._brief is None else self._brief.byte_count()
        costs = 0 if self._costs is None else self._costs.byte_count()
        return self._masks.byte_count() + brief + costs + self._steps.byte_count()


def _brief_index(vocabulary: Vocabulary) -> VocabularyIndex:
    """Return the index of the short tokens of a vocabulary."""
    tokens = [token if token is not None and len(token) <= BRIEF else None for token in vocabulary.tokens]
    return index_of(Vocabulary(tokens, eos=(), cache_dir=False))


class SharedEngine:
    """Holder of the engine of the store that many grammars share; each vocabulary has one (`Vocabulary.derived`).

    Attributes:
        engine: the engine of the current shared store; None if it is not in use.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.engine: MaskEngine | None = None
        self._lock = shared_lock(self, "_lock", Lock())

    def of(self, store: LazyAutomaton, vocabulary: Vocabulary, mask_memory: int) -> MaskEngine:
        """Return the engine of a store; the engine of another store is dropped."""
        with self._lock:
            engine = self.engine
            if engine is None or engine.program is not store:
                engine = self.engine = MaskEngine(store, vocabulary, mask_memory)
            return engine

    def release(self) -> None:
        """Drop the engine; the next grammar that needs it makes a new one."""
        with self._lock:
            self.engine = None


def engine_of(store: LazyAutomaton, vocabulary: Vocabulary, mask_memory: int) -> MaskEngine:
    """Return the engine of a store: one for all constraints if the store is shared."""
    if not store.is_shared:
        return MaskEngine(store, vocabulary, mask_memory)
    return vocabulary.derived(SharedEngine).of(store, vocabulary, mask_memory)
