"""Engines that are compared on masks, with one face: ``compile``, ``start``, ``step``, ``read``, ``accepts``, ``bits``.

``step`` is one mask and one token, and is timed; ``fill`` is the mask alone, and ``read`` takes bytes without masks.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from toolgrammar.core import Grammar, ToolGrammarError, Vocabulary

#: Writes a text as tokens.
Encode = Callable[[str], list[int]]


def single_bytes(vocabulary: Vocabulary) -> dict[int, int]:
    """Return the token of each byte that is a token."""
    return {token[0]: index for index, token in enumerate(vocabulary.tokens) if token is not None and len(token) == 1}


def llguidance_tokenizer(vocabulary: Vocabulary, encode: Encode | None = None) -> Any:
    """Return llguidance's view of a vocabulary; without ``encode`` it writes byte by byte."""
    from llguidance import LLTokenizer, TokenizerWrapper

    single = single_bytes(vocabulary)

    class Inner:
        def __init__(self) -> None:
            every = list(enumerate(vocabulary.tokens))
            self.eos_token_id = min(vocabulary.eos)
            self.bos_token_id = None
            self.tokens = [b"\xff<%d>" % index if token is None else token for index, token in every]
            self.special_token_ids = [index for index, token in every if token is None]

        def __call__(self, text: Any) -> list[int]:
            if encode is not None:
                return encode(text if isinstance(text, str) else text.decode("utf-8", "replace"))
            return [single[byte] for byte in (text if isinstance(text, bytes) else text.encode())]

    return LLTokenizer(TokenizerWrapper(Inner()))


def xgrammar_info(vocabulary: Vocabulary) -> Any:
    """Return xgrammar's view of a vocabulary."""
    import xgrammar

    tokens = [b"" if token is None else token for token in vocabulary.tokens]
    return xgrammar.TokenizerInfo(
        tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=sorted(vocabulary.eos)
    )


def glrmask_vocabulary(vocabulary: Vocabulary) -> Any:
    """Return glrmask's view of a vocabulary: tokens without text are left out, as its authors do."""
    import glrmask

    return glrmask.Vocab.from_id_to_bytes(
        {index: token for index, token in enumerate(vocabulary.tokens) if token is not None}
    )


class Ours:
    """toolgrammar.

    Args:
        vocabulary: of the masks.
        encode: is not needed.
        warm_seconds: of `Constraint.warm`, which `warm` calls; 0: it does nothing.
        options: of ``Grammar.from_json_schema``.
    """

    name = "toolgrammar"

    def __init__(
        self, vocabulary: Vocabulary, encode: Encode | None = None, *, warm_seconds: float = 0, **options: Any
    ) -> None:
        self.vocabulary = vocabulary
        self.warm_seconds = warm_seconds
        self.version = importlib.metadata.version("toolgrammar")
        self.options = options
        self.mask = self.bits = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
        matcher = Grammar.json(whitespace="flexible").bind(vocabulary).matcher()
        matcher.fill_mask(self.mask)  # makes the vocabulary's own tables
        self.compiled = not str(sys.modules[type(matcher).__module__].__file__).endswith(".py")

    def compile(self, schema: Any) -> Any:
        """Compile, and give the first mask."""
        constraint = Grammar.from_json_schema(schema, **self.options).bind(self.vocabulary)
        constraint.matcher().fill_mask(self.mask)
        return constraint

    def warm(self, compiled: Any) -> None:
        """Derive ahead of any text what the first one would derive, for ``warm_seconds``."""
        if self.warm_seconds:
            compiled.warm(self.warm_seconds)

    def start(self, compiled: Any) -> Any:
        """Return the state at the beginning of a text."""
        return compiled.matcher()

    def step(self, matcher: Any, token: int) -> bool:
        """Fill one mask, then accept one token."""
        matcher.fill_mask(self.mask)
        return bool(matcher.accept(token))

    def fill(self, matcher: Any) -> None:
        """Fill one mask."""
        matcher.fill_mask(self.mask)

    def read(self, matcher: Any, text: bytes) -> bool:
        """Return True if the bytes are accepted."""
        return bool(matcher.accept_bytes(text))

    def accepts(self, matcher: Any) -> bool:
        """Return True if the text may end."""
        return bool(matcher.is_accepting)


