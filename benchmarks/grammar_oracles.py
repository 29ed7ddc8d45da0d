"""Peers as judges of texts: what llama.cpp, xgrammar and llguidance accept of a grammar in their own notation.

llama.cpp is `llama-cpp-python`'s library with its grammar sampler and the vocabulary of a GGUF file; the others are
asked over single bytes, so that no tokenizer decides.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

#: Tells whether a text is of a grammar.
Judge = Callable[[str], bool]


class LlamaCpp:
    """llama.cpp's grammar sampler.

    Args:
        path: a GGUF file, of which only the vocabulary is read.
    """

    def __init__(self, path: str) -> None:
        import llama_cpp

        self._library: Any = llama_cpp
        llama_cpp.llama_backend_init()
        self._quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self._quiet, ctypes.c_void_p(0))
        options = llama_cpp.llama_model_default_params()
        options.vocab_only = True
        self._model = llama_cpp.llama_model_load_from_file(path.encode(), options)
        self._vocabulary = llama_cpp.llama_model_get_vocab(self._model)
        self._end = llama_cpp.llama_vocab_eos(self._vocabulary)

    def judge(self, grammar: str) -> Judge:
        """Return what is accepted of a grammar in GBNF.

        Raises:
            ValueError: it is refused.
        """
        library = self._library
        sampler = library.llama_sampler_init_grammar(self._vocabulary, grammar.encode(), b"root")
        if not sampler:
            raise ValueError("llama.cpp refuses the grammar")

        def allowed(token: int) -> bool:
            data = library.llama_token_data(token, 1.0, 0.0)
            array = library.llama_token_data_array(ctypes.pointer(data), 1, -1, False)
            library.llama_sampler_apply(sampler, ctypes.byref(array))
            return bool(data.logit > -1e30)

        def accepts(text: str) -> bool:
            library.llama_sampler_reset(sampler)
            tokens = self._tokens(text)
            if b"".join(map(self._piece, tokens)) != text.encode():
                raise ValueError("the vocabulary has no tokens for the text")
            for token in tokens:
                if not allowed(token):
                    return False
                library.llama_sampler_accept(sampler, token)
            return allowed(self._end)

        return accepts

    def _piece(self, token: int) -> bytes:
        found = ctypes.create_string_buffer(64)
        size = self._library.llama_token_to_piece(self._vocabulary, token, found, 64, 0, True)
        return found.raw[:size]

    def _tokens(self, text: str) -> list[int]:
        data = text.encode()
        found = (self._library.llama_token * (len(data) + 8))()
        count = self._library.llama_tokenize(self._vocabulary, data, len(data), found, len(found), False, False)
        return list(found[:count])


class XGrammar:
    """xgrammar's own acceptance of strings."""

    def judge(self, grammar: str) -> Judge:
        """Return what is accepted of a grammar in EBNF."""
        import xgrammar
        from xgrammar.testing import _is_grammar_accept_string

        compiled = xgrammar.Grammar.from_ebnf(grammar)
        return lambda text: bool(_is_grammar_accept_string(compiled, text))


class _Bytes:
    eos_token_id = 256
    bos_token_id = None
    tokens = (*(bytes((byte,)) for byte in range(256)), b"<eos>")
    special_token_ids = (256,)

    def __call__(self, data: str | bytes) -> list[int]:
        return list(data.encode() if isinstance(data, str) else data)


@lru_cache(maxsize=1)
def _byte_tokenizer() -> Any:
    import llguidance

    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Bytes()))


class LLGuidance:
    """llguidance over a vocabulary of bytes."""

    def judge(self, grammar: str) -> Judge:
        """Return what is accepted of a grammar in Lark."""
        import llguidance

        compiled = llguidance.LLMatcher.grammar_from_lark(grammar)

        def accepts(text: str) -> bool:
            matcher = llguidance.LLMatcher(_byte_tokenizer(), compiled, log_level=0)
            if matcher.is_error():
                raise ValueError(matcher.get_error())
            return all(matcher.consume_token(byte) for byte in text.encode()) and bool(matcher.is_accepting())

        accepts("")
        return accepts
