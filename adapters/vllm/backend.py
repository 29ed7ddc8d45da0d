"""The backend: vLLM's interface of structured output over our grammars. Imported inside vLLM only.

Contract: ``vllm/v1/structured_output/backend_types.py``. Grammars are compiled in vLLM's thread pool and kept in one
`ConstraintCache`, so requests with equal tools share everything but the state of their text.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import torch
from vllm.exceptions import VLLMValidationError
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)
from vllm.v1.structured_output.request import get_structured_output_key

from toolgrammar.core.basics import logger_of
from toolgrammar.core.errors import ToolGrammarError
from toolgrammar.core.generation import cut_places
from toolgrammar.core.grammar import ConstraintCache, Grammar
from toolgrammar.core.masks import Constraint
from toolgrammar.core.vocabulary import Vocabulary

from .drafts import proposes_forced_text
from .envelope import Tokens, Wanted, refusal, wanted
from .sequence import Ends, Sequence, fill_batch
from .spelling import Spelling

_LOG = logger_of("vllm")


class ToolGrammarBackend(StructuredOutputBackend):  # type: ignore[misc]
    """The structured-output backend of one engine.

    Args:
        vllm_config: the engine's configuration.
        tokenizer: the model's tokenizer.
        vocab_size: number of logits; it may exceed the tokenizer's number of tokens.
    """

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        vocabulary = Vocabulary.from_transformers(tokenizer, size=self.vocab_size)
        self.spelling = Spelling(vocabulary, lambda text: list(tokenizer.encode(text, add_special_tokens=False)))
        template = getattr(tokenizer, "chat_template", None)
        self._model = Tokens(template if isinstance(template, str) else "", vocabulary)
        self._cache = ConstraintCache()
        self._bitmask: torch.Tensor | None = None
        self.rows: np.ndarray[Any, np.dtype[np.uint32]] = np.zeros((0, 0), np.uint32)
        self._ends: dict[frozenset[int], Ends] = {}
        config = self.vllm_config.speculative_config
        #: The drafts are those of `drafts.OfferedText`: the masks allow other tokens beside them.
        self.offers = proposes_forced_text(config) and str(config.model).endswith(".OfferedText")
        self.most_drafts = int(getattr(self.vllm_config, "num_speculative_tokens", 0) or 0)

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> ToolGrammarSequence:
        """Return the state of a new text of a request; see the contract."""
        asked = wanted(request_type.name, grammar_spec, self._model)  # the grammar, and how its answer is read
        for narrowed in asked.grammar.narrowed:
            _LOG.info("narrowed: %s", narrowed)
        constraint = self.bind(asked.grammar)
        stop = frozenset(stop_token_ids or ())
        ends = self._ends.get(stop)
        if ends is None:
            if len(self._ends) >= 256:  # requests may bring stop tokens of their own
                self._ends.clear()
            ends = self._ends[stop] = Ends(self.spelling, stop)
        return ToolGrammarSequence(self, constraint, ends, asked)

    def bind(self, grammar: Grammar) -> Constraint:
        """Return a grammar over the model's vocabulary; equal ones share it."""
        return self._cache.bind(grammar, self.spelling.vocabulary)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Return the bitmask of a whole batch; see the contract."""
        self._bitmask = torch.full((max_num_seqs, (self.vocab_size + 31) // 32), -1, dtype=torch.int32)
        self.rows = self._bitmask.numpy().view(np.uint32)
        return self._bitmask

    def row(self, bitmask: torch.Tensor, index: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """Return a row of a bitmask as an array over the same memory."""
        # A view of a tensor's row takes longer than most masks.
        row: np.ndarray[Any, np.dtype[np.uint32]]
        row = self.rows[index] if bitmask is self._bitmask else bitmask[index].numpy().view(np.uint32)
        return row

    def destroy(self) -> None:
        """Drop all that was compiled; see the contract."""
        self._cache.clear()
        self._bitmask, self.rows = None, np.zeros((0, 0), np.uint32)


class ToolGrammarSequence(Sequence, StructuredOutputGrammar):  # type: ignore[misc]
    """The text of one request; see the contract.

    Args:
        backend: the engine's backend.
        constraint: the grammar over the model's vocabulary.
        ends: the tokens that end the text.
        asked: what the request asks for.

    Attributes:
        hides_end: the answer is reported as cut, and a token ended it: vLLM would show that one's text.
    """

    def __init__(self, backend: ToolGrammarBackend, constraint: Constraint, ends: Ends, asked: Wanted) -> None:
        super().__init__(constraint, backend.spelling, ends)
        self._backend = backend
        self._asked = asked
        self._request: Any = None  # vLLM's, once `belong_to` has it
        self._limit = sys.maxsize  # maximum number of tokens of the request
        self._before = 0  # tokens that the request wrote before the grammar began: its reasoning
        self._committed = 0  # tokens of the request at the last step; a draft does not count until it is verified
        self._reserve = 0  # drafts that may come before the grammar begins, in the step that ends the reasoning
        self.hides_end = False

    def belong_to(self, request: Any, max_model_len: int) -> None:
        """Take the token budget of a request of vLLM, and report there what the budget cut."""
        if request.sampling_params is None:
            return
        self._request = request
        self._limit = min(request.max_tokens, max_model_len - request.num_prompt_tokens)
        self._committed = request.num_output_tokens
        # A step may write drafts that end the reasoning and begin the answer. How many of them are reasoning is known
        # only when they are accepted; until then, all of them count.
        self._reserve = self._backend.most_drafts
        self.room = self._room

    def _room(self) -> int:
        """Return how many tokens may still be written; see `Sequence.room`."""
        if not self.steps:
            structured = self._request.structured_output_request
            is_reasoning = structured is not None and structured.reasoning_ended is False
            self._before = self._request.num_output_tokens + (self._reserve if is_reasoning else 0)
        return max(0, self._limit - self._before - self.steps)

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advance by tokens: drafts, which vLLM takes back, or tokens that it has added to the request."""
        is_accepted = self.accept(tokens)
        request = self._request
        if request is not None and request.num_output_tokens != self._committed:
            self._committed = request.num_output_tokens
            self._before = self._committed - self.steps  # now exact; `_room` has an upper bound
            if request.is_finished():
                self._report()
        return is_accepted

    def _report(self) -> None:
        """Name in the request what its token budget cut, in the one field that reaches the client: pointers to values,
        or ``""``, the whole answer."""
        from vllm.v1.request import RequestStatus

        asked, more = self._asked, {}
        if self._fits_no_text():  # nothing was written
            places, more = [""], {"shortest": self.shortest}
        elif self._request.status == RequestStatus.FINISHED_LENGTH_CAPPED and not (self._over or self.is_whole):
            places = [""]  # it ends anywhere, and may not parse
        elif (closed_at := self._cut_at()) is None or closed_at > len(self.tokens):
            return  # nothing was cut
        else:
            parser = None if asked.make_parser is None else asked.make_parser()
            places = cut_places(self._spelling.vocabulary, self.tokens, closed_at, parser, asked.is_json)
        if places:
            self._request.stop_reason = json.dumps({"toolgrammar": {"cut": places, **more}})
            if self._request.status == RequestStatus.FINISHED_STOPPED:  # to the client, a cut answer ends by its length
                self._request.status = RequestStatus.FINISHED_LENGTH_CAPPED
                self.hides_end = True

    def _cut_at(self) -> int | None:
        """Return where the budget cut the answer, as `closed_at` does.

        Where an answer may be calls or JSON, `closed_at` is the first place at which the budget forbade either. If the
        calls alone were forbidden and the answer became JSON, nothing of it was cut; so its tokens are written again
        under the grammar of the JSON alone.
        """
        if self.closed_at is None or self._asked.make_answer is None:
            return self.closed_at
        try:
            constraint = self._backend.bind(self._asked.make_answer())
            json_alone = Sequence(constraint, self._spelling, self._ends)
            json_alone.room = lambda: max(0, self._limit - self._before - json_alone.steps)
            row = np.zeros(constraint.words, np.uint32)
            for token in (*self.tokens, None):  # None: the mask after the last one
                json_alone.fill(row)
                if json_alone.closed_at is not None or token is None:
                    return json_alone.closed_at
                if not json_alone.accept((token,)):  # the answer is a call
                    break
        except ToolGrammarError as error:
            _LOG.info("a cut is named from the first mask that was narrowed: %s", error)
        return self.closed_at

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Return the drafts that the grammar takes."""
        return self.allowed_prefix(tokens)

    def drafts(self, most: int) -> list[int]:
        """Return at most so many tokens of the text that the grammar forces next."""
        return self.jump(most, is_offered=self._backend.offers)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the mask of the next token into a row."""
        self.fill(self._backend.row(bitmask, batch_index))

    def is_terminated(self) -> bool:
        """Return True once a token has ended the text."""
        return self.is_over


