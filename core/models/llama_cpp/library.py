"""The functions of ``llama.h``, from an installed package of llama.cpp.

llama-cpp-python wraps all of them. xllamacpp, which has wheels where llama-cpp-python has to be compiled for minutes,
wraps only a server, but its shared library exports the same functions; `_Exported` declares those that
`toolgrammar.core.models.llama_cpp.backend` calls. The layout of the two parameter structures is not a stable interface,
so it is checked by their documented default values before use.
"""

from __future__ import annotations

import ctypes
import logging
import sys
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int8, c_int32, c_size_t, c_uint8, c_uint32, c_void_p
from importlib.util import find_spec
from typing import Any

from ...errors import MissingDependencyError, ModelError

#: Number of additional bytes of a parameter structure, so that it is larger than that of any llama.cpp: a function that
#: takes or returns a structure by value reads or writes its own size.
_REST = 512

#: The default values of ``llama_context_default_params`` for the fields that are set here.
CONTEXT_DEFAULTS = {
    "n_ctx": 512,
    "n_batch": 2048,
    "n_ubatch": 512,
    "n_seq_max": 1,
    "n_threads": 4,
    "n_threads_batch": 4,
}


class ModelParams(ctypes.Structure):
    """The beginning of ``struct llama_model_params``."""

    _fields_ = (
        ("devices", c_void_p),
        ("tensor_buft_overrides", c_void_p),
        ("n_gpu_layers", c_int32),
        ("split_mode", c_int32),
        ("rest", c_uint8 * _REST),
    )


class ContextParams(ctypes.Structure):
    """The beginning of ``struct llama_context_params``. The other fields keep their defaults: full caches of sliding
    windows, and no timing; but for `share_cache`."""

    _fields_ = (
        ("n_ctx", c_uint32),
        ("n_batch", c_uint32),
        ("n_ubatch", c_uint32),
        ("n_seq_max", c_uint32),
        ("n_rs_seq", c_uint32),
        ("n_outputs_max", c_uint32),
        ("n_outputs_max_per_seq", c_uint32),
        ("n_threads", c_int32),
        ("n_threads_batch", c_int32),
        ("rest", c_uint8 * _REST),
    )


#: The defaults of the last boolean fields: ``embeddings``, ``offload_kqv``, ``no_perf``, ``op_offload``, ``swa_full``,
#: and ``kv_unified``, with the unused bytes up to the pointer after them.
_FLAGS = bytes((0, 1, 1, 1, 1, 0, 0, 0))


def share_cache(params: Any) -> bool:
    """Set the parameter ``kv_unified`` of a context: its sequences share one cache. Return False if it is not found;
    the caller tests its effect by ``llama_n_ctx_seq``."""
    if hasattr(params, "kv_unified"):
        params.kv_unified = True
        return True
    if not isinstance(params, ContextParams):  # an old llama-cpp-python
        return False
    # xllamacpp names only the first fields: the flags are found by their default values. A pointer follows them, so the
    # compiler has aligned these eight bytes: anything else is not the flags.
    flags = bytes(params.rest).find(_FLAGS)
    if flags < 0 or (ContextParams.rest.offset + flags) % 8:
        return False
    params.rest[flags + 5] = 1  # kv_unified is the sixth
    return True


class Batch(ctypes.Structure):
    """``struct llama_batch``."""

    _fields_ = (
        ("n_tokens", c_int32),
        ("token", POINTER(c_int32)),
        ("embd", POINTER(c_float)),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))),
        ("logits", POINTER(c_int8)),
    )


class ProjectorParams(ctypes.Structure):
    """``struct mtmd_context_params``, whose fields `projector_params` finds."""

    _fields_ = (("fields", c_uint8 * _REST),)


class Part(ctypes.Structure):
    """``struct mtmd_input_part``: a text, or an image."""

    _fields_ = (("text", c_void_p), ("bitmap", c_void_p))


_LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, c_char_p, c_void_p)

#: Drops a message of llama.cpp; errors are also reported as results.
_SILENT = _LOG(lambda level, text, data: None)

