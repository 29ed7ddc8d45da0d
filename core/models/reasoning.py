"""Plans of the reasoning before an answer: the model's markers, and the grammar of the reasoning."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from ..conversation.reasoning import ReasoningMarkers
from ..errors import ModelError
from ..generation.params import GenerateParams
from ..generation.reasoning import ReasoningPlan
from ..grammar import Grammar

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

#: Number of bytes above which a text token counts as a mark.
LEAST_MARK = 3

#: Number of tokens at the end of a prompt that are searched for a start marker.
_TAIL = 64


def find_markers(vocabulary: Vocabulary) -> ReasoningMarkers | None:
    """Return the markers of the family of models whose markers are in this vocabulary; None if there is none."""
    return vocabulary.derived(_find_markers)


def _find_markers(vocabulary: Vocabulary) -> ReasoningMarkers | None:
    texts = {token for token in vocabulary.tokens if token}

    def is_token(marker: str) -> bool:
        return marker.encode() in texts or any(control for _, control in _pieces(marker, vocabulary.special))

    return next((family for family in ReasoningMarkers.KNOWN if is_token(family.start) and is_token(family.end)), None)


def _marks(vocabulary: Vocabulary) -> Mapping[str, int]:
    """Return the ids of control tokens, and of text tokens that look like marks."""
    texts = ((token, number) for number, token in enumerate(vocabulary.tokens) if token and token[:1] in b"<[")
    found = {token.decode("utf-8", "replace"): number for token, number in texts if len(token) > LEAST_MARK}
    return {**found, **vocabulary.special}


def has_begun(prompt: Sequence[int], markers: ReasoningMarkers, vocabulary: Vocabulary) -> bool:
    """Return True if a prompt ends with a start marker and optional white space."""
    # A control token is compared as its name between two NULs, so that text that spells the name differs from it. A
    # token without bytes is a NUL.
    names = {token_id: f"\0{name}\0".encode() for name, token_id in vocabulary.special.items()}
    tokens = vocabulary.tokens
    end = b"".join(names.get(token_id) or tokens[token_id] or b"\0" for token_id in prompt[-_TAIL:])
    pieces = _pieces(markers.start, vocabulary.special)
    marker = "".join(f"\0{text}\0" if control else text for text, control in pieces)
    return end.decode("utf-8", "replace").rstrip().endswith(marker.rstrip())


def _pieces(marker: str, special: Collection[str]) -> list[tuple[str, bool]]:
    """Split a marker into text (False) and control tokens (True): ``"<think>\n"`` -> ``[("<think>", True), ("\n",
    False)]``."""
    names = sorted((name for name in special if name in marker), key=len, reverse=True)
    if not names:
        return [(marker, False)] if marker else []
    parts = re.split("(" + "|".join(map(re.escape, names)) + ")", marker)
    return [(part, part in special) for part in parts if part]


def _markup(marker: str, special: Collection[str]) -> list[Grammar]:
    """Return the grammars of a marker's pieces."""
    return [Grammar.special(text) if control else Grammar.literal(text) for text, control in _pieces(marker, special)]


def marker_text(marker: str, special: Collection[str]) -> str:
    """Return the text of a marker, without control tokens."""
    return "".join(text for text, control in _pieces(marker, special) if not control)


def reasoning_grammar(markers: ReasoningMarkers, special: Collection[str], *, begun: bool) -> Grammar:
    """Return the grammar of reasoning, from its start (or from the prompt's end, if ``begun``) to the answer. The
    reasoning ends at the first end marker, and has no second start marker."""
    parts = [] if begun else _markup(markers.start, special)
    ending = _markup(markers.end, special)
    # Free text has no control tokens, so only a marker that is text must be excluded.
    excluded = [] if any(control for _, control in _pieces(markers.start, special)) else [markers.start]
    if len(ending) == 1 and markers.end not in special:  # the end marker is text
        parts.append(Grammar.until(markers.end, excluding=excluded))
    else:
        parts += [Grammar.text(excluding=excluded), *ending]
    return Grammar.sequence(*parts, *_markup(markers.after, special))


def plan_reasoning(
    params: GenerateParams, prompt: Sequence[int], vocabulary: Vocabulary, calls: Sequence[str] = ()
) -> ReasoningPlan | None:
    """Return the plan of a request's reasoning; None: no reasoning.

    Args:
        params: options of the request.
        prompt: token ids of the conversation, which may end with a start marker.
        vocabulary: the vocabulary of the model.
        calls: markers of calls that end the reasoning, if they are tokens: in several tokens, they may be its subject.

    Raises:
        ModelError: reasoning is requested, and the model has no markers for it, or there is a prefix.
    """
    thinking = params.thinking  # None, False, True, "auto", or a budget in tokens
    markers = ReasoningMarkers(*params.thinking_markers) if params.thinking_markers else find_markers(vocabulary)
    has_started = markers is not None and has_begun(prompt, markers, vocabulary)  # by the chat template
    is_optional = thinking == "auto" and markers is not None and not has_started
    is_demanded = isinstance(thinking, int) and thinking is not False  # True, or a budget
    is_planned = has_started or is_demanded or is_optional
    if is_demanded and markers is None:
        raise ModelError(
            "the vocabulary has no markers of reasoning",
            hint='leave thinking out, or give thinking_markers=("<think>", "</think>")',
        )
    if params.prefix and is_planned:
        raise ModelError("prefix and thinking exclude each other", hint="put the reasoning into the prefix")
    if params.draft is not None and (is_demanded or is_optional or params.prefix):
        other = "prefix" if params.prefix else "thinking"
        raise ModelError(f"draft and {other} exclude each other", hint="give one of them")
    if params.draft is not None and not has_started:
        return ReasoningPlan(Grammar.text(), "", "", budget=params.draft, is_draft=True)
    if markers is None or not is_planned:
        return None
    special = vocabulary.special
    ids: Mapping[str, int] = vocabulary.derived(_marks) if calls else {}
    return ReasoningPlan(
        reasoning_grammar(markers, special, begun=has_started),
        "" if has_started else marker_text(markers.start, special),
        marker_text(markers.end + markers.after, special),
        budget=None if thinking is True or not isinstance(thinking, int) else thinking,
        optional=is_optional,
        marker_size=sum(1 if control else len(text.encode()) for text, control in _pieces(markers.start, special)),
        call_tokens=tuple(ids[mark] for mark in calls if mark in ids),
    )
