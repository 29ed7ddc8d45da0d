"""Reader of GGUF files: the metadata, and tensors as NumPy arrays or as blocks.

Source: the specification in ggml-org/ggml, ``docs/gguf.md``, and the block formats in ``src/ggml-common.h`` and
``src/ggml-quants.c`` there. The package ``gguf`` is not used, because it takes seconds for a vocabulary of usual size.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ModelError
from .matrices import BlockMatrix, Floats, quantised

#: Maximum size of a string or an array in the metadata, and number of tensors and keys; a file with more is corrupt.
_MAX_COUNT = 1 << 24

#: Types of metadata by number, in the notation of `struct` and NumPy.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9

_HINT = "download or convert the file again"


@dataclass(frozen=True)
class _Tensor:
    type_number: int  # a key of `_TENSOR_TYPES`
    shape: tuple[int, ...]  # rows first, as in NumPy
    offset: int  # from the beginning of all tensor data, in bytes


class GGUFFile:
    """An open GGUF file. Close it, or use it in a ``with`` block; tensors stay valid after that.

    Args:
        path: the file.

    Raises:
        ModelError: it cannot be read, is not a GGUF file of version 2 or 3, or is truncated.

    Attributes:
        path: the argument.
        metadata: values by key; arrays are lists of strings or NumPy arrays.
        names: names of the tensors.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # an empty file cannot be mapped
            raise ModelError(f"{str(path)!r} cannot be read: {error}", hint="give a GGUF file") from error
        try:
            self._read()
        except (ValueError, RecursionError) as error:
            self._map.close()
            raise ModelError(f"{str(path)!r} is not a whole GGUF file: {error}", hint=_HINT) from error

    def __enter__(self) -> GGUFFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        self._map.close()

    def _read(self) -> None:
        """Read the header: metadata, and names, types, shapes and offsets of the tensors. Data begins at the next
        multiple of the alignment. Raise ValueError if it is malformed; sizes are checked before memory is taken."""
        if self._map[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        self._at = 4  # the position of reading, in bytes
        (version,) = self._take("I")
        if version not in (2, 3):
            raise ValueError(f"its version is {version}, not 2 or 3 (or its bytes are in big-endian order)")
        tensors, keys = self._take("QQ")
        if max(tensors, keys) > _MAX_COUNT:
            raise ValueError(f"it claims {tensors} tensors and {keys} keys")
        metadata: dict[str, Any] = {}
        for _ in range(keys):
            key = self._string()
            (kind,) = self._take("I")
            metadata[key] = self._value(kind)
        self.metadata = MappingProxyType(metadata)
        self._tensors: dict[str, _Tensor] = {}
        for _ in range(tensors):
            name = self._string()
            (dimensions,) = self._take("I")
            if not 1 <= dimensions <= 4:
                raise ValueError(f"the tensor {name!r} has {dimensions} dimensions")
            shape = self._take("Q" * dimensions)
            if 0 in shape:
                raise ValueError(f"the tensor {name!r} is empty")
            type_number, offset = self._take("IQ")
            self._tensors[name] = _Tensor(type_number, shape[::-1], offset)
        self.names = tuple(self._tensors)
        alignment = metadata.get("general.alignment", 32)
        if type(alignment) is not int or alignment < 1:
            raise ValueError(f"its alignment is {alignment!r}, not a whole number above zero")
        self._data_start = -(-self._at // alignment) * alignment  # rounded up

    def _take(self, form: str) -> tuple[Any, ...]:
        """Return the next numbers of the header; ``form`` is that of `struct`, such as ``"IQ"``."""
        form = "<" + form
        return struct.unpack(form, self._bytes(struct.calcsize(form), "its header"))

    def _bytes(self, size: int, where: str) -> bytes:
        """Return the next bytes, and advance; ``where`` they are, for the error."""
        start, self._at = self._at, self._at + size
        if self._at > len(self._map):
            raise ValueError(f"it ends inside {where}")
        return self._map[start : self._at]

    def _string(self) -> str:
        (length,) = self._take("Q")
        return self._bytes(length, "a string").decode("utf-8", "replace")

    def _value(self, kind: int) -> Any:
        """Return the next value of a type number; an array as a list (of strings or arrays) or a NumPy array."""
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._take(self._struct_code(kind))[0]
        element_kind, count = self._take("IQ")
        if count > _MAX_COUNT:
            raise ValueError(f"it claims an array of {count} elements")
        if element_kind in (_STRING, _ARRAY):
            return [self._value(element_kind) for _ in range(count)]
        dtype = np.dtype(self._struct_code(element_kind)).newbyteorder("<")
        return np.frombuffer(self._bytes(dtype.itemsize * count, "an array"), dtype, count)

    @staticmethod
    def _struct_code(kind: int) -> str:
        if kind not in _NUMBERS:
            raise ValueError(f"it has a value of the unknown type {kind}")
        return _NUMBERS[kind]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor, rows first. Raise ModelError if there is none of this name."""
        return self._tensor(name).shape

    def _tensor(self, name: str) -> _Tensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise ModelError(f"{str(self.path)!r} has no tensor {name!r}", hint="convert the model again")
        return tensor

    def tensor(self, name: str) -> Floats | BlockMatrix:
        """Return a tensor: floats in single precision, or a quantised matrix (see `quantised`).

        Raises:
            ModelError: there is no such tensor, its data are truncated, or its type is unknown.
        """
        tensor = self._tensor(name)
        kind = _TENSOR_TYPES.get(tensor.type_number)
        if kind is None:
            known = ", ".join(each.name for each in _TENSOR_TYPES.values())
            raise ModelError(
                f"the tensor {name!r} is of the type number {tensor.type_number}, which is not known here",
                hint=f"known ones: {known}; `gguf:PATH` runs every type, by llama.cpp",
            )
        columns = tensor.shape[-1]
        count = int(np.prod(tensor.shape, dtype=object))
        size = count // kind.elements * kind.bytes
        start = self._data_start + tensor.offset
        if columns % kind.elements or start + size > len(self._map):
            raise ModelError(f"the tensor {name!r} in {str(self.path)!r} is cut off", hint=_HINT)
        data = np.frombuffer(self._map[start : start + size], np.uint8).reshape(-1, kind.bytes)
        return kind.read(data, tensor.shape)


@dataclass(frozen=True)
class _TensorType:
    """A type of tensors: the numbers of elements and bytes of a block, and its reader.

    A reader takes the bytes, ``[blocks, bytes]``, and the shape of the tensor.
    """

    name: str
    elements: int
    bytes: int
    read: Callable[[npt.NDArray[np.uint8], tuple[int, ...]], Floats | BlockMatrix]


# Each reader below has the layout of its block, as byte offset and content, from ``block_q4_0`` to ``block_q6_K`` of
# ``ggml-common.h``. An element is ``scale * q + offset``. "half" is a number in half precision; by a half "for the
# scales", all scales of the block are multiplied.


def _floats(code: str) -> Callable[[npt.NDArray[np.uint8], tuple[int, ...]], Floats]:
    return lambda data, shape: data.reshape(-1).view(code).astype(np.float32).reshape(shape)


def _bfloat16(data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> Floats:
    # A bfloat16 is the upper half of a float32.
    bits = data.reshape(-1).view("<u2").astype(np.uint32) << 16
    return bits.view(np.float32).reshape(shape)


def _half(data: npt.NDArray[np.uint8], at: int) -> Floats:
    """Return the half-precision number at an offset of each block, ``[blocks, 1]``."""
    return np.ascontiguousarray(data[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the lower halves of bytes, then the upper halves, along the last axis."""
    return np.concatenate((data & 15, data >> 4), axis=-1)


def _blocks(q: npt.NDArray[Any], scales: Floats, offsets: Floats | None, shape: tuple[int, ...]) -> Any:
    """Return a matrix of a shape; without offsets, they are 0."""
    flat = (int(np.prod(shape[:-1])), -1)
    if offsets is None:
        offsets = np.zeros_like(scales)
    return quantised(q.astype(np.int8, copy=False).reshape(shape), scales.reshape(flat), offsets.reshape(flat))


def _q4_0(data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> Any:
    # 0: scale (half); 2: 16 bytes of nibbles, q + 8.
    return _blocks(_nibbles(data[:, 2:]).view(np.int8) - np.int8(8), _half(data, 0), None, shape)


def _q4_1(data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> Any:
    # 0: scale (half); 2: offset (half); 4: 16 bytes of nibbles, q.
    return _blocks(_nibbles(data[:, 4:]), _half(data, 0), _half(data, 2), shape)


def _fifth_bits(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the fifth bit of each q, in its place, from 4 bytes with 32 of them."""
    bits: npt.NDArray[np.uint8] = np.unpackbits(data, axis=1, bitorder="little") << np.uint8(4)
    return bits


def _q5_0(data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> Any:
    # 0: scale (half); 2: 4 bytes of fifth bits; 6: 16 bytes of nibbles; together q + 16.
    q = (_nibbles(data[:, 6:]) | _fifth_bits(data[:, 2:6])).view(np.int8) - np.int8(16)
    return _blocks(q, _half(data, 0), None, shape)


def _q5_1(data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> Any:
    # 0: scale (half); 2: offset (half); 4: 4 bytes of fifth bits; 8: 16 bytes of nibbles; together q.
    q = _nibbles(data[:, 8:]) | _fifth_bits(data[:, 4:8])
    return _blocks(q, _half(data, 0), _half(data, 2), shape)


def _q8_0(data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> Any:
    # 0: scale (half); 2: 32 bytes, q.
    return _blocks(data[:, 2:].view(np.int8), _half(data, 0), None, shape)


def _six_bits(data: npt.NDArray[np.uint8]) -> tuple[Floats, Floats]:
    """Return the eight scales and the eight minima of six bits each that the K types pack into twelve bytes.

    The first four scales are the lower six bits of bytes 0 to 3, the first four minima those of bytes 4 to 7. Of the
    last four, bytes 8 to 11 have the lower four bits as nibbles, and the upper two bits of bytes 0 to 7 the rest.
    """
    low, mid, high = data[:, :4], data[:, 4:8], data[:, 8:12]
    scales = np.concatenate((low & 63, (high & 15) | (low >> 6) << 4), axis=1)
    minima = np.concatenate((mid & 63, (high >> 4) | (mid >> 6) << 4), axis=1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _q4_k(data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> Any:
    # Eight blocks of 32. 0: half for the scales; 2: half for the minima; 4: `_six_bits`; 16: nibbles, q.
    scales, minima = _six_bits(data[:, 4:16])
    q = _nibbles(data[:, 16:].reshape(-1, 4, 32))
    return _blocks(q, _half(data, 0) * scales, -(_half(data, 2) * minima), shape)


def _q5_k(data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> Any:
    # As `_q4_k` up to 16, where 32 bytes have the fifth bits: bit b of byte i is of element i of block b; 48: nibbles.
    scales, minima = _six_bits(data[:, 4:16])
    low = _nibbles(data[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    high = data[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return _blocks(low | high << 4, _half(data, 0) * scales, -(_half(data, 2) * minima), shape)


def _q6_k(data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> Any:
    # Sixteen blocks of 16, without offsets. 0: nibbles; 128: the upper two bits of four elements a byte; together
    # q + 32; 192: scales as bytes; 208: half for the scales.
    low = _nibbles(data[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    high = data[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    q = (low | high << 4).view(np.int8) - np.int8(32)
    scales = np.ascontiguousarray(data[:, 192:208]).view(np.int8).astype(np.float32)
    return _blocks(q, _half(data, 208) * scales, None, shape)


#: The types of tensors by number (``enum ggml_type``).
_TENSOR_TYPES = {
    0: _TensorType("F32", 1, 4, _floats("<f4")),
    1: _TensorType("F16", 1, 2, _floats("<f2")),
    30: _TensorType("BF16", 1, 2, _bfloat16),
    2: _TensorType("Q4_0", 32, 18, _q4_0),
    3: _TensorType("Q4_1", 32, 20, _q4_1),
    6: _TensorType("Q5_0", 32, 22, _q5_0),
    7: _TensorType("Q5_1", 32, 24, _q5_1),
    8: _TensorType("Q8_0", 32, 34, _q8_0),
    12: _TensorType("Q4_K", 256, 144, _q4_k),
    13: _TensorType("Q5_K", 256, 176, _q5_k),
    14: _TensorType("Q6_K", 256, 210, _q6_k),
}
