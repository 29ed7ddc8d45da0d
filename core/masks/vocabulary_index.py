"""What a vocabulary is prepared with once, for all grammars: its trie, and the tables of free strings.

For a large vocabulary that takes a while, so it is kept on disk (``disk_cache.py``), under a key that holds
the vocabulary's content, the library's version and the very code that computes it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from array import array
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..automaton.byte_rows import free_key
from ..automaton.encoding import OPEN, QUOTED, RAW
from ..automaton.lazy_dfa import Program
from ..language.nodes import Nodes
from ..vocabulary.disk_cache import cache_folder, read_arrays, write_arrays
from ..vocabulary.vocabulary import Vocabulary
from .character_counts import Counts, load_counts
from .masks import Masks
from .token_set import Table, load_table
from .trie import Trie

#: The version of what is kept, and of how it is kept.
FORMAT = 1

#: Vocabularies of fewer tokens are prepared as quickly as they would be read.
LEAST_TOKENS = 8_192

#: What free strings are called on disk, and in the shared tables (see `Rows.shared`).
_FREE: dict[str, Hashable] = {
    "open": free_key(OPEN),
    "quoted": free_key(QUOTED),
    "raw": free_key(RAW),
}


class Prepared(NamedTuple):
    """What all grammars over a vocabulary share.

    Attributes:
        trie: the tokens by their bytes.
        tables: sets of tokens that do not depend on the grammar (see `Masks`).
        quoted: the tokens that hold a quote.
    """

    trie: Trie
    tables: dict[Hashable, Any]
    quoted: array[int]


def prepared(vocabulary: Vocabulary) -> Prepared:
    """What a vocabulary is prepared with; made when first asked for, or read from disk."""
    with vocabulary.lock:
        found: Prepared | None = vocabulary.cache.get("prepared")
        if found is None:
            found = vocabulary.cache["prepared"] = _prepare(vocabulary)
        return found


def _prepare(vocabulary: Vocabulary) -> Prepared:
    if vocabulary.size < LEAST_TOKENS:
        return Prepared(Trie(vocabulary.tokens), {}, _quoted(vocabulary))
    folder = cache_folder(vocabulary.cache_dir)
    if folder is None:
        return _compute(vocabulary)
    key = _key(vocabulary)
    arrays = read_arrays(folder, key)
    if arrays is not None:
        try:
            return _unpacked(vocabulary, arrays)
        except (KeyError, ValueError, TypeError):  # whole, but not what we wrote: made anew below
            pass
    made = _compute(vocabulary)
    write_arrays(folder, key, _packed(made))
    return made


def _key(vocabulary: Vocabulary) -> str:
    digest = hashlib.sha256(f"{FORMAT} {vocabulary.content_hash} {_code()}".encode())
    return digest.hexdigest()


@cache
def _code() -> str:
    """Tells apart versions of the library, and of the code that makes what is kept: nobody reads what a changed tree
    would compute differently."""
    digest = hashlib.sha256()
    with suppress(importlib.metadata.PackageNotFoundError):  # run from a tree
        digest.update(importlib.metadata.version("toolgrammar").encode())
    core = Path(__file__).parent.parent
    with suppress(OSError):
        for folder in ("unicode", "language", "automaton", "masks"):
            for path in sorted((core / folder).glob("*.py")):  # none where compiled modules alone were shipped
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _quoted(vocabulary: Vocabulary) -> array[int]:
    return array("i", [number for number, data in enumerate(vocabulary.tokens) if data and b'"' in data])


def _compute(vocabulary: Vocabulary) -> Prepared:
    trie = Trie(vocabulary.tokens)
    shared: dict[Hashable, Any] = {}
    # A string of few characters is counted, and asks for the counts.
    programs: list[tuple[Callable[[Nodes], int], bytes]] = [
        (lambda nodes: nodes.json_string(nodes.terms.ALL), b'"'),
        (lambda nodes: nodes.text(nodes.terms.ALL), b"-"),
        (lambda nodes: nodes.counted(0, 1), b'"'),
    ]
    out = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
    for build, first in programs:
        program = Program(build)
        masks = Masks(program.automaton, trie, (), {}, shared, 2**30)
        masks.fill(program.start, out)
        masks.fill(program.automaton.advance(program.start, first), out)
    return Prepared(trie, shared, _quoted(vocabulary))


def _packed(made: Prepared) -> dict[str, array[int]]:
    trie, shared, quoted = made
    found = {"quoted": quoted}
    found.update((f"trie {number}", each) for number, each in enumerate(trie.saved()))
    counts: Counts = shared["counts"]
    found.update((f"counts {number}", each) for number, each in enumerate(counts.saved()))
    for name, key in _FREE.items():
        table: Table = shared[key]
        found.update((f"{name} {number}", each) for number, each in enumerate(table.saved()))
    return found


def _unpacked(vocabulary: Vocabulary, arrays: dict[str, array[int]]) -> Prepared:
    def part(name: str, count: int) -> tuple[array[int], ...]:
        return tuple(arrays[f"{name} {number}"] for number in range(count))

    trie = Trie(vocabulary.tokens, part("trie", 4))
    shared: dict[Hashable, Any] = {"counts": load_counts(part("counts", 5))}
    shared.update((key, load_table(trie, part(name, 4))) for name, key in _FREE.items())
    return Prepared(trie, shared, arrays["quoted"])
