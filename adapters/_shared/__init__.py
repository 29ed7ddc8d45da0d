"""What the framework adapters share: loading models, reading options and messages, checking answers, errors.

Nothing here knows a framework. An adapter object holds one `Engine`; all that is cached lives in it.
"""

from __future__ import annotations

from .answers import (
    Collector,
    arguments_text,
    cut_places,
    executable_text,
    forced_share,
    problem,
    require_ended,
    require_executable,
    require_whole,
    server_details,
)
from .request import Validators, agenerate, astream, events_of, generate, stream, validators_of
from .loaded_model import (
    MAX_TOOL_SETS,
    Engine,
    count_text,
    count_tokens,
    guarantee,
    identity_of,
    require_storable,
    thinks,
)
from .errors import REQUEST_ERRORS, ErrorTable, Translation, missing, translated
from .messages import closed, from_openai, image, openai_tool, parts_of, past_call, role_of, tool_name
from .options import (
    CONNECTION,
    GENERATION,
    generation_params,
    loading_options,
    require_known,
    stop_strings,
    tool_choice,
)

__all__ = [
    "CONNECTION",
    "GENERATION",
    "MAX_TOOL_SETS",
    "REQUEST_ERRORS",
    "Collector",
    "Engine",
    "ErrorTable",
    "Translation",
    "Validators",
    "agenerate",
    "arguments_text",
    "astream",
    "closed",
    "count_text",
    "count_tokens",
    "cut_places",
    "events_of",
    "executable_text",
    "forced_share",
    "from_openai",
    "generate",
    "generation_params",
    "guarantee",
    "identity_of",
    "image",
    "loading_options",
    "missing",
    "openai_tool",
    "parts_of",
    "past_call",
    "problem",
    "require_ended",
    "require_executable",
    "require_known",
    "require_storable",
    "require_whole",
    "role_of",
    "server_details",
    "stop_strings",
    "stream",
    "thinks",
    "tool_choice",
    "tool_name",
    "translated",
    "validators_of",
]
