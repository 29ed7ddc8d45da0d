"""The reasoning before a text, and the token budget of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import BudgetError, ContextOverflowError
from ..masks.budget import Budget

if TYPE_CHECKING:
    from ..grammar import Grammar
    from ..masks import Matcher
    from .backend import Backend
    from .params import GenerateParams

#: Default budget, in tokens.
DEFAULT_BUDGET = 2048


@dataclass(frozen=True)
class ReasoningPlan:
    """The reasoning that is written before an answer.

    Attributes:
        grammar: from the start marker (or the end of the prompt, if that has begun the reasoning) to the answer.
        text_before: text of the start marker, without control tokens.
        text_after: text between the reasoning and the answer, without control tokens.
        budget: maximum number of tokens; None: all tokens that the answer does not need.
        optional: the model may choose not to reason.
        marker_size: size of the start marker in bytes and control tokens, after which the choice is made.
        is_draft: it is free text without markers, in lines of its own; the model does not reason by writing nothing.
        call_tokens: ids of the markers of calls with which the model may end it: where it chooses one, the end marker
            is written before it.
    """

    grammar: Grammar
    text_before: str = ""
    text_after: str = ""
    budget: int | None = None
    optional: bool = False
    marker_size: int = 0
    is_draft: bool = False
    call_tokens: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reasoning:
    """The reasoning before a text.

    Attributes:
        plan: its plan.
        matcher: at the beginning of the reasoning, whose grammar includes its end marker.
        instead: a matcher of the text without reasoning, if the model may choose not to reason.
    """

    plan: ReasoningPlan
    matcher: Matcher
    instead: Matcher | None = None


def output_budget(
    backend: Backend, prompt: Sequence[int], params: GenerateParams, text: Budget, reasoning: Reasoning | None
) -> int:
    """Return the maximum number of tokens of the output: ``max_tokens`` (or its default), or less if the context window
    leaves less.

    Args:
        backend: the model.
        prompt: the ids of the prompt.
        params: the options.
        text: the budget of the text without reasoning.
        reasoning: the reasoning before it.

    Raises:
        ContextOverflowError: the shortest output, with required reasoning, does not fit in the window.
        BudgetError: it does not fit in ``max_tokens``.
    """
    room = backend.context_window - len(prompt)
    if room <= 0:
        raise ContextOverflowError(
            f"the prompt is too long: {len(prompt)} tokens > {backend.context_window} maximum",
            hint="shorten the conversation or the tool list",
        )
    wanted = params.max_tokens
    budget = min(room, DEFAULT_BUDGET if wanted is None else wanted)
    least = 0
    if reasoning is not None:
        if reasoning.instead is None:  # the model cannot skip it
            least, _ = Budget(reasoning.matcher).needed()
        else:
            text = Budget(reasoning.instead)
    if not text.fits(budget - least):
        needed, is_exact = text.needed()
        needed += least
        most = "" if is_exact else "at least "
        window = backend.context_window
        if room < needed <= window:  # a shorter prompt leaves room for it, and no max_tokens does
            raise ContextOverflowError(
                f"the prompt is too long: {most}{len(prompt) + needed} tokens > "
                f"{window} maximum, with the {needed} of the shortest valid output",
                hint="shorten the conversation or the tool list",
            )
        way = f"set max_tokens to at least {needed}" if needed <= room else f"the context window has {window} tokens"
        raise BudgetError(
            f"the shortest valid output needs {most}{needed} tokens, and the budget is {budget}", hint=way
        )
    return budget
