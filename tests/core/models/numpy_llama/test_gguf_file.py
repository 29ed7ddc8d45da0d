"""GGUF files: what is read is what the package ``gguf`` reads, and broken files are refused."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core.errors import ModelError
from toolgrammar.core.models.numpy_llama import matrices
from toolgrammar.core.models.numpy_llama.gguf_file import _TENSOR_TYPES, GGUFFile
from toolgrammar.core.models.numpy_llama.matrices import MAX_DIRECT, BlockMatrix, dense, join_columns

gguf = pytest.importorskip("gguf", reason="the gguf package is not installed")


def written(path: Path, tensors: dict[str, tuple[np.ndarray[Any, Any], Any]]) -> Path:
    """A file with some metadata of every type, and tensors of any type as raw bytes."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint8("an.u8", 200)
    writer.add_int8("an.i8", -3)
    writer.add_uint16("an.u16", 60_000)
    writer.add_int16("an.i16", -30_000)
    writer.add_uint32("an.u32", 4_000_000_000)
    writer.add_int32("an.i32", -2_000_000_000)
    writer.add_uint64("an.u64", 2**63)
    writer.add_int64("an.i64", -(2**62))
    writer.add_float32("a.float", 0.5)
    writer.add_float64("a.double", 0.1)
    writer.add_bool("a.bool", True)
    writer.add_string("a.string", "né\n")
    writer.add_array("some.strings", ["a", "", "é"])
    writer.add_array("some.numbers", [3, -1, 2])
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def random_blocks(name: str, rows: int, blocks: int) -> np.ndarray[Any, Any]:
    """Random bytes of a type; those that are half-precision numbers are small ones."""
    kind = gguf.GGMLQuantizationType[name]
    _, size = gguf.GGML_QUANT_SIZES[kind]
    random = np.random.default_rng(size)
    data = random.integers(0, 256, (rows, blocks, size), dtype=np.uint8)
    halves = {"Q6_K": [208], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q4_1": [0, 2], "Q5_1": [0, 2]}.get(name, [0])
    for at in halves:
        data[..., at : at + 2] = random.normal(0, 0.02, (rows, blocks, 1)).astype("<f2").view(np.uint8)
    return data.reshape(rows, -1)


def test_metadata(tmp_path: Path) -> None:
    """Every type of value is read."""
    with GGUFFile(written(tmp_path / "m.gguf", {"t": (np.ones((2, 3), np.float32), None)})) as file:
        values = {key: value for key, value in file.metadata.items() if not key.startswith("general.")}
    assert values.pop("some.numbers").tolist() == [3, -1, 2]
    assert values == {
        "an.u8": 200, "an.i8": -3, "an.u16": 60_000, "an.i16": -30_000, "an.u32": 4_000_000_000,
        "an.i32": -2_000_000_000, "an.u64": 2**63, "an.i64": -(2**62), "a.float": 0.5, "a.double": 0.1,
        "a.bool": True, "a.string": "né\n", "some.strings": ["a", "", "é"],
    }  # fmt: skip
    assert file.names == ("t",)


@pytest.mark.parametrize("name", [kind.name for kind in _TENSOR_TYPES.values() if kind.elements > 1])
def test_quantised_tensors(tmp_path: Path, name: str) -> None:
    """Each type of blocks is unpacked to exactly the numbers of the package ``gguf``."""
    kind = gguf.GGMLQuantizationType[name]
    blocks = 2 if "K" in name else 5
    data = random_blocks(name, 7, blocks)
    expected = gguf.quants.dequantize(data, kind)
    with GGUFFile(written(tmp_path / "q.gguf", {"first": (data, kind), "second": (data[:3], kind)})) as file:
        tensor, second = file.tensor("first"), file.tensor("second")
    assert tensor.shape == expected.shape
    assert np.abs(expected).max() > 0.1
    assert np.array_equal(dense(tensor), expected)
    assert np.array_equal(dense(second), expected[:3])


@pytest.mark.parametrize("name", ["F32", "F16", "BF16"])
def test_float_tensors(tmp_path: Path, name: str) -> None:
    """Floats of each width are read exactly."""
    kind = gguf.GGMLQuantizationType[name]
    data = gguf.quants.quantize(np.random.default_rng(1).standard_normal((4, 32), np.float32), kind)
    with GGUFFile(written(tmp_path / "f.gguf", {"t": (data, kind if name == "BF16" else None)})) as file:
        assert np.array_equal(file.tensor("t"), gguf.quants.dequantize(data, kind))


@pytest.mark.parametrize("name", ["Q4_1", "Q8_0", "Q6_K"])
@pytest.mark.parametrize("count", [1, 2, 4, 7, MAX_DIRECT, MAX_DIRECT + 1, 40])
@pytest.mark.parametrize("vectorised", [False, True])
def test_products(tmp_path: Path, name: str, count: int, vectorised: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products with blocks are those with the unpacked matrix, for one vector and for many; so are rows. Likewise
    without the processor's vector instructions."""
    monkeypatch.setattr(matrices, "VECTORS", vectorised and matrices.VECTORS)
    kind = gguf.GGMLQuantizationType[name]
    with GGUFFile(written(tmp_path / "p.gguf", {"t": (random_blocks(name, 1_100, 2), kind)})) as file:
        tensor = file.tensor("t")
    whole = dense(tensor)
    vectors = np.random.default_rng(2).standard_normal((count, whole.shape[1]), np.float32)
    expected = vectors @ whole.T
    tolerance = 1e-5 * float(np.abs(expected).max())
    assert np.allclose(vectors @ tensor.T, expected, atol=tolerance)
    assert np.allclose(vectors[0] @ tensor.T, expected[0], atol=tolerance)
    ids = np.array([5, 1_099, 0, 5])
    assert np.array_equal(tensor[ids], whole[ids])


def test_side_by_side(tmp_path: Path) -> None:
    """Matrices in blocks of different sizes, or one in blocks and a dense one, become one."""
    tensors = {}
    for name in ("Q4_1", "Q6_K", "Q8_0"):
        blocks = 1 if "K" in name else 8
        tensors[name] = (random_blocks(name, 5, blocks), gguf.GGMLQuantizationType[name])
    tensors["F32"] = (np.random.default_rng(3).standard_normal((4, 256), np.float32), None)
    with GGUFFile(written(tmp_path / "s.gguf", tensors)) as file:
        parts = [file.tensor(name).T for name in ("Q4_1", "Q6_K", "Q8_0")]
        plain = file.tensor("F32").T
    for chosen in (parts, [*parts, plain]):
        expected = np.concatenate([dense(part) for part in chosen], axis=1)
        assert np.array_equal(dense(join_columns(chosen)), expected)


def test_an_unknown_type_is_refused(tmp_path: Path) -> None:
    """A tensor of a type that is not known is named, with the types that are."""
    data = np.zeros((2, 66), np.uint8)
    with GGUFFile(written(tmp_path / "i.gguf", {"odd": (data, gguf.GGMLQuantizationType.IQ2_XXS)})) as file:
        with pytest.raises(ModelError, match="'odd' is of the type number 16") as caught:
            file.tensor("odd")
        with pytest.raises(ModelError, match="no tensor 'even'"):
            file.tensor("even")
    assert "Q4_1" in caught.value.hint and "gguf:" in caught.value.hint


def test_broken_files_are_refused(tmp_path: Path) -> None:
    """A file cut anywhere, of another kind or with absurd counts, is a `ModelError`, never anything else."""
    whole = written(tmp_path / "w.gguf", {"t": (np.ones((2, 32), np.float32), None)}).read_bytes()
    path = tmp_path / "broken.gguf"
    absurd = struct.pack("<4sIQQ", b"GGUF", 3, 2**40, 2**40)
    big_endian = struct.pack(">4sIQQ", b"GGUF", 3, 0, 0)
    cuts = [whole[:size] for size in range(0, len(whole) - 32, 7)]
    for content in [b"", b"GGUF", b"PK\3\4" + whole[4:], absurd, big_endian, *cuts]:
        path.write_bytes(content)
        with pytest.raises(ModelError), GGUFFile(path) as file:
            file.tensor("t")
    with pytest.raises(ModelError, match="cannot be read"):
        GGUFFile(tmp_path / "missing.gguf")


@settings(max_examples=100, deadline=None)
@given(at=st.integers(0, 600), byte=st.integers(0, 255))
def test_a_changed_byte_does_no_harm(tmp_path_factory: pytest.TempPathFactory, at: int, byte: int) -> None:
    """A file with any byte changed is read or refused."""
    folder = tmp_path_factory.mktemp("changed")
    data = bytearray(written(folder / "w.gguf", {"t": (np.ones((2, 32), np.float32), None)}).read_bytes())
    data[at % len(data)] = byte
    (folder / "c.gguf").write_bytes(data)
    try:
        with GGUFFile(folder / "c.gguf") as file:
            assert isinstance(file.tensor("t"), (np.ndarray, BlockMatrix))
    except ModelError as error:
        assert error.hint
