"""Streams of OpenAI's completions and chat completions: chunks with choices, and the token counts at the end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolgrammar.core.conversation import Event, Finish, TextDelta, TokenWritten, Usage

from ... import _shared
from ..failures import Failure
from . import openai_form
from .base import ParsedRequest, StreamWriter, frame


class Chunks(StreamWriter):
    """Writer of chunks.

    Args:
        parsed: the request.
        head: what every chunk begins with.
    """

    def __init__(self, parsed: ParsedRequest, head: Mapping[str, Any]) -> None:
        super().__init__(parsed)
        self._head = head
        self._index = -1  # of the present answer
        self._usages: list[Usage] = []

    def event(self, index: int, event: Event) -> Iterable[str]:
        """Return the chunks of one event."""
        if index != self._index:  # the next answer begins
            self._index, self._cut = index, []
            self._tokens = _shared.TextTokens(self._parsed.details["vocabulary"])
            yield from self._first()
        if isinstance(event, TokenWritten):
            self._tokens.add(event)
        elif isinstance(event, TextDelta):
            yield self._text(event.text, self._tokens.next_tokens(event.text))
        elif isinstance(event, Finish):
            self._usages.append(event.usage)
            yield self._last(event.reason, _shared.extension_field(event, [*event.cut, *self._cut]))
        else:
            yield from self._reasoning_or_call(event)

    def end(self) -> Iterable[str]:
        """Return the token counts, if they are wanted, and the end mark."""
        if self._parsed.include_usage:
            yield frame({**self._head, "choices": [], "usage": self._usage(self._usages)})
        yield frame("[DONE]")

    def failure(self, failure: Failure) -> Iterable[str]:
        """Return the error; clients raise it, and there is no end mark after it."""
        yield frame(openai_form.error(failure))

    @abstractmethod
    def _first(self) -> Iterable[str]:
        """Return what comes before the first event of an answer."""

    @abstractmethod
    def _text(self, text: str, tokens: list[dict[str, Any]] | None) -> str:
        """Return the chunk of a piece of text, with its tokens if they are asked for."""

    @abstractmethod
    def _last(self, reason: str, note: Mapping[str, Any]) -> str:
        """Return the chunk that ends an answer."""

    def _reasoning_or_call(self, event: Event) -> Iterable[str]:
        """Return the chunks of an event that is neither text nor the end."""
        return ()

    @abstractmethod
    def _usage(self, counts: Sequence[Usage]) -> dict[str, Any]:
        """Return the token counts of all answers."""

    def _chunk(self, reason: str | None = None, **fields: Any) -> str:
        """Return a chunk of the present answer."""
        choice = {"index": self._index, "logprobs": None, "finish_reason": reason, **fields}
        counts = {"usage": None} if self._parsed.include_usage else {}
        return frame({**self._head, "choices": [choice], **counts})
