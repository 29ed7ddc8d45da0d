"""Many sequences of a transformers model in one forward pass, without padding.

The new tokens of all sequences are concatenated in a single row, so that everything except attention is computed for
all of them together. Attention is computed for each sequence separately, over its own cache, by the model's own
attention function: there are no masks over other sequences and no padding, and lengths may differ. This is the
selective batching of "Orca: A Distributed Serving System for Transformer-Based Generative Models" (Yu and others,
2022).

It needs a model that gets its attention function from transformers' `AttentionInterface`, and a cache with keys and
values of each token; `packing_fault` tests this.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import first_line

#: The name of our attention function in transformers' registry.
_NAME = "toolgrammar_packed"

#: Minimum additional capacity of a growing cache, in tokens; else a quarter of its length.
_ROOM = 32

#: Names of the argument for the cache: of transformers 5.24 and newer, and of older ones.
_CACHES = ("cache", "past_key_values")

#: Settings of models whose attention depends on positions in a way that is not visible in the layers of their caches.
_CHUNKED = ("window_size", "attention_window", "attention_chunk_size")


def cache_argument(model: Any) -> str | None:
    """Return the name of the cache in the arguments and results of a model's forward pass; None if there is none.

    Also None for a model without attention (Mamba): its recurrent state is named ``cache`` too.
    """
    takes = inspect.signature(model.forward).parameters
    found = next((name for name in _CACHES if name in takes), None)
    has_heads = getattr(model.config.get_text_config(), "num_attention_heads", None)
    return found if has_heads or found != "cache" else None


def packing_fault(model: Any) -> str | None:
    """Return the reason why sequences of this model cannot share forward passes; None if they can. Besides its
    configuration, two short sequences are read in shared passes, and their logits compared with those of a pass of
    their own."""
    import torch

    takes = inspect.signature(model.forward).parameters
    config = model.config.get_text_config()
    if cache_argument(model) is None:
        return "its forward pass takes no cache"
    if "position_ids" not in takes:
        return "its forward pass takes no position_ids"
    for name in _CHUNKED:
        if getattr(config, name, None):
            return f"its attention is cut by {name}, which its cache does not show"
    first, second = [1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4]
    device = model.get_input_embeddings().weight.device
    try:
        one, other = new_cache(model), new_cache(model)
        packed_forward(model, [(one, first[:3], 0), (other, second[:1], 0)])
        packed_forward(model, [(one, first[3:4], 0), (other, second[1:], 0)])
        logits = packed_forward(model, [(other, [9], 0), (one, first[4:], 0)])
        for expected_of, row in (([*second, 9], logits[0]), (first, logits[1])):
            with torch.inference_mode():
                whole = model(input_ids=torch.tensor([expected_of], device=device), use_cache=False)
            if not nearly_equal(row, whole.logits[0, -1].float().cpu().numpy()):
                return "a shared forward pass gives other logits than one of a single sequence"
        if one.get_seq_length() != len(first) or other.get_seq_length() != len(second) + 1:
            return "its cache does not hold the tokens of a shared forward pass"
    except Exception as error:  # a model may use its cache or its masks in unexpected ways
        return f"a shared forward pass fails: {type(error).__name__}: {first_line(error)}"
    return None


def new_cache(model: Any) -> Any:
    """Return an empty cache of one sequence, made by the model."""
    from transformers import DynamicCache

    return DynamicCache(config=model.config)


def nearly_equal(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> bool:
    """Return True if logits differ only by rounding in half precision; those of a misused model differ much more."""
    finite = np.isfinite(one) & np.isfinite(other)
    difference = np.abs(one - other)[finite].max(initial=0.0)
    return bool(difference <= 0.05 * np.abs(other[finite]).max(initial=1e-6))


def packed_forward(model: Any, rows: Sequence[tuple[Any, Sequence[int], int]]) -> list[npt.NDArray[np.float32]]:
    """Append tokens to several sequences in one forward pass. For one thread at a time.

    Args:
        model: a model without a `packing_fault`.
        rows: for each sequence its cache; its new tokens, at least one; and what is added to their places in the
            sequence to get their positions: 0, or less behind images, whose tokens share positions.

    Returns:
        For each sequence the logits after its last token, shape ``[V]``.

    After an error, the state of the caches is undefined.
    """
    import torch

    device = model.get_input_embeddings().weight.device
    counts = [len(ids) for _, ids, _ in rows]
    ends = [cache.get_seq_length() + shift + count for (cache, _, shift), count in zip(rows, counts, strict=True)]
    places = chain.from_iterable(range(end - count, end) for end, count in zip(ends, counts, strict=True))
    last = torch.tensor([end - 1 for end in accumulate(counts)], device=device)
    keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
    packed = _Rows([cache for cache, _, _ in rows], counts)
    with torch.inference_mode(), _packed_attention(model.config.get_text_config(), packed):
        output = model(
            input_ids=torch.tensor([list(chain.from_iterable(ids for _, ids, _ in rows))], device=device),
            position_ids=torch.tensor([list(places)], device=device),
            use_cache=True,
            **{str(cache_argument(model)): packed},  # never None: without one, `packing_fault` refuses the model
            **({"logits_to_keep": last} if keeps else {}),
        )
        logits = output.logits[0] if keeps else output.logits[0, last]
    return list(logits.float().cpu().numpy())


class _Rows:
    """The caches of several sequences, with the interface of one cache, for the layers of a model.

    Args:
        caches: one for each sequence.
        counts: number of new tokens of each.

    Attributes:
        usual: the name of the model's own attention function.
    """

    usual = "sdpa"

    def __init__(self, caches: Sequence[Any], counts: list[int]) -> None:
        self.layers = caches[0].layers
        self._caches = caches
        self._counts = counts
        self._masks: dict[tuple[int, int, int | None], Any] = {}  # by new tokens, length and window
        # Of the layer that is computed now: the keys and values of each sequence, and the width of its sliding window.
        self._states: list[tuple[Any, Any]] = []
        self._window: int | None = None

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return 0: positions are passed explicitly, and no mask is made."""
        return 0

    def update(self, key_states: Any, value_states: Any, layer_idx: int, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Append the new keys and values of each sequence to its cache; return keys with a reference to all caches."""
        pieces = zip(self._caches, key_states.split(self._counts, 2), value_states.split(self._counts, 2), strict=True)
        self._states = [_append(cache.layers[layer_idx], keys, values) for cache, keys, values in pieces]
        self._window = getattr(self.layers[layer_idx], "sliding_window", None)
        key_states.packed_rows = self
        return key_states, value_states

    def attend(self, module: Any, query: Any, options: dict[str, Any]) -> Any:
        """Return the attention of all new tokens.

        Args:
            module: the layer's attention.
            query: the queries of all sequences, ``[1, heads, tokens, width]``.
            options: other arguments of the layer's attention function.
        """
        import torch
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

        eager: Any = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
        function = ALL_ATTENTION_FUNCTIONS.get(self.usual, eager)
        outputs = []
        for queries, (keys, values) in zip(query.split(self._counts, 2), self._states, strict=True):
            mask = self._mask(queries.shape[2], keys.shape[2], queries)
            outputs.append(function(module, queries, keys, values, mask, **options)[0])
        return torch.cat(outputs, 1)

    def _mask(self, count: int, length: int, like: Any) -> Any:
        """Return the additive mask of the last tokens of a sequence over its cache; None: no mask.

        The functions for flash attention make their own masks; that of `torch` is causal if the cache was empty.
        """
        fits = self._window is None or length <= self._window
        if count == 1 or "flash" in self.usual or (self.usual == "sdpa" and count == length and fits):
            return None
        import torch

        shape = (count, length, self._window)
        if shape not in self._masks:
            keys = torch.arange(length, device=like.device)
            queries = keys[length - count :, None]
            hidden = keys > queries
            if self._window is not None:
                hidden |= keys <= queries - self._window
            mask = torch.zeros((1, 1, count, length), dtype=like.dtype, device=like.device)
            self._masks[shape] = mask.masked_fill_(hidden, torch.finfo(like.dtype).min)
        return self._masks[shape]


def _append(layer: Any, keys: Any, values: Any) -> tuple[Any, Any]:
    """Append to a layer of a cache; return all its keys and values.

    transformers copies all of them for each token. Here they are a view of a larger tensor with spare capacity.
    """
    if type(layer).__name__ != "DynamicLayer" or layer.keys is None:
        return tuple(layer.update(keys, values))
    rooms = getattr(layer, "rooms", (None, None))
    layer.rooms = _with_room(layer.keys, keys, rooms[0]), _with_room(layer.values, values, rooms[1])
    length = layer.keys.shape[2] + keys.shape[2]
    layer.keys, layer.values = (room[:, :, :length] for room in layer.rooms)
    return layer.keys, layer.values


def _with_room(held: Any, new: Any, room: Any) -> Any:
    """Return a tensor that begins with ``held`` and ``new``, ``[1, heads, tokens, width]``: ``room``, of which ``held``
    is the beginning, if it is large enough; else a larger one."""
    length, total = held.shape[2], held.shape[2] + new.shape[2]
    is_beginning = room is not None and room.data_ptr() == held.data_ptr()  # not if the cache was replaced
    if not is_beginning or room.shape[2] < total:
        room = held.new_empty((*held.shape[:2], total + max(_ROOM, total // 4), held.shape[3]))
        room[:, :, :length] = held
    room[:, :, length:total] = new
    return room


def _attention(module: Any, query: Any, key: Any, value: Any, mask: Any, **options: Any) -> tuple[Any, None]:
    """Compute the attention of a packed pass: of each sequence over its own cache."""
    options.pop("position_ids", None)  # those of all sequences
    return key.packed_rows.attend(module, query, options), None


@contextmanager
def _packed_attention(config: Any, rows: _Rows) -> Iterator[None]:
    """Let a model use our attention function in the block, which calls its own one."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(_NAME, _attention)
    rows.usual = config._attn_implementation
    config._attn_implementation = _NAME
    try:
        yield
    finally:
        config._attn_implementation = rows.usual
