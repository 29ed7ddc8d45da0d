"""Masks of many texts at once, and their application to logits.

`fill_masks` and `apply_mask` are the simple form: a mask of ``V / 8`` bytes for each row, then one pass over the
logits. To copy 16 kB for each row takes longer than to compute it, so `MaskTable` stores each mask once, and a batch is
a list of row numbers. With an accelerator, the table is in its memory, and a step transfers only these numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import DecodingError
from . import mask_logits
from .mask_rows import MaskMemory, rows_of
from .matcher import fill_known

if TYPE_CHECKING:
    from .matcher import Matcher

#: The constant rows of a `MaskTable`: no token allowed, all tokens allowed.
NOTHING, EVERYTHING = 0, 1
_CONSTANT = 2  # their number

#: Bit patterns of minus infinity in half precision (IEEE 754), bfloat16 and single precision.
_HALF, _BFLOAT, _SINGLE = 0xFC00, 0xFF80, 0xFF800000


def fill_masks(matchers: Sequence[Matcher], out: MaskMemory) -> None:
    """Write the masks of many texts, one row each; rows as in `Matcher.fill_mask`.

    Args:
        matchers: the texts; their grammars may differ, but not their vocabulary.
        out: uint32 or int32, C-contiguous, ``[rows, words]``, at least a row for each text and ``ceil(V / 32)`` words;
            further rows are not changed. A NumPy array, or a torch tensor on the CPU.

    Raises:
        DecodingError: masks cannot be written into ``out``, or it has too few rows.

    Law: row ``i`` is what ``matchers[i].fill_mask`` writes.
    """
    rows = rows_of(out, len(matchers))
    for number in fill_known(list(matchers), rows):  # the texts whose mask is not memoised
        _matcher(matchers[number]).fill_mask(rows[number])


def apply_mask(logits: Any, masks: Any) -> None:
    """Set the logits of forbidden tokens to minus infinity, in place, in one pass.

    Args:
        logits: float16, float32, float64 (also bfloat16 in torch), shape ``[..., V]``; a NumPy array or a torch tensor
            on any device.
        masks: words of uint32 or int32, shape ``[..., W]`` with the same leading shape, as `fill_masks` writes
            them; tokens beyond ``32 * W`` are forbidden.

    Raises:
        DecodingError: the shapes do not fit, or the logits are not floating-point numbers.
    """
    if not hasattr(logits, "dtype") or not hasattr(masks, "dtype"):
        raise DecodingError(
            "logits, and masks, are a NumPy array or a torch tensor, not "
            f"{type(logits).__name__} and {type(masks).__name__}",
            hint="give the logits first, then the masks that fill_masks wrote",
        )
    shape, words = tuple(logits.shape), tuple(masks.shape)
    if len(shape) < 1 or len(words) < 1 or shape[:-1] != words[:-1]:
        raise DecodingError(f"masks of shape {words} do not fit logits of shape {shape}", hint="one mask for each row")
    if str(masks.dtype).removeprefix("torch.") not in ("uint32", "int32"):
        raise DecodingError(
            f"masks have words of uint32 or int32, not of {masks.dtype}", hint="as fill_masks writes them"
        )
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    on_host = isinstance(logits, np.ndarray) or getattr(getattr(logits, "device", None), "type", "") == "cpu"
    if on_host:
        given = masks if isinstance(masks, np.ndarray) else masks.cpu().numpy()
        packed = np.ascontiguousarray(given).view(np.uint32).reshape(rows, words[-1])
        _apply_on_host(logits, packed, np.arange(rows, dtype=np.int32))
        return
    torch = _torch_of(logits)
    if isinstance(masks, np.ndarray):
        masks = torch.from_numpy(np.ascontiguousarray(masks).view(np.int32))
    _forbid_on_device(torch, logits, _unpacked(torch, _queued(masks, logits.device)))


class MaskTable:
    """The masks of a running batch, each stored once. Not for several threads at once.

    Rows are looked up by state, so texts in equal states share one, in one step or in several. A full table is emptied.

    Args:
        size: number of tokens of the vocabulary.
        capacity: number of masks; it grows if one batch needs more.
        device: a torch device, for example ``"cuda"``, which also stores the masks, as one byte for each token. None:
            the host only.

    Attributes:
        words: the masks, ``[capacity + 2, ceil(size / 32)]``; row `NOTHING` allows nothing and row `EVERYTHING` all
            tokens. Growth replaces the array: read the attribute after `rows`.
        filled: number of masks written so far.
    """

    def __init__(self, size: int, capacity: int = 512, device: Any = None) -> None:
        size, capacity = index(size), index(capacity)
        if size < 1 or capacity < 1:
            raise DecodingError(f"a table of {capacity} masks of {size} tokens", hint="give at least 1")
        self._size = size
        self._device = device
        self.filled = 0
        self._allocate(capacity + _CONSTANT)

    def _allocate(self, rows: int) -> None:
        self.words = np.zeros((rows, (self._size + 31) // 32), np.uint32)
        self.words[EVERYTHING] = 0xFFFFFFFF
        self._rows: dict[Any, dict[int, int]] = {}  # by engine and state
        self._used = _CONSTANT
        self._forbidden: Any = None  # on the device, [rows, size]: the forbidden tokens of each mask
        self._sent = 0  # number of rows on the device

    def rows(self, matchers: Sequence[Matcher]) -> npt.NDArray[np.int32]:
        """Return for each text the row of `words` that is its mask; valid until the next call.

        Raises:
            DecodingError: a text has another vocabulary.
        """
        rows = np.empty(len(matchers), np.int32)
        if not self._find(matchers, rows):
            # Full: write the masks of this batch into an empty table.
            if len(matchers) + _CONSTANT <= len(self.words):
                self._rows.clear()
                self._used, self._sent = _CONSTANT, 0
            else:
                self._allocate(len(matchers) + _CONSTANT)
            self._find(matchers, rows)
        return rows

    def _find(self, matchers: Sequence[Matcher], out: npt.NDArray[np.int32]) -> bool:
        """Find or write the rows; return False if the table is full."""
        engine: Any = None
        written: dict[int, int] = {}  # rows by state, of the engine
        rows: list[int] = []
        for matcher in matchers:
            its_engine, state = _matcher(matcher)._place
            if its_engine is not engine:
                engine = its_engine
                written = self._rows.setdefault(engine, {})
            row = written.get(state)
            if row is None:
                row = self._write(matcher, written)
                if row < 0:
                    return False
            rows.append(row)
        out[:] = rows
        return True

    def _write(self, matcher: Matcher, known: dict[int, int]) -> int:
        """Write the mask of a text into a new row, and return the row; -1 if the table is full. ``known`` (rows by
        state) gets the row if all texts in the state have this mask."""
        if matcher.constraint.vocabulary.size != self._size:
            raise DecodingError(
                f"a text with {matcher.constraint.vocabulary.size} tokens in a table for {self._size}",
                hint="one table for each vocabulary",
            )
        if self._used == len(self.words):
            return -1
        row = self._used
        target = self.words[row]
        matcher.fill_mask(target)
        self._used += 1
        self.filled += 1
        engine, state = matcher._place
        with engine.lock:
            # A mask that depends on more than the state is valid for this text and this step only.
            if matcher.is_finished or engine.masks.is_settled(state):
                known[state] = row
        return row

    def apply(self, logits: Any, matchers: Sequence[Matcher]) -> None:
        """Set the logits of forbidden tokens to minus infinity, in place, in one pass.

        Args:
            logits: ``[len(matchers), V]``, ``V`` at least the vocabulary's size; NumPy, or torch on the host or on the
                table's device. Types as for `apply_mask`.
            matchers: the text of each row.

        Raises:
            DecodingError: the shapes do not fit, a text has another vocabulary, or the logits are on another device.
        """
        shape = tuple(getattr(logits, "shape", ()))
        if len(shape) != 2 or shape[0] != len(matchers) or shape[1] < self._size:
            raise DecodingError(
                f"logits of shape {shape} do not fit {len(matchers)} texts of {self._size} tokens",
                hint="one row for each text, and at least one logit for each token",
            )
        self.forbid(logits, self.rows(matchers))

    def forbid(self, logits: Any, rows: Any) -> None:
        """Do `apply` with row numbers: those that `rows` returned last, `NOTHING` or `EVERYTHING`.

        Args:
            logits: as for `apply`.
            rows: int32, one for each row of the logits; NumPy, or torch on the host or on the table's device.
        """
        if isinstance(logits, np.ndarray) or self._device is None:
            if not hasattr(logits, "shape"):
                raise DecodingError(f"logits are an array or a tensor, not {type(logits).__name__}")
            numbers = np.asarray(rows)
            if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or len(numbers) != len(logits):
                raise DecodingError(
                    f"row numbers of shape {numbers.shape} and type {numbers.dtype}, for {len(logits)} rows of logits",
                    hint="give what MaskTable.rows returned",
                )
            if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(self.words):
                raise DecodingError("a row number is beyond the table", hint="give what MaskTable.rows returned")
            _apply_on_host(logits, self.words, numbers.astype(np.int32, copy=False))
            return
        torch = _torch_of(logits)
        if logits.device.type != torch.device(self._device).type:
            raise DecodingError(
                f"logits on {logits.device} and a table on {self._device}", hint="MaskTable(device=...)"
            )
        if self._forbidden is None:
            self._forbidden = torch.zeros((len(self.words), self._size), dtype=torch.bool, device=self._device)
        if self._sent < self._used:
            fresh = torch.from_numpy(self.words[self._sent : self._used].view(np.int32))
            unpacked = _unpacked(torch, _queued(fresh, logits.device))
            self._forbidden[self._sent : self._used] = unpacked[:, : self._size]
            self._sent = self._used
        numbers = _queued(torch.as_tensor(rows), logits.device)
        _forbid_on_device(torch, logits, self._forbidden.index_select(0, numbers))


def _matcher(value: Any) -> Matcher:
    """Return a matcher, checked.

    Raises:
        DecodingError: it is not a `Matcher`.
    """
    if not hasattr(value, "_place"):
        raise DecodingError(f"a mask is that of a Matcher, not of {type(value).__name__}", hint="constraint.matcher()")
    matcher: Matcher = value
    return matcher


def _apply_on_host(logits: Any, masks: npt.NDArray[np.uint32], rows: npt.NDArray[np.int32]) -> None:
    """Mask logits in host memory: row ``i`` by ``masks[rows[i]]``. The compiled loops write minus infinity into their
    bits, if these are contiguous; NumPy or torch do it otherwise."""
    infinity = _SINGLE  # the bits of minus infinity in the type of the logits
    if isinstance(logits, np.ndarray):
        if not np.issubdtype(logits.dtype, np.floating):
            raise DecodingError(f"logits are floating-point numbers, not {logits.dtype}")
        bits = _bits_of_array(logits)
        if logits.dtype == np.float16:
            infinity = _HALF
    else:
        torch = _torch_of(logits)
        bits = None
        if logits.is_contiguous() and logits.dtype in (torch.float32, torch.float16, torch.bfloat16):
            wide = logits.dtype == torch.float32
            infinity = _SINGLE if wide else _HALF if logits.dtype == torch.float16 else _BFLOAT
            bits = logits.detach().view(torch.int32 if wide else torch.int16).numpy()
            bits = bits.view(np.uint32 if wide else np.uint16)
    if bits is not None and mask_logits.COMPILED:
        bits = bits.reshape(len(rows), -1)
        mask_logits.forbid(bits, masks, rows, infinity)
        return
    forbidden = ~_allowed(masks, logits.shape[-1])[rows].reshape(tuple(logits.shape))
    if isinstance(logits, np.ndarray):
        np.copyto(logits, -np.inf, where=forbidden)
    else:
        logits.masked_fill_(torch.from_numpy(forbidden), float("-inf"))


def _bits_of_array(logits: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return the bits of an array; None if the compiled loops do not support its type or memory layout."""
    if not logits.flags.c_contiguous or not logits.flags.writeable or not logits.dtype.isnative:
        return None
    if logits.dtype == np.float32:
        return logits.view(np.uint32)
    return logits.view(np.uint16) if logits.dtype == np.float16 else None


