"""`Protocol`: what the application needs of a client's protocol; and `ParsedRequest`, what it makes of a request."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from toolgrammar.core.conversation import Event, Generation, Message, ToolCall
from toolgrammar.core.generation import GenerateParams

from ... import _shared
from ..failures import Failure
from ..fields import Fields
from ..rows import Form
from ..served import Served
from . import openai_form


@dataclass(frozen=True)
class ParsedRequest:
    """One request, whatever its protocol.

    Attributes:
        model: the name under which the model is served.
        messages: the conversation.
        params: how to generate.
        stream: the answer comes as events.
        answers: how many answers are asked for, to all texts together.
        texts: to go on with, if there is no conversation.
        include_usage: the stream ends with the token counts, in protocols that let the client choose.
        details: what the protocol's own response repeats of the request.
        response: the body of the response, if nothing is to be generated; else None.
    """

    model: str
    messages: tuple[Message, ...]
    params: GenerateParams
    stream: bool = False
    answers: int = 1
    texts: tuple[str, ...] = ()
    include_usage: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    response: Mapping[str, Any] | None = None

    def params_of(self, index: int) -> GenerateParams:
        """Return the options of one of several answers: those to one prompt have seeds of their own."""
        per_prompt = self.answers // max(1, len(self.texts))
        seed = self.params.seed
        prefix = self.texts[index // per_prompt] if self.texts else self.params.prefix
        return replace(self.params, seed=seed if seed is None else seed + index % per_prompt, prefix=prefix)


class StreamWriter(ABC):
    """Writes the events of one streamed response. Every public method returns pieces of the body.

    Args:
        parsed: the request.
    """

    def __init__(self, parsed: ParsedRequest) -> None:
        self._parsed = parsed
        self._tokens = _shared.TextTokens(parsed.details.get("vocabulary"))
        self._cut: list[str] = []  # places in the calls so far that the token budget cut

    def _problem(self, call: ToolCall) -> str | None:
        """Take a call that has ended; return why it must not be executed, None for one that may."""
        self._cut += [call.name + pointer for pointer in call.cut]
        return _shared.problem(call)

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
            schema of a text answer; a subclass adds to those of its base.
    """

    path: str
    summary: str
    form: Form
    names: Mapping[str, str] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        bases = [base.names for base in reversed(cls.__mro__) if issubclass(base, Endpoint)]
        cls.names = MappingProxyType({name: field for names in bases for name, field in names.items()})

    @abstractmethod
    def read(self, fields: Fields, served: Served) -> Any:
        """Return a request, read by its form, in the form that all protocols share.

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
    def read(self, fields: Fields, served: Served) -> ParsedRequest:
        """Return a request, read by its form."""

    @abstractmethod
    def whole(self, parsed: ParsedRequest, answers: Sequence[Generation]) -> dict[str, Any]:
        """Return the response to a request that is not streamed."""

    @abstractmethod
    def stream(self, parsed: ParsedRequest) -> StreamWriter:
        """Return the writer of a streamed response."""


def frame(data: Any, event: str | None = None) -> str:
    """Return a server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    return f"data: {text}\n\n" if event is None else f"event: {event}\ndata: {text}\n\n"


def line(data: Any) -> str:
    """Return a line of JSON."""
    return json.dumps(data) + "\n"
