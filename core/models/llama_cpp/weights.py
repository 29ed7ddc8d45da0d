"""The model in a GGUF file, loaded by llama.cpp."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from ...errors import ModelError


class Weights:
    """A loaded model file; freed once, after its contexts.

    Args:
        library: the functions of llama.cpp.
        path: the file.
        gpu_layers: number of layers on the accelerator; negative: all.

    Raises:
        ModelError: the file cannot be loaded, or is no model that writes text.
    """

    def __init__(self, library: Any, path: str, gpu_layers: int) -> None:
        self.library = library
        params = library.llama_model_default_params()
        params.n_gpu_layers = 0x7FFFFFFF if gpu_layers < 0 else gpu_layers
        model = library.llama_model_load_from_file(path.encode(), params)
        if not model:
            raise ModelError(f"llama.cpp cannot load {path!r}", hint="is it a complete GGUF file of a language model?")
        self.model = model
        self._free = weakref.finalize(self, library.llama_model_free, model)
        self.vocabulary = library.llama_model_get_vocab(model)
        self.size = int(library.llama_vocab_n_tokens(self.vocabulary))
        self.bos = int(library.llama_vocab_bos(self.vocabulary))
        self.eos = int(library.llama_vocab_eos(self.vocabulary))
        self.adds_bos = self.bos >= 0 and bool(library.llama_vocab_get_add_bos(self.vocabulary))
        if not self.size or not library.llama_model_has_decoder(model):
            self.close()
            raise ModelError(f"{path!r} is not a model that writes text", hint="give a causal language model")
        self.is_recurrent = bool(library.llama_model_is_recurrent(model) or library.llama_model_is_hybrid(model))

    def close(self) -> None:
        """Free the model; closing twice is allowed."""
        self._free()

    def cache_bytes(self, window: int) -> int:
        """Return the size of the keys and values of a window, in bytes, in llama.cpp's half precision."""
        library, model = self.library, self.model
        width = library.llama_model_n_embd(model) // max(1, library.llama_model_n_head(model))
        heads = max(1, library.llama_model_n_head_kv(model))
        keys_and_values, bytes_each = 2, 2
        return int(keys_and_values * bytes_each * library.llama_model_n_layer(model) * heads * width * window)

    def text(self, token_id: int) -> str:
        """Return the name of a token; empty if there is none."""
        if token_id < 0:
            return ""
        return bytes(self.library.llama_vocab_get_text(self.vocabulary, token_id) or b"").decode("utf-8", "replace")

    def piece(self, token_id: int) -> bytes:
        """Return the bytes of a token."""
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            written = self.library.llama_token_to_piece(self.vocabulary, token_id, buffer, size, 0, False)
            if written >= 0:
                return buffer.raw[:written]
            size = -written

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Return the token ids of a text; with ``special``, names of control tokens become control tokens."""
        data = text.encode("utf-8", "surrogatepass")
        size = len(data) + 8
        while True:
            buffer = (self.library.llama_token * size)()
            written = self.library.llama_tokenize(self.vocabulary, data, len(data), buffer, size, False, special)
            if written >= 0:
                return list(buffer[:written])
            size = -written
