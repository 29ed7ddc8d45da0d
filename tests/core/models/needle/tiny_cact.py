"""A file of weights with a tiny network of Needle's architecture, random, and a tokenizer of single characters."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toolgrammar.core.models.needle.cact_file import NeedleConfig

MARKERS = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tools>", "</tools>", "<tool_call>", "</tool_call>",
           "<tool_result>", "</tool_result>")  # fmt: skip
WORDS = ("▁t", "he", "▁the", "in", '":', '{"', "name", "▁", "a", "e", "h", "i", "m", "n", "t", '"', ":", "{")
GROUP = 16


def pieces() -> list[tuple[str, float, int]]:
    """The tokens: text, score, kind."""
    controls = [("<pad>", 0.0, 2), ("</s>", 0.0, 2), ("<s>", 0.0, 2), ("<unk>", 0.0, 1)]
    markers = [(marker, 0.0, 3) for marker in MARKERS]
    octets = [(f"<0x{byte:02X}>", 0.0, 4) for byte in range(256)]
    return [*controls, *markers, *octets, *((word, -float(rank), 0) for rank, word in enumerate(WORDS))]


def tokenizer() -> bytes:
    """The last tensor of a file."""
    found = pieces()
    head = struct.pack("<IIIIIBBH", len(found), 0, 1, 2, 3, 0, 1, 0)
    texts = ((text.encode(), score, kind) for text, score, kind in found)
    return head + b"".join(struct.pack("<fBH", score, kind, len(text)) + text for text, score, kind in texts)


CONFIG = NeedleConfig(
    vocabulary=len(pieces()), dim=24, heads=4, kv_heads=2, layers=3, key_dim=6, value_dim=8, window=1024, padded=32,
    lanes=4, sliding=5, global_layers=(1,), taps=3, slots=11, slot_dim=6, tables=4, memory_taps=4, memory_stride=3,
    seeds=0, orders=(2, 3), sites=(0, 2), rope_base=1000.0,
)  # fmt: skip


def shapes(config: NeedleConfig) -> list[tuple[int, ...]]:
    """The shapes of the tensors of a file, without the tokenizer; a matrix of two dimensions is quantised."""
    dim, padded, lanes, layers = config.dim, config.padded, config.lanes, config.layers
    block = 1 << ((padded - 1).bit_length() // 2)
    widths = (config.heads * config.key_dim, config.kv_heads * config.key_dim, config.kv_heads * config.value_dim)
    wide = config.heads * config.value_dim
    layer = [(dim,), *((width, dim) for width in widths), *((config.taps, width) for width in widths),
             (config.key_dim,), (config.key_dim,), (wide, dim), (dim, wide), (dim,), (1,), (dim,), *[(padded,)] * 5,
             *[(block, block), (padded // block, padded // block)] * 3, (dim, 8), (8, padded)]  # fmt: skip
    mix = [*[(layers,)] * 3, (layers, lanes), (layers, lanes), (layers, lanes, lanes),
           *((layers * count, lanes * dim) for count in (lanes, lanes, lanes**2)), (padded,), (padded,)]  # fmt: skip
    memory = [(config.tables * config.slots, config.slot_dim), *[(dim, config.tables * config.slot_dim)] * 2,
              (config.memory_taps, dim)]  # fmt: skip
    return [(config.vocabulary, dim), *layer * layers, *mix, *memory * len(config.sites), (dim,)]


def write_cact(path: Path, config: NeedleConfig = CONFIG, *, seed: int = 0, tail: Iterable[bytes] = ()) -> Path:
    """Write a file with a random network."""
    random = np.random.default_rng(seed)
    codebooks = [np.sort(random.standard_normal(1 << bits)).astype(np.float32) / 4 for bits in (2, 3, 4)]
    permutations = iter([random.permutation(config.padded) for _ in range(2)])
    tensors: list[tuple[Any, ...]] = []
    known = shapes(config)
    last_mix = known.index((config.tables * config.slots, config.slot_dim))
    for index, shape in enumerate(known):
        if last_mix - 2 <= index < last_mix:
            tensors.append((2, shape, next(permutations).astype(np.float32).tobytes(), 0, 0))
        elif len(shape) == 2 and shape[1] in (config.dim, config.lanes * config.dim, config.slot_dim,
                                              config.heads * config.value_dim, config.tables * config.slot_dim) and (
            shape[0] > 8 or shape[1] == config.slot_dim
        ):  # fmt: skip
            bits = 2 + index % 3
            groups = -(-shape[1] // GROUP)
            packed = random.integers(0, 256, (shape[0], groups * GROUP * bits // 8), dtype=np.uint8)
            norms = random.uniform(0.5, 4, (shape[0], groups)).astype(np.float16)
            tensors.append((3, shape, packed.tobytes() + norms.tobytes(), GROUP, bits))
        else:
            tensors.append((1, shape, (random.standard_normal(shape) * 0.5).astype(np.float16).tobytes(), 0, 0))
    tensors += [(4, (), data, 0, 0) for data in (*tail, tokenizer())]
    path.write_bytes(_file(config, codebooks, tensors))
    return path


def _file(config: NeedleConfig, codebooks: Sequence[Any], tensors: Sequence[tuple[Any, ...]]) -> bytes:
    mask = sum(1 << layer for layer in config.global_layers)
    fields = [0x05E12A84, len(tensors), 28, 0, 8, config.vocabulary, 0, config.dim, config.heads, config.kv_heads,
              config.layers, config.key_dim, config.value_dim, config.window, config.padded, config.lanes,
              config.sliding, mask, 0, config.taps, config.slots, config.slot_dim, config.tables, config.memory_taps,
              config.memory_stride, config.seeds, len(config.orders), *(*config.orders, 0, 0, 0, 0)[:4],
              len(config.sites), *(*config.sites, *[0] * 16)[:16]]  # fmt: skip
    data = struct.pack("<48If", *fields, config.rope_base) + b"".join(book.tobytes() for book in codebooks)
    at = len(data) + len(tensors) * struct.calcsize("<BBHIIIIQQII")
    records, blobs = b"", b""
    for kind, shape, blob, group, bits in tensors:
        sizes = (*shape, 0, 0, 0, 0)[:4]
        records += struct.pack("<BBHIIIIQQII", kind, len(shape), 0, *sizes, at + len(blobs), len(blob), group, bits)
        blobs += blob
    return data + records + blobs
