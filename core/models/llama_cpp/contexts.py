"""One llama.cpp context for many sequences, which share its cache of keys and values and its forward passes."""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...basics.forks import shared_lock
from ...errors import ModelError
from .library import share_cache

if TYPE_CHECKING:
    import numpy.typing as npt

    from .weights import Weights

#: Maximum number of sequences in a context: running ones, and kept ones of the prefix cache.
SEQUENCES = 64

#: Maximum number of tokens in one call of llama.cpp.
_CALL_TOKENS = 512


class SharedContext:
    """A llama.cpp context with many sequences, whose tokens together are bounded; freed once, and before the model.

    If there is no room for another sequence or for more tokens, the sequences that were not used for longest are put
    aside, as copies of their state (`Slot.set_aside`).

    Args:
        weights: the model.
        window: maximum number of tokens of a sequence.
        cells: maximum number of tokens of all sequences.
        threads: number of threads of a forward pass.

    Raises:
        ModelError: there is not enough memory, or llama.cpp divides its cache among the sequences.
    """

    def __init__(self, weights: Weights, window: int, cells: int, threads: int) -> None:
        library = weights.library
        params = library.llama_context_default_params()
        if not share_cache(params) or not hasattr(library, "llama_n_ctx_seq"):
            raise _not_shared()
        params.n_ctx = cells
        params.n_batch = params.n_ubatch = min(cells, _CALL_TOKENS)
        params.n_seq_max = SEQUENCES
        params.n_threads = params.n_threads_batch = threads
        if hasattr(params, "n_outputs_max"):
            params.n_outputs_max = SEQUENCES
        pointer = library.llama_init_from_model(weights.model, params)
        if not pointer:
            raise ModelError(f"llama.cpp cannot make a context of {cells} tokens", hint="lower max_running_tokens")
        self._pointer = pointer
        self.weights = weights
        self.window = window
        self._cells = cells
        # The finaliser refers to the weights, so that they are freed after the context.
        self._free = weakref.finalize(self, _free_context, weights, pointer)
        self._memory = library.llama_get_memory(pointer)
        if self._memory is None or library.llama_n_ctx_seq(pointer) != library.llama_n_ctx(pointer):
            self._free()
            raise _not_shared()
        self._unused = list(range(SEQUENCES))
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
    def together(self) -> Iterator[Callable[[Slot], None]]:
        """Hold the lock in the block, and give a function that pins a sequence, which is not put aside until then."""
        with self.lock:
            try:
                yield lambda slot: self._pinned.add(slot)
            finally:
                self._pinned.clear()

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
        after the last token of each.

        Raises:
            ModelError: llama.cpp fails; some sequences may have more tokens, which `Slot.crop` removes.
        """
        with self.lock:
            before = set(self._pinned)
            self._pinned |= {slot for slot, _ in rows}
            try:
                self._make_room(sum(len(ids) for _, ids in rows))
            finally:
                self._pinned = before
            logits: list[npt.NDArray[np.float32]] = []
            call: list[tuple[int, int, int, bool]] = []
            for slot, ids in rows:
                slot.used = next(self._clock)
                first = slot.length
                for position, token_id in enumerate(ids, first):
                    call.append((token_id, position, slot.number, position == first + len(ids) - 1))
                    if len(call) == _CALL_TOKENS:
                        logits += self._call(call)
                        call = []
                slot.length += len(ids)
            return logits + self._call(call)

    def _call(self, tokens: Sequence[tuple[int, int, int, bool]]) -> list[npt.NDArray[np.float32]]:
        """Run one forward pass; return the logits of the tokens that end a row.

        Args:
            tokens: for each its id, its position, its sequence, and True if it ends a row.
        """
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
        batch.n_seq_id = (ctypes.c_int32 * count)(*[1] * count)
        batch.seq_id = (pointer * count)(*(ctypes.cast(start + size * index, pointer) for index in range(count)))
        batch.logits = (ctypes.c_int8 * count)(*ends)
        status = library.llama_decode(self._pointer, batch)
        if status != 0:
            raise ModelError(f"llama.cpp failed with status {status} on {count} tokens", hint="see its messages")
        shape = (self.weights.size,)
        return [
            np.ctypeslib.as_array(library.llama_get_logits_ith(self._pointer, index), shape=shape).astype(
                np.float32, copy=True
            )
            for index, is_end in enumerate(ends)
            if is_end
        ]

    def _make_room(self, count: int) -> None:
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

    # The methods below are for `Slot`, and called with the lock.

    def state(self, slot: Slot) -> Any:
        """Do what `Slot.state` does."""
        library = self.weights.library
        buffer = (ctypes.c_uint8 * library.llama_state_seq_get_size(self._pointer, slot.number))()
        if not library.llama_state_seq_get_data(self._pointer, buffer, len(buffer), slot.number):
            raise no_copy()
        return buffer

    def restore(self, slot: Slot, state: Any, length: int) -> None:
        """Do what `Slot.restore` does."""
        self._make_room(length)
        slot.used = next(self._clock)
        if not self.weights.library.llama_state_seq_set_data(self._pointer, state, len(state), slot.number):
            raise no_copy()
        slot.length = length

    def crop(self, slot: Slot, length: int) -> bool:
        """Do what `Slot.crop` does."""
        library = self.weights.library
        kept = length > 0 and bool(library.llama_memory_seq_rm(self._memory, slot.number, length, -1))
        kept = kept and library.llama_memory_seq_pos_max(self._memory, slot.number) == length - 1
        # A sliding window may have dropped needed tokens.
        kept = kept and library.llama_memory_seq_pos_min(self._memory, slot.number) == 0
        if not kept:
            library.llama_memory_seq_rm(self._memory, slot.number, -1, -1)
        slot.length = length if kept else 0
        return kept

    def give_back(self, slot: Slot) -> None:
        """Do what `Slot.close` does."""
        if not self.is_closed:
            self.weights.library.llama_memory_seq_rm(self._memory, slot.number, -1, -1)
        self._unused.append(slot.number)
        self._slots.discard(slot)


class Slot:
    """One sequence in a `SharedContext`; has the methods of a context with one sequence.

    Attributes:
        weights: the model.
        window: maximum number of its tokens.
        number: llama.cpp's number of the sequence.
        length: number of its tokens.
        used: time of its last use, on a clock that counts calls.
        set_aside: puts the sequence aside; set by its session.
    """

    def __init__(self, context: SharedContext, number: int) -> None:
        self._context = context
        self.weights = context.weights
        self.window = context.window
        self.number = number
        self.length = 0
        self.used = -1
        self.set_aside: Callable[[], object] = self.close
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """True after `close`, or after the context is freed."""
        return self._is_closed or self._context.is_closed

    def close(self) -> None:
        """Free the sequence; closing twice is allowed."""
        with self._context.lock:
            if not self._is_closed:
                self._is_closed = True
                self._context.give_back(self)

    def decode(self, ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens; return a copy of the logits after the last."""
        return self._context.decode([(self, ids)])[0]

    @property
    def context(self) -> SharedContext:
        """The context that it is in."""
        return self._context

    def state(self) -> Any:
        """Return a copy of the state, as a buffer.

        Raises:
            ModelError: llama.cpp cannot copy it.
        """
        with self._context.lock:
            return self._context.state(self)

    def restore(self, state: Any, length: int) -> None:
        """Restore a copy of a state of ``length`` tokens, in an empty sequence.

        Raises:
            ModelError: llama.cpp cannot restore it.
        """
        with self._context.lock:
            self._context.restore(self, state, length)

    def crop(self, length: int) -> bool:
        """Remove all tokens after the first ``length``; if that is impossible, remove all, and return False."""
        with self._context.lock:
            return self._context.crop(self, length)


def _not_shared() -> ModelError:
    return ModelError("this llama.cpp does not share a cache among sequences", hint="load it with max_rows=1")


def no_copy() -> ModelError:
    """Return the error for a state that llama.cpp cannot copy."""
    return ModelError("llama.cpp cannot copy a sequence", hint="switch the prefix cache off: prefix_cache=0")


def _free_context(weights: Weights, pointer: Any) -> None:
    weights.library.llama_free(pointer)
