"""Drafts of text that the grammar forces: vLLM verifies several tokens in one step.

Start vLLM with ``--speculative-config '{"method": "custom_class", "num_speculative_tokens": 12, "model":
"toolgrammar.adapters.vllm.drafts.ForcedText"}'``. The drafts are set in the scheduler, whose process has the grammars,
directly before a step is scheduled (`with_drafts`), so they fit the text as it is then. The worker's proposer proposes
nothing; it makes vLLM allocate the rows and slots of drafts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def proposes_forced_text(speculation: Any) -> bool:
    """Return True if vLLM's ``SpeculativeConfig`` names one of the proposers below."""
    if speculation is None or speculation.method != "custom_class":
        return False
    return str(speculation.model).startswith(f"{__package__}.")


class ForcedText:
    """Forced text is written in the tokenizer's own spelling: only these tokens are allowed, so each is accepted.

    The proposer, by vLLM's interface of the method ``custom_class``.

    Args:
        vllm_config: the engine's configuration.
    """

    def __init__(self, vllm_config: Any) -> None:
        """Do nothing: the scheduler has all that is needed."""

    def load_model(self, *arguments: Any, **options: Any) -> None:
        """Do nothing: there is no model."""

    def propose(self, sampled_token_ids: Any, *arguments: Any, **options: Any) -> list[list[int]]:
        """Return no drafts for each request of the batch."""
        return [[] for _ in sampled_token_ids]


class OfferedText(ForcedText):
    """Forced text is offered in that spelling, and the model takes it or spells it otherwise: masks are as without
    drafts, and so is what a greedy model writes."""


@contextmanager
def with_drafts(scheduler: Any, *, is_greedy_only: bool) -> Iterator[None]:
    """Set the drafts of the requests of which the next step writes a token; the block schedules that step.

    Requests without a grammar, or still in their reasoning, get none.

    Args:
        scheduler: vLLM's ``Scheduler``, before it schedules a step.
        is_greedy_only: the engine verifies drafts wrongly in a batch with a temperature above 0 (`plugin`). While it
            has a request with one, there are no drafts. vLLM's own are switched off too: it fills up the first step of
            a request whose prompt is in the prefix cache with empty drafts.
    """
    running = list(scheduler.running)
    for request in running:
        request.spec_token_ids = []
    if not is_greedy_only or not any(map(_samples, (*running, *scheduler.waiting, *scheduler.kv_holding_waiting))):
        _set_drafts(scheduler, running)
        yield
        return
    before = scheduler.num_spec_tokens
    scheduler.num_spec_tokens = 0
    try:
        yield
    finally:
        scheduler.num_spec_tokens = before


def _set_drafts(scheduler: Any, running: list[Any]) -> None:
    """Set the forced text of each running request as its drafts."""
    manager = scheduler.structured_output_manager
    for request in running:
        # The next step writes a token if all but the last one are read, and the prompt has been.
        if request.num_output_tokens == 0 or request.num_computed_tokens != request.num_tokens - 1:
            continue
        structured = request.structured_output_request if request.use_structured_output else None
        drafts = getattr(None if structured is None else structured.grammar, "drafts", None)  # a grammar of ours
        # The grammar holds from the first of the next tokens on: the reasoning is over.
        if drafts is not None and manager._get_constraint_bounds(request, ()).constraint_start == 0:
            request.spec_token_ids = drafts(scheduler.num_spec_tokens)


def _samples(request: Any) -> bool:
    return request.sampling_params is not None and request.sampling_params.temperature > 0