#: Result and argument types of the functions, as in ``llama.h``.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "llama_backend_init": (None,),
    "llama_log_set": (None, _LOG, c_void_p),
    "llama_model_default_params": (ModelParams,),
    "llama_context_default_params": (ContextParams,),
    "llama_model_load_from_file": (c_void_p, c_char_p, ModelParams),
    "llama_init_from_model": (c_void_p, c_void_p, ContextParams),
    "llama_model_free": (None, c_void_p),
    "llama_free": (None, c_void_p),
    "llama_model_get_vocab": (c_void_p, c_void_p),
    "llama_model_chat_template": (c_char_p, c_void_p, c_char_p),
    "llama_model_n_ctx_train": (c_int32, c_void_p),
    "llama_model_n_embd": (c_int32, c_void_p),
    "llama_model_n_head": (c_int32, c_void_p),
    "llama_model_n_head_kv": (c_int32, c_void_p),
    "llama_model_n_layer": (c_int32, c_void_p),
    "llama_model_has_decoder": (c_bool, c_void_p),
    "llama_model_is_recurrent": (c_bool, c_void_p),
    "llama_model_is_hybrid": (c_bool, c_void_p),
    "llama_vocab_n_tokens": (c_int32, c_void_p),
    "llama_vocab_bos": (c_int32, c_void_p),
    "llama_vocab_eos": (c_int32, c_void_p),
    "llama_vocab_get_add_bos": (c_bool, c_void_p),
    "llama_vocab_get_attr": (c_int32, c_void_p, c_int32),
    "llama_vocab_get_text": (c_char_p, c_void_p, c_int32),
    "llama_vocab_is_eog": (c_bool, c_void_p, c_int32),
    "llama_token_to_piece": (c_int32, c_void_p, c_int32, c_char_p, c_int32, c_int32, c_bool),
    "llama_tokenize": (c_int32, c_void_p, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool),
    "llama_batch_get_one": (Batch, POINTER(c_int32), c_int32),
    "llama_decode": (c_int32, c_void_p, Batch),
    "llama_get_logits_ith": (POINTER(c_float), c_void_p, c_int32),
    "llama_get_memory": (c_void_p, c_void_p),
    "llama_memory_seq_rm": (c_bool, c_void_p, c_int32, c_int32, c_int32),
    "llama_memory_seq_pos_min": (c_int32, c_void_p, c_int32),
    "llama_memory_seq_pos_max": (c_int32, c_void_p, c_int32),
    "llama_state_seq_get_size": (c_size_t, c_void_p, c_int32),
    "llama_state_seq_get_data": (c_size_t, c_void_p, POINTER(c_uint8), c_size_t, c_int32),
    "llama_state_seq_set_data": (c_size_t, c_void_p, POINTER(c_uint8), c_size_t, c_int32),
}

#: The same for functions that a library may lack; without them, sequences share no forward passes.
_OPTIONAL: dict[str, tuple[Any, ...]] = {
    "llama_n_ctx": (c_uint32, c_void_p),
    "llama_n_ctx_seq": (c_uint32, c_void_p),
}

#: The functions of ``mtmd.h`` and ``mtmd-helper.h``, for images.
_VISION: dict[str, tuple[Any, ...]] = {
    "mtmd_helper_log_set": (None, _LOG, c_void_p),
    "mtmd_default_marker": (c_void_p,),
    "mtmd_context_params_default": (ProjectorParams,),
    "mtmd_init_from_file": (c_void_p, c_char_p, c_void_p, ProjectorParams),
    "mtmd_free": (None, c_void_p),
    "mtmd_support_vision": (c_bool, c_void_p),
    "mtmd_decode_use_non_causal": (c_bool, c_void_p, c_void_p),
    "mtmd_bitmap_init": (c_void_p, c_uint32, c_uint32, c_char_p),
    "mtmd_bitmap_free": (None, c_void_p),
    "mtmd_tokenize_from_parts": (c_int32, c_void_p, c_void_p, POINTER(POINTER(Part)), c_size_t, c_bool),
    "mtmd_input_chunks_init": (c_void_p,),
    "mtmd_input_chunks_size": (c_size_t, c_void_p),
    "mtmd_input_chunks_get": (c_void_p, c_void_p, c_size_t),
    "mtmd_input_chunks_free": (None, c_void_p),
    "mtmd_input_chunk_get_type": (c_int32, c_void_p),
    "mtmd_input_chunk_get_n_tokens": (c_size_t, c_void_p),
    "mtmd_input_chunk_get_n_pos": (c_int32, c_void_p),
    "mtmd_input_chunk_get_tokens_text": (POINTER(c_int32), c_void_p, POINTER(c_size_t)),
    "mtmd_helper_eval_chunk_single": (
        *(c_int32, c_void_p, c_void_p, c_void_p, c_int32, c_int32, c_int32, c_bool, POINTER(c_int32)),
    ),
}


