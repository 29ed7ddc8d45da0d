"""Exceptions: one tree, with the data of an error beside its message.

::

    ToolGrammarError
    ├── SchemaError                 a schema or tool signature is refused
    │   ├── InvalidSchemaError          it is malformed                          (ValueError)
    │   ├── UnsupportedSchemaError      it is well-formed, but cannot be enforced exactly
    │   └── UnsatisfiableSchemaError    nothing can ever satisfy it
    ├── PolicyError                 a policy is malformed, or cannot be enforced here    (ValueError)
    ├── GrammarError                a grammar or pattern is refused
    │   └── PatternError                a regular expression is malformed
    │       └── UnsupportedPatternError     it is well-formed, but not regular or not supported
    ├── VocabularyError             the exact bytes of a tokenizer's tokens are not known
    ├── LimitError                  a stated limit was hit (size, depth, states, time)
    ├── DecodingError               generation could not continue
    │   ├── BudgetError                 the shortest valid output does not fit in the budget
    │   │   └── CutAnswerError              the budget closed values of an answer before their end
    │   ├── InternalError               the engine contradicts itself, by a fault of this library
    │   ├── LiveValuesError             the values of a parameter that a callable gives are not there
    │   ├── ContextOverflowError        the prompt does not fit in the model's context window
    │   └── CancelledError              the caller asked to stop
    │       └── GenerationTimeoutError      the ``timeout`` of the answer is over    (TimeoutError)
    ├── ModelError                  a model failed, or does not support what was asked for
    │   ├── MissingDependencyError      an optional package is not installed     (ImportError)
    │   ├── UnknownOptionError          an option has a name that nothing reads  (TypeError)
    │   └── ServerError                 a model's server refused a request or failed
    │       ├── AuthenticationError         401: the key is missing or wrong
    │       ├── PermissionDeniedError       403: the key does not allow this
    │       ├── NotFoundError               404: no such model or path
    │       ├── RateLimitError              429: too many requests
    │       ├── ContentFilterError          the server withheld the answer
    │       ├── ServerFailureError          5xx, or an incomplete answer
    │       ├── ServerConnectionError       no connection, or it was closed          (ConnectionError)
    │       └── ServerTimeoutError          the server was silent for too long       (TimeoutError)
    ├── RecordError                 a record cannot be written, or it is damaged
    └── ToolCallError               a tool call is not valid
        ├── UnknownToolError            its name is not one of the given tools
        ├── InvalidArgumentsError       its arguments do not match the tool's schema
        ├── ToolTimeoutError            the tool took too long
        └── ParseError                  the text cannot be read as what it was to be

Two kinds of them meet in work that requests share, as a compiled grammar. A *fault* of the input (a schema, grammar,
vocabulary or limit) is the same for everyone who gives that input: it may be kept, handed to all who wait, and wrapped
in another one that names the tool. Everything else (a `DecodingError`, or no memory, or an interrupt) belongs to one
request or thread and never leaves it; whoever waits for the shared work goes on with it. See `is_fault`.

Every error has a ``code`` (a stable slug), a ``place`` in the user's input, a ``hint`` that says what to do, and
``retryable``: True if the same request may succeed later. All errors can be pickled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: Maximum number of tools that an error lists.
_SHOWN_TOOLS = 20

#: The hint of an `InternalError`.
REPORT = "this is a fault of toolgrammar: please report it, with the schema and the text"


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
        """Return the known parts of the position, from the tool to the offset, for the end of a message."""
        column = "" if self.column is None else f", column {self.column}"
        parts = (
            (self.tool, f"tool {self.tool!r}"),
            (self.parameter, f"parameter {self.parameter!r}"),
            (self.pointer, f"at {self.pointer or 'the root'}"),
            (self.keyword, f"keyword {self.keyword!r}"),
            (self.line, f"line {self.line}{column}"),
            (self.offset, f"offset {self.offset}"),
        )
        return ", ".join(text for value, text in parts if value is not None)


class ToolGrammarError(Exception):
    """Base class of every error that this library raises on purpose.

    Args:
        message: what is wrong, one sentence.
        hint: what the caller can do about it.
        place: where in the caller's input.

    Attributes:
        attempts: number of requests that were sent to a model's server for the answer; 0 if there were none.
    """

    code = "error"
    retryable = False
    attempts = 0

    def __init_subclass__(cls, *, code: str | None = None, retryable: bool | None = None) -> None:
        """Set the class's ``code`` and ``retryable``; None: those of its base."""
        super().__init_subclass__()
        if code is not None:
            cls.code = code
        if retryable is not None:
            cls.retryable = retryable

    @classmethod
    def kinds(cls) -> list[str]:
        """Return the codes of the class and of its bases, the nearest first: ``["rate_limit", "server", "model",
        "error"]``."""
        bases = [vars(base) for base in cls.__mro__ if issubclass(base, ToolGrammarError)]
        return [base["code"] for base in bases if "code" in base]

    def __init__(self, message: str, *, hint: str | None = None, place: Place | None = None) -> None:
        self.message = message
        self.hint = hint
        self.place = place or Place()
        where = str(self.place)
        text = f"{message} ({where})" if where else message
        super().__init__(f"{text} Hint: {hint}" if hint else text)


