"""Hostile GGUF files: each changed one is refused with an error of ours, or runs, in bounded memory."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core.errors import ModelError, ToolGrammarError
from toolgrammar.core.models.numpy_llama.backend import NumpyBackend
from toolgrammar.core.vocabulary.token_bytes import byte_alphabet

#: Numbers of the types of metadata: in `struct`'s notation, and those of strings and arrays.
CODES = {"B": 0, "b": 1, "H": 2, "h": 3, "I": 4, "i": 5, "f": 6, "?": 7, "Q": 10, "q": 11, "d": 12}
STRING, ARRAY = "s", "a"

#: Errors of a file; the last is that of a context window of one token.
ERRORS = ("ModelError", "VocabularyError", "ContextOverflowError")

#: Maximum memory of one file, in bytes: the file has 20 kB.
MEMORY = 200 << 20

#: A value of metadata: its type and itself; the value of an array is again a pair, of the type and the elements.
Value = tuple[str, Any]

NAMES = [*byte_alphabet(), "ab", "<|im_start|>", "<|im_end|>"]
METADATA: dict[str, Value] = {
    "general.architecture": (STRING, "llama"),
    "general.alignment": ("I", 32),
    "llama.context_length": ("I", 64),
    "llama.embedding_length": ("I", 8),
    "llama.block_count": ("I", 1),
    "llama.feed_forward_length": ("I", 12),
    "llama.attention.head_count": ("I", 2),
    "llama.attention.head_count_kv": ("I", 1),
    "llama.attention.layer_norm_rms_epsilon": ("f", 1e-5),
    "llama.attention.key_length": ("I", 4),
    "llama.rope.dimension_count": ("I", 4),
    "llama.rope.freq_base": ("f", 10_000.0),
    "llama.rope.scaling.type": (STRING, "linear"),
    "llama.rope.scaling.factor": ("f", 2.0),
    "llama.expert_count": ("I", 0),
    "split.count": ("H", 1),
    "tokenizer.ggml.model": (STRING, "gpt2"),
    "tokenizer.ggml.pre": (STRING, "gpt-2"),
    "tokenizer.ggml.tokens": (ARRAY, (STRING, NAMES)),
    "tokenizer.ggml.token_type": (ARRAY, ("i", [*[1] * 257, 3, 3])),
    "tokenizer.ggml.merges": (ARRAY, (STRING, ["a b"])),
    "tokenizer.ggml.bos_token_id": ("I", 257),
    "tokenizer.ggml.eos_token_id": ("I", 258),
    "tokenizer.ggml.add_bos_token": ("?", True),
    "tokenizer.chat_template": (STRING, "{% for m in messages %}{{ m.content }}{% endfor %}"),
}
SHAPES: dict[str, tuple[int, ...]] = {
    "token_embd.weight": (259, 8),
    "output_norm.weight": (8,),
    "rope_freqs.weight": (2,),
    "blk.0.attn_norm.weight": (8,),
    "blk.0.attn_q.weight": (8, 8),
    "blk.0.attn_k.weight": (4, 8),
    "blk.0.attn_v.weight": (4, 8),
    "blk.0.attn_output.weight": (8, 8),
    "blk.0.ffn_norm.weight": (8,),
    "blk.0.ffn_gate.weight": (12, 8),
    "blk.0.ffn_up.weight": (12, 8),
    "blk.0.ffn_down.weight": (8, 12),
}

#: Values that a key is given instead of its own.
OTHERS: list[Value] = [
    *(("q", number) for number in (0, -1, 1, 3, 7, 2**31, 2**32, 2**40, 2**62)),
    ("Q", 2**64 - 1),
    *(("d", number) for number in (0.0, -1.0, 0.5, 1e308, float("inf"), float("nan"))),
    ("?", True),
    *((STRING, text) for text in ("", "x", "llama", "9", "{{")),
    *((ARRAY, (STRING, texts)) for texts in ([], ["a"], ["a b"] * 3, ["<|im_end|>"] * 259, ["a"] * 259)),
    *((ARRAY, ("i", numbers)) for numbers in ([], [1], [-1], [2**30], [5] * 259, [3] * 259, list(range(259)))),
    (ARRAY, ("f", [1.0])),
    (ARRAY, (ARRAY, [("i", [1])])),
]


def packed(kind: str, value: Any) -> bytes:
    """Return the bytes of a value."""
    if kind == STRING:
        data = value.encode()
        return struct.pack("<Q", len(data)) + data
    if kind == ARRAY:
        inner, elements = value
        head = struct.pack("<IQ", number_of(inner), len(elements))
        return head + b"".join(packed(inner, element) for element in elements)
    return struct.pack("<" + kind, value)


def number_of(kind: str) -> int:
    """Return the number of a type."""
    return {STRING: 8, ARRAY: 9}.get(kind, CODES.get(kind, 0))


def file_of(
    changes: Mapping[str, Value | None] = {}, shapes: Mapping[str, tuple[int, ...]] = {}, kinds: Mapping[str, int] = {}
) -> bytes:
    """Return a GGUF file of a tiny Llama, with some values, shapes or types of tensors changed (None: left out)."""
    metadata = {**METADATA, **changes}
    kept = {key: value for key, value in metadata.items() if value is not None}
    text = b"GGUF" + struct.pack("<IQQ", 3, len(SHAPES), len(kept))
    for key, (kind, value) in kept.items():
        text += packed(STRING, key) + struct.pack("<I", number_of(kind)) + packed(kind, value)
    data, rng = b"", np.random.default_rng(0)
    for name, own in SHAPES.items():
        shape = shapes.get(name, own)
        text += packed(STRING, name) + struct.pack("<I", len(shape))
        text += struct.pack(f"<{len(shape)}Q", *shape[::-1]) + struct.pack("<IQ", kinds.get(name, 0), len(data))
        array = rng.standard_normal(own).astype("<f4").tobytes()
        data += array + bytes(-len(array) % 32)
    return text + bytes(-len(text) % 32) + data


def outcome(path: Path, content: bytes) -> str:
    """Open a file and use what it is; return "runs" or the kind of the error, which is ours."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        backend = NumpyBackend(path)
        ids = [*backend.encode("ab c"), *backend.prompt_ids([], [], "", None)]
        if ids:
            backend.new_session().extend([0, *ids])
        backend.close()
        kind = "runs"
    except ToolGrammarError as error:
        assert "unpack" not in error.message and "NoneType" not in error.message
        kind = type(error).__name__
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MEMORY
    return kind


