"""A decoder like Llama's and Qwen2's in NumPy: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

Small models only: there is no accelerator. `Network` holds the weights and may be shared; `DecoderSession` is one
sequence with its key/value cache. Several sequences share a forward pass (`extend_rows`): products with weights are of
all their tokens together, and attention is of each sequence alone.

Weights are named arrays; a matrix maps row vectors, ``y = x @ w``, and may be quantised (`TransposedBlocks`; the
embedding is then a `BlockMatrix`):

===========================  ==============================================================
``embedding``                ``[vocabulary, dim]``
``layers.N.attention_norm``  ``[dim]``
``layers.N.query``           ``[dim, heads * head_dim]``
``layers.N.key``             ``[dim, kv_heads * head_dim]``, and ``layers.N.value`` likewise
``layers.N.query_bias``      ``[heads * head_dim]`` (Qwen2); when absent, zeros; ``key_bias``, ``value_bias`` likewise
``layers.N.output``          ``[heads * head_dim, dim]``
``layers.N.mlp_norm``        ``[dim]``
``layers.N.gate``            ``[dim, hidden]``, and ``layers.N.up`` likewise
``layers.N.down``            ``[hidden, dim]``
``norm``                     ``[dim]``
``head``                     ``[dim, vocabulary]``; when absent, the embedding transposed
``rope_factors``             ``[head_dim / 2]``, divisors of the rotary frequencies; when absent, ones
===========================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ModelError
from ...generation.backend import closed_error
from ..blas_threads import blas_threads
from ..sessions import OpenSessions, Tree, check_crop, check_new_tokens
from .matrices import Floats, join_columns

#: Capacity of new caches, in tokens.
_FIRST_CAPACITY = 64

#: Maximum number of tokens of a sequence in one forward pass: attention scores take heads * chunk * length floats.
CHUNK = 256


@dataclass(frozen=True)
class DecoderConfig:
    """The shape of a decoder.

    Attributes:
        vocabulary: number of tokens.
        dim: width of the residual stream.
        layers: number of blocks.
        heads: query heads; they divide ``dim``.
        kv_heads: key/value heads; they divide ``heads``.
        hidden: width of the feed-forward layers.
        rope_base: base of the rotary frequencies.
        epsilon: added to the mean square in RMSNorm.
    """

    vocabulary: int
    dim: int = 128
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    hidden: int = 352
    rope_base: float = 10_000.0
    epsilon: float = 1e-5

    def check(self) -> None:
        """Raise ModelError if heads do not divide the width evenly."""
        if self.dim % self.heads or self.heads % self.kv_heads or self.head_dim % 2:
            raise ModelError(
                f"{self.heads} heads and {self.kv_heads} key/value heads do not divide a width of {self.dim} evenly",
                hint="dim is a multiple of 2 * heads, and heads of kv_heads",
            )

    def biases(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the biases, by name; a decoder has all of them, or none."""
        widths = {"query": self.dim, "key": self.kv_heads * self.head_dim, "value": self.kv_heads * self.head_dim}
        return {
            f"layers.{layer}.{name}_bias": (width,) for layer in range(self.layers) for name, width in widths.items()
        }

    @property
    def head_dim(self) -> int:
        """Width of one head."""
        return self.dim // self.heads

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the arrays that every decoder has, by name: not those of biases, of ``head`` (which may
        be the transposed embedding) and of factors of rotary frequencies."""
        key_width = self.kv_heads * self.head_dim
        block = {
            "attention_norm": (self.dim,),
            "query": (self.dim, self.dim),
            "key": (self.dim, key_width),
            "value": (self.dim, key_width),
            "output": (self.dim, self.dim),
            "mlp_norm": (self.dim,),
            "gate": (self.dim, self.hidden),
            "up": (self.dim, self.hidden),
            "down": (self.hidden, self.dim),
        }
        shapes: dict[str, tuple[int, ...]] = {"embedding": (self.vocabulary, self.dim), "norm": (self.dim,)}
        for layer in range(self.layers):
            shapes |= {f"layers.{layer}.{name}": shape for name, shape in block.items()}
        return shapes


def noise_weights(config: DecoderConfig, seed: int) -> dict[str, Floats]:
    """Return weights drawn at random, the same for the same seed, scaled so that the logits have a spread of about 1.5.

    Queries and keys are twice as large as usual, so that attention picks some tokens out of many and the logits keep
    depending on the whole sequence. The head is not tied to the embedding, or the model would repeat its last token.
    """
    random = np.random.default_rng(seed)
    weights: dict[str, Floats] = {}
    for name, shape in config.shapes().items():
        if len(shape) == 1:
            weights[name] = np.ones(shape, np.float32)
            continue
        scale = 1.0 if name == "embedding" else shape[0] ** -0.5
        if name.endswith(("query", "key")):
            scale *= 2.0
        weights[name] = random.standard_normal(shape, np.float32) * np.float32(scale)
    head = random.standard_normal((config.dim, config.vocabulary), np.float32)
    weights["head"] = head * np.float32(1.5 * config.dim**-0.5)
    return weights


class Network:
    """The weights of a decoder, and values derived from them. Immutable.

    Args:
        config: its shape.
        weights: the named arrays, of the shapes in the docstring of the module; unquantised ones are converted to
            float32.
        context_window: the longest sequence.
        threads: maximum number of threads of a forward pass; None: the number of processors.

    Raises:
        ModelError: the context window has no token.
    """

    def __init__(
        self, config: DecoderConfig, weights: Mapping[str, Any], context_window: int, threads: int | None = 1
    ) -> None:
        if context_window < 1:
            raise ModelError(f"context_window is {context_window}", hint="give at least 1")
        self.config = config
        self.context_window = context_window
        self.threads = threads
        arrays: dict[str, Any] = {
            name: np.asarray(array, np.float32) if isinstance(array, np.ndarray) else array
            for name, array in weights.items()
        }
        self.embedding = arrays["embedding"]
        self.norm = arrays["norm"]
        self.head = arrays.get("head", self.embedding.T)
        self.layers = [_Layer(arrays, f"layers.{layer}.") for layer in range(config.layers)]
        half = config.head_dim // 2
        frequencies = config.rope_base ** (-np.arange(half) / half) / arrays.get("rope_factors", np.ones(half))
        angles = np.outer(np.arange(context_window), frequencies)
        self.cosine = np.cos(angles).astype(np.float32)
        self.sine = np.sin(angles).astype(np.float32)

    def rotate(self, heads: Floats, positions: slice | npt.NDArray[np.int64]) -> Floats:
        """Rotate queries or keys, ``[heads, tokens, head_dim]``, by the angles of their positions."""
        cosine, sine = self.cosine[positions], self.sine[positions]
        half = heads.shape[2] // 2
        left, right = heads[..., :half], heads[..., half:]
        return np.concatenate((left * cosine - right * sine, right * cosine + left * sine), axis=-1)


class _Layer:
    """The arrays of one block; those that apply to the same input are concatenated, for one product."""

    def __init__(self, arrays: Mapping[str, Any], prefix: str) -> None:
        self.attention_norm = arrays[prefix + "attention_norm"]
        names = [prefix + name for name in ("query", "key", "value")]
        self.query_key_value = join_columns([arrays[name] for name in names])
        self.bias = np.concatenate([arrays[f"{name}_bias"] for name in names]) if f"{names[0]}_bias" in arrays else None
        self.output = arrays[prefix + "output"]
        self.mlp_norm = arrays[prefix + "mlp_norm"]
        self.gate_up = join_columns([arrays[prefix + "gate"], arrays[prefix + "up"]])
        self.down = arrays[prefix + "down"]


class DecoderSession:
    """One sequence and its key/value cache; implements `Session`. Not for several threads at once.

    The cache grows with the sequence, and is cropped to any prefix.

    Args:
        network: the weights.
        opened: the registry of open sessions, for it and its forks.
    """

    def __init__(self, network: Network, opened: OpenSessions[Any] | None = None) -> None:
        self._network: Network | None = network
        self._length = 0
        self._opened = opened
        self._caches = _new_caches(network, min(_FIRST_CAPACITY, network.context_window))
        if opened is not None:
            opened.add(self)

    @property
    def cached_tokens(self) -> int:
        """Number of its first tokens that were reused: 0, because `PrefixSession` counts them."""
        return 0

    @property
    def length(self) -> int:
        """Number of tokens in the sequence."""
        return self._length

    @property
    def nbytes(self) -> int:
        """Current size of the caches, in bytes."""
        return sum(cache.nbytes for cache in self._caches)

    def crop(self, length: int) -> None:
        """Remove all tokens after the first ``length``.

        Raises:
            ModelError: the sequence is shorter, or the session is closed.
        """
        self._open()
        check_crop(length, self._length)
        self._length = length

    def keeps(self, length: int) -> bool:
        """Return True: a session can be reduced to any prefix."""
        return length <= self._length

    @property
    def _capacity(self) -> int:
        """Number of tokens for which the caches have room."""
        return int(self._caches[0].shape[-2])

    def fork(self, length: int) -> DecoderSession:
        """Return an independent session with the first ``length`` tokens."""
        copy = DecoderSession(self._open(), self._opened)
        if length > copy._capacity:
            copy._caches = _new_caches(copy._open(), length)
        copy._fill(self._caches, length)
        copy._length = length
        return copy

    def close(self) -> None:
        """Free the caches; closing twice is allowed."""
        self._network = None
        self._caches = []
        self._length = 0

    def _open(self) -> Network:
        if self._network is None:
            raise closed_error("session")
        return self._network

    def _with_room(self, token_ids: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return new tokens of the sequence, checked, after growing the caches for them."""
        network = self._open()
        ids = check_new_tokens(token_ids, self._length, network.context_window, network.config.vocabulary)
        total, old = self._length + len(ids), self._caches
        if total > self._capacity:
            self._caches = _new_caches(network, min(max(total, 2 * self._capacity), network.context_window))
            self._fill(old, self._length)
        return np.array(ids, dtype=np.int64)

    def _fill(self, caches: list[Floats], length: int) -> None:
        """Copy the first ``length`` tokens of other caches."""
        for mine, theirs in zip(self._caches, caches, strict=True):
            mine[..., :length, :] = theirs[..., :length, :]

    def extend(self, token_ids: Sequence[int]) -> Floats:
        """Append tokens; return the logits after the last. An error does not change the sequence.

        Raises:
            ContextOverflowError: they do not fit in the context window.
            ModelError: no token is given, one is out of range, or the session is closed.
        """
        return extend_rows(self._open(), [(self, token_ids)])[0]

    def branches(self, token_ids: Sequence[int], parents: Sequence[int]) -> Floats:
        """Return the logits after each token of a tree that continues the sequence; see `TreeSession`."""
        network = self._open()
        ids = self._with_room(token_ids)
        with blas_threads(network.threads):
            return _logits(network, _forward(network, [(self, ids)], Tree.of(parents)))

    def _attend(self, network: Network, index: int, joined: Floats, tree: Tree | None) -> Floats:
        """Return the attention of one block over this sequence, ``[tokens, heads * head_dim]``; write keys and values
        of new tokens into the cache.

        Args:
            network: the weights.
            index: number of the block.
            joined: queries, keys and values of the new tokens, ``[tokens, heads, head_dim]``.
            tree: the shape of the new tokens; None: each follows the one before.
        """
        config = network.config
        count, heads, kv_heads, width = len(joined), config.heads, config.kv_heads, config.head_dim
        start, stop = self._length, self._length + count
        keys, values = self._caches
        joined = joined.transpose(1, 0, 2)
        positions = slice(start, stop) if tree is None else start + tree.depths
        rotated = network.rotate(joined[: heads + kv_heads], positions)
        keys[index, :, start:stop] = rotated[heads:]
        values[index, :, start:stop] = joined[heads + kv_heads :]
        # Query heads that share keys and values are concatenated, for one product per key/value head.
        queries = rotated[:heads].reshape(kv_heads, -1, width)
        queries *= np.float32(width**-0.5)
        scores: Floats = queries @ keys[index, :, :stop].transpose(0, 2, 1)
        if count > 1:  # of the new tokens, each sees the ones before it, or its ancestors
            hidden = np.triu(np.ones((count, count), np.bool_), 1) if tree is None else ~tree.sees
            scores.reshape(kv_heads, -1, count, stop)[..., start:][..., hidden] = -np.inf
        # Softmax; the maximum is subtracted against overflow.
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        attended: Floats = (scores @ values[index, :, :stop]).reshape(heads, count, width)
        result: Floats = attended.transpose(1, 0, 2).reshape(count, -1)
        return result