class SchemaError(ToolGrammarError, code="schema"):
    """A schema or tool signature is refused."""


class InvalidSchemaError(SchemaError, ValueError, code="invalid_schema"):
    """The schema is malformed: JSON Schema does not allow it."""


class UnsupportedSchemaError(SchemaError, code="unsupported_schema"):
    """The schema is well-formed, but this keyword cannot be enforced exactly.

    Args:
        message: what cannot be enforced.
        hint: what the caller can do about it.
        place: where in the schema.
        left_out: the valid values that are not written when the keyword is narrowed; None if it cannot be narrowed.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, place: Place | None = None, left_out: str | None = None
    ) -> None:
        super().__init__(message, hint=hint, place=place)
        self.left_out = left_out


class UnsatisfiableSchemaError(SchemaError, code="unsatisfiable_schema"):
    """No instance can satisfy the schema."""


class PolicyError(ToolGrammarError, ValueError, code="policy"):
    """A policy is malformed, is not for these tools, cannot be enforced here, or nobody confirmed a call."""


class GrammarError(ToolGrammarError, ValueError, code="grammar"):
    """A grammar is refused."""


class PatternError(GrammarError, code="pattern"):
    """A regular expression is malformed, or is not regular."""


class UnsupportedPatternError(PatternError, code="unsupported_pattern"):
    """A regular expression is well-formed, but not regular or not supported."""


class VocabularyError(ToolGrammarError, ValueError, code="vocabulary"):
    """The exact bytes of a tokenizer's tokens are not known."""


class LimitError(ToolGrammarError, code="limit"):
    """A stated limit was hit: size, nesting depth, number of states or time."""


class DecodingError(ToolGrammarError, code="decoding"):
    """Generation could not continue."""


class BudgetError(DecodingError, code="budget"):
    """The shortest valid output does not fit in the token budget."""


class CutAnswerError(BudgetError, code="cut_answer"):
    """The value of an answer is valid, but the token budget, or a repetition, closed it before the model was done.

    Args:
        message: what was cut, and where.
        hint: what the caller can do about it.
        place: the first value that was cut.
        value: the value as it is.
        cut: JSON pointers of all values that were cut.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        place: Place | None = None,
        value: Any = None,
        cut: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, hint=hint, place=place)
        self.value = value
        self.cut = cut


class InternalError(DecodingError, code="internal"):
    """The engine contradicts itself, by a fault of this library: nothing more is written."""


class LiveValuesError(DecodingError, code="live_values"):
    """The values that a callable gives a parameter are not there: it failed or took too long, or there are none for a
    required parameter."""


class ContextOverflowError(DecodingError, code="context_overflow"):
    """The prompt does not fit in the model's context window."""


