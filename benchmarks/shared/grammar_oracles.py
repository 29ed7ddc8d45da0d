"""Peers as judges of texts and of tokens: what llama.cpp, xgrammar and llguidance admit of a grammar in their notation.

llama.cpp is the library of `llama-cpp-python` or of `xllamacpp`, with its grammar sampler and the vocabulary of a GGUF
file. The others judge texts over single bytes, so that no tokenizer decides. `compared` holds verdicts beside ours.
"""

from __future__ import annotations

import ctypes
import importlib.util
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.shared import engines
from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.basics import cached_property
from toolgrammar.core.grammar.sampling import single_bytes
from toolgrammar.core.models.llama_cpp.library import llama_library

#: Tells whether a text is of a grammar.
Judge = Callable[[str], bool]

#: Pieces that a mutation may insert.
PIECES = ("", "a", "b", "0", "(", ")", ",", " ", "é", "-", '"', "}", "null", "\n")


def mutated(draw: random.Random, text: str) -> str:
    """Return a text with one change."""
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice([*PIECES, text[:3]]) + text[at + draw.randrange(2) :]


def compared(
    grammar: Grammar, judge: Judge, texts: Iterable[str], count: Counter[str], *, seconds: float = 3
) -> list[tuple[str, bool]]:
    """Return the texts on which we and a peer differ, each with our verdict.

    Args:
        grammar: ours.
        judge: the peer's.
        texts: what is judged.
        count: gets the numbers of ``texts``, ``valid`` ones among them (ours), those ``not judged`` (the peer has no
            tokens for them), and 1 in ``stopped`` if the time was over.
        seconds: of processor time that a grammar may take.
    """
    different = []
    begin = time.process_time()
    for text in texts:
        try:
            ours, theirs = grammar.matches(text), judge(text)
        except ValueError:
            count["not judged"] += 1
            continue
        count["texts"] += 1
        count["valid"] += ours
        if ours != theirs:
            different.append((text, ours))
        if time.process_time() - begin > seconds:
            count["stopped"] += 1
            break
    return different


class _TokenData(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int32), ("logit", ctypes.c_float), ("p", ctypes.c_float))


class _TokenDataArray(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.POINTER(_TokenData)),
        ("size", ctypes.c_size_t),
        ("selected", ctypes.c_int64),
        ("sorted", ctypes.c_bool),
    )


def _samplers(library: Any) -> Any:
    """Return llama.cpp's functions of samplers."""
    if hasattr(library, "llama_sampler_init_grammar"):
        return library
    spec = importlib.util.find_spec("xllamacpp.xllamacpp")
    shared = ctypes.CDLL(str(spec and spec.origin))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
        ("llama_sampler_init_grammar", pointer, (pointer, text, text)),
        ("llama_sampler_apply", None, (pointer, ctypes.POINTER(_TokenDataArray))),
        ("llama_sampler_accept", None, (pointer, ctypes.c_int32)),
        ("llama_sampler_reset", None, (pointer,)),
        ("llama_sampler_free", None, (pointer,)),
    ):
        function = getattr(shared, name)
        function.restype, function.argtypes = result, arguments
    return shared


class LlamaCpp:
    """llama.cpp's grammar sampler.

    Args:
        path: a GGUF file, of which only the vocabulary is used.
    """

    def __init__(self, path: str) -> None:
        self._library = llama_library()
        self._samplers = _samplers(self._library)
        options = self._library.llama_model_default_params()
        options.n_gpu_layers = 0
        self._model = self._library.llama_model_load_from_file(path.encode(), options)
        if not self._model:
            raise ValueError(f"llama.cpp does not load {path}")
        self._vocabulary = self._library.llama_model_get_vocab(self._model)
        self._end = self._library.llama_vocab_eos(self._vocabulary)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens of the file, as this library sees them; those without text are control tokens."""
        library, size = self._library, self._library.llama_vocab_n_tokens(self._vocabulary)
        control = library.LLAMA_TOKEN_ATTR_CONTROL
        tokens = [
            None if library.llama_vocab_get_attr(self._vocabulary, token) & control else self._piece(token)
            for token in range(size)
        ]
        ends = [token for token in range(size) if library.llama_vocab_is_eog(self._vocabulary, token)]
        return Vocabulary([token or None for token in tokens], eos=ends)

    def _sampler(self, grammar: str) -> Any:
        sampler = self._samplers.llama_sampler_init_grammar(self._vocabulary, grammar.encode(), b"root")
        if not sampler:
            raise ValueError("llama.cpp refuses the grammar")
        return sampler

    def _allowed(self, sampler: Any, tokens: Sequence[int]) -> np.ndarray[Any, Any]:
        data = (_TokenData * len(tokens))(*((token, 1.0, 0.0) for token in tokens))
        array = _TokenDataArray(data, len(tokens), -1, False)
        self._samplers.llama_sampler_apply(sampler, ctypes.byref(array))
        return np.array([item.logit > -1e30 for item in data])

    def judge(self, grammar: str) -> Judge:
        """Return what is accepted of a grammar in GBNF."""
        sampler, samplers = self._sampler(grammar), self._samplers

        def accepts(text: str) -> bool:
            samplers.llama_sampler_reset(sampler)
            tokens = self.encode(text)
            if b"".join(map(self._piece, tokens)) != text.encode():
                raise ValueError("the vocabulary has no tokens for the text")
            for token in tokens:
                if not self._allowed(sampler, [token])[0]:
                    return False
                samplers.llama_sampler_accept(sampler, token)
            return bool(self._allowed(sampler, [self._end])[0])

        return accepts

    def _piece(self, token: int) -> bytes:
        found = ctypes.create_string_buffer(256)
        size = self._library.llama_token_to_piece(self._vocabulary, token, found, len(found), 0, True)
        return found.raw[: max(size, 0)]

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        data = text.encode()
        found = (self._library.llama_token * (len(data) + 8))()
        count = self._library.llama_tokenize(self._vocabulary, data, len(data), found, len(found), False, False)
        return list(found[:count])


class Peer:
    """A peer of `engines.py`, whose compiled grammars ``read`` gives of texts in its notation."""

    def __init__(self, kind: Callable[..., Any], read: Callable[[Any, str], Any]) -> None:
        self._of = lru_cache(maxsize=4)(lambda vocabulary: kind(vocabulary))
        self._read = read

    def judge(self, grammar: str) -> Judge:
        """Return what is accepted of a grammar, over a vocabulary of bytes."""
        engine = self._of(single_bytes())
        compiled = self._read(engine, grammar)

        def accepts(text: str) -> bool:
            state = engine.start(compiled)
            return bool(engine.read(state, text.encode())) and bool(engine.accepts(state))

        return accepts


def xgrammar_peer() -> Peer:
    """Return xgrammar, with grammars in EBNF."""
    return Peer(engines.XGrammar, lambda engine, text: engine.compiler.compile_grammar(text))


def llguidance_peer() -> Peer:
    """Return llguidance, with grammars in Lark; with a vocabulary of tokens, a fixed text may have any spelling."""
    return Peer(engines.LLGuidance, lambda engine, text: engine.load(engine.matcher.grammar_from_lark(text)))
