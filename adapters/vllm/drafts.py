"""Proposers of drafts, by which vLLM writes text that the grammar forces several tokens at a time.

Start vLLM with ``--speculative-config '{"method": "custom_class", "num_speculative_tokens": 12, "model":
"toolgrammar.adapters.vllm.drafts.ForcedText"}'``. The proposer runs in the worker, which has no grammar: it proposes
placeholders, and the grammar puts the tokenizer's own spelling of the forced text in their place when vLLM asks it
which drafts are valid (`backend.ToolGrammarSequence.validate_tokens`). Where no grammar does, they are dropped before
they are scheduled (`plugin`).
"""

from __future__ import annotations

from typing import Any


def proposes_forced_text(speculation: Any) -> bool:
    """Return True if vLLM's ``SpeculativeConfig`` names one of the proposers below."""
    if speculation is None or speculation.method != "custom_class":
        return False
    return str(speculation.model).startswith(f"{__package__}.")


def placeholder(vocab_size: int) -> int:
    """Return the token that a proposer below proposes in the place of each token that the grammar may force."""
    return vocab_size - 1


class ForcedText:
    """Forced text is written in the tokenizer's own spelling: only these tokens are allowed, so each is accepted.

    The proposer, by vLLM's interface of the method ``custom_class``.

    Args:
        vllm_config: the engine's configuration.
    """

    def __init__(self, vllm_config: Any) -> None:
        drafts = vllm_config.speculative_config.num_speculative_tokens
        self._drafts = [placeholder(vllm_config.model_config.get_vocab_size())] * drafts

    def load_model(self, *arguments: Any, **options: Any) -> None:
        """Do nothing: there is no model."""

    def propose(self, sampled_token_ids: Any, *arguments: Any, **options: Any) -> list[list[int]]:
        """Return the placeholders of each request of the batch; none where no token was written."""
        return [list(self._drafts) if len(tokens) else [] for tokens in sampled_token_ids]


class OfferedText(ForcedText):
    """Forced text is offered in that spelling, and the model takes it or spells it otherwise: masks are as without
    drafts, and so is what a greedy model writes."""
