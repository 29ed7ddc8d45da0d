"""Quantised matrices of a decoder: small integers, with a scale and an offset for each block of a row.

A weight takes 1.25 bytes, instead of 4 in single precision. All block formats of GGUF with one scale and one offset for
16 or 32 weights are representable without loss (`quantised`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .block_rows import COMPILED, VECTORS, multiply_vectorised, unpack

Floats = npt.NDArray[np.float32]

#: Maximum number of vectors that are multiplied with the blocks directly. For more, tiles of rows are unpacked and
#: multiplied by the linear algebra library of NumPy. Both cost about the same at this number.
MAX_DIRECT = 12 if VECTORS else 0

#: Number of rows in a tile. In single precision, tiles of usual models fit in the second-level cache of a processor.
_TILE = 256


@dataclass(frozen=True, eq=False)
class BlockMatrix:
    """A matrix ``[rows, columns]`` with the elements ``scale * q + offset``. Immutable.

    ``matrix[ids]`` are rows in single precision; ``x @ matrix.T`` are products with them.

    Attributes:
        q: the integers, ``[rows, columns]``.
        scales: ``[rows, blocks]``; blocks have 16 or 32 columns.
        offsets: likewise.
    """

    q: npt.NDArray[np.int8]
    scales: Floats
    offsets: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.q.shape

    @property
    def T(self) -> TransposedBlocks:
        """The transposed matrix, for products."""
        return TransposedBlocks(self)

    def __getitem__(self, ids: npt.NDArray[np.int64]) -> Floats:
        """Return rows in single precision, ``[n, columns]``."""
        return unpacked(self.q[ids], self.scales[ids], self.offsets[ids])


@dataclass(frozen=True, eq=False)
class TransposedBlocks:
    """The transpose of a `BlockMatrix`: ``x @ transposed`` is ``x @ matrix.T``.

    Attributes:
        rows: the matrix.
    """

    rows: BlockMatrix

    #: NumPy leaves ``array @ transposed`` to `__rmatmul__`.
    __array_ufunc__ = None

    def __rmatmul__(self, vectors: Floats) -> Floats:
        """Return the products of one vector ``[columns]`` or several ``[n, columns]`` with all rows."""
        blocks = self.rows
        many = np.ascontiguousarray(vectors.reshape(-1, vectors.shape[-1]))
        height, width = blocks.shape
        out = np.empty((len(many), height), np.float32)
        if len(many) <= MAX_DIRECT:
            sums = many.reshape(len(many), blocks.scales.shape[1], -1).sum(axis=2)
            multiply_vectorised(blocks.q, blocks.scales, blocks.offsets, many, sums, out)
        else:
            tile = np.empty((min(_TILE, height), width), np.float32)
            for start in range(0, height, _TILE):
                part = tile[: height - start]
                unpack(blocks.q, blocks.scales, blocks.offsets, start, part)
                np.matmul(many, part.T, out=out[:, start : start + _TILE])
        return out.reshape(*vectors.shape[:-1], height)


def quantised(q: npt.NDArray[np.int8], scales: Floats, offsets: Floats) -> BlockMatrix | Floats:
    """Return a quantised matrix; unpacked to single precision if the kernel for blocks is not compiled.

    Args:
        q: the integers, ``[rows, columns]``.
        scales: ``[rows, blocks]``; blocks of 16 or 32 columns.
        offsets: likewise.
    """
    if not COMPILED:
        return unpacked(q, scales, offsets)
    return BlockMatrix(np.ascontiguousarray(q), np.ascontiguousarray(scales), np.ascontiguousarray(offsets))


def unpacked(q: npt.NDArray[np.int8], scales: Floats, offsets: Floats) -> Floats:
    """Return ``scale * q + offset`` in single precision; arguments as for `quantised`."""
    elements: Floats = q.reshape(*scales.shape, -1).astype(np.float32)
    elements *= scales[..., None]
    elements += offsets[..., None]
    return elements.reshape(q.shape)


def join_columns(matrices: Sequence[Any]) -> Any:
    """Return matrices concatenated by columns, so that one product applies all of them to the same input."""
    if not all(isinstance(matrix, TransposedBlocks) for matrix in matrices):
        return np.concatenate([dense(matrix) for matrix in matrices], axis=1)
    # Blocks of 32 become two of 16, if another matrix has those.
    blocks = max(matrix.rows.scales.shape[1] for matrix in matrices)

    def by_block(name: str) -> Floats:
        arrays = [getattr(matrix.rows, name) for matrix in matrices]
        return np.concatenate([np.repeat(array, blocks // array.shape[1], axis=1) for array in arrays])

    q = np.concatenate([matrix.rows.q for matrix in matrices])
    return BlockMatrix(q, by_block("scales"), by_block("offsets")).T


def dense(matrix: Any) -> Floats:
    """Return any matrix in single precision."""
    if isinstance(matrix, TransposedBlocks):
        return np.transpose(dense(matrix.rows))
    if isinstance(matrix, BlockMatrix):
        return unpacked(matrix.q, matrix.scales, matrix.offsets)
    result: Floats = np.ascontiguousarray(matrix, np.float32)
    return result
