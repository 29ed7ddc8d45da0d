"""Ranges of options: the allowed values of each option, and the error for others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from numbers import Integral, Real
from typing import Any, get_args

from ..errors import ModelError
from ..grammar import Grammar
from .params import JsonMode, ToolsInPrompt

#: By option: a check of a value, and a description of the allowed values.
Ranges = Mapping[str, tuple[Callable[[Any], bool], str]]


def is_number(value: Any) -> bool:
    """Return True if a value is a finite number; booleans are not."""
    return not isinstance(value, bool) and isinstance(value, Real) and bool(-inf < value < inf)  # type: ignore[operator]


def is_whole(value: Any) -> bool:
    """Return True if a value is an integer; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


#: The range of Boolean options.
FLAG = (lambda value: isinstance(value, bool), "True or False")


def check_ranges(given: Mapping[str, Any], ranges: Ranges) -> None:
    """Check the values of options; options without a range may have any value.

    Raises:
        ModelError: a value is not allowed; the message names the option and the value.
    """
    for name, value in given.items():
        is_good, wanted = ranges.get(name, (lambda _: True, ""))
        if not is_good(value):
            shown = repr(value)
            raise ModelError(f"{name} is {shown if len(shown) <= 80 else shown[:80] + '...'}", hint=f"give {wanted}")


def _is_bias(value: Any) -> bool:
    whole = isinstance(value, Mapping) and all(is_whole(token) and token >= 0 for token in value)
    return whole and all(map(is_number, value.values()))


def _are_texts(value: Any) -> bool:
    """Return True if a value is a sequence of non-empty texts."""
    return isinstance(value, Sequence) and all(isinstance(text, str) and text for text in value)


def _is_thinking(value: Any) -> bool:
    return value is None or value == "auto" or isinstance(value, bool) or (is_whole(value) and value >= 0)


#: Ranges of the fields of `GenerateParams`; `Planner.plan` checks their combinations.
RANGES: Ranges = {
    "max_tokens": (lambda value: value is None or (is_whole(value) and value >= 1), "a whole number from 1, or None"),
    "temperature": (lambda value: is_number(value) and value >= 0, "a number from 0 (greedy)"),
    "top_p": (lambda value: is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    "top_k": (lambda value: is_whole(value) and value >= 0, "a whole number from 0 (keeps all)"),
    "min_p": (lambda value: is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    "repetition_penalty": (lambda value: is_number(value) and value > 0, "more than 0; 1 changes nothing"),
    "logit_bias": (
        lambda value: value is None or _is_bias(value),
        "a map from token ids to finite numbers, for example {1234: -100.0}",
    ),
    "seed": (lambda value: value is None or (is_whole(value) and value >= 0), "a whole number from 0, or None"),
    "thinking": (_is_thinking, "True, False, 'auto', or a budget in tokens"),
    "thinking_markers": (
        lambda value: value is None or (_are_texts(value) and not isinstance(value, str) and len(value) == 2),
        "the text before the reasoning and the one after it, for example ('<think>', '</think>')",
    ),
    "draft": (lambda value: value is None or (is_whole(value) and value >= 1), "at least 1 token, or None"),
    "prefix": (lambda value: isinstance(value, str), "a text"),
    "stop": (_are_texts, "texts, none of them empty"),
    "json_mode": (
        lambda value: value is None or isinstance(value, JsonMode),
        "JsonMode(schema=...), or True for any JSON",
    ),
    "grammar": (
        lambda value: value is None or isinstance(value, Grammar),
        "a toolgrammar.core.Grammar, for example Grammar.from_regex(...), or what Grammar.from_any takes",
    ),
    "tool_choice": (lambda value: isinstance(value, str), "'auto', 'required' (or 'any'), 'none' or a tool's name"),
    "tools_in_prompt": (lambda value: value in get_args(ToolsInPrompt), "'schemas', 'names' or 'auto'"),
    "parallel_tool_calls": FLAG,
    "equal_calls": FLAG,
    "empty_answer": FLAG,
    "other_spellings": FLAG,
    "on_budget": (lambda value: value in ("close", "error"), "'close' or 'error'"),
    "max_repetition": (lambda value: value is None or (is_whole(value) and value >= 0), "a number of bytes, or None"),
    "jump_forward": FLAG,
    "exact_choice": FLAG,
    "canonical": FLAG,
    "logprobs": (lambda value: value is None or (is_whole(value) and value >= 0), "a whole number from 0, or None"),
    "masses": FLAG,
    "trace": FLAG,
    "cancel": (lambda value: value is None or callable(value), "a function that says whether to stop"),
    "timeout": (lambda value: value is None or (is_number(value) and value >= 0), "seconds"),
}
