"""Vocabulary of a model: the bytes of each token.

Automata work on bytes; a `Vocabulary` is the map from token ids to bytes. It does not know how a tokenizer splits text,
because a mask depends only on the bytes that a token appends.

There are two kinds of tokens. A *text token* has bytes, possibly an incomplete character. A *control token* (end of
text, start of a turn, padding) has none, and is never text, even if a text spells its name.
"""

from __future__ import annotations

import hashlib
import operator
import sys
import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar, cast

from ..basics.forks import shared_lock
from ..errors import VocabularyError
from .disk_cache import CacheDir
from .token_bytes import TokenTable, read_mistral, read_tiktoken, read_transformers

#: Maximum length of a token in bytes, above that of any tokenizer; it bounds the states of one step.
MAX_TOKEN_BYTES = 4_096

_Derived = TypeVar("_Derived")


class Vocabulary:
    """The exact bytes of every token id. Immutable; equal only to itself (compare `content_hash` for the content).

    Control tokens, unused ids and the padding of a model's output layer are None in `tokens`. So are all tokens of
    ``eos`` and ``special``, even if they were passed with bytes. A text token with empty bytes may be in the
    vocabulary, but no mask allows it, because a model could write it endlessly without text.

    Args:
        tokens: the bytes of each token id; None for an id that is not text.
        eos: the ids that end the text; may be empty for a model that has no such token.
        special: the control tokens that a grammar may name (``Grammar.special``), from name to id.
        cache_dir: the folder in which the index of a large vocabulary is cached between processes; False: no cache;
            None: the value of ``TOOLGRAMMAR_CACHE_DIR`` (a folder, or ``off``), else the user's cache folder.

    Raises:
        VocabularyError: a token that is not bytes, or too long, an id out of range, or no tokens at all.

    Attributes:
        cache_dir: the argument.
    """

    __slots__ = ("__weakref__", "_content_hash", "_derived", "_eos", "_lock", "_special", "_tokens", "cache_dir")

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        *,
        eos: Collection[int],
        special: Mapping[str, int] = MappingProxyType({}),
        cache_dir: CacheDir = None,
    ) -> None:
        table: list[bytes | None] = list(tokens)
        if not table:
            raise VocabularyError(
                "a vocabulary needs at least one token",
                hint="give the bytes of each token id, in the order of the ids",
            )
        for token_id, token in enumerate(table):
            if token is not None and not isinstance(token, bytes):
                raise VocabularyError(f"token {token_id} is of type {type(token).__name__}, not bytes or None")
            if token is not None and len(token) > MAX_TOKEN_BYTES:
                raise VocabularyError(
                    f"token {token_id} has {len(token):,} bytes, more than the maximum of {MAX_TOKEN_BYTES:,}",
                    hint="give None for a token that is never to be written",
                )
        for name in special:
            if not isinstance(name, str) or not name:
                raise VocabularyError(f"the name of a special token is {name!r}, not a non-empty string")
        self._eos = frozenset(_checked_id(token_id, len(table), "end-of-text token") for token_id in eos)
        self._special = {
            name: _checked_id(token_id, len(table), f"special token {name!r}") for name, token_id in special.items()
        }
        for token_id in self._eos.union(self._special.values()):
            table[token_id] = None
        self._tokens = tuple(table)
        self._content_hash: str | None = None
        self.cache_dir = cache_dir
        self._derived: dict[Callable[[Vocabulary], Any], Any] = {}
        self._lock = shared_lock(self, "_lock", threading.RLock())

    @classmethod
    def from_transformers(
        cls, tokenizer: Any, *, size: int | None = None, extra_eos: Collection[int] = (), cache_dir: CacheDir = None
    ) -> Vocabulary:
        """Return the vocabulary of a ``transformers`` tokenizer, fast or slow, or of a bare ``tokenizers.Tokenizer``.

        The notation of its tokens is read from its parts: byte-level BPE, SentencePiece with byte fallback, Unigram,
        WordPiece. Added tokens that are not special are text; special ones and the unknown token are control tokens.

        Args:
            tokenizer: the tokenizer; a ``MistralCommonBackend`` is passed on to `from_mistral`.
            size: the number of logits of the model; ids beyond those of the tokenizer are padding, and tokens beyond
                ``size`` are omitted, because the model cannot write them.
            extra_eos: further ids that end the text (a model's ``generation_config`` often has several).
            cache_dir: as for `Vocabulary`.

        Raises:
            VocabularyError: the tokenizer does not determine the bytes of each token; the message has the reason.

        Law: for each text that the tokenizer encodes without loss, ``decode(encode(text))`` is its UTF-8 bytes, up to
        one space at the beginning, which tokenizers that mark the start of a word (``▁the``) add.
        """
        return cls._from_table(read_transformers(tokenizer), size, extra_eos, cache_dir)

    @classmethod
    def from_mistral(
        cls, tokenizer: Any, *, size: int | None = None, extra_eos: Collection[int] = (), cache_dir: CacheDir = None
    ) -> Vocabulary:
        """Return the vocabulary of a ``mistral-common`` tokenizer: Tekken or SentencePiece, bare or in a
        ``MistralTokenizer``.

        Args and Raises as for `from_transformers`.
        """
        return cls._from_table(read_mistral(tokenizer), size, extra_eos, cache_dir)

    @classmethod
    def from_tiktoken(
        cls, encoding: Any, *, size: int | None = None, extra_eos: Collection[int] = (), cache_dir: CacheDir = None
    ) -> Vocabulary:
        """Return the vocabulary of a ``tiktoken.Encoding``; its ``<|endoftext|>``, if any, ends the text.

        Args and Raises as for `from_transformers`.
        """
        return cls._from_table(read_tiktoken(encoding), size, extra_eos, cache_dir)

    @classmethod
    def _from_table(
        cls, table: TokenTable, size: int | None, extra_eos: Collection[int], cache_dir: CacheDir
    ) -> Vocabulary:
        """Return the vocabulary of a tokenizer's table, padded or cut to the ``size`` of the model's logits."""
        used = 1 + max([*table.tokens, *table.special.values(), *table.eos], default=-1)
        size = used if size is None else size
        return cls(
            [table.tokens.get(token_id) for token_id in range(size)],
            eos={token_id for token_id in table.eos if token_id < size}.union(extra_eos),
            special={name: token_id for name, token_id in table.special.items() if token_id < size},
            cache_dir=cache_dir,
        )

    @property
    def tokens(self) -> tuple[bytes | None, ...]:
        """The bytes of each token id; None for ids that are not text."""
        return self._tokens

    @property
    def eos(self) -> frozenset[int]:
        """The ids that end the text."""
        return self._eos

    @property
    def special(self) -> Mapping[str, int]:
        """The control tokens by name, read-only."""
        return MappingProxyType(self._special)

    @property
    def size(self) -> int:
        """The number of ids, which is the length of logits."""
        return len(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)

    def __repr__(self) -> str:
        return f"Vocabulary(size={len(self._tokens)}, eos={sorted(self._eos)}, special={len(self._special)})"

    def decode(self, ids: Iterable[int]) -> bytes:
        """Return the bytes that these tokens write; control tokens write none.

        Law: ``decode(a + b) == decode(a) + decode(b)``.

        Raises:
            VocabularyError: an id out of range.
        """
        tokens = self._tokens
        return b"".join(tokens[_checked_id(token_id, len(tokens), "token")] or b"" for token_id in ids)

    def derived(self, make: Callable[[Vocabulary], _Derived]) -> _Derived:
        """Return ``make(self)``, made once and kept as long as the vocabulary (for example, an index of its tokens).

        Args:
            make: a function or a class that takes a vocabulary; it must not store it, to avoid a reference cycle.
        """
        with self._lock:
            if make not in self._derived:
                self._derived[make] = make(self)
            return cast(_Derived, self._derived[make])

    @property
    def content_hash(self) -> str:
        """SHA-256 (hex) of tokens, end-of-text ids and special tokens: equal content, equal hash, in any process."""
        if self._content_hash is None:
            digest = hashlib.sha256(b"toolgrammar vocabulary 2\n")
            # With lengths, so that different lists of tokens never have the same bytes.
            digest.update(b"%d\n" % len(self._tokens))
            lengths = array("i", [-1 if t is None else len(t) for t in self._tokens])
            if sys.byteorder == "big":
                lengths.byteswap()
            digest.update(lengths.tobytes())
            digest.update(b"".join(filter(None, self._tokens)))
            digest.update(repr((sorted(self._eos), sorted(self._special.items()))).encode())
            self._content_hash = digest.hexdigest()
        return self._content_hash

    def __copy__(self) -> Vocabulary:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Vocabulary:
        # Frameworks deep-copy their configuration, including models; the vocabulary is immutable.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(Vocabulary, eos=self._eos, special=dict(self._special), cache_dir=self.cache_dir)
        return make, (self._tokens,)  # without derived data


def _checked_id(value: Any, size: int, what: str) -> int:
    """Return ``value`` as a token id of a vocabulary of this size."""
    try:
        token_id = operator.index(value)
    except TypeError:
        token_id = -1
    if isinstance(value, bool) or not 0 <= token_id < size:
        raise VocabularyError(f"the {what} has the id {value!r}, which is not one of 0..{size - 1}")
    return token_id