class LLGuidance:
    """llguidance, through LLMatcher.

    Args:
        vocabulary: of the masks.
        encode: the vocabulary's tokenizer: where the text is fixed, llguidance allows the token that it writes. None:
            byte by byte.
    """

    name = "llguidance"
    compiled = True

    def __init__(self, vocabulary: Vocabulary, encode: Encode | None = None) -> None:
        import llguidance
        import llguidance.numpy as llnp
        from llguidance import LLMatcher

        self.single = single_bytes(vocabulary)
        self.tokenizer = llguidance_tokenizer(vocabulary, encode)
        self.matcher = LLMatcher
        self.mask = np.zeros((1, (vocabulary.size + 31) // 32), dtype=np.int32)
        self.bits = self.mask[0]
        self._fill = llnp.fill_next_token_bitmask
        self.version = llguidance.__version__

    def compile(self, schema: Any) -> Any:
        """Compile, and give the first mask."""
        matcher = self.load(self.matcher.grammar_from_json_schema(json.dumps(schema)))
        self._fill(matcher, self.mask, 0)
        return matcher

    def load(self, grammar: str) -> Any:
        """Return a matcher of llguidance's own form of a grammar."""
        matcher = self.matcher(self.tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ToolGrammarError(matcher.get_error().splitlines()[0][:100])
        return matcher

    def start(self, compiled: Any) -> Any:
        """Return the state at the beginning of a text."""
        return compiled.deep_copy()

    def step(self, matcher: Any, token: int) -> bool:
        """Fill one mask, then accept one token."""
        self._fill(matcher, self.mask, 0)
        return bool(matcher.try_consume_tokens([token]) == 1)

    def fill(self, matcher: Any) -> None:
        """Fill one mask."""
        self._fill(matcher, self.mask, 0)

    def read(self, matcher: Any, text: bytes) -> bool:
        """Return True if the bytes are accepted."""
        return bool(matcher.try_consume_tokens([self.single[byte] for byte in text]) == len(text))

    def accepts(self, matcher: Any) -> bool:
        """Return True if the text may end."""
        return bool(matcher.is_accepting())


class XGrammar:
    """xgrammar, through GrammarMatcher.

    Args:
        vocabulary: of the masks.
        encode: is not needed.
        strict_mode: xgrammar's default is True: an object takes no property, and an array no item, that its schema
            does not mention.
        cache: its compiler keeps what it compiled.
    """

    name = "xgrammar"
    compiled = True

    def __init__(
        self, vocabulary: Vocabulary, encode: Encode | None = None, *, strict_mode: bool = False, cache: bool = False
    ) -> None:
        import xgrammar

        self.compiler = xgrammar.GrammarCompiler(xgrammar_info(vocabulary), max_threads=1, cache_enabled=cache)
        self.matcher = xgrammar.GrammarMatcher
        self.mask = xgrammar.allocate_token_bitmask(1, vocabulary.size)
        self.bits = self.mask[0].numpy()
        self.version = importlib.metadata.version("xgrammar")
        self.strict_mode = strict_mode

    def compile(self, schema: Any) -> Any:
        """Compile, and give the first mask."""
        compiled = self.compiler.compile_json_schema(json.dumps(schema), strict_mode=self.strict_mode)
        self.matcher(compiled).fill_next_token_bitmask(self.mask)
        return compiled

    def start(self, compiled: Any) -> Any:
        """Return the state at the beginning of a text."""
        return self.matcher(compiled)

    def step(self, matcher: Any, token: int) -> bool:
        """Fill one mask, then accept one token."""
        matcher.fill_next_token_bitmask(self.mask)
        return bool(matcher.accept_token(token))

    def fill(self, matcher: Any) -> None:
        """Fill one mask."""
        matcher.fill_next_token_bitmask(self.mask)

    def read(self, matcher: Any, text: bytes) -> bool:
        """Return True if the bytes are accepted."""
        return bool(matcher.accept_string(text))

    def accepts(self, matcher: Any) -> bool:
        """Return True if the text may end."""
        return bool(matcher.is_completed() if hasattr(matcher, "is_completed") else matcher.is_terminated())


class GLRMask:
    """glrmask, with its default strategy of masks.

    Its grammar has no token that ends a text, so that a state that accepts is one where the text may end.

    Args:
        vocabulary: of the masks.
        encode: is not needed.
    """

    name = "glrmask"
    compiled = True

    def __init__(self, vocabulary: Vocabulary, encode: Encode | None = None) -> None:
        import glrmask

        self.grammar = glrmask.Grammar
        self.vocabulary = glrmask_vocabulary(vocabulary)
        self.mask = self.bits = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
        self.version = importlib.metadata.version("glrmask")
        self.compile({"type": "integer"})  # the vocabulary's own tables

    def compile(self, schema: Any) -> Any:
        """Compile, and give the first mask."""
        compiled = self.grammar.from_json_schema(json.dumps(schema)).compile(self.vocabulary)
        compiled.start().fill_mask(self.mask)
        return compiled

    def start(self, compiled: Any) -> Any:
        """Return the state at the beginning of a text."""
        return compiled.start()

    def step(self, state: Any, token: int) -> bool:
        """Fill one mask, then accept one token."""
        state.fill_mask(self.mask)
        return bool(state.commit_token(token))

    def fill(self, state: Any) -> None:
        """Fill one mask."""
        state.fill_mask(self.mask)

    def read(self, state: Any, text: bytes) -> bool:
        """Return True if the bytes, each of which is a token, are accepted."""
        return all(state.commit_token(token) for token in text)

    def accepts(self, state: Any) -> bool:
        """Return True if the text may end."""
        return bool(state.is_accepting())


class OutlinesCore:
    """outlines-core: an automaton of the regular expression of a schema.

    Args:
        vocabulary: of the masks.
        encode: is not needed.
    """

    name = "outlines-core"
    compiled = True

    def __init__(self, vocabulary: Vocabulary, encode: Encode | None = None) -> None:
        import outlines_core

        self.module = outlines_core
        tokens: dict[bytes | str, list[int]] = {}
        for index, token in enumerate(vocabulary.tokens):
            if token:
                tokens.setdefault(token, []).append(index)
        self.vocabulary = outlines_core.Vocabulary(min(vocabulary.eos), tokens)
        self.mask = self.bits = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
        self.version = importlib.metadata.version("outlines-core")

    def compile(self, schema: Any) -> Any:
        """Compile, and give the first mask."""
        regex = self.module.json_schema.build_regex_from_schema(json.dumps(schema))
        index = self.module.Index(regex, self.vocabulary)
        self.fill(self.start(index))
        return index

    def start(self, compiled: Any) -> Any:
        """Return the state at the beginning of a text."""
        return self.module.Guide(compiled)

    def fill(self, guide: Any) -> None:
        """Fill one mask."""
        guide.write_mask_into(self.mask.ctypes.data, self.mask.size, self.mask.itemsize)

    def step(self, guide: Any, token: int) -> bool:
        """Fill one mask, then accept one token."""
        self.fill(guide)
        if not self.mask[token >> 5] >> (token & 31) & 1:
            return False
        guide.advance(token, return_tokens=False)
        return True

    def read(self, guide: Any, text: bytes) -> bool:
        """Return True if the bytes, each of which is a token, are accepted."""
        for token in text:
            try:
                guide.advance(token, return_tokens=False)
            except ValueError:
                return False
        return True

    def accepts(self, guide: Any) -> bool:
        """Return True if the text may end."""
        return bool(guide.is_finished())


#: By the names that options and results give them.
ENGINES: dict[str, Callable[..., Any]] = {
    engine.name: engine for engine in (Ours, LLGuidance, XGrammar, GLRMask, OutlinesCore)
} | {"xgrammar-strict": functools.partial(XGrammar, strict_mode=True)}
