"""Streams: the events of an answer, its partial values, and the whole answer at the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Generic

from ..conversation.events import Event, Generation, T_co, TextDelta
from ..errors import ModelError
from ..generation.partial import Partial, PartialReader
from .requests import Request, finished

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..generation.driver import Item


class _Answer(Generic[T_co]):
    """The end of a stream."""

    def __init__(self, request: Request | None) -> None:
        self._request = request
        self._whole: Generation[T_co] | None = None

    def _reader(self) -> PartialReader:
        if self._request is None:
            raise ModelError("an answer that came whole has no partial values", hint="result.value has the value")
        return self._request.partial_reader()

    def _result(self) -> Generation[T_co]:
        if self._whole is None:
            raise ModelError("the stream has no result: it was closed, or an error ended it", hint="stream again")
        return finished(self._whole, self._request)


class Stream(_Answer[T_co]):
    """The answer to one request as it comes: an iterator of its events, each sent as soon as it is certain.

    Leaving it early (`close`, or the end of a ``with`` block) stops the model within a step.
    """

    def __init__(self, items: Generator[Item, None, None], request: Request | None) -> None:
        super().__init__(request)
        self._items = items

    @classmethod
    def of(cls, generate: Callable[[], Generation]) -> Self:
        """Return the stream of an answer that comes whole: its first event waits for all of it."""

        def items() -> Generator[Item, None, None]:
            yield from (whole := generate()).events()
            yield whole

        return cls(items(), None)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        for item in self._items:
            if not isinstance(item, Generation):
                return item
            self._whole = item
        raise StopIteration

    def partials(self) -> Iterator[Partial[T_co]]:
        """Yield the value of ``output_type`` so far, after each piece of the answer's text.

        ``partial.value`` is typed: an object whose fields are None until they begin (see `typed_partial`);
        ``partial.new`` has the pointers of the values that just became complete.

        Raises:
            ModelError: the request has no ``output_type``.
        """
        reader = self._reader()
        return (reader.feed(event.text) for event in self if isinstance(event, TextDelta))

    @property
    def result(self) -> Generation[T_co]:
        """The whole answer; waits for its end.

        Raises:
            CancelledError: ``params.cancel`` returned True.
            ModelError: the stream was closed, or an error ended it.
        """
        for _ in self:
            pass
        return self._result()

    def close(self) -> None:
        """End the request. Closing twice is allowed."""
        self._items.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncStream(_Answer[T_co]):
    """`Stream` without blocking the event loop: an asynchronous iterator of events."""

    def __init__(self, items: AsyncGenerator[Item, None], request: Request | None) -> None:
        super().__init__(request)
        self._items = items

    @classmethod
    def of(cls, generate: Callable[[], Awaitable[Generation]]) -> Self:
        """Do what `Stream.of` does."""

        async def items() -> AsyncGenerator[Item, None]:
            whole = await generate()
            for event in whole.events():
                yield event
            yield whole

        return cls(items(), None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        async for item in self._items:
            if not isinstance(item, Generation):
                return item
            self._whole = item
        raise StopAsyncIteration

    def partials(self) -> AsyncIterator[Partial[T_co]]:
        """Do what `Stream.partials` does."""
        reader = self._reader()
        return (reader.feed(event.text) async for event in self if isinstance(event, TextDelta))

    async def result(self) -> Generation[T_co]:
        """Return the whole answer, as `Stream.result`; waits for its end."""
        async for _ in self:
            pass
        return self._result()

    async def aclose(self) -> None:
        """End the request. Closing twice is allowed."""
        await self._items.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
