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
    from .cuts import cut_places as cut_places
    from .deadline import Deadline as Deadline
    from .json_output import MAX_RETRIES as MAX_RETRIES
    from .json_places import values_of as values_of
    from .mismatch import Match as Match
    from .params import (
        OPTIONS as OPTIONS,
        GenerateParams as GenerateParams,
        JsonMode as JsonMode,
        OutputParser as OutputParser,
        ToolInterface as ToolInterface,
        ToolsInPrompt as ToolsInPrompt,
    )
    from .partial import Partial as Partial, PartialReader as PartialReader
    from .plan import resolve_params as resolve_params, schema_of as schema_of
    from .retokenise import Speller as Speller
    from .tool_choice import check_tool_choice as check_tool_choice

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "deadline": "Deadline",
            "json_output": "MAX_RETRIES",
            "json_places": "values_of",
            "mismatch": "Match",
            "cuts": "cut_places",
            "params": "GenerateParams JsonMode OPTIONS OutputParser ToolInterface ToolsInPrompt",
            "partial": "Partial PartialReader",
            "plan": "resolve_params schema_of",
            "retokenise": "Speller",
            "tool_choice": "check_tool_choice",
        },
    )
