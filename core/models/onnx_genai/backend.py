"""Models in ONNX folders, run by onnxruntime-genai under our own loop.

Each session has its own `Generator`, of which only `append_tokens`, `get_logits` and `rewind_to` are used: its search,
its guidance and its chat templates are not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import MissingDependencyError, ModelError, first_line
from ..model_folder import FolderBackend, check_folder, read_json, token_ids_of
from ..prefix_cache import PREFIX_BYTES
from ..sessions import EngineSession

if TYPE_CHECKING:
    import numpy.typing as npt

#: Default maximum of the context window: most models allocate the whole key/value cache when a sequence begins.
DEFAULT_WINDOW = 8192

_BUILDER = "python -m onnxruntime_genai.models.builder -i MODEL -o FOLDER -p int4 -e cpu writes one"

#: Types of models with two sets of rotary factors: the greatest length of a sequence with the first one. Keys and
#: values of one set are wrong for the other.
_SHORT_FACTORS = {"phi3": 4096, "phimoe": 4096, "phi3small": 8192}


class OnnxBackend(FolderBackend):
    """A causal model in a folder of onnxruntime-genai; implements `Backend`.

    The telemetry of onnxruntime-genai is turned off, unless the environment variable ``ORT_DISABLE_TELEMETRY`` has
    another value.

    Args:
        path: the folder: ``genai_config.json``, the ONNX files that it names, ``tokenizer.json``.
        context_window: maximum number of tokens of a sequence; by default that of the folder, at most 8,192.
        threads: number of threads of a forward pass; by default that of the folder, or all cores.
        prefix_cache: maximum size of the prefix cache, in bytes. A sequence has the size of a whole window. By default
            512 MiB, or one window if that is more; 0: no cache.
        tool_format: the wire format of the model's tool calls; None: detect it from the chat template.

    Raises:
        MissingDependencyError: onnxruntime-genai or tokenizers is not installed.
        ModelError: a file is missing, or the model cannot be loaded.
        VocabularyError: the exact bytes of the tokenizer's tokens are not known.

    Attributes:
        kind: the model's type, as onnxruntime-genai names it.
        allocates_window: True if a sequence takes the memory of a whole window from its beginning.
        rewinds: False after a sequence could not be shortened: its state is recurrent.
    """

    def __init__(
        self,
        path: str,
        context_window: int | None = None,
        threads: int | None = None,
        prefix_cache: int | None = None,
        tool_format: str | None = None,
    ) -> None:
        self._library = _library()
        needed = {"genai_config.json": "the description of the model", "tokenizer.json": "its tokenizer"}
        folder = check_folder(path, needed, "onnx", _BUILDER)
        settings = read_json(folder, "genai_config.json")
        try:
            model = settings["model"]
            size, trained = int(model["vocab_size"]), int(model["context_length"])
            decoder = model["decoder"]
            width = int(decoder["head_size"]) * int(decoder["num_key_value_heads"])
            self._token_bytes = 4 * 2 * int(decoder["num_hidden_layers"]) * width  # keys and values in float32
            files = [decoder["filename"]] if "filename" in decoder else []
            self.kind = str(model.get("type", ""))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"{str(folder / 'genai_config.json')!r} describes no causal language model: {error!r}", hint=_BUILDER
            ) from error
        check_folder(path, {str(file): "named in genai_config.json" for file in files}, "onnx", _BUILDER)
        window = int(context_window or min(trained, DEFAULT_WINDOW))
        try:
            config = self._library.Config(str(folder))
            if threads is not None:
                # An overlay is merged with the member; it is read before the model is.
                session = {"intra_op_num_threads": threads}
                config.overlay(json.dumps({"model": {"decoder": {"session_options": session}}}))
            self._model: Any = self._library.Model(config)
            options = self._params(window).get_search_options()
        except Exception as error:  # the library raises its own, and RuntimeError
            reason = first_line(error)
            raise ModelError(f"onnxruntime-genai cannot load {path!r}: {reason}", hint=_BUILDER) from error
        self.allocates_window = bool(options["past_present_share_buffer"])
        self.rewinds = True
        super().__init__(
            folder,
            size=size,
            ends=token_ids_of(model.get("eos_token_id")),
            context_window=window,
            prefix_cache=max(PREFIX_BYTES, self.cache_bytes(window)) if prefix_cache is None else prefix_cache,
            tool_format=tool_format,
            extra="onnx",
        )

    def new_session(self) -> OnnxSession:
        """Return an empty sequence.

        Raises:
            ModelError: the model is closed.
        """
        session = OnnxSession(self)
        self._sessions.add(session)
        return session

    def generator(self) -> Any:
        """Return a new generator of onnxruntime-genai, with the capacity of the context window.

        Raises:
            ModelError: the model is closed, or there is not enough memory.
        """
        self._sessions.check()
        try:
            return self._library.Generator(self._model, self._params(self.context_window))
        except Exception as error:
            raise ModelError(
                f"onnxruntime-genai cannot make a sequence of {self.context_window} tokens: {error}",
                hint="lower context_window",
            ) from error

    def cache_bytes(self, tokens: int) -> int:
        """Return the size of the keys and values of some tokens, in bytes; less in half precision."""
        return tokens * self._token_bytes

    def has_long_factors(self, length: int) -> bool:
        """Return True if the model reads a sequence of this length with its second set of rotary factors."""
        return length > _SHORT_FACTORS.get(self.kind, length)

    def close(self) -> None:
        """Free the model and all its sessions; closing twice is allowed."""
        super().close()
        self._model = None

    def _params(self, window: int) -> Any:
        params = self._library.GeneratorParams(self._model)
        params.set_search_options(max_length=window, batch_size=1, num_beams=1)
        return params


class OnnxSession(EngineSession):
    """One sequence in a generator of onnxruntime-genai; implements `Session`. Not for several threads at once.

    A model whose state cannot be shortened (a recurrent one) reads the whole sequence again after a crop, which is
    slower, but exact.
    """

    def __init__(self, backend: OnnxBackend) -> None:
        super().__init__(backend.context_window, backend.vocabulary.size)
        self._backend = backend
        self._generator: Any = None
        self._is_long = False  # the tokens were read with the second set of rotary factors

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens in one forward pass; return the logits after the last. An error changes nothing.

        Raises:
            ContextOverflowError: they do not fit in the context window.
            ModelError: no token is given, one is out of range, the session is closed, or onnxruntime-genai fails.
        """
        ids = self.checked(token_ids)
        is_long = self._backend.has_long_factors(len(ids))
        if is_long != self._is_long:
            self.forget()
        generator = self._generator or self._backend.generator()
        try:
            generator.append_tokens(np.array(ids[self._cached :], dtype=np.int32))
            logits: npt.NDArray[np.float32] = generator.get_logits().reshape(-1)[-self._size :].astype(np.float32)
        except BaseException as error:
            self.forget()
            if not isinstance(error, Exception):
                raise
            raise ModelError(f"onnxruntime-genai failed: {error}", hint="see its messages") from error
        self._check_open()  # closed by another thread: the generator must not stay
        self._generator, self._is_long = generator, is_long
        self._ids, self._cached = ids, len(ids)
        return logits

    @property
    def nbytes(self) -> int:
        """Size in bytes: that of a whole window, if the model allocates it, else of the tokens."""
        if self._generator is None:
            return 0
        return self._backend.cache_bytes(self._window if self._backend.allocates_window else self._cached)

    def _can_shorten(self, length: int) -> bool:
        return self._backend.rewinds and self._backend.has_long_factors(length) == self._is_long

    def fork(self, length: int) -> None:
        """Return None: onnxruntime-genai cannot copy a sequence."""

    def forget(self) -> None:
        """Drop the generator; the next `extend` reads the sequence again."""
        self._generator, self._cached = None, 0

    def _shorten(self, length: int) -> bool:
        try:
            self._generator.rewind_to(length)
        except Exception:  # recurrent states, and windows that have moved on
            self._backend.rewinds = False
            return False
        return True


def _library() -> Any:
    """Return the module onnxruntime_genai.

    Raises:
        MissingDependencyError: it is not installed, or cannot be imported.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # it is read when the library begins
    try:
        import onnxruntime_genai
    except ImportError as error:
        raise MissingDependencyError(
            f"onnx: models need onnxruntime-genai ({error})", hint="pip install 'toolgrammar[onnx]'"
        ) from error
    return onnxruntime_genai
