# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Constraints and matchers: a grammar bound to a vocabulary, and one text that is written under it.

A `Constraint` makes matchers. All matchers of a grammar share a `MaskEngine`, which has the states and masks. Compiled
where that is possible (Cython in pure-Python mode): a memoised step or mask costs little more than the call.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from ..automaton.lazy_dfa import LazyAutomaton, Program
from ..compiled.gil import HAS_GIL
from ..dependent.live import LiveAnswers, Unasked
from ..dependent.written import Written
from ..errors import GrammarError, LimitError, LiveValuesError
from ..language.node_kinds import CONTROL
from ..vocabulary.vocabulary import Vocabulary
from .bits import flags, tokens_within
from .mask_engine import BRIEF, MASK_MEMORY, engine_of
from .mask_rows import MaskMemory, row_of
from .masks import COMPILED
from .warming import WARM_SECONDS, Frontier, Warmed

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.libc.string import memcpy
    from cython.cimports.toolgrammar.core.automaton import encoding
    from cython.cimports.toolgrammar.core.automaton.states import Automaton
    from cython.cimports.toolgrammar.core.masks.mask_engine import MaskEngine
    from cython.cimports.toolgrammar.core.masks.masks import Mask, Masks
else:
    from ..automaton import encoding
    from ..automaton.states import Automaton
    from .mask_engine import MaskEngine
    from .masks import Masks

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dependent.written import Endings
    from .token_costs import Costs, TokenCosts

#: Maximum length of the result of `Matcher.forced_bytes`.
FORCED_LIMIT = 4096

#: Maximum number of times that one step of a text makes room (see `Matcher._make_room`).
MAX_GROWTHS = cython.declare(cython.int, 8)
#: Number of times after which the store is hurried (see `LazyAutomaton.hurry`).
HURRY = cython.declare(cython.int, 4)

#: True if memoised steps and masks are looked up without the store's lock (see `compiled.gil`): if this module and
#: `masks` are compiled, and there is a GIL.
LOCK_FREE = cython.declare(cython.bint, cython.compiled and COMPILED and HAS_GIL)


def _tokens_of(mask: npt.NDArray[np.uint32]) -> list[int]:
    """Return the tokens that are set in a mask, in order."""
    tokens: list[int] = np.flatnonzero(flags(mask)).tolist()
    return tokens


class _Candidates:
    """The mask of a text, before forbidden tokens are cleared (see `toolgrammar.core.dependent.doubts.Candidates`).

    Args:
        program: the store.
        state: the state of the text.
        before: the text.
        masks: the masks of the store's states.
        mask: the mask of the state.
    """

    __slots__ = ("_before", "_mask", "_masks", "_program", "_state")

    def __init__(
        self, program: LazyAutomaton, state: int, before: Written, masks, mask: npt.NDArray[np.uint32]
    ) -> None:
        self._program = program
        self._state = state
        self._before = before
        self._masks = masks
        self._mask = mask

    def below(self, endings: list[Endings]) -> list[tuple[bytes, list[int]]]:
        """Return the endings with which tokens of the mask begin, each with these tokens."""
        found: list[tuple[bytes, list[int]]] = self._masks.below(endings, self._mask)
        return found

    def within(self, ids: npt.NDArray[np.int64]) -> list[int]:
        """Return the tokens of ``ids`` that are in the mask."""
        found: list[int] = tokens_within(ids, self._mask).tolist()
        return found

    def ends_a_name(self, data: bytes) -> bool:
        """Return True if ``data`` leads to the end of a name and to no other position."""
        return self._program.resolution.ends_a_name(self._state, data)

    def refuses(self, data: bytes) -> bool:
        """Return True if no text continues with ``data``."""
        try:
            return self._program.advance(self._state, data, self._before) == encoding.REFUSED
        except LiveValuesError:  # raised if the token is chosen
            return False


