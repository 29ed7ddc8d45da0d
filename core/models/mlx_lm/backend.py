"""Models of mlx-lm, with their key/value caches under our own loop.

The modules, the caches and the batches of caches are those of mlx-lm; its loops, samplers and tokenizers are not used.
"""

from __future__ import annotations

import copy
import inspect
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...basics.forks import shared_lock
from ...errors import MissingDependencyError, ModelError, first_line
from ..local_backend import SharedPasses
from ..model_folder import FolderBackend, check_folder, read_json, token_ids_of
from ..prefix_cache import PREFIX_BYTES, KeptSession
from ..sessions import EngineSession

if TYPE_CHECKING:
    import numpy.typing as npt

#: Default context window, if a model's configuration has none.
DEFAULT_WINDOW = 4096

#: Number of tokens of a prompt in one forward pass of a single sequence: bounds the memory of attention.
_CHUNK = 2048

#: The rotary parameters that were members of their own before transformers 5.
_ROTARY = ("rope_theta", "partial_rotary_factor", "original_max_position_embeddings")

_CONVERT = "python -m mlx_lm convert --hf-path MODEL --mlx-path FOLDER writes one"

_NEEDED = {
    "config.json": "the description of the model",
    "tokenizer.json": "its tokenizer",
    "model*.safetensors": "its weights",
}


