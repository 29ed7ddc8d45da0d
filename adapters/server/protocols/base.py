"""`Protocol`: what the application needs of a client's protocol."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from toolgrammar.core.conversation import Event, Generation

from ..failures import Failure
from ..fields import Fields
from ..rows import Form
from ..served import Asked, Served
from . import openai_form


class StreamWriter(ABC):
    """Writes the events of one streamed response. Every method returns pieces of the body."""

    def begin(self) -> Iterable[str]:
        """Return what comes before the first event."""
        return ()

    @abstractmethod
    def event(self, index: int, event: Event) -> Iterable[str]:
        """Return what one event of answer ``index`` becomes."""

    def end(self) -> Iterable[str]:
        """Return what comes after the last event."""
        return ()

    @abstractmethod
    def failure(self, failure: Failure) -> Iterable[str]:
        """Return how the stream ends where it cannot be finished."""


class Endpoint(ABC):
    """An endpoint that takes a body.

    Attributes:
        path: of the endpoint.
        summary: what it is for, in a line.
        form: what a request may have.
        names: the fields of `GenerateParams` that the protocol calls otherwise, and ``schema``, the field that has the
            schema of a text answer.
    """

    path: str
    summary: str
    form: Form
    names: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def read(self, fields: Fields, served: Served) -> Any:
        """Return a request, read by its form, in a neutral form.

        Raises:
            RequestError: a field cannot be met.
        """

    def error(self, failure: Failure) -> dict[str, Any]:
        """Return the body of an error's response: in OpenAI's form."""
        return openai_form.error(failure)


class Protocol(Endpoint):
    """One endpoint of one protocol.

    Attributes:
        media_type: of streamed responses.
        streams_overflow: a streamed answer to a prompt that is too long is a stream with status 200 that fails, as from
            the protocol's own server, and not a response with status 400.
    """

    media_type = "text/event-stream"
    names: Mapping[str, str] = MappingProxyType({"schema": "response_format"})
    streams_overflow = False

    @abstractmethod
    def read(self, fields: Fields, served: Served) -> Asked:
        """Return a request, read by its form, in the neutral form."""

    def immediate(self, asked: Asked, served: Served) -> dict[str, Any] | None:
        """Return the response to a request for which nothing is generated; None for any other."""
        return None

    @abstractmethod
    def whole(self, asked: Asked, answers: Sequence[Generation]) -> dict[str, Any]:
        """Return the response to a request that is not streamed."""

    @abstractmethod
    def stream(self, asked: Asked) -> StreamWriter:
        """Return the writer of a streamed response."""


def frame(data: Any, event: str | None = None) -> str:
    """Return a server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    return f"data: {text}\n\n" if event is None else f"event: {event}\ndata: {text}\n\n"


def line(data: Any) -> str:
    """Return a line of JSON."""
    return json.dumps(data) + "\n"
