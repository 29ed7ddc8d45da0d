"""The grammar backend: requests to grammars, and the masks of a batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
)

from toolgrammar.core.basics import Whitespace, logger_of
from toolgrammar.core.errors import ToolGrammarError
from toolgrammar.core.grammar import ConstraintCache, Grammar
from toolgrammar.core.masks import Constraint, apply_mask, fill_known
from toolgrammar.core.vocabulary import Vocabulary

from .. import _shared

_LOG = logger_of("sglang")

#: Maximum number of requests whose templates SGLang's cache keeps; their constraints are in a cache bounded in bytes.
MAX_TEMPLATES = 4_096

#: What SGLang passes for "any JSON".
ANY_JSON = "$$ANY$$"


def allocate_masks(vocab_size: int, batch_size: int, device: object = None) -> torch.Tensor:
    """Return masks that allow everything: int32 on the host, ``[batch_size, ceil(vocab_size / 32)]``."""
    return torch.full(
        (batch_size, (vocab_size + 31) // 32), -1, dtype=torch.int32, pin_memory=torch.cuda.is_available()
    )


def move_masks(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
    """Return masks on a device."""
    return vocab_mask.to(device, non_blocking=True)


def apply_masks(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
    """Forbid tokens in the logits of a batch, in place."""
    apply_mask(logits, vocab_mask)


class GrammarObject(BaseGrammarObject):  # type: ignore[misc]
    """The text of one request.

    Args:
        constraint: what the text has to satisfy.
        eos: the tokens that end a text.
    """

    def __init__(self, constraint: Constraint, eos: Collection[int], stats: GrammarStats | None = None) -> None:
        super().__init__()
        self._constraint = constraint
        self._eos = eos
        self._matcher = constraint.matcher()
        self._is_over = False
        self._ignored = 0  # tokens after the end, as speculation brings them
        self._error: ToolGrammarError | None = None  # a limit that was met while a mask was computed
        self.grammar_stats = stats

    def accept_token(self, token: int) -> None:
        """Advance; what comes after the end is ignored.

        Raises:
            ValueError: the token is not allowed, or the grammar met a limit; SGLang ends this request with an error.
        """
        if self._error is not None:
            raise ValueError(str(self._error))
        if self._is_over:
            self._ignored += 1
            return
        try:
            is_allowed = self._matcher.accept(token)
        except ToolGrammarError as error:
            raise ValueError(str(error)) from error
        if not is_allowed:
            raise ValueError(f"token {token} is not allowed here")
        self._is_over = token in self._eos
        self.current_token = token

    def rollback(self, k: int) -> None:
        """Undo the last ``k`` tokens, ignored ones among them."""
        ignored = min(k, self._ignored)
        self._ignored -= ignored
        if k > ignored:
            self._matcher.rollback(k - ignored)
            self._is_over = False
            self._error = None  # SGLang asks for masks along drafts, too: a limit was met after what is undone

    def is_terminated(self) -> bool:
        """Return True if a token that ends the text was accepted."""
        return self._is_over

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Return masks for a batch, all of which allow everything."""
        return allocate_masks(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the row of this text."""
        self._fill(vocab_mask.numpy().view(np.uint32)[idx])

    def _fill(self, row: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
        """Write the mask of the next token; where the grammar meets a limit, the end tokens."""
        try:
            self._matcher.fill_mask(row)
        except ToolGrammarError as error:  # an exception here would end SGLang's scheduler, and all requests with it
            self._error = error
            row[:] = 0
            for token in self._eos:
                row[token >> 5] |= np.uint32(1 << (token & 31))

    @staticmethod
    def fill_vocab_mask_batched(entries: Iterable[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Write the rows of many texts, known masks by one call; rows of others stay as they are."""
        rows = vocab_mask.numpy().view(np.uint32)
        texts: list[GrammarObject | None] = [None] * len(rows)
        for row, grammar in entries:
            if isinstance(grammar, GrammarObject):
                texts[row] = grammar
            else:
                grammar.fill_vocab_mask(vocab_mask, row)
        matchers = [None if text is None else text._matcher for text in texts]
        for row in fill_known(matchers, rows):  # the rows whose masks have to be computed
            if (text := texts[row]) is not None:  # always
                text._fill(rows[row])

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Let masks allow everything."""
        vocab_mask.fill_(-1)

    move_vocab_mask = staticmethod(move_masks)
    apply_vocab_mask = staticmethod(apply_masks)

    def copy(self) -> GrammarObject:
        """Return the text of another request under the same grammar, still empty."""
        stats = None if self.grammar_stats is None else GrammarStats(is_cache_hit=True)
        return GrammarObject(self._constraint, self._eos, stats)


class Backend(BaseGrammarBackend):  # type: ignore[misc]
    """The backend of one scheduler; grammars are compiled in SGLang's thread pool.

    Args:
        vocabulary: the model's vocabulary, as wide as its logits.
        whitespace: white space in JSON.
    """

    def __init__(self, vocabulary: Vocabulary, whitespace: Whitespace = "flexible") -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._whitespace = whitespace
        self._constraints = ConstraintCache()

    allocate_vocab_mask = staticmethod(allocate_masks)
    move_vocab_mask = staticmethod(move_masks)
    apply_vocab_mask = staticmethod(apply_masks)

    @property
    def is_support_token_filter(self) -> bool:
        """True: masks are packed bits, in which SGLang's strict reasoning can set some."""
        return True

    def set_token_filter(
        self,
        vocab_mask: torch.Tensor,
        token_ids: list[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allow or forbid some tokens in a row; with ``reset_vocab_mask``, after it was reset to the opposite."""
        from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch

        set_token_filter_torch(vocab_mask, token_ids, batch_idx, is_allowed, reset_vocab_mask)

    def set_cache(self, key: tuple[str, str], value: Any) -> None:
        """Keep a template, and at most `MAX_TEMPLATES` of them: the oldest go first."""
        super().set_cache(key, value)
        while len(self.cache) > MAX_TEMPLATES:
            self.cache.pop(next(iter(self.cache)), None)

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a JSON Schema."""

        def make() -> Grammar:
            schema = True if key_string == ANY_JSON else json.loads(key_string)
            _shared.require_settled(schema)
            return Grammar.from_json_schema(schema, whitespace=self._whitespace, plain_integers=True)

        return self._grammar("json", make)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a regular expression (ECMA-262, matching the whole text)."""
        return self._grammar("regex", lambda: Grammar.from_regex(key_string))

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a text in EBNF, or of what `Grammar.dumps` wrote and other objects of JSON."""
        read = Grammar.from_any if key_string.lstrip().startswith("{") else Grammar.from_ebnf
        return self._grammar("ebnf", lambda: read(key_string, vocabulary=self._vocabulary))

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a structural tag, of which SGLang makes one for tool calls."""

        def make() -> Grammar:
            for schema in _shared.schemas_in(key_string):
                _shared.require_settled(schema)
            return Grammar.from_structural_tag(key_string, whitespace=self._whitespace, vocabulary=self._vocabulary)

        return self._grammar("structural_tag", make)

    def _grammar(self, kind: str, make: Callable[[], Grammar]) -> BaseGrammarObject:
        """Return the text of a new request under a grammar; SGLang takes what is wrong with it as an object, too."""
        try:
            grammar = make()
            constraint = self._constraints.bind(grammar, self._vocabulary)
        except (ToolGrammarError, ValueError) as error:
            return InvalidGrammarObject(str(error))
        for problem in grammar.narrowed:
            _LOG.info("valid values are excluded: %s", problem)
        return GrammarObject(constraint, self._vocabulary.eos, GrammarStats(dispatch_type=kind))


def create_backend(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Collection[int] | None
) -> BaseGrammarBackend:
    """Return the backend of a server, inside of SGLang's wrapper for reasoning where the server has a reasoning parser.

    Args:
        server_args: SGLang's options: ``reasoning_parser``, ``enable_strict_thinking`` and
            ``constrained_json_disable_any_whitespace`` count.
        tokenizer: a tokenizer of transformers.
        vocab_size: the number of logits.
        eos_token_ids: further tokens that end a text.
    """
    vocabulary = Vocabulary.from_transformers(tokenizer, size=vocab_size, extra_eos=eos_token_ids or ())
    single = getattr(server_args, "constrained_json_disable_any_whitespace", False)
    backend = Backend(vocabulary, "single" if single else "flexible")
    if not getattr(server_args, "reasoning_parser", None):
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=server_args.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend
    strict = bool(getattr(server_args, "enable_strict_thinking", False))
    return ReasonerGrammarBackend(backend, parser, tokenizer, enable_strict_thinking=strict)
