"""Vocabulary indexes, computed or read from disk.

For a large vocabulary, the trie, the token sets of free strings and the surveys of common classes take seconds, so they
are cached on disk (``disk_cache.py``). The key has the vocabulary's content, the library's version and a digest of the
code that computes them.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import logging
from array import array
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import cast

import numpy as np

from ..automaton.byte_rows import free_key
from ..automaton.encoding import OPEN, QUOTED, RAW
from ..automaton.lazy_dfa import Program
from ..language.nodes import Nodes
from ..regex.compile import regex_term
from ..vocabulary.disk_cache import cache_folder, read_arrays, write_arrays
from ..vocabulary.vocabulary import Vocabulary
from .class_survey import ClassSurvey
from .masks import COMPILED, Masks
from .token_set import load_token_set
from .trie import Trie
from .vocabulary_index import VocabularyIndex

#: Version of the files' content and form.
FORMAT = 4

#: Minimum size of a vocabulary whose index is cached on disk: that of a smaller one is computed as fast as it is read.
MIN_TOKENS = 8_192

#: Names of free strings on disk, and their keys among the shared token sets (see `ByteRows.shared`).
_FREE: dict[str, Hashable] = {
    "open": free_key(OPEN),
    "quoted": free_key(QUOTED),
    "raw": free_key(RAW),
}


#: Patterns of the classes that are surveyed in advance, because they are frequent in schemas and many tokens are in
#: them: any character (see `NEARLY_ANY`), no line end, no white space; identifiers, names of packages and hosts, URIs.
_CLASSES = (
    "[^]",
    r"[^\u{10FFFF}]",
    ".",
    r"\S",
    "[a-z]",
    "[a-zA-Z]",
    "[a-zA-Z0-9]",
    *(f"[a-zA-Z0-9{marks}]" for marks in ("_", r"\-", r"_\-", r"._\-", r".+\-", r"._:\-", r"._:/\-")),
    *(f"[a-z0-9{marks}]" for marks in ("", r"\-", r"_\-", r".\-")),
    r"[a-zA-Z0-9._~!$&'()*+,;=:@/\-]",
)


def index_of(vocabulary: Vocabulary) -> VocabularyIndex:
    """Return the index of a vocabulary; computed when first asked for, or read from disk."""
    return vocabulary.derived(_make)


def _make(vocabulary: Vocabulary) -> VocabularyIndex:
    """Compute the index of a vocabulary, or read it from its cache folder.

    A vocabulary of fewer than `MIN_TOKENS` tokens gets only a trie: its token sets are computed by each grammar. A file
    that cannot be used is computed again and overwritten.
    """
    if vocabulary.size < MIN_TOKENS:
        return _index(vocabulary, Trie(vocabulary.tokens))
    folder = cache_folder(vocabulary.cache_dir)
    if folder is None:
        return _compute(vocabulary)
    key = _key(vocabulary)
    arrays = read_arrays(folder, key)
    if arrays is not None:
        try:
            return _unpacked(vocabulary, arrays)
        except (KeyError, ValueError, TypeError):  # an intact file of another form: computed again below
            pass
    index = _compute(vocabulary)
    write_arrays(folder, key, _packed(index))
    return index


def _key(vocabulary: Vocabulary) -> str:
    """Return the key of a vocabulary's index on disk."""
    digest = hashlib.sha256(f"{FORMAT} {vocabulary.content_hash} {_code()}".encode())
    return digest.hexdigest()


@cache
def _say_interpreted() -> None:
    """Log once that the kernel is not compiled; not called if an index is read from disk, which is fast."""
    logging.getLogger("toolgrammar").warning(
        "there are no compiled modules: reading schemas, binding grammars and the masks of new states take about ten "
        "times as long, and the model itself no longer; install with a C compiler to compile them"
    )


@cache
def _code() -> str:
    """Return a digest of the library's version and of the code that computes indexes, so that changed code does not
    read old files."""
    digest = hashlib.sha256()
    with suppress(importlib.metadata.PackageNotFoundError):  # not installed
        digest.update(importlib.metadata.version("toolgrammar").encode())
    core = Path(__file__).parent.parent
    with suppress(OSError):
        for folder in ("compiled", "unicode", "language", "regex", "schema/scalars", "automaton", "masks"):
            for path in sorted((core / folder).glob("*.py")):  # none in a distribution of compiled modules only
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _index(vocabulary: Vocabulary, trie: Trie, quoted: array[int] | None = None) -> VocabularyIndex:
    """Return an index without token sets; ``quoted``: the tokens with a quote, if known."""
    if quoted is None:
        quoted = array("i", [number for number, data in enumerate(vocabulary.tokens) if data and b'"' in data])
    return VocabularyIndex(trie, quoted, vocabulary.tokens)


def _compute(vocabulary: Vocabulary) -> VocabularyIndex:
    """Return a new index with the token sets of free strings, which are memoised when their masks are computed."""
    if not COMPILED:
        _say_interpreted()
    index = _index(vocabulary, Trie(vocabulary.tokens))
    out = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
    # Free strings, as JSON and raw, each with a first byte: their token sets before and after it are made.
    programs: list[tuple[Callable[[Nodes], int], bytes]] = [
        (lambda nodes: nodes.json_string(nodes.terms.ALL), b'"'),
        (lambda nodes: nodes.text(nodes.terms.ALL), b"-"),
    ]
    for build, first in programs:
        program = Program(build)
        masks = Masks(program.automaton, index, (), {}, 2**30)
        masks.fill(program.start, out)
        masks.fill(program.automaton.advance(program.start, first), out)
    for pattern in _CLASSES:
        masks.survey(regex_term(program.store.nodes.terms, pattern, whole=True))
    return index


def _packed(index: VocabularyIndex) -> dict[str, array[int]]:
    """Return the arrays from which `_unpacked` makes an index again."""
    arrays = {"quoted": array("i", index.quoted.tolist())}
    arrays.update((f"trie {number}", part) for number, part in enumerate(index.trie.saved()))
    for name, key in _FREE.items():
        arrays.update((f"{name} {number}", part) for number, part in enumerate(index.token_sets[key].saved()))
    for at, (ranges, survey) in enumerate(index.surveys.items()):
        arrays[f"class {at}"] = array("i", chain.from_iterable(cast("Iterable[tuple[int, int]]", ranges)))
        arrays.update((f"survey {at} {number}", part) for number, part in enumerate(survey.saved()))
    return arrays


def _unpacked(vocabulary: Vocabulary, arrays: dict[str, array[int]]) -> VocabularyIndex:
    """Return the index of `_packed` arrays.

    Raises:
        KeyError, ValueError, TypeError: the arrays have another form.
    """

    def part(name: str, count: int) -> tuple[array[int], ...]:
        return tuple(arrays[f"{name} {number}"] for number in range(count))

    index = _index(vocabulary, Trie(vocabulary.tokens, part("trie", 4)), arrays["quoted"])
    index.token_sets.update((key, load_token_set(index.trie, part(name, 4))) for name, key in _FREE.items())
    for at in range(len(_CLASSES)):
        index.surveys.put(_ranges(arrays[f"class {at}"]), ClassSurvey(*part(f"survey {at}", 6)))
    return index


def _ranges(flat: array[int]) -> tuple[tuple[int, int], ...]:
    """Return the ranges of a class of characters from their bounds, one after the other (see
    `ByteRows.character_class`)."""
    return tuple(zip(flat[::2], flat[1::2], strict=True))
