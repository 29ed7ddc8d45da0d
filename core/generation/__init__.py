"""Generation: a model chooses tokens among those that a matcher allows.

`Decoding` (``loop.py``) runs one generation over a `Backend` (``backend.py``) and a `Matcher`: it masks the logits,
appends forced text without asking the model, and near the token budget completes the text validly. `Sampler` draws
tokens, `Output` turns them into typed events, `truncated_pointers` names the values that the budget closed, and the
driver runs one generation alone or many together.

Use ``Model.generate``, unless you drive a model yourself. This package does not know tools or wire formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .deadline import Deadline
    from .json_output import MAX_RETRIES
    from .json_places import values_of
    from .loop import Step
    from .mismatch import Match
    from .output import Output
    from .params import OPTIONS, GenerateParams, JsonMode, OutputParser, ToolInterface, ToolsInPrompt
    from .partial import Partial, PartialReader
    from .plan import resolve_params, schema_of
    from .retokenise import CONTEXT_TOKENS, Speller
    from .tool_choice import check_tool_choice, tool_choice_of, unknown_tool

__all__ = [
    "CONTEXT_TOKENS",
    "MAX_RETRIES",
    "OPTIONS",
    "Deadline",
    "GenerateParams",
    "JsonMode",
    "Match",
    "Output",
    "OutputParser",
    "Partial",
    "PartialReader",
    "Speller",
    "Step",
    "ToolInterface",
    "ToolsInPrompt",
    "check_tool_choice",
    "resolve_params",
    "schema_of",
    "tool_choice_of",
    "unknown_tool",
    "values_of",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "deadline": "Deadline",
            "json_output": "MAX_RETRIES",
            "json_places": "values_of",
            "loop": "Step",
            "mismatch": "Match",
            "output": "Output",
            "params": "GenerateParams JsonMode OPTIONS OutputParser ToolInterface ToolsInPrompt",
            "partial": "Partial PartialReader",
            "plan": "resolve_params schema_of",
            "retokenise": "CONTEXT_TOKENS Speller",
            "tool_choice": "check_tool_choice tool_choice_of unknown_tool",
        },
    )
