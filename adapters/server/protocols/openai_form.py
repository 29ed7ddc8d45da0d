"""What OpenAI's protocols share: ids, errors, token counts, models, and the fields that ask for nothing."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from toolgrammar.core.conversation import Usage
from toolgrammar.core.models import Model

from ... import _shared
from .. import rows
from ..failures import Failure
from ..fields import Fields
from ..rows import Rows

_KINDS: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
#: Our codes that clients of OpenAI know by another name.
_CODES = {
    "context_overflow": "context_length_exceeded",
    "busy": "rate_limit_exceeded",
    "rate_limit": "rate_limit_exceeded",
    "content_filter": "content_policy_violation",
}


def new_id(prefix: str) -> str:
    """Return a fresh id."""
    return f"{prefix}{secrets.token_hex(12)}"


def error(failure: Failure) -> dict[str, Any]:
    """Return an error in OpenAI's form."""
    kind = _KINDS.get(failure.status, "server_error" if failure.status >= 500 else "invalid_request_error")
    if failure.status == 404 and failure.field == "model":
        code = "model_not_found"
    elif failure.status == 401:
        code = "invalid_api_key"
    else:
        code = _CODES.get(failure.code, failure.code)
    return {"error": {"message": failure.message, "type": kind, "param": failure.field, "code": code}}


def usage(counts: Usage) -> dict[str, Any]:
    """Return token counts in the form of chat completions."""
    return {
        "prompt_tokens": counts.prompt_tokens,
        "completion_tokens": counts.completion_tokens,
        "total_tokens": counts.prompt_tokens + counts.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": counts.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning_tokens},
    }


def total(counts: Sequence[Usage]) -> Usage:
    """Return the counts of several answers to one prompt, which counts once."""
    whole = sum(counts, Usage())
    return Usage(**{**vars(whole), "prompt_tokens": max((one.prompt_tokens for one in counts), default=0)})


#: Fields that only label a request, and its service.
LABELS: Rows = {
    **dict.fromkeys(
        ("user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"), rows.LABEL
    ),
    "service_tier": rows.not_offered("auto", "default"),
    "metadata": rows.OBJECT,
}
#: Penalties that no model here has.
PENALTIES: Rows = dict.fromkeys(
    ("frequency_penalty", "presence_penalty"),
    rows.refused(0, 0.0, hint="repetition_penalty is a penalty that models here have"),
)
STREAMING: Rows = {
    "stream": rows.FLAG,
    "stream_options": rows.inner({"include_usage": rows.FLAG, "include_obfuscation": rows.not_offered(False)}),
}


def includes_usage(fields: Fields) -> bool:
    """Return True if a stream ends with the token counts.

    Raises:
        RequestError: there is no stream.
    """
    choices = fields["stream_options"]
    if choices is None or not choices["include_usage"]:
        return False
    if not fields["stream"]:
        hint = "it is for streams; whole answers always have their usage"
        raise choices.error("include_usage", "is not supported", hint)
    return True


def codex_model(name: str, model: Model) -> dict[str, Any]:
    """Return a model as Codex's catalogue has it: with the tool that edits files by patches of a Lark grammar.

    Source: the catalogue in Codex 0.169.
    """
    thinks = _shared.thinks(model)
    efforts = ("low", "medium", "high") if thinks else ()
    return {
        "slug": name,
        "display_name": name,
        "description": "served by toolgrammar",
        "default_reasoning_level": "medium" if thinks else None,
        "supported_reasoning_levels": [{"effort": effort, "description": effort} for effort in efforts],
        "shell_type": "shell_command",
        "visibility": "list",
        "supported_in_api": True,
        "priority": 0,
        "base_instructions": "You are a coding agent. Use the tools to do what the user asks for.",
        "apply_patch_tool_type": "freeform",
        "supports_parallel_tool_calls": True,
        "supports_reasoning_summaries": False,
        "support_verbosity": False,
        "truncation_policy": {"mode": "bytes", "limit": 10_000},
        "context_window": model.context_window,
        "input_modalities": ["text", "image"] if model.capabilities.images else ["text"],
        "experimental_supported_tools": [],
    }