@cython.cclass
class Matcher:
    """One text being written, token by token. Not for several threads at once; `fork` instead.

    Laws: token ``t`` is set in the mask iff ``accept(t)`` returns True; after ``accept``, some completion exists (there
    are no dead ends); ``accept`` then ``rollback(1)`` is the identity.

    A full store must not end a text, so there are three fallbacks. The text is read again in a fresh store. If one step
    would fill that too, the store grows, and the mask has only tokens of at most `BRIEF` bytes. After it has grown a
    few times (for intersections of patterns that are too hard to decide), the store is hurried: the mask has only
    tokens after which a completion is known.

    Args:
        constraint: the constraint.
        engine: its store, and the masks.
        state: the state of the text.
        history: the states before each step.
        pieces: the bytes that each step wrote.
        is_probe: the text is hypothetical (of `Constraint.warm`), and is never moved to another store.
        live: the live values of the text; None: it has none.
    """

    __weakref__: object
    _constraint: object
    _engine: MaskEngine
    _automaton: Automaton
    _tokens: tuple
    _state: cython.longlong
    _history: list
    _pieces: list
    _written: object
    _read: cython.Py_ssize_t
    _is_probe: cython.bint
    _live: object

    def __init__(
        self,
        constraint: Constraint,
        engine: MaskEngine,
        state: cython.longlong,
        history: list[int] | None = None,
        pieces: list[bytes] | None = None,
        *,
        is_probe: bool = False,
        live: LiveAnswers | None = None,
    ) -> None:
        self._constraint = constraint
        self._engine = engine
        self._automaton = engine._automaton
        self._tokens = constraint.vocabulary.tokens
        self._state = state
        self._history = [] if history is None else history
        #: The bytes that each step wrote, for dependent nodes.
        self._pieces = [] if pieces is None else pieces
        #: The text of the first `_read` pieces; None before a dependent node needs it.
        self._written = None
        self._read = 0
        self._is_probe = is_probe
        self._live = live

    def __repr__(self) -> str:
        end = b"".join(self._pieces[-8:])[-40:]
        return f"Matcher(steps={len(self._history)}, ends_with={end!r}, is_finished={self.is_finished})"

    @property
    def constraint(self) -> Constraint:
        """The constraint of the text."""
        return self._constraint

    @property
    def values(self) -> LiveAnswers | None:
        """The live values of the text; None: it has none."""
        return self._live

    @property
    def _place(self) -> tuple[MaskEngine, int]:
        """The engine and the state of the text. Texts for which they are equal have the same mask, if it is settled."""
        return self._engine, self._state

    def fill_mask(self, out: MaskMemory) -> None:
        """Write the allowed tokens as bits: bit ``t % 32`` of word ``t // 32``; end-of-text ids if the text may end
        here.

        Args:
            out: uint32 or int32, ``[words]`` or ``[1, words]``, C-contiguous, at least ``ceil(V / 32)`` words; words
                beyond are cleared. A NumPy array, or a torch tensor on the CPU.

        Raises:
            DecodingError: a mask cannot be written into ``out``.
        """
        engine: MaskEngine = self._engine
        masks: Masks = engine._masks
        # Most callers pass the same array each time. Without a GIL, the last one is read under the lock only.
        if not LOCK_FREE or out is None or out is not masks.target:
            out = row_of(out, masks.words)
        if self._state == encoding.FINISHED:
            out[:] = 0
            return
        state: cython.int = cython.cast(cython.int, self._state)
        tries: cython.int = 0
        if LOCK_FREE and masks.fill_known(state, out):
            return
        while True:
            try:
                self._fill(out)
                return
            except LimitError as error:
                if self._asks(error):
                    continue
                self._make_room(error, tries)
                if tries:  # a fresh store is too small as well: the mask has short tokens only
                    engine = self._engine
                    with engine._lock:
                        engine._shorten(self._state, self._constraint.vocabulary)
            tries += 1

    @cython.cfunc
    def _fill(self, out) -> object:
        """Write the mask of the next token into ``out``, under the engine's lock; of a state whose full mask exceeded a
        whole store, that of short tokens (`MaskEngine._shorten`). Raise LimitError if a step exceeds a limit."""
        engine: MaskEngine = self._engine
        with engine._lock:
            engine.special_number(-1)  # passes new control tokens on to the masks
            masks: Masks = engine._masks
            if engine._briefs and self._state in engine._briefs:
                masks = engine._brief
            words: cython.uint[::1] = masks.viewed(out)
            doubts = masks.fill(cython.cast(cython.int, self._state), words)
            if doubts is not None:
                self._settle(out, words, masks, doubts)
                if self._live is not None and self._live.missing is not None and not out.any():
                    raise self._live.missing
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _asks(self, error) -> cython.bint:
        """Return True if an error was that live values are not known, and they are now. Call it without the lock."""
        if not isinstance(error, Unasked) or self._is_probe:
            return False
        error.answer(self._controls())
        return True

    @cython.cfunc
    def _controls(self) -> list:
        """Return the names of the control tokens of the text, in order; they are found by the states before and after
        each. Empty for one that is not found (the end of the text)."""
        names: list = []
        program = self._engine._program
        number: cython.Py_ssize_t
        steps: cython.Py_ssize_t = len(self._history)
        with self._engine._lock:
            for number in range(steps):
                if self._pieces[number] == CONTROL:
                    state = self._history[number]
                    target = self._history[number + 1] if number + 1 < steps else self._state
                    before = Written(b"".join(self._pieces[:number]))
                    for index, name in enumerate(program.specials):
                        if program.advance_special(state, index, lambda before=before: before) == target:
                            names.append(name)
                            break
                    else:
                        names.append("")
        return names

    @cython.cfunc
    def _make_room(self, error, tries: cython.int) -> object:
        """Make room for a step that exceeded a limit: move to a fresh store; after the first try, grow this one; at
        last, hurry it.

        Raises:
            LimitError: ``error``, if the store is not full, or if growing does not help.
        """
        engine: MaskEngine = self._engine
        if self._is_probe or tries >= MAX_GROWTHS or not engine._program.is_full:
            raise error
        if tries or engine._program.is_hurried or not self._move():
            with engine._lock:
                engine._program.grow()
                if tries == HURRY:
                    engine._program.hurry()
        return None

    @cython.cfunc
    def _with_room(self, ask: object) -> object:
        """Return ``ask()``, called under the engine's lock; if it exceeds a limit, make room and call it again."""
        tries: cython.int = 0
        while True:
            try:
                with self._engine._lock:
                    return ask()
            except LimitError as error:
                if self._asks(error):
                    continue
                self._make_room(error, tries)
            tries += 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _move(self) -> cython.bint:
        """Move the text to a fresh store: read all steps again there, tokens of text by their bytes and control tokens
        by their names. Return False, and change nothing, if the text does not fit."""
        old: MaskEngine = self._engine
        program, engine = self._constraint._renewed()
        fresh: MaskEngine = engine
        state: cython.longlong = program.start
        history: list = []
        written = Written()
        written.live = self._live
        step: cython.Py_ssize_t
        steps: cython.Py_ssize_t = len(self._history)
        with fresh._lock:
            try:
                for step in range(steps):
                    history.append(state)
                    piece: bytes = self._pieces[step]
                    old_state = self._history[step]
                    old_next = self._history[step + 1] if step + 1 < steps else self._state
                    if piece != CONTROL:  # else a token without bytes
                        state = fresh._program.advance(state, piece, written)
                    elif old_next == encoding.FINISHED:
                        state = encoding.FINISHED
                    else:
                        state = self._again(fresh, state, old._program, old_state, old_next, written)
                    if state == encoding.REFUSED:
                        return False
                    written.write(piece)
            except LimitError:
                return False
        self._engine = fresh
        self._automaton = fresh._automaton
        self._state = state
        self._history = history
        self._written = None
        self._read = 0
        return True

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _again(self, fresh: MaskEngine, state: cython.longlong, old, old_state, old_next, before) -> cython.longlong:
        """Return the state of a fresh store after the control token that led from ``old_state`` to ``old_next`` in the
        ``old`` one, after the text ``before``."""
        for number, name in enumerate(old.specials):
            if old.advance_special(old_state, number, lambda: before) == old_next and name in fresh._program.specials:
                return fresh._program.advance_special(state, fresh._program.specials.index(name), lambda: before)
        return encoding.REFUSED

    @cython.cfunc
    def _settle(self, out, words: cython.uint[::1], masks: Masks, doubts: object) -> object:
        """Clear the tokens that the text so far forbids.

        Args:
            out: the mask, as the caller's array.
            words: the memory of ``out``, as words of 32 bits.
            masks: the masks that filled it: of short tokens, if the full mask was too large.
            doubts: the `Doubts` of the state's mask.
        """
        before = self._text_so_far()
        candidates = _Candidates(self._engine._program, self._state, before, masks, out)
        token: cython.int
        for token in doubts.forbidden(before, candidates, self._engine._index.names):
            if words[token >> 5] >> (token & 31) & 1:
                words[token >> 5] ^= cython.cast(cython.uint, 1) << (token & 31)
        return None

    @cython.cfunc
    def _text_so_far(self) -> object:
        """Return the text so far, with the pieces of all steps.

        It is made when a dependent node first needs it; later calls append only the pieces of new steps. ``_read`` is
        the number of pieces that it has.
        """
        written = self._written
        if written is None:
            written = self._written = Written(b"".join(self._pieces))
            written.live = self._live
        else:
            while self._read < len(self._pieces):
                written.write(self._pieces[self._read])
                self._read += 1
        self._read = len(self._pieces)
        return written

    @cython.cfunc
    def _advance(self, data: bytes) -> object:
        """Return the state after ``data``, or `REFUSED`; the text is not changed. If the store is full, make room and
        try again; if live values are missing, ask for them and try again."""
        tries: cython.int = 0
        while True:
            try:
                with self._engine._lock:
                    state = self._automaton.advance(cython.cast(cython.int, self._state), data)
                    if state < encoding.REFUSED:  # a dependent node was reached, which needs the text
                        state = self._engine._program.advance(self._state, data, self._text_so_far())
                    return state
            except LimitError as error:
                if self._asks(error):
                    continue
                self._make_room(error, tries)
            tries += 1

    def allowed_tokens(self) -> list[int]:
        """Return the allowed token ids, in order."""
        out = np.zeros(self._constraint.words, dtype=np.uint32)
        self.fill_mask(out)
        return _tokens_of(out)

    def accept(self, token_id: SupportsIndex) -> bool:  # `int`, compiled, takes floats too
        """Advance by one token; False, and no change, if it is not allowed."""
        if type(token_id) is not int:
            token_id = index(token_id)
        if self._state == encoding.FINISHED or not 0 <= token_id < len(self._tokens):
            return False
        token: cython.longlong = token_id
        data = self._tokens[token]
        state: cython.longlong = self._engine._step(self._state, token) if LOCK_FREE else encoding.UNKNOWN
        tries: cython.int = 0
        while state == encoding.UNKNOWN:
            try:
                state = self._take(token, data)
            except LimitError as error:
                if self._asks(error):
                    continue
                self._make_room(error, tries)
            tries += 1
        if state == encoding.REFUSED:
            return False
        self._history.append(self._state)
        self._pieces.append(CONTROL if data is None else data)
        self._state = state
        return True

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _take(self, token: cython.longlong, data: object) -> cython.longlong:
        """Return the state after a token, or `REFUSED`; the text is not changed. ``data``: the token's bytes; empty for
        control tokens. A step that does not depend on the text so far is memoised."""
        engine: MaskEngine = self._engine
        target: cython.longlong
        with engine._lock:
            if data:
                if engine._briefs and len(data) > BRIEF and self._state in engine._briefs:
                    return encoding.REFUSED
                target = self._automaton.advance(cython.cast(cython.int, self._state), data)
                if target >= 0:
                    engine._keep_step(self._state, token, target)
                elif target < encoding.REFUSED:
                    target = engine._program.advance(self._state, data, self._text_so_far())
                return target
            if token in engine._eos and self._automaton.accepts(self._state):
                return encoding.FINISHED
            number = engine.special_number(token)
            if number is None:
                return encoding.REFUSED
            return engine._program.advance_special(self._state, number, self._text_so_far)

    def accept_bytes(self, data: bytes) -> bool:
        """Advance by raw bytes, as one step; False, and no change, if no text continues with them."""
        if self._state == encoding.FINISHED:
            return False
        state = self._advance(data)
        if state == encoding.REFUSED:
            return False
        self._history.append(self._state)
        self._pieces.append(data)
        self._state = state
        return True

    def rollback(self, count: SupportsIndex) -> None:
        """Undo the last ``count`` steps: accepted tokens, or calls of `accept_bytes`.

        Raises:
            ValueError: there are fewer steps.
        """
        count = index(count)
        if not 0 <= count <= len(self._history):
            raise ValueError(f"cannot undo {count} steps: {len(self._history)} were taken")
        steps: cython.Py_ssize_t = count
        if steps:
            left: cython.Py_ssize_t = len(self._history) - steps
            if self._read > left:
                written = self._written
                written.cut(len(written) - sum([len(piece) for piece in self._pieces[left : self._read]]))
                self._read = left
            for _ in range(steps):
                self._state = self._history.pop()
                self._pieces.pop()

    def fork(self) -> Matcher:
        """Return an independent copy in the same state."""
        history, pieces = list(self._history), list(self._pieces)
        return Matcher(
            self._constraint, self._engine, self._state, history, pieces, is_probe=self._is_probe, live=self._live
        )

    def __copy__(self) -> Matcher:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Matcher:
        return self.fork()

    def __reduce__(self) -> str:
        raise TypeError("a Matcher cannot be pickled: pickle its Grammar and its text, and advance a new matcher")

    def forced_bytes(self) -> bytes:
        """Return the longest bytes that every completion starts with (at most 4,096); empty if there is a choice."""
        if self._state == encoding.FINISHED:
            return b""
        return self._with_room(lambda: self._forced())

    @cython.cfunc
    def _forced(self) -> bytes:
        """Do `forced_bytes`, under the lock."""
        data = self._automaton.forced(self._state, FORCED_LIMIT)
        program = self._engine._program
        if data and program.is_dependent:  # `forced` stops at every dependent node: continue after it
            state, more = self._state, data
            while more and len(data) < FORCED_LIMIT:
                state = program.advance(state, more, self._text_so_far(), data[: len(data) - len(more)])
                more = self._automaton.forced(state, FORCED_LIMIT - len(data))
                data += more
        return data

    def next_bytes(self) -> bytes:
        """Return the bytes that may come next, ascending, as if dependent nodes forbade nothing."""
        if self._state == encoding.FINISHED:
            return b""
        return self._with_room(lambda: self._automaton.following(cython.cast(cython.int, self._state)))

    @property
    def is_accepting(self) -> bool:
        """True if the text may end here."""
        return self._state == encoding.FINISHED or self._automaton.accepts(self._state)

    @property
    def is_finished(self) -> bool:
        """True if the text is over: an end-of-text token was accepted, or nothing can follow."""
        return self._state == encoding.FINISHED or self._automaton.thread_count(self._state) == 0

    @property
    def has_dropped(self) -> bool:
        """True if readings were dropped in this grammar's store, because a text had too many or was too hard to
        decide."""
        return len(self._automaton.remnants) > 0 or self._engine._program.is_hurried

    def is_completion(self, token_ids: Iterable[int]) -> bool:
        """Return True if the text may end after these tokens, which complete it unless readings of it were dropped
        since."""
        if self._state not in self._automaton.remnants and not self._engine._program.is_hurried:
            return True
        text = self.fork()
        return all(map(text.accept, token_ids)) and text.is_accepting

    def shortest_completion(self) -> bytes:
        """Return the shortest bytes after which the text may end; control tokens in the completion contribute none."""
        return b"".join(part for part in self.shortest_parts() if isinstance(part, bytes))

    def shortest_parts(self) -> list[bytes | str]:
        """Return the shortest completion (a control token counts as one byte): runs of bytes, and the names of the
        control tokens between them."""
        if self._state == encoding.FINISHED:
            return []
        return self._with_room(lambda: self._engine._program.shortest_completion(self._state, self._text_so_far()))

    def shortest_length(self) -> int:
        """Return the number of bytes and control tokens of the shortest completion."""
        if self._state == encoding.FINISHED:
            return 0
        return self._with_room(lambda: self._engine._program.completion_length(self._state, self._text_so_far()))

    def least_length(self) -> int:
        """Return a lower bound of `shortest_length`, without making the text."""
        if self._state == encoding.FINISHED:
            return 0
        return self._with_room(lambda: self._engine._program.plan(self._state).length)

    @property
    def _known_costs(self) -> Costs | None:
        """The costs of the tokens of the text's state, if memoised; needs no lock."""
        costs = self._engine._costs
        return None if costs is None else costs.known.get(self._state)

    def _with_costs(self, ask: Callable[[TokenCosts, int], Any]) -> Any:
        """Return ``ask(costs, state)`` for the token costs of the text's store, under its lock; if it exceeds a limit,
        make room and call it again."""
        return self._with_room(lambda: ask(self._engine.token_costs(), self._state))

    def describe(self) -> dict[str, Any]:
        """Return a summary of the current state, to debug a grammar."""
        return {
            "accepting": self.is_accepting,
            "finished": self.is_finished,
            "allowed": len(self.allowed_tokens()),
            "forced": self.forced_bytes(),
        }