class BatchFill(Executor):
    """Takes the place of the threads to which vLLM's manager hands rows of a batch: all rows come at once, and known
    masks are written by one call, which copies without the interpreter's lock.

    vLLM does so for steps without drafts; along drafts it fills row by row.

    Args:
        manager: vLLM's ``StructuredOutputManager``.
    """

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    @classmethod
    def install(cls, manager: Any) -> None:
        """Let a manager hand all rows of a batch to this executor at once; done once, however often it is called."""
        before = getattr(manager, "executor_for_fillmask", None)
        if isinstance(before, cls) or not hasattr(manager, "fill_bitmask_parallel_threshold"):
            return
        manager.executor_for_fillmask = cls(manager)
        manager.fill_bitmask_parallel_batch_size = sys.maxsize
        manager.fill_bitmask_parallel_threshold = 1  # a single row vLLM fills itself
        if before is not None:
            before.shutdown(wait=False)

    def submit(self, fn: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        """Do what the manager wants ``fn``, its own method, to do with a batch; return that it is done.

        The one argument is the batch: ``(grammar, row, is constrained)`` of each text, in the order of the rows.
        """
        (batch,) = arguments
        bitmask = self._manager._grammar_bitmask
        last_row = batch[-1][1]
        texts: list[Sequence | None] = [None] * (last_row + 1)
        for grammar, row, is_constrained in batch:
            if is_constrained and not grammar.is_terminated():
                texts[row] = grammar
            else:
                bitmask[row].fill_(-1)  # all tokens are allowed
        fill_batch(texts, bitmask.numpy().view(np.uint32))
        done: Future[None] = Future()
        done.set_result(None)
        return done


def validate(params: Any) -> None:
    """Refuse a request that no model could be given, before it reaches the engine.

    Raises:
        VLLMValidationError: its schema, pattern or envelope cannot be taken, or another option would break the text.
    """
    kind, text = get_structured_output_key(params.structured_outputs)
    reason = refusal(kind.name, text)
    if params.min_tokens:
        reason = "min_tokens forbids the end of a text where the grammar may allow nothing else; leave it out"
    if reason is not None:
        raise VLLMValidationError(f"toolgrammar: {reason}", parameter="structured_outputs")
