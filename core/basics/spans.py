"""Spans of OpenTelemetry, where the program has set it up, and entries of open records; else nothing is made.

Names and attributes follow the semantic conventions of generative AI
(https://opentelemetry.io/docs/specs/semconv/gen-ai/, 1.41). What people and models wrote is left out, unless the
environment variable that OpenTelemetry has for it asks for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Literal, Protocol

#: The variable that asks for contents, and the values that do.
CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_WANTED = ("true", "1", "span_only", "span_and_event")

_OPERATION = "gen_ai.operation.name"

#: Attributes with what people and models wrote.
_CONTENTS = {
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
    "gen_ai.tool.definitions",
}

#: Prefix of the attributes that the conventions do not have.
OURS = "toolgrammar."


class Watcher(Protocol):
    """A receiver of spans beside OpenTelemetry, such as an open `Record`."""

    #: If it wants what people and models wrote.
    contents: bool

    def tell(self, event: str, span: str, within: str | None, attributes: Mapping[str, Any]) -> None:
        """Take an event of a span: its name, the ids of the span and of the one around it, and attributes."""


#: The receivers of spans beside OpenTelemetry.
WATCHERS: list[Watcher] = []

#: The id of the span around, for receivers.
_within: ContextVar[str | None] = ContextVar("toolgrammar_span", default=None)

#: Names of the beginning and of the end of an operation, in a record; None: it has no beginning.
_EVENTS = {"chat": (None, "answer"), "execute_tool": ("call", "result"), "invoke_agent": ("run", "end")}


class Context:
    """The place in which spans begin, for `Span.begin` in other threads and tasks."""

    def __init__(self) -> None:
        api = sys.modules.get("opentelemetry.context")
        self.outer = None if api is None else api.get_current()
        self.within = _within.get()


class Span:
    """A span that has begun.

    A framework that makes spans of its own has one for the same operation already: then that one gets our attributes,
    and there is no second one. Receivers get each.
    """

    def __init__(self, operation: str, span: Any, is_ours: bool, within: str | None) -> None:
        self._begun, self._ended = _EVENTS[operation]
        self._span = span
        self._is_ours = is_ours
        self._within = within
        self._watchers = list(WATCHERS)
        self._id = uuid.uuid4().hex if self._watchers else ""
        self._facts: dict[str, Any] = {}

    @staticmethod
    def is_watched() -> bool:
        """Return True if somebody may take spans."""
        return bool(WATCHERS) or "opentelemetry.trace" in sys.modules

    @staticmethod
    def digest(value: Any) -> str:
        """Return the SHA-256 of a text, or of a value's JSON text with sorted names, as hexadecimal digits."""
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @staticmethod
    def has_contents() -> bool:
        """Return True if somebody wants what people and models wrote."""
        return _may_export() or any(each.contents for each in WATCHERS)

    @staticmethod
    @contextmanager
    def continued(headers: Mapping[str, str]) -> Iterator[None]:
        """Make the span of a request's ``traceparent`` the parent of OpenTelemetry's spans that begin in the block;
        without OpenTelemetry, do nothing."""
        api = sys.modules.get("opentelemetry.context")
        if api is None:
            yield
            return
        from opentelemetry.propagate import extract

        token = api.attach(extract(headers))
        try:
            yield
        finally:
            api.detach(token)

    @classmethod
    def begin(
        cls,
        operation: Literal["chat", "execute_tool", "invoke_agent"],
        name: str,
        attributes: Mapping[str, Any],
        *,
        is_remote: bool = False,
        parent: Context | None = None,
        more: Callable[[], Mapping[str, Any]] = dict,
    ) -> Span | None:
        """Begin a span; None if nobody takes it.

        Args:
            operation: ``gen_ai.operation.name``.
            name: of the model, tool or agent.
            attributes: of the span; those that are None are left out.
            is_remote: another process does the work.
            parent: the place around it; None: the current one.
            more: makes the attributes that cost time; it is called if somebody takes the span.

        Raises:
            RecordError: an open record cannot be written.
        """
        api = sys.modules.get("opentelemetry.trace")
        exported, is_ours = None, False  # the span of OpenTelemetry, if somebody records it
        if api is not None:
            outer = None if parent is None else parent.outer
            around = api.get_current_span(outer)
            if around.is_recording() and (getattr(around, "attributes", None) or {}).get(_OPERATION) == operation:
                exported = around  # a framework's, for the same operation
            else:
                new = api.get_tracer("toolgrammar").start_span(
                    f"{operation} {name}".strip(),
                    context=outer,
                    kind=api.SpanKind.CLIENT if is_remote else api.SpanKind.INTERNAL,
                    attributes={_OPERATION: operation, **_exported(attributes)},
                )
                if new.is_recording():
                    exported, is_ours = new, True
        if exported is None and not WATCHERS:
            return None
        span = cls(operation, exported, is_ours, _within.get() if parent is None else parent.within)
        span._facts.update(attributes)
        span.set(more())
        if span._begun is not None:
            span._tell(span._begun)
        return span

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes; to a framework's span only ours."""
        self._facts.update(attributes)
        if self._span is not None:
            given = _exported(attributes)
            if not self._is_ours:
                given = {name: value for name, value in given.items() if name.startswith(OURS)}
            self._span.set_attributes(given)

    def end(self, error: BaseException | None = None) -> None:
        """End the span, with the error that ended its work; its message may quote what was written.

        Raises:
            RecordError: an open record cannot be written.
        """
        if self._is_ours:
            if error is not None:
                self._span.set_attribute("error.type", type(error).__qualname__)
                status = sys.modules["opentelemetry.trace"]
                said = str(error) if _may_export() else None
                self._span.set_status(status.Status(status.StatusCode.ERROR, said))
            self._span.end()
        if error is not None:
            self._facts["error.type"] = type(error).__qualname__
        self._tell(self._ended)

    def _tell(self, event: str) -> None:
        """Tell the receivers what was said since the last time."""
        said, self._facts = self._facts, {}
        for watcher in self._watchers:
            attributes = {
                name: value
                for name, value in said.items()
                if value is not None and (watcher.contents or name not in _CONTENTS)
            }
            watcher.tell(event, self._id, self._within, attributes)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make it the parent of the spans that begin in the block, in this thread or task."""
        token = _within.set(self._id) if self._watchers else None
        try:
            with (
                nullcontext()
                if self._span is None
                else sys.modules["opentelemetry.trace"].use_span(
                    self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False
                )
            ):
                yield
        finally:
            if token is not None:
                _within.reset(token)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make it the parent of the spans that begin in the block; end it with the block, and with its error."""
        with ending(self), self.active():
            yield


@contextmanager
def ending(span: Span | None) -> Iterator[None]:
    """End a span, if there is one, with the block and with the error that ended it."""
    try:
        yield
    except BaseException as error:
        if span is not None:
            span.end(error)
        raise
    if span is not None:
        span.end()


def _may_export() -> bool:
    return os.environ.get(CONTENTS, "").strip().lower() in _WANTED


def _exported(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as OpenTelemetry takes them: no None, objects as JSON text, contents only where asked for."""
    may_export = _may_export()
    return {
        name: json.dumps(value, ensure_ascii=False) if _is_nested(value) else value
        for name, value in attributes.items()
        if value is not None and (may_export or name not in _CONTENTS)
    }


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))
