"""Masks in transformers' continuous batching: each request has its own grammar, or none.

transformers passes a processor one int32 for each row of a batch; here this is the row of a `MaskTable`, so one call
returns the masks of all requests, and texts in equal states share one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...errors import ModelError, ToolGrammarError
from ...masks import Constraint, Matcher
from ...masks.batch import EVERYTHING, MaskTable
from ...vocabulary import Vocabulary

#: Minimum capacity of a table, in masks.
_KEPT = 512


class ConstrainedText:
    """The text of one request: the argument ``text`` of ``add_request``.

    Args:
        constraint: the constraint of the text.

    Attributes:
        error: the error that ended the request before its text was complete: its grammar exceeded a limit, or another
            processor chose a forbidden token. None: no error. It is also the ``error`` of the request's output.
    """

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self._matcher = constraint.matcher()
        self._taken = 0  # number of tokens that the matcher has accepted
        self.error: ToolGrammarError | None = None

    def __deepcopy__(self, memo: Any) -> ConstrainedText:
        """Return an independent copy of the text; transformers calls it to fork a request."""
        copied = ConstrainedText(self._constraint)
        copied._matcher, copied._taken, copied.error = self._matcher.fork(), self._taken, self.error
        return copied

    def is_whole(self, output: Any) -> bool:
        """Return True if an output of this request is complete; one that ``max_new_tokens`` truncated must not be
        used."""
        matcher = self._constraint.matcher()
        return all(matcher.accept(token) for token in output.generated_tokens) and matcher.is_accepting

    def _follow(self, state: Any) -> Matcher:
        """Return the matcher, advanced by the tokens of the request that it has not read yet.

        Raises:
            ModelError: a forbidden token was chosen.
        """
        written = state.generated_tokens
        if state._true_initial_tokens:  # a restarted request, whose earlier output is now in its prompt
            written = state.initial_tokens[state._true_initial_tokens :] + written
        if not self._taken:
            # All end-of-text tokens of the vocabulary must also end the request.
            state._eos_token_ids |= self._constraint.vocabulary.eos
        for token in written[self._taken :]:
            if not self._matcher.accept(token):
                raise ModelError(
                    f"token {token} was chosen, which the grammar of {state.request_id!r} forbids",
                    hint="no other processor may raise masked scores, or forbid what a grammar demands",
                )
            self._taken += 1
        return self._matcher

    def _checked(self, state: Any, scratch: npt.NDArray[np.uint32]) -> Matcher:
        """Do `_follow`, and write the mask once.

        Raises:
            ToolGrammarError: the grammar exceeds a limit.
        """
        matcher = self._follow(state)
        matcher.fill_mask(scratch)
        return matcher


class ContinuousMasks:
    """Masks the tokens of the requests of a ``ContinuousBatchingManager`` by their grammars.

    Create it before the manager is started; then ``manager.add_request(ids, text=ConstrainedText(constraint))``.
    Requests without a text are not masked. It runs before temperature, top-k and top-p, which then choose among allowed
    tokens. If the grammar of a request exceeds a limit, only this request ends, with that error.

    A mask depends on the previous token, so asynchronous batching raises an error; so do tensor parallelism, and CUDA
    graphs and compiled steps, which would repeat the masks of the first step.

    Args:
        manager: the result of ``model.init_continuous_batching()``.
        vocabulary: the vocabulary of the model, one token for each of its logits.

    Attributes:
        table: the masks of the running requests.

    Raises:
        ModelError: the manager is running, or has an unsupported mode, or the vocabulary does not fit.
    """

    supported_kwargs: ClassVar[dict[str, type]] = {"text": ConstrainedText}
    ignored_kwargs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, manager: Any, vocabulary: Vocabulary) -> None:
        from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor

        ContinuousBatchingLogitsProcessor.register(ContinuousMasks)
        _check(manager, vocabulary)
        device = manager.model.device
        most = manager.continuous_batching_config.max_requests_per_batch or 0
        self.table = MaskTable(
            vocabulary.size, max(_KEPT, 2 * most), device=None if device.type == "cpu" else str(device)
        )
        processors = manager.logit_processor
        processors.logits_processor.insert(0, self)
        processors.tensors_required += 1
        processors.supported_keys.update(self.supported_kwargs)
        processors.do_processing = True

    def fill_defaults(self, int32_tensor: Any) -> None:
        """Allow all tokens in rows without a request."""
        int32_tensor.fill_(EVERYTHING)

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> Any:
        """Return for each request the row of its mask in the table, int32; `EVERYTHING` for one without a grammar, or
        one that failed (whose error ends it alone)."""
        import torch

        running: dict[int, tuple[Any, ConstrainedText]] = {}
        for place, request in enumerate(requests_with_new_token):
            text = request.state.logit_processor_kwargs.get("text")
            if text is not None:
                running[place] = request.state, text
        matchers = _each(running, lambda state, text: text._follow(state))
        try:
            found = self.table.rows(list(matchers.values()))
        except ToolGrammarError:  # the error does not name the request
            scratch = np.zeros(self.table.words.shape[1], np.uint32)
            matchers = _each(
                {place: running[place] for place in matchers}, lambda state, text: text._checked(state, scratch)
            )
            found = self.table.rows(list(matchers.values()))
        rows = np.full(len(requests_with_new_token), EVERYTHING, np.int32)
        rows[list(matchers)] = found
        return torch.from_numpy(rows)

    def __call__(self, scores: Any, tensor_arg: Any) -> Any:
        """Return the scores with minus infinity for forbidden tokens."""
        masked = scores.clone()
        self.table.forbid(masked, tensor_arg[: len(scores)])
        return masked


def _each(
    running: dict[int, tuple[Any, ConstrainedText]], ask: Callable[[Any, ConstrainedText], Matcher]
) -> dict[int, Matcher]:
    """Return the matchers of the requests; an error ends only its own request."""
    matchers = {}
    for place, (state, text) in running.items():
        try:
            matchers[place] = ask(state, text)
        except ToolGrammarError as error:
            text.error, state.error = error, str(error)
            state._new_tokens_limit = state.generated_len()  # the next token is dropped, and the request is over
    return matchers


def _check(manager: Any, vocabulary: Vocabulary) -> None:
    """Check that each step of a manager of continuous batching can be masked: steps run one after the other, in one
    process, and the vocabulary is that of the model.

    Raises:
        ModelError: it cannot.
    """
    if manager.is_running():
        raise ModelError("the manager is running", hint="make ContinuousMasks before manager.start()")
    config = manager.continuous_batching_config
    refused = {
        "use_async_batching": config.use_async_batching,
        "use_cuda_graph": any(config.cuda_graph_booleans),
        "varlen_compile_config": config.varlen_compile_config is not None,
        "decode_compile_config": config.decode_compile_config is not None,
    }
    for name, is_set in refused.items():
        if is_set:
            raise ModelError(
                f"the mask of a token depends on the one before, which {name} does not wait for",
                hint="ContinuousBatchingConfig(use_async_batching=False, use_cuda_graph=False), and no compiled steps",
            )
    if manager.distributed_helper.tp_size > 1:
        raise ModelError("grammars do not follow a model over several processes", hint="no tensor parallelism")
    size = manager.model.config.get_text_config().vocab_size
    if vocabulary.size != size:
        raise ModelError(
            f"the model gives {size} scores for {vocabulary.size} tokens",
            hint="Vocabulary.from_transformers(tokenizer, size=model.config.vocab_size)",
        )
