"""Asking for live values: callables run in a thread of their own, within their time, while a text is written."""

from __future__ import annotations

import contextvars
import inspect
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field, replace
from typing import Any

from ..basics.forks import shared_lock
from ..basics.logs import logger_of
from ..basics.pauses import pause
from ..dependent.live import Answer, Mark, Unasked
from ..errors import LiveValuesError, Place
from ..grammar import Grammar
from ..json import dump_json
from .reading import read_call, read_open
from .values import GIVEN, Values

#: Maximum time in seconds between two checks if the request is cancelled, or its time over.
_CHECK_SECONDS = 0.05

#: Maximum number of texts of one answer for which the values are memoised.
MAX_TEXTS = 1_024

_LOG = logger_of("models")


@dataclass
class LiveValues:
    """The callables of a grammar's live values, and their answers while one text is written. Thread-safe.

    Args:
        sources: by the names that ``x-values`` has, or by pairs of a tool and such a name: a `Values`, or a callable.
        make_grammars: make the reading grammars of a turn with calls (see `read_call`); none: the text is a JSON
            document.
        context: the context in which callables run; None: a copy of the present one.

    Attributes:
        asked: the number of times that a callable was asked.
        missing: the error for the last member without a value, in case nothing else can follow a text.
    """

    sources: Mapping[Any, Any] = field(default_factory=dict)
    make_grammars: Sequence[Callable[[], Grammar]] = ()
    context: contextvars.Context | None = None
    asked: int = 0
    missing: LiveValuesError | None = None

    def __post_init__(self) -> None:
        self._by_text: dict[tuple[Mark, bytes], Answer] = {}
        self._by_call: dict[object, Answer] = {}
        self._warned: set[Place] = set()
        self._lock = shared_lock(self, "_lock", threading.Lock())
        self._context = contextvars.copy_context() if self.context is None else self.context
        self._given = self._context.get(GIVEN, {})

    def known(self, mark: Mark, text: bytes, is_plan: bool) -> Answer | None:
        """See `LiveAnswers`."""
        found = self._by_text.get((mark, text))
        if found is None and not is_plan:
            raise Unasked(self, mark, text)
        return found

    def warn(self, mark: Mark, answers: Sequence[Answer]) -> None:
        """See `LiveAnswers`."""
        place = Place(tool=answers[0].tool, parameter=mark.member)
        if place not in self._warned and any(answer.schema is not None for answer in answers):
            self._warned.add(place)
            _LOG.warning("%s is left out: of the values that its callable gives, the schema allows none", place)

    def answer(self, mark: Mark, text: bytes, controls: Sequence[str]) -> None:
        """See `LiveAnswers`."""
        if self.make_grammars:
            tool, objects = read_call(self.make_grammars, text, controls)
        else:
            tool, objects = None, read_open(text)
        answer = self.of_call(tool, mark, mark.read(objects))
        with self._lock:
            if len(self._by_text) >= MAX_TEXTS:
                self._by_text.clear()
            self._by_text[mark, text] = answer

    def of_call(self, tool: str | None, mark: Mark, call: dict[str, Any]) -> Answer:
        """Return the answer for the arguments of a call, as far as they are written. It is kept: a callable is asked
        again for the same arguments only if threads ask at the same time, and the first answer counts."""
        place = Place(tool=tool, parameter=mark.member)
        source = self.sources.get((tool, mark.source), self.sources.get(mark.source, Values.named(mark.source)))
        if source is None:
            error = LiveValuesError(
                f"nothing gives the values of {mark.source!r}",
                hint="give its callable: matcher(values=...), or values={...} of a Tool",
                place=place,
            )
            return Answer(error=error)
        values = Values.of(source)
        absent = next((name for name in mark.given if name not in self._given), None)
        if absent is not None and values.is_strict:
            error = LiveValuesError(
                f"the values of a parameter depend on {absent!r}, which is no parameter, and is not given",
                hint=f"write the name as the schema has it, or give it: with given({absent}=...)",
                place=place,
            )
            return Answer(error=error)
        key = (tool, mark.source, mark.member, dump_json(call))
        with self._lock:
            found = self._by_call.get(key)
        if found is None:
            found = self._ask(values, mark.after, call, place)
            with self._lock:
                self.asked += 1
                found = self._by_call.setdefault(key, found)
        return found

    def _ask(self, values: Values, after: Sequence[str], call: dict[str, Any], place: Place) -> Answer:
        """Return the answer of a callable, which sees the arguments of the call, and those that are `given`."""
        seen = {**{name: self._given[name] for name in after if name in self._given}, **call}
        found, error = _run_within(lambda: self._context.copy().run(_call, values.ask, seen), values.timeout)
        if error is None:
            return replace(found, tool=place.tool)
        written = f"after {dump_json(call)}" if call else "without other arguments"
        if isinstance(error, (TimeoutError, FutureTimeout)):
            message = f"the values were not there within {values.timeout:g} s, {written}"
            hint = "raise Values(timeout=...), or make the callable faster"
        else:
            shown = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            message = f"the callable that gives the values failed, {written}: {shown[:500]}"
            hint = "let it return a list of JSON values; an argument that it reads must be in Values(after=...)"
        failure = LiveValuesError(message, hint=hint, place=place)
        failure.__cause__ = error
        return Answer(error=failure)


