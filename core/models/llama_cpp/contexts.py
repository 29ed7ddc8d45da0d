"""llama.cpp contexts: of one sequence, or of many, which share the cache of keys and values and forward passes."""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...basics.forks import shared_lock
from ...errors import ModelError
from ..image_tokens import ImageToken
from .library import share_cache
from .vision import Projector, piece_at

if TYPE_CHECKING:
    import numpy.typing as npt

    from .weights import Weights

#: Maximum number of sequences in a context: running ones, and kept ones of the prefix cache.
SEQUENCES = 64

#: Maximum number of tokens in one call of llama.cpp.
_CALL_TOKENS = 512

#: The same for models that read an image in both directions, and so in one call.
_BOTH_WAYS_TOKENS = 2048


class _Token(NamedTuple):
    """A token of text in a call of llama.cpp.

    Attributes:
        id: its id.
        position: its position in the sequence.
        sequence: llama.cpp's number of the sequence.
        is_last: the logits after it are wanted.
    """

    id: int
    position: int
    sequence: int
    is_last: bool


class LlamaContext:
    """A llama.cpp context, whose sequences together have a maximum number of tokens; freed once, and before the model.

    If there is no room for another sequence or for more tokens, the sequences that were not used for longest are put
    aside, as copies of their state (`Slot.set_aside`). The context of one sequence is freed with it.

    Args:
        weights: the model.
        window: maximum number of tokens of a sequence.
        cells: maximum number of tokens of all sequences.
        threads: number of threads of a forward pass.
        sequences: maximum number of sequences.
        projector: reads images; None: there are none.

    Raises:
        ModelError: there is not enough memory, llama.cpp keeps no cache, or it divides that among the sequences.
    """

    def __init__(
        self,
        weights: Weights,
        window: int,
        cells: int,
        threads: int,
        sequences: int = SEQUENCES,
        projector: Projector | None = None,
    ) -> None:
        library = weights.library
        params = library.llama_context_default_params()
        self.is_shared = sequences > 1
        if self.is_shared and not (share_cache(params) and hasattr(library, "llama_n_ctx_seq")):
            raise _not_shared()
        params.n_ctx = cells
        most = _BOTH_WAYS_TOKENS if projector is not None and projector.reads_both_ways else _CALL_TOKENS
        self._most = params.n_batch = params.n_ubatch = min(cells, most)
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = threads
        params.no_perf = True
        params.swa_full = True  # keep everything that a sliding window has passed, for crops
        if hasattr(params, "n_outputs_max"):
            params.n_outputs_max = sequences
        pointer = library.llama_init_from_model(weights.model, params)
        if not pointer:
            option = "max_running_tokens" if self.is_shared else "context_window"
            raise ModelError(f"llama.cpp cannot make a context of {cells} tokens", hint=f"lower {option}")
        self.pointer = pointer
        self.weights = weights
        self.window = window
        self._projector = projector
        self._cells = cells
        # The finaliser refers to the weights, so that they are freed after the context.
        self._free = weakref.finalize(self, _free_context, weights, pointer)
        self.memory = library.llama_get_memory(pointer)
        if self.memory is None:
            self._free()
            raise ModelError("llama.cpp keeps no tokens of this model", hint="give a causal language model")
        if self.is_shared and library.llama_n_ctx_seq(pointer) != library.llama_n_ctx(pointer):
            self._free()
            raise _not_shared()
        self._unused = list(range(sequences))
        self._slots: weakref.WeakSet[Slot] = weakref.WeakSet()
        self._clock = itertools.count()
        self._pinned: set[Slot] = set()
        self.lock = shared_lock(self, "lock", threading.RLock())  # held in each call of llama.cpp

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return not self._free.alive

    def close(self) -> None:
        """Free the context with all its sequences; closing twice is allowed."""
        with self.lock:
            self._free()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Hold the lock in the block, at whose end the sequences that were pinned in it (`pin`) are pinned no more."""
        with self.lock:
            try:
                yield
            finally:
                self._pinned.clear()

    def pin(self, slot: Slot) -> None:
        """Pin a sequence in a block of `together`: it is not put aside."""
        self._pinned.add(slot)

    def slot(self) -> Slot:
        """Return an empty sequence."""
        with self.lock:
            if not self._unused:
                self._set_aside_oldest()
            slot = Slot(self, self._unused.pop())
            self._slots.add(slot)
            return slot

    def decode(self, rows: Sequence[tuple[Slot, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        """Append tokens to sequences, in calls of at most `_CALL_TOKENS` of all together; return a copy of the logits
        after the last token of each. They are 0 after an image, and if there are no tokens.

        Raises:
            ModelError: llama.cpp fails; some sequences may have more tokens, which `Slot.crop` removes.
        """
        with self.lock:
            before = set(self._pinned)
            self._pinned |= {slot for slot, _ in rows}
            try:
                self.make_room(sum(len(ids) for _, ids in rows))
            finally:
                self._pinned = before
            logits: list[npt.NDArray[np.float32]] = []
            waiting: list[_Token] = []  # for the next call; before an image is read, the text before it has to be
            for slot, ids in rows:
                self.use(slot)
                place = 0
                while place < len(ids):
                    piece = piece_at(ids, place)
                    if piece is None:
                        waiting.append(_Token(ids[place], slot.positions, slot.number, place + 1 == len(ids)))
                        place, slot.positions = place + 1, slot.positions + 1
                    if piece is not None or len(waiting) == self._most:
                        logits += self._call(waiting)
                        waiting = []
                    if piece is not None:
                        assert self._projector is not None
                        self._projector.read(self.pointer, piece, slot.positions, slot.number, self._most)
                        place, slot.positions = place + piece.size, slot.positions + piece.positions
                slot.length += len(ids)
                if not ids or type(ids[-1]) is ImageToken:
                    logits += [*self._call(waiting), np.zeros(self.weights.size, np.float32)]
                    waiting = []
            return logits + self._call(waiting)

    def _call(self, tokens: Sequence[_Token]) -> list[npt.NDArray[np.float32]]:
        """Run one forward pass; return the logits after the tokens that are the last of a row."""
        if not tokens:
            return []
        library, count = self.weights.library, len(tokens)
        ids, positions, numbers, ends = zip(*tokens, strict=True)
        batch = library.llama_batch_get_one((library.llama_token * count)(*ids), count)
        sequences = (ctypes.c_int32 * count)(*numbers)
        size, start = ctypes.sizeof(ctypes.c_int32), ctypes.addressof(sequences)
        pointer = ctypes.POINTER(ctypes.c_int32)
        batch.token = (ctypes.c_int32 * count)(*ids)
        batch.pos = (ctypes.c_int32 * count)(*positions)
        # A token may be in several sequences: each has an array of their numbers, here of one.
        batch.n_seq_id = (ctypes.c_int32 * count)(*[1] * count)
        batch.seq_id = (pointer * count)(*(ctypes.cast(start + size * index, pointer) for index in range(count)))
        batch.logits = (ctypes.c_int8 * count)(*ends)
        status = library.llama_decode(self.pointer, batch)
        if status != 0:
            raise ModelError(f"llama.cpp failed with status {status} on {count} tokens", hint="see its messages")
        shape = (self.weights.size,)
        return [
            np.ctypeslib.as_array(library.llama_get_logits_ith(self.pointer, index), shape=shape).astype(
                np.float32, copy=True
            )
            for index, is_end in enumerate(ends)
            if is_end
        ]

    def make_room(self, count: int) -> None:
        """Put sequences aside, the oldest first, until there is room for more tokens.

        Raises:
            ModelError: the pinned ones leave none.
        """
        while sum(slot.length for slot in self._slots) + count > self._cells:
            self._set_aside_oldest()

    def _set_aside_oldest(self) -> None:
        others = [slot for slot in self._slots if slot not in self._pinned and slot.length]
        if not others:
            raise ModelError("the sequences do not fit in the cache together", hint="raise max_running_tokens")
        min(others, key=lambda slot: slot.used).set_aside()

    def use(self, slot: Slot) -> None:
        """Note that a sequence is used now."""
        slot.used = next(self._clock)

    def give_back(self, slot: Slot) -> None:
        """Take back a sequence that is closed."""
        if not self.is_shared:
            self._free()
        elif not self.is_closed:
            slot.clear()
        self._unused.append(slot.number)
        self._slots.discard(slot)


class Slot:
    """One sequence in a context.

    Attributes:
        context: the context that it is in.
        weights: the model.
        window: maximum number of its tokens.
        number: llama.cpp's number of the sequence.
        length: number of its tokens.
        positions: number of positions that they take; see `Piece`.
        used: time of its last use, on a clock that counts calls.
        set_aside: puts the sequence aside; set by its session.
    """

    set_aside: Callable[[], object]

    def __init__(self, context: LlamaContext, number: int) -> None:
        self.context = context
        self.weights = context.weights
        self.window = context.window
        self.number = number
        self.length = self.positions = 0
        self.used = -1
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """True after `close`, or after the context is freed."""
        return self._is_closed or self.context.is_closed

    def close(self) -> None:
        """Free the sequence; closing twice is allowed."""
        with self.context.lock:
            if not self._is_closed:
                self._is_closed = True
                self.context.give_back(self)

    def decode(self, ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens; return a copy of the logits after the last."""
        return self.context.decode([(self, ids)])[0]

    def state(self) -> Any:
        """Return a copy of the state, as a buffer.

        Raises:
            ModelError: llama.cpp cannot copy it.
        """
        library, pointer = self.weights.library, self.context.pointer
        with self.context.lock:
            buffer = (ctypes.c_uint8 * library.llama_state_seq_get_size(pointer, self.number))()
            if not library.llama_state_seq_get_data(pointer, buffer, len(buffer), self.number):
                raise _cannot_copy()
            return buffer

    def restore(self, state: Any, length: int, positions: int) -> None:
        """Restore a copy of a state of ``length`` tokens, which take ``positions``, in an empty sequence.

        Raises:
            ModelError: llama.cpp cannot restore it.
        """
        library, context = self.weights.library, self.context
        with context.lock:
            context.make_room(length)
            context.use(self)
            if not library.llama_state_seq_set_data(context.pointer, state, len(state), self.number):
                raise _cannot_copy()
            self.length, self.positions = length, positions

    def crop(self, length: int, positions: int, last: int = 1) -> bool:
        """Remove all tokens after the first ``length``; if these cannot be kept, remove all, and return False.

        Args:
            length: number of tokens to keep, at least 1.
            positions: number of positions that they take.
            last: number of positions of the last of them; of a piece of an image, those of the whole piece.
        """
        library, memory, number = self.weights.library, self.context.memory, self.number
        with self.context.lock:
            kept = length > 0 and bool(library.llama_memory_seq_rm(memory, number, positions, -1))
            # True says that nothing is left behind, not that all before it is there: its last and first position show
            # that. All tokens of a piece may have the position of its first.
            kept = kept and positions - last <= library.llama_memory_seq_pos_max(memory, number) < positions
            # Even with `swa_full`, llama.cpp may use the cells of tokens again that a sliding window has passed.
            kept = kept and library.llama_memory_seq_pos_min(memory, number) == 0
            if kept:
                self.length, self.positions = length, positions
            else:
                self.clear()
            return kept

    def clear(self) -> None:
        """Remove all tokens."""
        self.weights.library.llama_memory_seq_rm(self.context.memory, self.number, -1, -1)
        self.length = self.positions = 0


def _not_shared() -> ModelError:
    return ModelError("this llama.cpp does not share a cache among sequences", hint="load it with max_rows=1")


def _cannot_copy() -> ModelError:
    return ModelError("llama.cpp cannot copy a sequence", hint="switch the prefix cache off: prefix_cache=0")


def _free_context(weights: Weights, pointer: Any) -> None:
    weights.library.llama_free(pointer)