def _new_caches(network: Network, capacity: int) -> list[Floats]:
    """Return empty caches of so many tokens, for keys and for values."""
    config = network.config
    shape = (config.layers, config.kv_heads, capacity, config.head_dim)
    return [np.empty(shape, np.float32), np.empty(shape, np.float32)]


def extend_rows(network: Network, rows: Sequence[tuple[DecoderSession, Sequence[int]]]) -> list[Floats]:
    """Append tokens to several sequences, in shared forward passes of at most `CHUNK` tokens of each; return
    the logits after the last token of each. An error changes nothing.

    Raises:
        ContextOverflowError: they do not fit in the context window.
        ModelError: a sequence has no new token, or one out of range, or is closed.
    """
    sessions = [session for session, _ in rows]
    for session in sessions:
        session._open()
    new = [session._with_room(ids) for session, ids in rows]
    lengths = [session._length for session in sessions]
    last: list[Floats] = [np.empty(0, np.float32)] * len(rows)  # the residual stream of the last token of each
    try:
        with blas_threads(network.threads):
            for start in range(0, max(ids.size for ids in new), CHUNK):
                numbers = [number for number, ids in enumerate(new) if ids.size > start]
                chunks = [(sessions[number], new[number][start : start + CHUNK]) for number in numbers]
                stream = _forward(network, chunks)
                end = 0
                for number, (session, ids) in zip(numbers, chunks, strict=True):
                    end += ids.size
                    session._length += ids.size
                    last[number] = stream[end - 1]
            if len(last) == 1:
                return [_logits(network, last[0])]
            return list(_logits(network, np.stack(last)))
    except BaseException:
        for session, length in zip(sessions, lengths, strict=True):
            session._length = length
        raise


