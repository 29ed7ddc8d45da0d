"""Exceptions: one tree, with the data of an error beside its message.

::

    ToolGrammarError
    ├── SchemaError                 a schema or tool signature is refused
    │   ├── InvalidSchemaError          it is malformed                          (ValueError)
    │   ├── UnsupportedSchemaError      it is well-formed, but cannot be enforced exactly
    │   └── UnsatisfiableSchemaError    nothing can ever satisfy it
    ├── GrammarError                a grammar or pattern is refused
    │   └── PatternError                a regular expression is malformed
    │       └── UnsupportedPatternError     it is well-formed, but not regular or not supported
    ├── VocabularyError             the exact bytes of a tokenizer's tokens are not known
    ├── LimitError                  a stated limit was hit (size, depth, states, time)
    ├── DecodingError               generation could not continue
    │   ├── BudgetError                 the shortest valid output does not fit in the budget
    │   ├── ContextOverflowError        the prompt does not fit in the model's context window
    │   └── CancelledError              the caller asked to stop
    │       └── GenerationTimeoutError      the ``timeout`` of the answer is over    (TimeoutError)
    ├── ModelError                  a model failed, or does not support what was asked for
    │   ├── MissingDependencyError      an optional package is not installed     (ImportError)
    │   └── ServerError                 a model's server refused a request or failed
    │       ├── AuthenticationError         401: the key is missing or wrong
    │       ├── PermissionDeniedError       403: the key does not allow this
    │       ├── NotFoundError               404: no such model or path
    │       ├── RateLimitError              429: too many requests
    │       ├── ContentFilterError          the server withheld the answer
    │       ├── ServerFailureError          5xx, or an incomplete answer
    │       ├── ServerConnectionError       no connection, or it was closed          (ConnectionError)
    │       └── ServerTimeoutError          the server was silent for too long       (TimeoutError)
    └── ToolCallError               a tool call is not valid
        ├── UnknownToolError            its name is not one of the given tools
        ├── InvalidArgumentsError       its arguments do not match the tool's schema
        ├── ToolTimeoutError            the tool took too long
        └── ParseError                  the text is not in the wire format

Every error has a ``code`` (a stable slug), a ``place`` in the user's input, a ``hint`` that says what to do, and
``retryable``: True if the same request may succeed later. All errors can be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """The place of an error in the user's input; fields that do not apply are None.

    Attributes:
        pointer: JSON pointer (RFC 6901) into the schema or value, ``""`` for the root.
        keyword: the JSON Schema keyword at that pointer.
        tool: name of the tool.
        parameter: name of the tool's parameter.
        line: 1-based line in a text.
        column: 1-based column in a text.
        offset: 0-based offset in a pattern or text, in characters.
    """

    pointer: str | None = None
    keyword: str | None = None
    tool: str | None = None
    parameter: str | None = None
    line: int | None = None
    column: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        parts = []
        if self.tool is not None:
            parts.append(f"tool {self.tool!r}")
        if self.parameter is not None:
            parts.append(f"parameter {self.parameter!r}")
        if self.pointer is not None:
            parts.append(f"at {self.pointer or '(root)'}")
        if self.keyword is not None:
            parts.append(f"keyword {self.keyword!r}")
        if self.line is not None:
            parts.append(f"line {self.line}" + (f", column {self.column}" if self.column is not None else ""))
        if self.offset is not None:
            parts.append(f"offset {self.offset}")
        return ", ".join(parts)


class ToolGrammarError(Exception):
    """Base class of every error that this library raises on purpose.

    Args:
        message: what is wrong, one sentence.
        hint: what the caller can do about it.
        place: where in the caller's input.
    """

    code = "error"
    retryable = False

    def __init__(self, message: str, *, hint: str | None = None, place: Place | None = None) -> None:
        self.message = message
        self.hint = hint
        self.place = place or Place()
        where = str(self.place)
        text = f"{message} ({where})" if where else message
        super().__init__(f"{text} Hint: {hint}" if hint else text)


class SchemaError(ToolGrammarError):
    """A schema or tool signature is refused."""

    code = "schema"


class InvalidSchemaError(SchemaError, ValueError):
    """The schema is malformed: JSON Schema does not allow it."""

    code = "invalid_schema"


class UnsupportedSchemaError(SchemaError):
    """The schema is well-formed, but this keyword cannot be enforced exactly."""

    code = "unsupported_schema"


class UnsatisfiableSchemaError(SchemaError):
    """No instance can satisfy the schema."""

    code = "unsatisfiable_schema"


class GrammarError(ToolGrammarError, ValueError):
    """A grammar is refused."""

    code = "grammar"


class PatternError(GrammarError):
    """A regular expression is malformed, or is not regular."""

    code = "pattern"


class UnsupportedPatternError(PatternError):
    """A regular expression is well-formed, but not regular or not supported."""

    code = "unsupported_pattern"


class VocabularyError(ToolGrammarError, ValueError):
    """The exact bytes of a tokenizer's tokens are not known."""

    code = "vocabulary"