def _allowed(masks: npt.NDArray[np.uint32], size: int) -> npt.NDArray[np.bool_]:
    """Return the bits of masks as booleans, exactly ``size`` for each row."""
    bits = np.unpackbits(np.ascontiguousarray(masks).view(np.uint8), axis=-1, bitorder="little")
    missing = max(0, size - bits.shape[-1])
    if missing:
        bits = np.concatenate([bits, np.zeros((*bits.shape[:-1], missing), np.uint8)], axis=-1)
    return bits[..., :size].astype(np.bool_)


def _torch_of(logits: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(logits, torch.Tensor) or not logits.is_floating_point():
        raise DecodingError("logits are a NumPy array or a torch tensor of floating-point numbers")
    return torch


def _queued(tensor: Any, device: Any) -> Any:
    """Return a tensor on a device; the host does not wait for the device's work so far.

    CUDA copies from pinned memory in the background; from pageable memory it copies after the kernels that were
    launched, and the host waits meanwhile. The allocator of pinned memory keeps it until it was copied.
    """
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def _unpacked(torch: Any, masks: Any) -> Any:
    """Return the tokens that masks forbid as booleans, ``[..., 32 * W]``."""
    shifts = torch.arange(32, dtype=torch.int32, device=masks.device)
    return (((masks.unsqueeze(-1) >> shifts) & 1) == 0).reshape(*masks.shape[:-1], -1)


def _forbid_on_device(torch: Any, logits: Any, forbidden: Any) -> None:
    """Mask logits by booleans on the same device; tokens beyond the booleans are forbidden."""
    size = min(logits.shape[-1], forbidden.shape[-1])
    logits[..., size:] = float("-inf")
    logits[..., :size].masked_fill_(forbidden[..., :size], float("-inf"))