def fill_known(matchers: list, out) -> list:
    """Write the masks of many texts that are memoised and settled; return the indices of the other texts.

    The compiled form copies most of them without the GIL.

    Args:
        matchers: the texts; None for a row that must not change.
        out: uint32, C-contiguous, ``[rows, words]``, at least a row for each text; words beyond a mask are cleared.
    """
    if not LOCK_FREE:
        return [number for number, matcher in enumerate(matchers) if matcher is not None]
    rows: cython.uint[:, ::1] = out
    count: cython.Py_ssize_t = len(matchers)
    words: cython.Py_ssize_t = rows.shape[1]
    if rows.shape[0] < count:
        raise ValueError(f"{count} masks do not fit in {rows.shape[0]} rows")
    # By row: the source of the copy, and its number of words (0: no copy).
    sources: cython.longlong[:, ::1] = np.zeros((count, 2), np.int64)
    held: list = []  # keeps the sources alive during the copy
    rest: list = []
    number: cython.Py_ssize_t
    size: cython.Py_ssize_t
    word: cython.Py_ssize_t
    for number in range(count):
        found = matchers[number]
        if found is None:
            continue
        if not isinstance(found, Matcher):  # left to the caller, which raises an error
            rest.append(number)
            continue
        matcher: Matcher = cython.cast(Matcher, found)
        if matcher._state == encoding.FINISHED:
            for word in range(words):
                rows[number, word] = 0
            continue
        masks: Masks = matcher._engine._masks
        mask: Mask = masks.known(cython.cast(cython.int, matcher._state))
        if mask is None or masks.words > words:
            rest.append(number)
        elif mask.is_joined:
            sources[number, 0] = cython.cast(cython.size_t, cython.address(mask.joined[0]))
            sources[number, 1] = masks.words
            held.append(mask)
        else:
            masks._write(mask, rows[number])
    if held:
        with cython.nogil:
            for number in range(count):
                size = sources[number, 1]
                if size:
                    source = cython.cast(cython.p_void, cython.cast(cython.size_t, sources[number, 0]))
                    memcpy(cython.address(rows[number, 0]), source, size * 4)
                    for word in range(size, words):
                        rows[number, word] = 0
    return rest


