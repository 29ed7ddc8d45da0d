"""`Constraint`, a grammar bound to a vocabulary, and `Matcher`, one text being written under it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import GrammarError
from ..language.kinds import CONTROL
from ..language.lookback import repeats, spelled_names
from ..vocabulary import Vocabulary
from .kernel import COMPILED, Masks
from .prepared import prepared
from .program import Program, Store

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..grammar import Grammar

#: Bytes that the memoised masks of one constraint may take.
MASK_MEMORY = 64 * 2**20

#: How many bytes one call of `Matcher.forced_bytes` looks ahead at most.
FORCED_LIMIT = 4096

_FINISHED = -2

#: Perhaps the beginning of a string, an escape, anything that belongs to the string, and its end.
_CLOSER = re.compile(rb'"?(?:[^"\\]|\\.)*\\.(?:[^"\\]|\\.)*"', re.DOTALL)


class _Engine:
    """A store, and the masks of its states over a vocabulary."""

    __slots__ = ("_known", "_specials", "automaton", "lock", "masks", "program", "vocabulary")

    def __init__(self, program: Store, vocabulary: Vocabulary, mask_memory: int) -> None:
        trie, shared, _ = prepared(vocabulary)
        self.program = program
        self.vocabulary = vocabulary
        self.automaton = program.automaton
        self.lock = program.lock
        self.masks = Masks(program.automaton, trie, sorted(vocabulary.eos), {}, shared, mask_memory)
        self._specials: dict[int, int] = {}
        self._known = 0

    def special_number(self, token_id: int) -> int | None:
        """The automaton's number of a control token, or None if no grammar of the store has met it."""
        names = self.program.specials
        while self._known < len(names):
            # A name that the vocabulary lacks belongs to a grammar that was bound to another.
            known = self.vocabulary.special.get(names[self._known])
            if known is not None:
                self._specials[known] = self._known
                self.masks.set_special(self._known, known)
            self._known += 1
        return self._specials.get(token_id)


def _engine(store: Store, vocabulary: Vocabulary, mask_memory: int) -> _Engine:
    """The engine of a store: one for all constraints where the store is shared."""
    if not store.is_shared:
        return _Engine(store, vocabulary, mask_memory)
    with vocabulary.lock:
        found: _Engine | None = vocabulary.cache.get("engine")
        if found is None or found.program is not store:
            found = vocabulary.cache["engine"] = _Engine(store, vocabulary, mask_memory)
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
        return program.store.byte_count() + int(engine.masks.byte_count())

    def counters(self) -> dict[str, int]:
        """Deterministic counts of what was derived and built so far, and bytes held (see ``docs/performance.md``)."""
        engine = self._bound[1]
        with engine.lock:
            automaton: dict[str, int] = engine.program.automaton.counters()
            masks: dict[str, int] = engine.masks.counters()
        return {**automaton, **{f"mask_{name}": value for name, value in masks.items()}}


def _within(tokens: npt.NDArray[np.int64], mask: npt.NDArray[np.uint32]) -> list[int]:
    """Those of some tokens that are set in a mask."""
    set_bits = mask[tokens >> 5] >> (tokens & 31).astype(np.uint32) & 1
    found: list[int] = tokens[set_bits.astype(bool)].tolist()
    return found


