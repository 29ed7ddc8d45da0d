"""The engines that are compared on masks, with one face: ``compile``, ``start``, ``step`` and ``accepts``."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from peers import llguidance_tokenizer, xgrammar_info

from toolgrammar.core import Grammar, ToolGrammarError, Vocabulary


class Ours:
    """toolgrammar."""

    name = "toolgrammar"

    def __init__(self, vocabulary: Vocabulary, order: Literal["schema", "any"] = "any") -> None:
        self.vocabulary = vocabulary
        self.version = importlib.metadata.version("toolgrammar")
        self.order = order
        self.mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
        Grammar.json(whitespace="flexible").bind(vocabulary).matcher().fill_mask(
            self.mask
        )  # the vocabulary's own tables

    def compile(self, schema: Any) -> Any:
        """Compile, and give the first mask."""
        grammar = Grammar.from_json_schema(schema, whitespace="flexible", property_order=self.order)
        constraint = grammar.bind(self.vocabulary)
        constraint.matcher().fill_mask(self.mask)
        return constraint

    def start(self, compiled: Any) -> Any:
        """A text's beginning."""
        return compiled.matcher()

    def step(self, matcher: Any, token: int) -> bool:
        """One mask, then one accept."""
        matcher.fill_mask(self.mask)
        return bool(matcher.accept(token))

    def accepts(self, matcher: Any) -> bool:
        """Whether the text may end."""
        return bool(matcher.is_accepting)


class LLGuidanceSteps:
    """How a text is written with llguidance; ``fill`` and ``mask`` are the engine's."""

    fill: Callable[..., None]
    mask: Any

    def start(self, compiled: Any) -> Any:
        """A text's beginning."""
        return compiled.deep_copy()

    def step(self, matcher: Any, token: int) -> bool:
        """One mask, then one accept."""
        self.fill(matcher, self.mask, 0)
        return bool(matcher.try_consume_tokens([token]) == 1)

    def accepts(self, matcher: Any) -> bool:
        """Whether the text may end."""
        return bool(matcher.is_accepting())


class LLGuidance(LLGuidanceSteps):
    """llguidance, through LLMatcher."""

    name = "llguidance"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import llguidance
        from llguidance import LLMatcher

        self.tokenizer = llguidance_tokenizer(vocabulary)
        self.matcher = LLMatcher
        self.mask = np.zeros((1, (vocabulary.size + 31) // 32), dtype=np.int32)
        import llguidance.numpy as llnp

        self.fill = llnp.fill_next_token_bitmask
        self.version = llguidance.__version__

    def compile(self, schema: Any) -> Any:
        """Compile, and give the first mask."""
        grammar = self.matcher.grammar_from_json_schema(json.dumps(schema))
        matcher = self.matcher(self.tokenizer, grammar)
        if matcher.is_error():
            raise ToolGrammarError(matcher.get_error().splitlines()[0][:60])
        self.fill(matcher, self.mask, 0)
        return matcher


class XGrammar:
    """xgrammar, through GrammarMatcher."""

    name = "xgrammar"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import xgrammar

        self.compiler = xgrammar.GrammarCompiler(xgrammar_info(vocabulary), max_threads=1, cache_enabled=False)
        self.matcher = xgrammar.GrammarMatcher
        self.mask = xgrammar.allocate_token_bitmask(1, vocabulary.size)
        self.version = importlib.metadata.version("xgrammar")

    def compile(self, schema: Any) -> Any:
        """Compile, and give the first mask."""
        compiled = self.compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)
        self.matcher(compiled).fill_next_token_bitmask(self.mask)
        return compiled

    def start(self, compiled: Any) -> Any:
        """A text's beginning."""
        return self.matcher(compiled)

    def step(self, matcher: Any, token: int) -> bool:
        """One mask, then one accept."""
        matcher.fill_next_token_bitmask(self.mask)
        return bool(matcher.accept_token(token))

    def accepts(self, matcher: Any) -> bool:
        """Whether the text may end."""
        return bool(matcher.is_completed() if hasattr(matcher, "is_completed") else matcher.is_terminated())


#: By the names that options and results give them.
ENGINES: dict[str, Callable[..., Any]] = {each.name: each for each in (Ours, LLGuidance, XGrammar)}