class MlxBackend(FolderBackend, SharedPasses):
    """A causal model in a folder of mlx-lm; implements `Backend` and `BatchBackend`.

    Code of a model repository is not run.

    Args:
        name: the folder, or a name on the hub, which mlx-lm finds in the cache of Hugging Face or downloads.
        context_window: maximum number of tokens of a sequence; by default that of the model's configuration.
        prefix_cache: maximum size of the prefix cache, in bytes; 0: no cache.
        tool_format: the wire format of the model's tool calls; None: detect it from the chat template.

    Raises:
        MissingDependencyError: mlx-lm is not installed.
        ModelError: a file is missing, or the model cannot be loaded.
        VocabularyError: the exact bytes of the tokenizer's tokens are not known.
    """

    def __init__(
        self,
        name: str,
        context_window: int | None = None,
        prefix_cache: int = PREFIX_BYTES,
        tool_format: str | None = None,
    ) -> None:
        try:
            import mlx.core as mx
            from mlx_lm import utils
        except ImportError as error:
            raise MissingDependencyError(
                f"mlx: models need mlx-lm ({error})", hint="pip install 'toolgrammar[mlx]'"
            ) from error
        folder = check_folder(_folder_of(name, utils), _NEEDED, "mlx", _CONVERT)
        config = read_json(folder, "config.json")
        generation = read_json(folder, "generation_config.json", optional=True)
        try:
            # `trust_remote_code` is off by default.
            self._model: Any = utils.load_model(folder, get_model_classes=lambda config: _classes(config, utils))[0]
            size = int(self._model(mx.array([[0]])).shape[-1])
        except ModelError:
            raise
        except Exception as error:  # a folder can be broken in many ways
            reason = first_line(error)
            raise ModelError(f"mlx-lm cannot load {name!r}: {reason}", hint=_CONVERT) from error
        text = config.get("text_config") or config
        super().__init__(
            folder,
            size=size,
            ends=[*token_ids_of(generation.get("eos_token_id")), *token_ids_of(text.get("eos_token_id"))],
            context_window=int(context_window or text.get("max_position_embeddings") or DEFAULT_WINDOW),
            prefix_cache=prefix_cache,
            tool_format=tool_format,
            extra="mlx",
        )
        self.name = name
        self._batches: bool | None = None
        self.passing = shared_lock(self, "passing", threading.RLock())  # held during each forward pass

    def new_session(self) -> MlxSession:
        """Return an empty sequence.

        Raises:
            ModelError: the model is closed.
        """
        session = MlxSession(self)
        self._sessions.add(session)
        return session

    def network(self) -> Any:
        """Return the module of the model.

        Raises:
            ModelError: the model is closed.
        """
        self._sessions.check()
        return self._model

    def can_batch(self) -> bool:
        """Return True if sequences of this model can share forward passes; tested by the first call on a few tokens.

        Raises:
            ModelError: the model is closed.
        """
        network = self.network()
        if self._batches is None:
            with self.passing:
                self._batches = _can_batch(self, network)
        return self._batches

    def _extend_rows(self, rows: Sequence[tuple[KeptSession, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        sessions: list[Any] = [session for session, _ in rows]
        wanted = [session.checked(ids) for session, (_, ids) in zip(sessions, rows, strict=True)]
        if len(sessions) == 1:
            return [sessions[0].extend(rows[0][1])]
        with self.passing:
            return extend_rows(self.network(), sessions, wanted)

    def close(self) -> None:
        """Free the model and all its sequences; closing twice is allowed."""
        super().close()
        with self.passing:
            if self._model is not None:
                import mlx.core as mx

                self._model = None
                mx.clear_cache()


class MlxSession(EngineSession):
    """One sequence and its caches; implements `Session`. Not for several threads at once.

    While sequences share forward passes, their caches are rows of one batch, from which a row is copied when it goes on
    alone. A model whose cache cannot be shortened (a recurrent one, or a window that has moved on) reads the whole
    sequence again after a crop, which is slower, but exact.
    """

    def __init__(self, backend: MlxBackend) -> None:
        super().__init__(backend.context_window, backend.vocabulary.size)
        self._backend = backend
        self._layers: list[Any] | None = None  # the caches of mlx-lm
        self._batch: _Batch | None = None

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens; return the logits after the last. An error changes nothing.

        Raises:
            ContextOverflowError: they do not fit in the context window.
            ModelError: no token is given, one is out of range, or the session is closed.
        """
        import mlx.core as mx
        from mlx_lm.models.cache import make_prompt_cache

        ids = self.checked(token_ids)
        with self._backend.passing:
            network = self._backend.network()
            try:
                layers = self.layers()
                if layers is None:
                    layers = make_prompt_cache(network)
                for start in range(self._cached, len(ids), _CHUNK):
                    output = network(mx.array([ids[start : start + _CHUNK]]), cache=layers)
                    logits = output[0, -1].astype(mx.float32)
                    mx.eval(logits, [layer.state for layer in layers])
            except BaseException:  # some layers may have read the tokens, others not
                self.forget()
                raise
            self.keep(ids, layers)
            return np.array(logits)

    @property
    def nbytes(self) -> int:
        """Current size of the caches in bytes, with the capacity that a crop has left."""
        if self._batch is not None:
            return self._batch.nbytes // len(self._batch.sessions)
        return sum(int(layer.nbytes) for layer in self._layers or ())

    def _can_shorten(self, length: int) -> bool:
        from mlx_lm.models.cache import can_trim_prompt_cache

        return self._batch is not None or can_trim_prompt_cache(self._layers or [])

    def _shorten(self, length: int) -> bool:
        from mlx_lm.models.cache import trim_prompt_cache

        with self._backend.passing:
            trim_prompt_cache(self.layers(), self._cached - length)
        return True

    def fork(self, length: int) -> MlxSession:
        """Return an independent session with the first ``length`` tokens."""
        self._check_open()
        with self._backend.passing:
            twin = self._backend.new_session()
            twin.keep(self._ids[: self._cached], copy.deepcopy(self.layers()))
            twin.crop(length)
        return twin

    # The methods below are for `extend_rows`, and called with the lock of the forward passes.

    def layers(self) -> list[Any] | None:
        """Return the caches, copied out of a batch; None if there are none yet."""
        if self._batch is not None:
            self._layers, self._batch = self._batch.row(self), None
        return self._layers

    def keep(self, ids: list[int], layers: list[Any] | None, batch: _Batch | None = None) -> None:
        """Set the tokens, and the caches that hold them all."""
        self._ids, self._cached, self._layers, self._batch = list(ids), len(ids), layers, batch

    def forget(self) -> None:
        """Drop the caches; the next `extend` reads the sequence again."""
        self._cached, self._layers, self._batch = 0, None, None


class _Batch:
    """The caches of several sequences, as the batched caches of mlx-lm.

    Attributes:
        sessions: the sequences, in the order of rows.
        layers: one batched cache for each layer.
    """

    def __init__(self, sessions: list[MlxSession], layers: list[Any]) -> None:
        self.sessions = sessions
        self.layers = layers

    @property
    def nbytes(self) -> int:
        return sum(int(layer.nbytes) for layer in self.layers)

    def row(self, session: MlxSession) -> list[Any]:
        """Return a copy of the caches of a sequence."""
        import mlx.core as mx

        number = next(index for index, each in enumerate(self.sessions) if each is session)
        layers = [layer.extract(number) for layer in self.layers]
        mx.eval([layer.state for layer in layers])
        return layers


def extend_rows(
    network: Any, sessions: Sequence[MlxSession], wanted: Sequence[list[int]]
) -> list[npt.NDArray[np.float32]]:
    """Extend sessions to their new sequences in one forward pass, padded on the right. For one thread at a time.

    Sessions that shared the last pass stay in their batch; others are copied into a new one.

    Args:
        network: the module of the model.
        sessions: the sessions.
        wanted: for each its tokens, with the new ones.
    """
    import mlx.core as mx
    from mlx_lm.models.cache import make_prompt_cache

    try:
        batch = sessions[0]._batch
        shared_last = batch is not None and set(map(id, batch.sessions)) == set(map(id, sessions))
        if batch is None or not shared_last or any(each._batch is not batch for each in sessions):
            own = [each.layers() or make_prompt_cache(network) for each in sessions]
            batch = _Batch(list(sessions), [type(row[0]).merge(list(row)) for row in zip(*own, strict=True)])
        new = {id(each): ids[each._cached :] for each, ids in zip(sessions, wanted, strict=True)}
        rows = [new[id(each)] for each in batch.sessions]
        width = max(map(len, rows))
        padding = [width - len(row) for row in rows]
        if any(padding):
            for layer in batch.layers:
                layer.prepare(lengths=[len(row) for row in rows], right_padding=padding)
        padded = [[*row, *[0] * count] for row, count in zip(rows, padding, strict=True)]
        output = network(mx.array(padded), cache=batch.layers)
        logits = mx.stack([output[index, len(row) - 1] for index, row in enumerate(rows)]).astype(mx.float32)
        if any(padding):
            for layer in batch.layers:
                layer.finalize()
        mx.eval(logits, [layer.state for layer in batch.layers])
    except BaseException:  # some layers may have read the tokens, others not
        for session in sessions:
            session.forget()
        raise
    logits_of = dict(zip(map(id, batch.sessions), np.array(logits), strict=True))
    for session, ids in zip(sessions, wanted, strict=True):
        session.keep(ids, None, batch)
    return [logits_of[id(session)] for session in sessions]


def _can_batch(backend: MlxBackend, network: Any) -> bool:
    """Return True if a shared forward pass has the logits of single ones, tested on a few tokens."""
    from mlx_lm.models.cache import KVCache, make_prompt_cache

    if any(type(layer) is not KVCache for layer in make_prompt_cache(network)):
        return False
    first, second = [1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 9]
    try:
        one, other = backend.new_session(), backend.new_session()
        extend_rows(network, [one, other], [first[:3], second[:1]])
        extend_rows(network, [one, other], [first[:4], second[:4]])
        shared = extend_rows(network, [other, one], [second, first])
        for session, ids, row in zip((other, one), (second, first), shared, strict=True):
            session.forget()
            session.crop(0)
            alone = session.extend(ids)
            # Half precision rounds; the logits of a misused model differ much more. `not <=` is True for NaN, too.
            if not np.abs(row - alone).max() <= 0.05 * np.abs(alone).max():
                return False
    except Exception:  # a model may use its cache or its masks in unexpected ways
        return False
    return True


def _classes(config: dict[str, Any], utils: Any) -> Any:
    """Return the classes of mlx-lm for a configuration, in which the rotary parameters are where mlx-lm reads them.

    transformers 5 writes them as ``rope_parameters``, which most models of mlx-lm 0.32 ignore: they take a default
    instead, without an error, and the model writes nonsense.

    Raises:
        ModelError: each type of layer has parameters of its own, and the model does not read them.
    """
    classes = utils._get_classes(config=config)
    for part in (config, config.get("text_config")):
        rotary = part.get("rope_parameters") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(rotary, dict):
            continue
        if any(isinstance(value, dict) for value in rotary.values()):  # {"full_attention": {...}, ...}
            if "rope_parameters" not in inspect.getsource(sys.modules[classes[1].__module__]):
                raise ModelError(
                    "config.json has rotary parameters by type of layer, which this mlx-lm does not read",
                    hint="take the config.json of the model's repository, with rope_theta; or hf:PATH",
                )
            continue
        for name in _ROTARY:
            if rotary.get(name) is not None:
                part.setdefault(name, rotary[name])
        if rotary.get("rope_type", "default") != "default" and part.get("rope_scaling") is None:
            part["rope_scaling"] = dict(rotary)
    return classes


def _folder_of(name: str, utils: Any) -> str:
    """Return the folder of a model: the name itself, or the one in which mlx-lm keeps the name of a hub.

    Raises:
        ModelError: the hub does not have it, or cannot be reached.
    """
    if Path(name).expanduser().exists() or name.count("/") != 1 or name.startswith((".", "/", "~")):
        return name
    try:
        return str(utils._download(name))
    except Exception as error:
        reason = first_line(error)
        raise ModelError(f"mlx-lm cannot find {name!r}: {reason}", hint=f"give a folder; {_CONVERT}") from error
