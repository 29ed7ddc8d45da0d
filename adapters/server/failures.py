"""Failures: what went wrong with a request, with its HTTP status, for a protocol to write in its own form."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from toolgrammar.core.errors import LimitError, LiveValuesError, SchemaError, ToolGrammarError

from .. import _shared
from .fields import RequestError


@dataclass(frozen=True)
class Failure:
    """Why a request got no answer.

    Attributes:
        status: HTTP status.
        message: what is wrong, and what the caller can do about it.
        code: a stable slug; see the ``code`` of our errors.
        field: path of the field that is wrong, if one is.
        details: what the protocol's own clients read beside the message, if there is such a form.
        retry_after: seconds after which the request may succeed; None if it should not be repeated as it is.
    """

    status: int
    message: str
    code: str
    field: str | None = None
    details: Mapping[str, Any] | None = None
    retry_after: float | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the response: whether, and when, clients may try again."""
        if self.retry_after is not None:
            return {"Retry-After": str(max(1, math.ceil(self.retry_after)))}
        # The SDKs of OpenAI and Anthropic repeat requests after a 5xx; what failed here would fail again.
        return {"x-should-retry": "false"} if self.status >= 500 else {}


class BusyError(ToolGrammarError, code="busy", retryable=True):
    """The server has as many requests waiting as it takes, or their grammars take all of its memory."""


#: The part of a hint that only those can follow who call the library themselves.
_IN_PYTHON = re.compile(
    r"(?:, or |^)(?:have (?:the arguments|it) checked after generation|allow that) with .*$", re.DOTALL
)

#: What clients look for in a message. Of these two errors they know no class and, in most, no code: without the words
#: nothing is trimmed or compacted, and no other model is asked. ``tests/adapters/server/test_error_words.py`` has who
#: looks for which.
_TOO_LONG = "prompt is too long"
_SIZE = "it exceeds the context window, because this model's maximum context length is shorter"
_FILTERED = "the request was rejected as a result of the safety system (content filtering policy)"

#: The status of each of our errors, by code; of others it is 500.
_STATUS: Mapping[str, int] = {
    **dict.fromkeys(("content_filter", "context_overflow", "budget", "live_values", *_shared.REQUEST_ERRORS), 400),
    "busy": 429,
    **dict.fromkeys(("server", "server_connection", "server_failure"), 502),
    **dict.fromkeys(("server_timeout", "timeout"), 504),
}


def failure_of(error: BaseException, names: Mapping[str, str] = MappingProxyType({})) -> Failure:
    """Return an error as a failure. Of an unknown error nothing is told: its message may hold what it should not.

    Args:
        error: what was raised.
        names: what the protocol calls fields of `GenerateParams`, and ``schema``, the schema of a text answer.
    """
    if isinstance(error, RequestError):
        words, field = _words(error), error.field
        if field is not None and field in names:  # "max_tokens is 0" -> "max_output_tokens is 0"
            words, field = words.replace(f"{field} is", f"{names[field]} is", 1), names[field]
        return Failure(error.status, _named(words, field), error.code, field, error.details)
    if isinstance(error, LiveValuesError) and error.__cause__ is not None:  # a callable of the operator failed
        return Failure(500, f"the values of a parameter are not available now ({error.place})", error.code)
    if isinstance(error, (SchemaError, LimitError)) and str(error.place):  # a schema of the client
        field = "tools" if error.place.tool is not None else names.get("schema")
        return Failure(400, _named(_words(error), field), error.code, field)
    if isinstance(error, ToolGrammarError):
        status = next((_STATUS[code] for code in error.kinds() if code in _STATUS), 500)
        if getattr(error, "status_code", None) == 429:  # of a model's server
            status = 429
        retry_after = getattr(error, "retry_after", None) or (1.0 if status == 429 else None)
        return Failure(status, _words(error), error.code, retry_after=retry_after)
    return Failure(500, "internal error", "internal")


def _named(words: str, field: str | None) -> str:
    """Return the words of an error with its field before them, unless they name it."""
    return words if field is None or field in words else f"{field}: {words}"


def _words(error: ToolGrammarError) -> str:
    """Return what is said of an error: ``MESSAGE (PLACE). Hint: HINT``."""
    where = f" ({error.place})" if str(error.place) else ""
    hint = _IN_PYTHON.sub("", error.hint or "")
    return f"{_message(error)}{where}" + (f". Hint: {hint}" if hint else "")


def _message(error: ToolGrammarError) -> str:
    """Return the message of an error, with the words by which clients know it; see `_TOO_LONG`."""
    if error.code == "context_overflow":
        before = "" if f"{_TOO_LONG}:" in error.message else f"the {_TOO_LONG}: "
        return f"{before}{error.message}; {_SIZE}"
    if error.code == "content_filter":
        return f"{_FILTERED}: {error.message}"
    return error.message
