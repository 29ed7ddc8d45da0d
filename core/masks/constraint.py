"""`Constraint`, a grammar bound to a vocabulary."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ..automaton.lazy_dfa import Program, Store
from ..errors import GrammarError
from ..vocabulary.vocabulary import Vocabulary
from .masks import Masks
from .matcher import Engine, Matcher
from .vocabulary_index import prepared

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..grammar import Grammar

#: Bytes that the memoised masks of one constraint may take.
MASK_MEMORY = 64 * 2**20

#: Perhaps the beginning of a string, an escape, anything that belongs to the string, and its end.
_CLOSER = re.compile(rb'"?(?:[^"\\]|\\.)*\\.(?:[^"\\]|\\.)*"', re.DOTALL)


def _engine(store: Store, vocabulary: Vocabulary, mask_memory: int) -> Engine:
    """The engine of a store: one for all constraints where the store is shared."""
    if not store.is_shared:
        return Engine(store, vocabulary, mask_memory)
    with vocabulary.lock:
        found: Engine | None = vocabulary.cache.get("engine")
        if found is None or found.program is not store:
            found = vocabulary.cache["engine"] = Engine(store, vocabulary, mask_memory)
        return found


class Constraint:
    """A grammar bound to a vocabulary: shared by any number of matchers and threads.

    Args:
        program: the grammar's automaton.
        vocabulary: the model's tokens.
        grammar: the grammar, for those who ask.
        mask_memory: bytes that memoised masks may take.

    Raises:
        GrammarError: the grammar names a control token that the vocabulary does not have.
    """

    def __init__(
        self, program: Program, vocabulary: Vocabulary, grammar: Grammar, *, mask_memory: int = MASK_MEMORY
    ) -> None:
        self.vocabulary = vocabulary
        self.grammar = grammar
        self.words = (vocabulary.size + 31) // 32
        for name in grammar.specials:
            if name not in vocabulary.special:
                raise GrammarError(
                    f"the grammar needs the control token {name!r}, which the vocabulary does not have",
                    hint="give it in Vocabulary(special={...}), or choose another format",
                )
        self._mask_memory = mask_memory
        self._bound = program, _engine(program.store, vocabulary, mask_memory)

    @property
    def program(self) -> Program:
        """The automaton that new matchers use."""
        return self._bound[0]

    @property
    def masks(self) -> Masks:
        """The masks that new matchers use."""
        return self._bound[1].masks

    def matcher(self) -> Matcher:
        """A matcher at the beginning of a text.

        What is derived for a grammar is kept for all texts. When that has grown past a bound (`Program.is_full`), new
        matchers begin with a fresh store, and the old one goes when the last matcher that uses it does.
        """
        program, engine = self._bound
        if program.is_full:
            program = self.grammar.program
            engine = _engine(program.store, self.vocabulary, self._mask_memory)
            self._bound = program, engine
        return Matcher(self, engine, program.start)

    @property
    def closers(self) -> npt.NDArray[np.int64]:
        """The tokens that hold an escape of a JSON string and, behind it, the quote that ends the string."""
        tokens = self.vocabulary.tokens
        found: npt.NDArray[np.int64] | None = self.vocabulary.cache.get("closers")
        if found is None:
            closers = [number for number in self.quoted.tolist() if _CLOSER.match(tokens[number] or b"")]
            found = self.vocabulary.cache["closers"] = np.array(closers, dtype=np.int64)
        return found

    @property
    def quoted(self) -> npt.NDArray[np.int64]:
        """The tokens that hold a quote."""
        found: npt.NDArray[np.int64] | None = self.vocabulary.cache.get("quoted")
        if found is None:
            found = self.vocabulary.cache["quoted"] = np.array(prepared(self.vocabulary).quoted, dtype=np.int64)
        return found

    def byte_count(self) -> int:
        """Bytes that the store and its masks take beside the vocabulary (estimated from their counts, without a lock);
        all of it, also where the store is shared."""
        program, engine = self._bound
        return program.store.byte_count() + int(engine.byte_count())

    def counters(self) -> dict[str, int]:
        """Deterministic counts of what was derived and built so far, and bytes held (see ``docs/performance.md``)."""
        engine = self._bound[1]
        with engine.lock:
            automaton: dict[str, int] = engine.program.automaton.counters()
            masks: dict[str, int] = engine.masks.counters()
        return {**automaton, **{f"mask_{name}": value for name, value in masks.items()}}
