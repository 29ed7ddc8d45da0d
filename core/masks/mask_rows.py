"""Memory of callers into which masks are written: arrays of NumPy, and tensors of torch on the host, without copies.

Other libraries allocate masks as int32 tensors ``[batch, words]`` (`xgrammar`, `llguidance`); the bits are the same.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol, Union

import numpy as np
import numpy.typing as npt

from ..errors import DecodingError

#: Words of 32 bits.
Words = npt.NDArray[np.uint32]


class Tensor(Protocol):
    """A tensor of torch."""

    def data_ptr(self) -> int:
        """Return the address of its memory."""
        ...


#: Memory into which masks can be written.
MaskMemory = Union[npt.NDArray[np.uint32], npt.NDArray[np.int32], Tensor]

_WORD = np.dtype(np.uint32)

_ALLOCATE = "allocate masks by np.zeros((rows, constraint.words), np.uint32), or as an int32 tensor of torch"


def row_of(out: Any, words: int) -> Words:
    """Return the memory of one mask, ``[words]`` or ``[1, words]``, as a view.

    Args:
        out: as the caller gives it.
        words: minimum number of words.

    Raises:
        DecodingError: it is not such memory, or too short.
    """
    row: Words = out
    if not _is_plain(out, 1):
        row = _words_of(out)
        if row.ndim == 2 and len(row) == 1:
            row = row[0]
        if row.ndim != 1:
            raise DecodingError(
                f"one mask is written into [words] or [1, words], not into shape {list(row.shape)}",
                hint="give one row, or write all rows by fill_masks",
            )
        _require_plain(row)
    if len(row) < words:
        raise DecodingError(f"a mask takes {words} words of 32 bits, not {len(row)}", hint=_ALLOCATE)
    return row


def rows_of(out: Any, count: int) -> Words:
    """Return the memory of some masks, ``[rows, words]``, as a view; arguments and errors as for `row_of`.

    Args:
        out: as the caller gives it; one mask may be ``[words]``.
        count: minimum number of rows.
    """
    rows: Words = out
    if not _is_plain(out, 2):
        rows = _words_of(out)
        if rows.ndim == 1 and count == 1:
            rows = rows[None]
    if rows.ndim != 2 or len(rows) < count:
        raise DecodingError(
            f"{count} masks do not fit in shape {list(rows.shape)}", hint="give one row for each matcher: [rows, words]"
        )
    _require_plain(rows)
    return rows


def _is_plain(out: Any, dimensions: int) -> bool:
    """Return True if an object is words as they are written."""
    return type(out) is np.ndarray and out.dtype is _WORD and out.ndim == dimensions and bool(out.flags.carray)


def _require_plain(array: Words) -> None:
    if not array.flags.writeable:
        raise DecodingError("a mask cannot be written into read-only memory", hint=_ALLOCATE)
    if not array.flags.carray:
        raise DecodingError("the words of a mask are not contiguous in memory, or not aligned", hint=_ALLOCATE)


def _words_of(out: Any) -> Words:
    """Return the memory of an array or a tensor as words, of any shape."""
    array = np.asarray(out if isinstance(out, np.ndarray) else _memory_of(out))
    if array.dtype.kind not in "iu" or array.dtype.itemsize != 4 or not array.dtype.isnative:
        raise DecodingError(f"a mask has words of uint32 or int32, not of {array.dtype}", hint=_ALLOCATE)
    return array.view(np.uint32)


def _memory_of(tensor: Any) -> Any:
    """Return the memory of a tensor of torch as an array."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor):
        kind = type(tensor).__name__
        raise DecodingError(f"a mask is written into a NumPy array or a tensor of torch, not {kind}", hint=_ALLOCATE)
    if tensor.device.type != "cpu":
        raise DecodingError(
            f"a mask is written into the host's memory, and the tensor is on {tensor.device}",
            hint="give a tensor on the CPU and copy it, or keep masks on the device: MaskTable(size, device=...)",
        )
    if tensor.dtype not in (torch.int32, getattr(torch, "uint32", None)):
        raise DecodingError(f"a mask has words of uint32 or int32, not of {tensor.dtype}", hint=_ALLOCATE)
    try:
        return tensor.detach().numpy()
    except (RuntimeError, TypeError, ValueError) as error:  # sparse, or without memory of its own
        raise DecodingError(f"a mask cannot be written into this tensor: {error}", hint=_ALLOCATE) from None
