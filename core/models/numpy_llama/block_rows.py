# cython: language_level=3, boundscheck=False, wraparound=False
"""Matrices of small integers with a scale and an offset for each block: unpacking of rows, and products with them.

An element is ``scale * q + offset``, in single precision. A product is that of the unpacked matrix, up to rounding:
with the vector instructions in ``block_rows.pxd``, the integers of a block are multiplied, and the sum is scaled.
Without them, rows are unpacked, and NumPy multiplies.

Compiled where that is possible (Cython in pure-Python mode); without a compiler it is not used, and weights are in
single precision.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ...compiled import standin as cython  # type: ignore[no-redef]

#: True if this module is compiled.
COMPILED: bool = bool(cython.compiled)

#: True if this processor has the vector instructions of `multiply_vectorised`.
VECTORS: bool = COMPILED and bool(has_vectors())  # noqa: F821 - block_rows.pxd


def unpack(
    q: cython.schar[:, ::1],
    scales: cython.float[:, ::1],
    offsets: cython.float[:, ::1],
    start: cython.Py_ssize_t,
    out: cython.float[:, ::1],
) -> None:
    """Write unpacked rows, from row ``start``, to ``out``.

    Args:
        q: the integers, ``[rows, columns]``.
        scales: ``[rows, blocks]``; the blocks divide the columns evenly; the size of each is a multiple of 16.
        offsets: likewise.
        start: the first row.
        out: ``[n, columns]``.

    Raises:
        IndexError: there are fewer rows, or the shapes do not fit.
    """
    row: cython.Py_ssize_t
    block: cython.Py_ssize_t
    at: cython.Py_ssize_t
    j: cython.Py_ssize_t
    scale: cython.float
    offset: cython.float
    blocks: cython.Py_ssize_t = scales.shape[1]
    size: cython.Py_ssize_t = q.shape[1] // blocks
    count: cython.Py_ssize_t = out.shape[0]
    if start < 0 or start + count > q.shape[0] or out.shape[1] != q.shape[1]:
        raise IndexError("rows beyond the matrix, or of another length")
    with cython.nogil:
        for row in range(count):
            for block in range(blocks):
                scale = scales[start + row, block]
                offset = offsets[start + row, block]
                at = block * size
                while at < (block + 1) * size:
                    for j in range(16):  # a literal, so that compilers turn the loop into vector instructions
                        out[row, at + j] = scale * q[start + row, at + j] + offset
                    at += 16


def multiply_vectorised(
    q: cython.schar[:, ::1],
    scales: cython.float[:, ::1],
    offsets: cython.float[:, ::1],
    vectors: cython.float[:, ::1],
    sums: cython.float[:, ::1],
    out: cython.float[:, ::1],
) -> None:
    """Write the products of all rows with each of several vectors. Only if `VECTORS` is True.

    Args:
        q: as for `unpack`.
        scales: as for `unpack`.
        offsets: as for `unpack`.
        vectors: ``[n, columns]``.
        sums: the sums of the vectors' elements in each block, ``[n, blocks]``.
        out: ``[n, rows]``.

    Raises:
        IndexError: the shapes do not fit.
    """
    rows: cython.Py_ssize_t = q.shape[0]
    blocks: cython.Py_ssize_t = scales.shape[1]
    count: cython.Py_ssize_t = vectors.shape[0]
    if rows == 0 or count == 0:
        return
    if vectors.shape[1] != q.shape[1] or sums.shape[0] != count or sums.shape[1] != blocks:
        raise IndexError("vectors of another length than the rows")
    if out.shape[0] != count or out.shape[1] != rows:
        raise IndexError("the products have no room")
    with cython.nogil:
        products(  # noqa: F821 - block_rows.pxd
            cython.address(q[0, 0]),
            cython.address(scales[0, 0]),
            cython.address(offsets[0, 0]),
            rows,
            blocks,
            q.shape[1] // blocks,
            cython.address(vectors[0, 0]),
            cython.address(sums[0, 0]),
            count,
            cython.address(out[0, 0]),
        )