def test_the_file_runs(tmp_path: Path) -> None:
    """The file that the others are made of is a model."""
    assert outcome(tmp_path / "m.gguf", file_of()) == "runs"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("key", METADATA)
def test_a_value_of_another_type_or_size(tmp_path: Path, key: str) -> None:
    """Each value of the metadata may be of any type, out of range or absent."""
    kinds = [outcome(tmp_path / "m.gguf", file_of({key: other})) for other in [None, *OTHERS]]
    assert kinds.count("runs") < len(kinds) and set(kinds) <= {"runs", *ERRORS}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SHAPES)
def test_a_tensor_of_another_shape_or_type(tmp_path: Path, name: str) -> None:
    """Each tensor may be empty, of another shape, greater than the file, or of a type of blocks."""
    own = SHAPES[name]
    shapes = [(0,), (0, 8), (8, 0), own[::-1], (1,), (2**40, 2**40), (2**62,), (1, *own), (own[0] + 1, *own[1:])]
    kinds = [outcome(tmp_path / "m.gguf", file_of(shapes={name: shape})) for shape in shapes if shape != own]
    assert set(kinds) == {"ModelError"}
    kinds = [outcome(tmp_path / "m.gguf", file_of(kinds={name: kind})) for kind in (*range(1, 32), 2**31)]
    assert set(kinds) <= {"runs", "ModelError"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_changed_bytes_and_cut_files(tmp_path: Path) -> None:
    """Random bytes are changed in the header, and the file is cut at random places."""
    rng, whole = random.Random(5), file_of()
    header = len(whole) - sum(-(-4 * int(np.prod(shape)) // 32) * 32 for shape in SHAPES.values())
    kinds = []
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            at = rng.choice([rng.randrange(header), rng.randrange(1_400), header - 1 - rng.randrange(900)])
            content[at] = rng.choice([0, 1, 255, 128, rng.randrange(256), content[at] ^ 1 << rng.randrange(8)])
        end = rng.choice([None, None, rng.randrange(len(whole))])
        kinds.append(outcome(tmp_path / "m.gguf", bytes(content[:end])))
    assert 5 < kinds.count("runs") < 100


def test_a_cut_file_is_told_in_words(tmp_path: Path) -> None:
    """The error of a truncated file says where it ends."""
    path = tmp_path / "m.gguf"
    for size, words in ((10, "it ends inside its header"), (40, "it ends inside a string"), (3_000, "it ends inside")):
        path.write_bytes(file_of()[:size])
        with pytest.raises(ModelError, match=words):
            NumpyBackend(path)