class Constraint:
    """A grammar bound to a vocabulary, for any number of matchers and threads.

    Args:
        program: the grammar's automaton.
        vocabulary: the model's tokens.
        refill: returns the grammar's automaton in a fresh store; called when that of ``program`` is full.
        specials: the control tokens of the grammar.
        mask_memory: maximum size of the memoised masks, in bytes.

    Raises:
        GrammarError: the vocabulary lacks a control token of ``specials``.
        LimitError: the beginning of the language exceeds a limit.
    """

    def __init__(
        self,
        program: Program,
        vocabulary: Vocabulary,
        refill: Callable[[], Program],
        specials: Collection[str] = (),
        *,
        mask_memory: int = MASK_MEMORY,
    ) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise GrammarError(
                f"a grammar is bound to a Vocabulary, not to {type(vocabulary).__name__}",
                hint="model.vocabulary is that of a model; Vocabulary.from_... reads that of a tokenizer",
            )
        self.vocabulary = vocabulary
        self.words = (vocabulary.size + 31) // 32
        for name in specials:
            if name not in vocabulary.special:
                raise GrammarError(
                    f"the grammar needs the control token {name!r}, which the vocabulary does not have",
                    hint="give it in Vocabulary(special={...}), or choose another format",
                )
        self._refill = refill
        self.mask_memory = mask_memory
        self._frontier: Frontier | None = None
        #: Earlier stores, which texts may still use.
        self._earlier: tuple[weakref.ref[LazyAutomaton], ...] = ()
        self._bound = program, engine_of(program.store, vocabulary, mask_memory)
        _ = program.start  # raises here what exceeds a limit at the beginning

    def __repr__(self) -> str:
        return f"Constraint({self.vocabulary!r}, {self.byte_count():,} bytes)"

    def __copy__(self) -> Constraint:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Constraint:
        return self  # shared by all its matchers, as it is

    def __reduce__(self) -> str:
        raise TypeError("a Constraint cannot be pickled: pickle its Grammar, and call its bind(vocabulary)")

    @property
    def program(self) -> Program:
        """The automaton of new matchers."""
        return self._bound[0]

    @property
    def masks(self) -> Masks:
        """The masks of new matchers."""
        return self._bound[1].masks

    def matcher(self, values: LiveAnswers | None = None) -> Matcher:
        """Return a matcher at the beginning of a text.

        Args:
            values: the callables that give the grammar's live values (``x-values``), for this text and its forks.

        States and masks are derived once for all texts. When their store is full (`Program.is_full`), new matchers use
        a fresh one; the old one is freed with the last matcher that uses it.
        """
        program, engine = self._renewed()
        return Matcher(self, engine, program.start, live=values)

    def _renewed(self) -> tuple[Program, MaskEngine]:
        """Return the automaton and the engine of new matchers, in a fresh store if the current one is full."""
        program, engine = self._bound
        if program.is_full:
            full = program.store
            program = self._refill()
            engine = engine_of(program.store, self.vocabulary, self.mask_memory)
            self._bound = program, engine
            self._frontier = None  # it would keep the full store
            if not full.is_shared and full is not program.store:
                self._earlier = (*[each for each in self._earlier if each() is not None], weakref.ref(full))
        return program, engine

    def warm(
        self,
        seconds: float = WARM_SECONDS,
        *,
        max_bytes: int | None = None,
        after: Matcher | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Warmed:
        """Derive states and their masks before a text needs them, breadth-first.

        It changes the result of no mask. Call it when there is time before the first token: while the prompt is read,
        or when a request is admitted. The next call continues where this one ends. Texts may be written at the same
        time in other threads, because the lock is released between two states. If another thread is warming the
        constraint, the call returns at once.

        Args:
            seconds: maximum time; the last state may exceed it.
            max_bytes: maximum memory, which the last state may exceed; None: no bound, except half of the memory that
                the constraint may use.
            after: begin in the state of this matcher, not at the beginning of a text.
            stop: called before each state; True ends the call.

        Returns:
            A report.

        Raises:
            GrammarError: a negative budget, or a matcher of another constraint.
        """
        if seconds < 0 or (max_bytes is not None and max_bytes < 0):
            raise GrammarError("the budget of warming is negative", hint="give seconds, or bytes, from 0")
        if after is None:
            matcher = self.matcher()
            engine, state = matcher._place
            frontier = self._frontier
            if frontier is None or frontier.store is not engine.program:
                frontier = Frontier(engine.program, self.vocabulary.special, (state, b""))
                self._frontier = frontier if engine is self._bound[1] else None  # another thread may have renewed it
        else:
            if after.constraint is not self:
                raise GrammarError("the matcher belongs to another constraint", hint="after=constraint.matcher()")
            engine, state = after._place
            if state == encoding.FINISHED:
                return Warmed(0, 0.0, 0, True)
            frontier = Frontier(engine.program, self.vocabulary.special, (state, b"".join(after._pieces)))

        def probe(at: int, text: bytes) -> Matcher:
            return Matcher(self, engine, at, [at], [text], is_probe=True)

        return frontier.visit(self, probe, seconds, max_bytes, stop)

    def byte_count(self) -> int:
        """Return the size of the store and its masks in bytes, without the vocabulary (estimated from counts, without a
        lock). A store that other grammars share counts as a whole. Earlier stores count while texts use them."""
        program, engine = self._bound
        frontier = self._frontier
        held = (
            program.store.byte_count() + int(engine.byte_count()) + (0 if frontier is None else frontier.byte_count())
        )
        return held + sum(store.byte_count() for each in self._earlier if (store := each()) is not None)

    def counters(self) -> dict[str, int]:
        """Return deterministic counts of the states, rows and masks derived so far, and their sizes in bytes (see
        ``docs/performance.md``)."""
        engine = self._bound[1]
        with engine.lock:
            automaton: dict[str, int] = engine.program.automaton.counters()
            masks: dict[str, int] = engine.masks.counters()
        return {**automaton, **{f"mask_{name}": value for name, value in masks.items()}}