class CancelledError(DecodingError, code="cancelled"):
    """The caller asked for generation to stop."""


class GenerationTimeoutError(CancelledError, TimeoutError, code="timeout", retryable=True):
    """The time for one answer (``GenerateParams.timeout``) is over."""


class ModelError(ToolGrammarError, code="model"):
    """A model failed, or does not support what was asked for."""


class MissingDependencyError(ModelError, ImportError, code="missing_dependency"):
    """An optional package is not installed; the hint has the ``pip install`` command."""


class UnknownOptionError(ModelError, TypeError, code="unknown_option"):
    """An option has a name that nothing reads; the hint has the nearest name, or what to write instead."""


class ServerError(ModelError, code="server"):
    """A model's server refused a request, failed, or sent something that is not an answer.

    Args:
        message: what went wrong; never holds a key.
        hint: what the caller can do about it.
        place: where in the caller's input.
        status_code: the HTTP status of the server's answer; None if there was none, or if the status was good.
        retry_after: how many seconds the server asks to wait before the next request; None if it does not say.
    """

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


class AuthenticationError(ServerError, code="authentication"):
    """The server rejected the API key (401): it is missing or wrong."""


class PermissionDeniedError(ServerError, code="permission_denied"):
    """The API key does not allow the request (403)."""


class NotFoundError(ServerError, code="not_found"):
    """The server has no such model or path (404)."""


class RateLimitError(ServerError, code="rate_limit", retryable=True):
    """The server accepts no more requests for now (429), even after the waits that it asked for."""


class ContentFilterError(ServerError, code="content_filter"):
    """The server withheld the answer because of its content."""


class ServerFailureError(ServerError, code="server_failure", retryable=True):
    """The server failed: a status of 5xx, or an incomplete answer."""


class ServerConnectionError(ServerError, ConnectionError, code="server_connection", retryable=True):
    """The server cannot be reached, or closed the connection before its answer was complete."""


class ServerTimeoutError(ServerError, TimeoutError, code="server_timeout", retryable=True):
    """The server was silent for longer than the model's ``timeout``."""


class RecordError(ToolGrammarError, code="record"):
    """A record cannot be written, or it is damaged: what cannot be recorded does not run."""


class ToolCallError(ToolGrammarError, code="tool_call"):
    """A tool call is not valid."""


class UnknownToolError(ToolCallError, LookupError, code="unknown_tool"):
    """The call names a tool that was not given."""

    @classmethod
    def among(cls, names: Sequence[str], name: object, message: str | None = None) -> UnknownToolError:
        """Return the error for a name that is none of the tools' ``names``, which its hint lists."""
        shown = ", ".join(names[:_SHOWN_TOOLS]) + (", ..." if len(names) > _SHOWN_TOOLS else "")
        return cls(
            message or f"unknown tool {name!r}",
            hint=f"the tools are: {shown}" if names else "the tool set is empty",
            place=Place(tool=name if isinstance(name, str) else None),
        )


class InvalidArgumentsError(ToolCallError, ValueError, code="invalid_arguments"):
    """The call's arguments do not match the tool's schema."""


class ToolTimeoutError(ToolCallError, TimeoutError, code="tool_timeout", retryable=True):
    """The tool did not return within its time limit."""


class ParseError(ToolCallError, ValueError, code="parse"):
    """The text cannot be read as what it was to be: JSON, a call."""


def is_fault(error: BaseException) -> bool:
    """Return True if an error is a fault of the input, which everyone who gives the same input meets."""
    return isinstance(error, ToolGrammarError) and not isinstance(error, DecodingError)


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says; if it says nothing, its type."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


class SchemaWarning(UserWarning):
    """A schema is probably not what its author meant: a keyword or a format that is none looks like one that is."""
