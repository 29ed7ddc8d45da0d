"""Many sequences of a transformers model in one forward pass.

Rows differ in length and advance by different numbers of tokens, so the columns of the shared key/value cache are not
positions: a row has *holes*, columns that the attention mask hides from it, and each token's position is given beside
it. Tokens that are taken back become holes too. Where holes abound, the cache is packed.

That is exact for caches whose columns are only ever looked at through the attention mask. Recurrent states and sliding
windows count columns themselves; models with those get a cache for each row (`SeparateRows`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ContextOverflowError, ModelError
from ...generation.backend import Session, closed_error
from ...generation.retokenise import common_prefix
from ..prefix_cache import MIN_COMMON

#: The cache is packed when it is this many times as long as its longest row, and this many columns longer.
_SLACK = 1.5
_SLACK_COLUMNS = 64

_Request = tuple["_Row", list[int]]


def can_batch(model: Any, device: str, session: Session) -> bool:
    """Return True if rows of different lengths can share a cache of this model; tried on a few tokens, too.

    Args:
        model: the model.
        device: where it is.
        session: a fresh session of it.
    """
    takes = inspect.signature(model.forward).parameters
    if not {"past_key_values", "position_ids", "attention_mask"} <= set(takes) or _counts_columns(model.config):
        return False
    first, last = [1, 2, 3], [4, 5]
    session.extend(first)
    expected = session.extend(last)
    layers = getattr(getattr(session, "cache", None), "layers", None) or [None]
    if not all(type(layer).__name__ == "DynamicLayer" for layer in layers):
        return False
    batch = HFBatch(model, device, window=64)
    batch.extend([(0, first), (1, [*range(1, 10)])])
    batch.extend([(0, [6, 7]), (1, [6, 7, 8, 9])])
    batch.crop(0, len(first))
    logits = batch.extend([(1, [6]), (0, last)])[1]
    return nearly_equal(logits, expected)


def nearly_equal(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> bool:
    """Return True if logits differ by no more than half precision rounds; those of a misused model are far off."""
    finite = np.isfinite(one) & np.isfinite(other)
    difference = np.abs(one - other)[finite].max(initial=0.0)
    return bool(difference <= 0.05 * np.abs(other[finite]).max(initial=1e-6))


def _counts_columns(config: Any) -> bool:
    """Return True if some layer attends only to a window of columns (GPT-Neo builds that mask by itself)."""
    config = config.get_text_config()
    if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        return True
    return any(getattr(config, name, None) for name in ("window_size", "attention_window", "attention_chunk_size"))


@dataclass
class _Row:
    """One sequence.

    Attributes:
        ids: its tokens.
        index: its row in the cache, or None while the cache knows nothing of it; else the cache holds all of ``ids``.
    """

    ids: list[int] = field(default_factory=list)
    index: int | None = None


class HFBatch:
    """Many sequences with one cache; implements `BatchSession`. Not for several threads at once.

    Rows that begin together with the same tokens (the same tools) compute those once. An error of the model leaves all
    rows as they were; they read their tokens again at the next step.
    """

    def __init__(self, model: Any, device: str, window: int) -> None:
        self._model = model
        self._device = device
        self._window = window
        self._options = {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
        self._rows: dict[int, _Row] = {}
        self._cache: Any = None
        self._seen: npt.NDArray[np.bool_] = np.zeros((0, 0), np.bool_)  # [rows, columns]: which columns a row looks at
        self._is_closed = False

    def extend(self, rows: Sequence[tuple[int, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        """Append tokens to some of the rows: one forward pass, and one more for the rows that begin.

        Raises:
            ContextOverflowError: a row's tokens do not fit in the context window.
            ModelError: a row is named twice or gets no token, or the batch is closed.
        """
        _check(rows, self._is_closed, lambda key: len(self._rows[key].ids) if key in self._rows else 0, self._window)
        asked = [(self._rows.get(key) or _Row(), [int(token_id) for token_id in ids]) for key, ids in rows]
        self._pack()
        old = [request for request in asked if request[0].index is not None]
        # A row that the cache does not know reads all of its tokens.
        new = [(row, [*row.ids, *ids]) for row, ids in asked if row.index is None]
        try:
            results: dict[int, npt.NDArray[np.float32]] = {}
            if old:
                self._cache, self._seen, logits = self._pass(self._cache, self._seen, old)
                results.update(zip((id(row) for row, _ in old), logits, strict=True))
            if new:
                logits = self._begin(new)
                results.update(zip((id(row) for row, _ in new), logits, strict=True))
        except BaseException:  # some layers may have read the tokens, and others not
            self._forget()
            raise
        for (key, _), (row, ids) in zip(rows, asked, strict=True):
            row.ids += ids
            self._rows[key] = row
        return [results[id(row)] for row, _ in asked]

    def crop(self, row: int, length: int) -> None:
        """Forget all tokens of a row after the first ``length``.

        Raises:
            ModelError: there is no such row, or it is not that long.
        """
        held = self._rows.get(row)
        if held is None or not 0 <= length <= len(held.ids):
            raise ModelError(f"row {row} cannot be cropped to {length} tokens", hint="crop only shortens")
        if held.index is not None:
            columns = np.flatnonzero(self._seen[held.index])
            self._seen[held.index, columns[length:]] = False
            if not length:
                held.index = None
        del held.ids[length:]

    def drop(self, row: int) -> None:
        """Free the cache of a row, at the next step; nothing happens if there is no such row."""
        self._rows.pop(row, None)
        if not self._rows:
            self._forget()

    def close(self) -> None:
        """Free all of it; closing twice is allowed."""
        self._rows.clear()
        self._forget()
        self._model = None
        self._is_closed = True

    def _forget(self) -> None:
        self._cache = None
        self._seen = np.zeros((0, 0), np.bool_)
        for row in self._rows.values():
            row.index = None

    def _begin(self, requests: Sequence[_Request]) -> list[npt.NDArray[np.float32]]:
        """Read rows from their beginning, and add them to the cache."""
        first = requests[0][1]
        common = min(common_prefix(first, ids) for _, ids in requests)
        common = min(common, min(len(ids) for _, ids in requests) - 1)
        cache, seen = None, np.zeros((len(requests), 0), np.bool_)
        if len(requests) > 1 and common >= MIN_COMMON:
            cache, seen, _ = self._pass(None, np.zeros((1, 0), np.bool_), [(_Row(index=0), first[:common])])
            _change(cache, lambda tensor: tensor.expand(len(requests), *tensor.shape[1:]))
            seen = np.repeat(seen, len(requests), axis=0)
        else:
            common = 0
        fresh = [(_Row(ids[:common], number), ids[common:]) for number, (_, ids) in enumerate(requests)]
        cache, seen, logits = self._pass(cache, seen, fresh)
        before = len(self._seen) if self._cache is not None else 0
        for number, (row, _) in enumerate(requests):
            row.index = before + number
        if self._cache is None:
            self._cache, self._seen = cache, seen
        else:
            self._join(cache, seen)
        return logits

    def _pass(
        self, cache: Any, seen: npt.NDArray[np.bool_], requests: Sequence[_Request]
    ) -> tuple[Any, npt.NDArray[np.bool_], list[npt.NDArray[np.float32]]]:
        """Run one forward pass over all rows of a cache; those without a request get a hole.

        Returns:
            The cache, the columns that its rows look at from now on, and the logits of each request.
        """
        import torch

        width = max(len(ids) for _, ids in requests)
        tokens = np.zeros((len(seen), width), np.int64)
        positions = np.zeros_like(tokens)
        added = np.zeros((len(seen), width), np.bool_)
        for row, ids in requests:
            # At the right end, so that the last column has the logits of all rows.
            tokens[row.index, width - len(ids) :] = ids
            positions[row.index, width - len(ids) :] = np.arange(len(row.ids), len(row.ids) + len(ids))
            added[row.index, width - len(ids) :] = True
        seen = np.concatenate([seen, added], axis=1)
        with torch.inference_mode():
            output = self._model(
                input_ids=torch.from_numpy(tokens).to(self._device),
                attention_mask=torch.from_numpy(seen.astype(np.int64)).to(self._device),
                position_ids=torch.from_numpy(positions).to(self._device),
                past_key_values=cache,
                use_cache=True,
                **self._options,
            )
            logits = output.logits[:, -1].float().cpu().numpy()
        return output.past_key_values, seen, [logits[row.index] for row, _ in requests]

    def _pack(self) -> None:
        """Give back the room of rows that are gone and, if there are many, of holes."""
        if self._cache is None:
            return
        rows = [row for row in self._rows.values() if row.index is not None]
        longest = max((len(row.ids) for row in rows), default=0)
        if not longest:
            self._forget()
            return
        holes = self._seen.shape[1] > _SLACK * longest + _SLACK_COLUMNS
        if len(rows) == len(self._seen) and not holes:
            return
        import torch

        kept = np.array([row.index for row in rows])
        self._seen = self._seen[kept]
        chosen = torch.from_numpy(kept).to(self._device)
        if holes:
            columns = np.zeros((len(rows), longest), np.int64)
            seen = np.zeros((len(rows), longest), np.bool_)
            for number, row in enumerate(self._seen):
                seen_columns = np.flatnonzero(row)
                columns[number, longest - len(seen_columns) :] = seen_columns
                seen[number, longest - len(seen_columns) :] = True
            self._seen = seen
            order = torch.from_numpy(columns).to(self._device)[:, None, :, None]
            _change(
                self._cache,
                lambda tensor: tensor.index_select(0, chosen).gather(
                    2, order.expand(-1, tensor.shape[1], -1, tensor.shape[3])
                ),
            )
        else:
            _change(self._cache, lambda tensor: tensor.index_select(0, chosen))
        for number, row_kept in enumerate(rows):
            row_kept.index = number

    def _join(self, cache: Any, seen: npt.NDArray[np.bool_]) -> None:
        """Put the rows of another cache below those of this one; the shorter gets holes in front."""
        import torch

        width = max(self._seen.shape[1], seen.shape[1])
        for mine, other in zip(self._cache.layers, cache.layers, strict=True):
            for name in ("keys", "values"):
                both = [getattr(mine, name), getattr(other, name)]
                both = [torch.nn.functional.pad(tensor, (0, 0, width - tensor.shape[2], 0)) for tensor in both]
                setattr(mine, name, torch.cat(both))
        self._seen = np.concatenate(
            [np.pad(tensor, [(0, 0), (width - tensor.shape[1], 0)]) for tensor in (self._seen, seen)]
        )


class SeparateRows:
    """Many sequences, each with a session of its own; implements `BatchSession` for models that can do no better."""

    def __init__(self, start: Callable[[], Session], window: int) -> None:
        self._start = start
        self._window = window
        self._sessions: dict[int, Session] = {}
        self._is_closed = False

    def extend(self, rows: Sequence[tuple[int, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        """Append tokens to some of the rows, one forward pass each. Errors as for `HFBatch.extend`."""
        _check(
            rows, self._is_closed, lambda key: self._sessions[key].length if key in self._sessions else 0, self._window
        )
        before = {key: self._sessions[key].length for key, _ in rows if key in self._sessions}
        results = []
        try:
            for key, ids in rows:
                if key not in self._sessions:
                    self._sessions[key] = self._start()
                results.append(self._sessions[key].extend(ids))
        except BaseException:
            for key, _ in rows:
                if key in before:
                    self._sessions[key].crop(before[key])
                else:
                    self.drop(key)
            raise
        return results

    def crop(self, row: int, length: int) -> None:
        """Forget all tokens of a row after the first ``length``. Errors as for `HFBatch.crop`."""
        if row not in self._sessions:
            raise ModelError(f"row {row} cannot be cropped to {length} tokens", hint="crop only shortens")
        self._sessions[row].crop(length)

    def drop(self, row: int) -> None:
        """Free the cache of a row; nothing happens if there is no such row."""
        session = self._sessions.pop(row, None)
        if session is not None:
            session.close()

    def close(self) -> None:
        """Free all of it; closing twice is allowed."""
        for row in list(self._sessions):
            self.drop(row)
        self._is_closed = True


def _check(
    rows: Sequence[tuple[int, Sequence[int]]], is_closed: bool, length: Callable[[int], int], window: int
) -> None:
    """Raise for a request that cannot be met, before anything is done."""
    if is_closed:
        raise closed_error("batch")
    if len({key for key, _ in rows}) < len(rows) or not rows:
        raise ModelError("a step needs rows, each named once", hint="join the tokens of a row")
    for key, ids in rows:
        if not ids:
            raise ModelError(f"no tokens to append to row {key}", hint="give at least one")
        total = length(key) + len(ids)
        if total > window:
            raise ContextOverflowError(
                f"{total} tokens of row {key} do not fit in a window of {window}",
                hint="shorten the prompt, or lower max_tokens",
            )


def _change(cache: Any, change: Callable[[Any], Any]) -> None:
    """Put other tensors, ``[rows, heads, columns, width]``, in a cache's place."""
    for layer in cache.layers:
        layer.keys, layer.values = change(layer.keys), change(layer.values)