class LimitError(ToolGrammarError):
    """A stated limit was hit: size, nesting depth, number of states or time."""

    code = "limit"


class DecodingError(ToolGrammarError):
    """Generation could not continue."""

    code = "decoding"


class BudgetError(DecodingError):
    """The shortest valid output does not fit in the token budget."""

    code = "budget"


class ContextOverflowError(DecodingError):
    """The prompt does not fit in the model's context window."""

    code = "context_overflow"


class CancelledError(DecodingError):
    """The caller asked for generation to stop."""

    code = "cancelled"


class GenerationTimeoutError(CancelledError, TimeoutError):
    """The time for one answer (``GenerateParams.timeout``) is over."""

    code = "timeout"
    retryable = True


class ModelError(ToolGrammarError):
    """A model failed, or does not support what was asked for."""

    code = "model"


class MissingDependencyError(ModelError, ImportError):
    """An optional package is not installed; the hint has the ``pip install`` command."""

    code = "missing_dependency"


class ServerError(ModelError):
    """A model's server refused a request, failed, or sent something that is not an answer.

    Args:
        message: what went wrong; never holds a key.
        hint: what the caller can do about it.
        place: where in the caller's input.
        status_code: the HTTP status of the server's answer; None if there was none, or if the status was good.
        retry_after: how many seconds the server asks to wait before the next request; None if it does not say.
    """

    code = "server"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        place: Place | None = None,
        status_code: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint, place=place)
        self.status_code = status_code
        self.retry_after = retry_after


class AuthenticationError(ServerError):
    """The server rejected the API key (401): it is missing or wrong."""

    code = "authentication"


class PermissionDeniedError(ServerError):
    """The API key does not allow the request (403)."""

    code = "permission_denied"


class NotFoundError(ServerError):
    """The server has no such model or path (404)."""

    code = "not_found"


class RateLimitError(ServerError):
    """The server accepts no more requests for now (429), even after the waits that it asked for."""

    code = "rate_limit"
    retryable = True


class ContentFilterError(ServerError):
    """The server withheld the answer because of its content."""

    code = "content_filter"


class ServerFailureError(ServerError):
    """The server failed: a status of 5xx, or an incomplete answer."""

    code = "server_failure"
    retryable = True


class ServerConnectionError(ServerError, ConnectionError):
    """The server cannot be reached, or closed the connection before its answer was complete."""

    code = "server_connection"
    retryable = True


class ServerTimeoutError(ServerError, TimeoutError):
    """The server was silent for longer than the model's ``timeout``."""

    code = "server_timeout"
    retryable = True


class ToolCallError(ToolGrammarError):
    """A tool call is not valid."""

    code = "tool_call"


class UnknownToolError(ToolCallError, LookupError):
    """The call names a tool that was not given."""

    code = "unknown_tool"


class InvalidArgumentsError(ToolCallError, ValueError):
    """The call's arguments do not match the tool's schema."""

    code = "invalid_arguments"


class ToolTimeoutError(ToolCallError, TimeoutError):
    """The tool did not return within its time limit."""

    code = "tool_timeout"
    retryable = True


class ParseError(ToolCallError, ValueError):
    """The text is not in the wire format it was parsed as."""

    code = "parse"