def _call(ask: Callable[..., Any], call: dict[str, Any]) -> Any:
    try:
        takes_none = not inspect.signature(ask).parameters
    except (TypeError, ValueError):
        takes_none = False
    return ask() if takes_none else ask(dict(call))


def _run_within(ask: Callable[[], Any], timeout: float) -> tuple[Answer, BaseException | None]:
    """Return the answer of a callable, awaited if it is an awaitable, and the error that it raised; a TimeoutError if
    it takes longer. An ordinary function then goes on in its thread, and its result is dropped.

    Raises:
        toolgrammar.core.CancelledError: the request was cancelled meanwhile.
        GenerationTimeoutError: the time of the whole answer is over.
    """
    end = time.monotonic() + timeout
    future: Future[Any] = Future()

    def run() -> None:
        try:
            result = ask()
            future.set_result(result if inspect.isawaitable(result) else _answer(result, end))
        except BaseException as error:  # passed to the waiting side
            future.set_exception(error)

    def is_late(future: Future[Any]) -> bool:
        """Wait for a result; return True if it is not there in time."""
        while not wait_for([future], max(min(end - time.monotonic(), _CHECK_SECONDS), 0)).done:
            pause()
            if time.monotonic() >= end:
                return True
        return False

    threading.Thread(target=run, name="toolgrammar-values", daemon=True).start()
    if is_late(future):
        return Answer(), TimeoutError()
    if future.exception() is None and inspect.isawaitable(future.result()):
        from .coroutines import LOOP  # imports asyncio

        future = LOOP.submit(_awaited(future.result(), end))
        if is_late(future):
            future.cancel()
            return Answer(), TimeoutError()
    if future.cancelled():
        return Answer(), CancelledError("its coroutine was cancelled")
    error = future.exception()
    return Answer() if error is not None else future.result(), error


async def _awaited(result: Awaitable[Any], end: float) -> Answer:
    return _answer(await result, end)


def _answer(found: Any, end: float) -> Answer:
    """Return the answer of a callable that returned a JSON Schema or an iterable of values. A generator runs here, and
    is left when the time of the callable is over."""
    if isinstance(found, Mapping):
        return _schema_answer(found, is_list=False)
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise TypeError(f"it returned {type(found).__name__}, not an iterable of values or a JSON Schema")
    values = []
    for value in found:
        values.append(value)
        if time.monotonic() >= end:
            raise TimeoutError
    plain = [  # members of enumerations as their values
        value.value if hasattr(value, "value") and hasattr(type(value), "__members__") else value for value in values
    ]
    return _schema_answer({"enum": plain}) if plain else Answer()


def _schema_answer(schema: Mapping[str, Any], is_list: bool = True) -> Answer:
    text = json.dumps(schema, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text.encode()  # a lone surrogate is no text of JSON
    return Answer(json.loads(text), text, is_list=is_list)