def _forward(
    network: Network, rows: Sequence[tuple[DecoderSession, npt.NDArray[np.int64]]], tree: Tree | None = None
) -> Floats:
    """Run new tokens of sequences, or a tree of one, through all blocks; return the residual stream of all of them,
    ``[tokens, dim]``."""
    config = network.config
    stream: Floats = network.embedding[np.concatenate([ids for _, ids in rows])]
    for index, layer in enumerate(network.layers):
        product = _normed(stream, layer.attention_norm, config.epsilon) @ layer.query_key_value
        if layer.bias is not None:
            product += layer.bias
        joined = product.reshape(len(stream), -1, config.head_dim)
        parts = np.split(joined, np.cumsum([ids.size for _, ids in rows])[:-1])
        attended = [session._attend(network, index, part, tree) for (session, _), part in zip(rows, parts, strict=True)]
        stream = stream + np.concatenate(attended) @ layer.output
        gate, up = np.split(_normed(stream, layer.mlp_norm, config.epsilon) @ layer.gate_up, 2, axis=1)
        # SiLU, computed by tanh, which cannot overflow.
        stream = stream + (gate * (0.5 + 0.5 * np.tanh(0.5 * gate)) * up) @ layer.down
    return stream


def _logits(network: Network, stream: Floats) -> Floats:
    """Return the logits after each token of a residual stream."""
    logits: Floats = _normed(stream, network.norm, network.config.epsilon) @ network.head
    return logits


def _normed(stream: Floats, weight: Floats, epsilon: float) -> Floats:
    """Return RMSNorm over the last axis."""
    mean_square: Floats = np.mean(stream * stream, axis=-1, keepdims=True)
    result: Floats = stream * (weight / np.sqrt(mean_square + np.float32(epsilon)))
    return result