def llama_library() -> Any:
    """Return an object with the functions of ``llama.h``: those of llama-cpp-python, else those of xllamacpp.

    Raises:
        MissingDependencyError: neither is installed.
        ModelError: the installed xllamacpp has a llama.cpp with another layout of parameters.
    """
    logger = logging.getLogger("llama-cpp-python")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.ERROR)
    try:
        import llama_cpp.llama_cpp as library
    except (ImportError, OSError, RuntimeError) as error:  # its shared library may be missing, or for another platform
        exported = _xllamacpp()
        if exported is None:
            raise MissingDependencyError(
                "gguf: models need llama-cpp-python or xllamacpp",
                hint="pip install xllamacpp (a ready wheel), or llama-cpp-python (compiled for minutes)",
            ) from error
        return exported
    library.llama_backend_init()
    return library


class _Exported:
    """The functions of ``llama.h`` in a shared library, under the names of llama-cpp-python."""

    llama_token = c_int32
    LLAMA_TOKEN_ATTR_UNKNOWN = 1 << 0
    LLAMA_TOKEN_ATTR_UNUSED = 1 << 1
    LLAMA_TOKEN_ATTR_CONTROL = 1 << 3

    def __init__(self, shared: ctypes.CDLL) -> None:
        self.shared = shared
        _declare(self, shared, _FUNCTIONS)
        _declare(self, shared, {name: types for name, types in _OPTIONAL.items() if hasattr(shared, name)})


class _Vision:
    """The functions for images in a shared library."""

    def __init__(self, shared: ctypes.CDLL) -> None:
        _declare(self, shared, _VISION)


def _declare(target: object, shared: ctypes.CDLL, functions: dict[str, tuple[Any, ...]]) -> None:
    """Set functions of a shared library as attributes. Raise AttributeError if it lacks one."""
    for name, (result, *arguments) in functions.items():
        function = getattr(shared, name)
        function.restype, function.argtypes = result, arguments
        setattr(target, name, function)


def vision_library(library: Any) -> Any:
    """Return an object with the functions for images of the package that has ``library`` (`llama_library`).

    Raises:
        ModelError: it lacks them.
    """
    try:
        if isinstance(library, _Exported):
            found: Any = _Vision(library.shared)
        else:
            from llama_cpp import mtmd_cpp

            found = _Vision(ctypes.CDLL(mtmd_cpp._libmtmd._name))
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        raise ModelError(
            "the installed llama.cpp reads no images: it lacks functions of mtmd.h", hint="pip install -U xllamacpp"
        ) from error
    found.mtmd_helper_log_set(_SILENT, None)
    return found


def projector_params(library: Any, threads: int, uses_gpu: bool) -> ProjectorParams:
    """Return parameters for a projector. The layout of the structure differs between versions; its fields are found
    by their distance from the address of the default marker, and checked by their defaults.

    Raises:
        ModelError: the layout is not known.
    """
    params: ProjectorParams = library.mtmd_context_params_default()
    data = bytes(params)
    marker = data.find(library.mtmd_default_marker().to_bytes(ctypes.sizeof(c_void_p), sys.byteorder))
    # use_gpu (true) ... n_threads (4), image_marker (a pointer), media_marker, flash_attn_type, warmup (true)
    at_threads, at_warmup = marker - 12, marker + 12
    is_known = at_threads >= 0 and data[at_threads : at_threads + 4] == (4).to_bytes(4, sys.byteorder)
    if not is_known or data[0] != 1 or data[at_warmup] != 1:
        raise ModelError(
            "the installed llama.cpp has another layout of the parameters of projectors",
            hint="install another version of xllamacpp, or load the model for text by mmproj=''",
        )
    start = ctypes.addressof(params)
    ctypes.c_int32.from_address(start + at_threads).value = threads
    c_bool.from_address(start).value = uses_gpu
    c_bool.from_address(start + at_warmup).value = False  # no pass to warm up
    return params


def _xllamacpp() -> Any:
    """Return the functions that xllamacpp's shared library exports; None if there are none."""
    spec = find_spec("xllamacpp")
    inner = find_spec("xllamacpp.xllamacpp") if spec is not None else None
    if inner is None or inner.origin is None:
        return None
    try:
        library: Any = _Exported(ctypes.CDLL(inner.origin))
    except (OSError, AttributeError):  # for another platform, or built without exported functions
        return None
    library.llama_log_set(_SILENT, None)
    library.llama_backend_init()
    context, model = library.llama_context_default_params(), library.llama_model_default_params()
    found = {name: getattr(context, name) for name in CONTEXT_DEFAULTS}
    if found != CONTEXT_DEFAULTS or model.split_mode not in (0, 1):
        raise ModelError(
            "this version of xllamacpp is of a llama.cpp that is not known here",
            hint="install another version of xllamacpp, or llama-cpp-python",
        )
    return library
