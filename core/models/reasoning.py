"""Reasoning markers by model family, and plans of the reasoning before an answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ModelError
from ..generation.params import GenerateParams
from ..generation.plan import ReasoningPlan
from ..grammar import Grammar

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

#: Number of tokens at the end of a prompt in which a start marker is looked for.
_TAIL = 64


@dataclass(frozen=True)
class ReasoningMarkers:
    """The markers around the reasoning of a family of models.

    Names of control tokens in them are written and read as those tokens, all else as text.

    Attributes:
        start: begins it.
        end: ends it.
        after: follows the end, before the answer.
    """

    start: str
    end: str
    after: str = ""

    def grammar(self, special: Collection[str], *, begun: bool) -> Grammar:
        """Return the grammar of reasoning, from its start (or from the prompt's end, if begun) to the answer."""
        parts = [] if begun else _spelled(self.start, special)
        ending = _spelled(self.end, special)
        again = [] if any(control for _, control in _pieces(self.start, special)) else [self.start]
        if len(ending) == 1 and self.end not in special:
            parts.append(Grammar.until(self.end, excluding=again))
        else:
            parts += [Grammar.text(excluding=again), *ending]
        return Grammar.sequence(*parts, *_spelled(self.after, special))

    def size(self, special: Collection[str]) -> int:
        """Return the size of the start marker, in bytes and control tokens."""
        return sum(1 if control else len(text.encode()) for text, control in _pieces(self.start, special))

    def text_before(self, special: Collection[str], *, begun: bool) -> str:
        """Return the text of the start marker, control tokens left out."""
        return "" if begun else "".join(text for text, control in _pieces(self.start, special) if not control)

    def text_after(self, special: Collection[str]) -> str:
        """Return the text between the reasoning and the answer, control tokens left out."""
        return "".join(text for text, control in _pieces(self.end + self.after, special) if not control)


#: The families, the most particular first. Sources: their chat templates.
FAMILIES = (
    ReasoningMarkers("<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant"),  # gpt-oss
    ReasoningMarkers("[THINK]", "[/THINK]"),  # Magistral, Ministral
    ReasoningMarkers("<|START_THINKING|>", "<|END_THINKING|>"),  # Command
    ReasoningMarkers("<|channel>thought\n", "<channel|>"),  # Gemma 4
    ReasoningMarkers("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    ReasoningMarkers("<seed:think>", "</seed:think>"),
    ReasoningMarkers("<mm:think>", "</mm:think>"),  # MiniMax M3
    ReasoningMarkers("<think>", "</think>"),  # Qwen, DeepSeek, GLM, Kimi, MiniMax M2, Nemotron, Granite, SmolLM, ...
)


def find_markers(vocabulary: Vocabulary) -> ReasoningMarkers | None:
    """Return the markers of the family whose markers are tokens of this vocabulary; None if there is none."""
    return vocabulary.derived(_find_markers)


def _find_markers(vocabulary: Vocabulary) -> ReasoningMarkers | None:
    texts = {token for token in vocabulary.tokens if token}

    def is_token(marker: str) -> bool:
        return marker.encode() in texts or any(control for _, control in _pieces(marker, vocabulary.special))

    return next((family for family in FAMILIES if is_token(family.start) and is_token(family.end)), None)


def markers_of(given: tuple[str, str] | None, vocabulary: Vocabulary) -> ReasoningMarkers | None:
    """Return the markers that a caller gave, or those of the family."""
    return find_markers(vocabulary) if given is None else ReasoningMarkers(*given)


def has_begun(prompt: Sequence[int], markers: ReasoningMarkers, vocabulary: Vocabulary) -> bool:
    """Return whether a prompt ends with the start of reasoning (white space may follow it)."""
    names = {token_id: name for name, token_id in vocabulary.special.items()}
    pieces: list[str] = []
    run = b""
    for token_id in prompt[-_TAIL:]:
        if token_id in names:
            pieces += [run.decode("utf-8", "replace"), f"\0{names[token_id]}\0"]
            run = b""
        else:
            run += vocabulary.tokens[token_id] or b"\0"
    shown = "".join([*pieces, run.decode("utf-8", "replace")])
    wanted = "".join(f"\0{text}\0" if control else text for text, control in _pieces(markers.start, vocabulary.special))
    return shown.rstrip().endswith(wanted.rstrip())


def _pieces(marker: str, special: Collection[str]) -> list[tuple[str, bool]]:
    """Split a marker into text and control tokens."""
    names = sorted((name for name in special if name in marker), key=len, reverse=True)
    if not names:
        return [(marker, False)] if marker else []
    parts = re.split("(" + "|".join(map(re.escape, names)) + ")", marker)
    return [(part, part in special) for part in parts if part]


def _spelled(marker: str, special: Collection[str]) -> list[Grammar]:
    return [Grammar.special(text) if control else Grammar.literal(text) for text, control in _pieces(marker, special)]


def plan_reasoning(params: GenerateParams, prompt: Sequence[int], vocabulary: Vocabulary) -> ReasoningPlan | None:
    """Return how a request's reasoning is written; None if the answer comes without any.

    Args:
        params: options of the request.
        prompt: token ids of the conversation, which may end with the start of reasoning.
        vocabulary: vocabulary of the model.

    Raises:
        ModelError: reasoning is asked for and the model has no markers for it, or a prefix is given beside it.
    """
    thinking = params.thinking
    markers = markers_of(params.thinking_markers, vocabulary)
    begun = markers is not None and has_begun(prompt, markers, vocabulary)
    optional = thinking == "auto" and markers is not None and not begun
    wanted = isinstance(thinking, int) and thinking is not False
    if wanted and markers is None:
        raise ModelError(
            "the vocabulary has no markers of reasoning",
            hint='leave thinking out, or give thinking_markers=("<think>", "</think>")',
        )
    if params.prefix and (begun or wanted or optional):
        raise ModelError("prefix and thinking exclude each other", hint="put the reasoning into the prefix")
    if markers is None or not (begun or wanted or optional):
        return None
    special = vocabulary.special
    return ReasoningPlan(
        markers.grammar(special, begun=begun),
        markers.text_before(special, begun=begun),
        markers.text_after(special),
        budget=None if thinking is True or not isinstance(thinking, int) else thinking,
        optional=optional,
        marker_size=markers.size(special),
    )