class Matcher:
    """One text being written, token by token. Not for several threads at once; `fork` instead.

    Laws: token ``t`` is set in the mask iff ``accept(t)`` returns True; after ``accept``, some completion exists (there
    are no dead ends); ``accept`` then ``rollback(1)`` is the identity.
    """

    __slots__ = ("_automaton", "_constraint", "_engine", "_history", "_joined", "_pieces", "_state", "_tokens")

    def __init__(
        self,
        constraint: Constraint,
        engine: _Engine,
        state: int,
        history: list[int] | None = None,
        pieces: list[bytes] | None = None,
    ) -> None:
        self._constraint = constraint
        self._engine = engine
        self._automaton = engine.automaton
        self._tokens = constraint.vocabulary.tokens
        self._state = state
        self._history: list[int] = history if history is not None else []
        #: What each step wrote: what is before, for places that look back.
        self._pieces: list[bytes] = pieces if pieces is not None else []
        #: How many of the pieces were joined, and to what.
        self._joined: tuple[int, bytes] = 0, b""

    @property
    def constraint(self) -> Constraint:
        """What this matcher obeys."""
        return self._constraint

    def fill_mask(self, out: npt.NDArray[np.uint32]) -> None:
        """Write the allowed tokens as bits: bit ``t % 32`` of word ``t // 32``; end-of-text ids when it may end here.

        Args:
            out: uint32, C-contiguous, at least ``ceil(V / 32)`` words; words beyond are cleared.
        """
        if self._state == _FINISHED:
            out[:] = 0
            return
        engine = self._engine
        if COMPILED and engine.masks.fill_known(self._state, out):  # one call that nothing can interrupt
            return
        with engine.lock:
            engine.special_number(-1)
            unsettled = engine.masks.fill(self._state, out)
            if unsettled is not None:
                self._settle(out, *unsettled)

    def _settle(
        self, out: npt.NDArray[np.uint32], unsure: tuple[int, ...], named: tuple[int, ...], watched: bool
    ) -> None:
        """Take out of a mask the tokens that the text so far forbids (see `kernel.Mask`)."""
        masks, state, advance, tokens = self._engine.masks, self._state, self._engine.program.advance, self._tokens
        doomed: list[int] = []
        trial = list(unsure)
        text = self._text()

        def before() -> bytes:
            return text

        if watched:
            endings, is_odd = repeats(text)
            if endings or is_odd:  # a token that closes the name, and spells some of it another way
                trial += _within(self._constraint.closers, out)
            if is_odd:  # in the midst of an escape: whatever closes the name is worth a trial
                trial += _within(self._constraint.quoted, out)
            for data in endings:
                below = masks.below(data, out)
                if below and advance(state, data, before) == -1:
                    doomed += below
                else:
                    trial += below
        if named:
            names = spelled_names(text)
            least = 3 if watched else 4  # so many quotes: perhaps two names in one token
            for token in named:
                data = tokens[token] or b""
                if (
                    any(name in data for name in names)
                    or data.count(b'"') >= least
                    or b"\\" in data
                    or b"}" in data  # a name of an object further out
                    or b"]" in data
                ):
                    trial.append(token)
        doomed += [token for token in dict.fromkeys(trial) if advance(state, tokens[token] or b"", before) == -1]
        for token in doomed:
            out[token >> 5] &= ~np.uint32(1 << (token & 31))

    def _text(self) -> bytes:
        """All that was written. It is joined piece by piece, since it is asked for again and again."""
        count, text = self._joined
        if count < len(self._pieces):
            text += b"".join(self._pieces[count:])
            self._joined = len(self._pieces), text
        return text

    def _advance(self, data: bytes) -> int:
        with self._engine.lock:
            state = self._automaton.advance(self._state, data)
            return state if state >= -1 else self._engine.program.advance(self._state, data, self._text)

    def allowed_tokens(self) -> list[int]:
        """The allowed token ids, in order."""
        out = np.zeros(self._constraint.words, dtype=np.uint32)
        self.fill_mask(out)
        bits = np.unpackbits(out.view(np.uint8), bitorder="little")
        return [int(token) for token in np.flatnonzero(bits)]

    def accept(self, token_id: int) -> bool:
        """Advance by one token; False, and no change, if it is not allowed."""
        here = self._state
        if here == _FINISHED or not 0 <= token_id < len(self._tokens):
            return False
        data = self._tokens[token_id]
        state = self._advance(data) if data else self._special(token_id)
        if state == -1:
            return False
        self._history.append(here)
        self._pieces.append(CONTROL if data is None else data)
        self._state = state
        return True

    def _special(self, token_id: int) -> int:
        """The state after a token that is not text, or -1."""
        engine = self._engine
        with engine.lock:
            if token_id in engine.vocabulary.eos and self._automaton.accepts(self._state):
                return _FINISHED
            number = engine.special_number(token_id)
            return -1 if number is None else self._automaton.advance_special(self._state, number)

    def accept_bytes(self, data: bytes) -> bool:
        """Advance by raw bytes, as one step; False, and no change, if no text goes on so."""
        if self._state == _FINISHED:
            return False
        state = self._advance(data)
        if state == -1:
            return False
        self._history.append(self._state)
        self._pieces.append(data)
        self._state = state
        return True

    def rollback(self, count: int) -> None:
        """Undo the last ``count`` accepted tokens.

        Raises:
            ValueError: fewer tokens were accepted.
        """
        if not 0 <= count <= len(self._history):
            raise ValueError(f"cannot undo {count} steps: {len(self._history)} were taken")
        if count:
            self._state = self._history[-count]
            del self._history[-count:]
            del self._pieces[-count:]
            if self._joined[0] > len(self._pieces):
                self._joined = 0, b""

    def fork(self) -> Matcher:
        """An independent copy in the same state."""
        return Matcher(self._constraint, self._engine, self._state, list(self._history), list(self._pieces))

    def forced_bytes(self) -> bytes:
        """The longest bytes that every completion starts with (at most 4,096); empty if there is a choice."""
        if self._state == _FINISHED:
            return b""
        with self._engine.lock:
            data = self._automaton.forced(self._state, FORCED_LIMIT)
            program = self._engine.program
            if data and program.is_dynamic:  # it stops at every DYNAMIC place: look beyond
                state, more = self._state, data
                while more and len(data) < FORCED_LIMIT:
                    before = self._text() + data[: len(data) - len(more)]
                    state = program.advance(state, more, lambda before=before: before)  # type: ignore[misc]
                    more = self._automaton.forced(state, FORCED_LIMIT - len(data))
                    data += more
            return data

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        return self._state == _FINISHED or self._automaton.accepts(self._state)

    @property
    def is_finished(self) -> bool:
        """Whether the text is over: an end-of-text token was accepted, or nothing can follow."""
        return self._state == _FINISHED or self._automaton.thread_count(self._state) == 0

    def shortest_completion(self) -> bytes:
        """The shortest bytes after which the text may end; control tokens on the way contribute none."""
        return b"".join(part for part in self.shortest_parts() if isinstance(part, bytes))

    def shortest_parts(self) -> list[bytes | str]:
        """The shortest completion, where a control token counts as one byte: runs of bytes, and the names of the
        control tokens between them."""
        if self._state == _FINISHED:
            return []
        with self._engine.lock:
            return self._engine.program.shortest_completion(self._state, self._text)

    def describe(self) -> dict[str, Any]:
        """What is known of the present state, for people who debug a grammar."""
        return {
            "accepting": self.is_accepting,
            "finished": self.is_finished,
            "allowed": len(self.allowed_tokens()),
            "forced": self.forced_bytes(),
        }
