"""Spans of OpenTelemetry, where the program has set it up; else nothing is made, and nothing is imported.

Names and attributes follow the semantic conventions of generative AI
(https://opentelemetry.io/docs/specs/semconv/gen-ai/, 1.41). What people and models wrote is left out, unless the
environment variable that OpenTelemetry has for it asks for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

#: The variable that asks for contents, and the values that do.
CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_WANTED = ("true", "1", "span_only", "span_and_event")

_OPERATION = "gen_ai.operation.name"

#: Prefix of the attributes that the conventions do not have.
OURS = "toolgrammar."


def context() -> Any:
    """Return the current context, for `Span.begin` in other threads and tasks; None without OpenTelemetry."""
    api = sys.modules.get("opentelemetry.context")
    return None if api is None else api.get_current()


class Span:
    """A span that has begun.

    A framework that makes spans of its own has one for the same operation already: then that one gets our attributes,
    and there is no second one.
    """

    def __init__(self, span: Any, is_ours: bool) -> None:
        self._span = span
        self._is_ours = is_ours

    @staticmethod
    def has_contents() -> bool:
        """Return True if spans may have what people and models wrote."""
        return os.environ.get(CONTENTS, "").strip().lower() in _WANTED

    @staticmethod
    @contextmanager
    def continued(headers: Mapping[str, str]) -> Iterator[None]:
        """Make the span of a request's ``traceparent`` the parent of the spans that begin in the block."""
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
        parent: Any = None,
    ) -> Span | None:
        """Begin a span; None if nobody records it.

        Args:
            operation: ``gen_ai.operation.name``.
            name: of the model, tool or agent.
            attributes: of the span; those that are None are left out.
            is_remote: another process does the work.
            parent: the context of the span around it (`context`); None: the current one.
        """
        api = sys.modules.get("opentelemetry.trace")
        if api is None:
            return None
        around = api.get_current_span(parent)
        if around.is_recording() and (getattr(around, "attributes", None) or {}).get(_OPERATION) == operation:
            return cls(around, False)
        span = api.get_tracer("toolgrammar").start_span(
            f"{operation} {name}".strip(),
            context=parent,
            kind=api.SpanKind.CLIENT if is_remote else api.SpanKind.INTERNAL,
            attributes={_OPERATION: operation, **_given(attributes)},
        )
        return cls(span, True) if span.is_recording() else None

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes; to a framework's span only ours."""
        given = _given(attributes)
        self._span.set_attributes(given if self._is_ours else {k: v for k, v in given.items() if k.startswith(OURS)})

    def end(self, error: BaseException | None = None) -> None:
        """End the span, with the error that ended its work; its message may quote what was written."""
        if self._is_ours:
            if error is not None:
                self._span.set_attribute("error.type", type(error).__qualname__)
                status = sys.modules["opentelemetry.trace"]
                said = str(error) if self.has_contents() else None
                self._span.set_status(status.Status(status.StatusCode.ERROR, said))
            self._span.end()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make it the parent of the spans that begin in the block, in this thread or task."""
        with sys.modules["opentelemetry.trace"].use_span(
            self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False
        ):
            yield

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


def _given(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
