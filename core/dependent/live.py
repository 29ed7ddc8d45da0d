"""Live values: values of a member that a callable of the user gives while a text is written.

The keyword ``x-values`` of a JSON Schema names a `Values`. The language of its member is a dependent node before the
member's name: its static language is that of the rest of the schema, and after a text it is that of the values that the
callable gives for the members that the text has. The text of a grammar has no callable: each matcher has a `LiveValues`
with the callables and with what they answered, so each question of one answer is asked once.

A callable may take long and may use this library, so it is not asked under the lock of a store: a dependent node raises
`Unasked`, and the matcher asks and tries again. A shortest completion never asks, because its members are not written;
it keeps room for a value of `Values.longest` bytes (`room`).
"""

from __future__ import annotations

import contextvars
import inspect
import json
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from ..basics.annotated import with_keyword
from ..basics.event_loop import EventLoop
from ..basics.forks import shared_lock
from ..basics.logs import logger_of
from ..basics.pauses import pause
from ..errors import InvalidSchemaError, LimitError, LiveValuesError, Place
from ..json import dump_json
from ..language.node_kinds import CONTROL

if TYPE_CHECKING:
    from .written import Written

#: The keyword of a JSON Schema.
KEYWORD = "x-values"

#: Default time in seconds that a callable may take, and default length in bytes for which a budget keeps room.
TIMEOUT, LONGEST = 10.0, 64

#: Maximum time in seconds between two checks if the request is cancelled, or its time over.
_CHECK_SECONDS = 0.05

#: The arguments that models do not see, of the present context.
_GIVEN: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar(
    "toolgrammar_given", default=MappingProxyType({})
)

#: Maximum number of texts of one answer for which the values are memoised.
MAX_TEXTS = 1_024

_LOG = logger_of("models")

_LOOP = EventLoop()


@dataclass(frozen=True)
class Values:
    """Values of a parameter that a callable gives while a call is written.

    In a function's signature: ``Annotated[str, Values(lambda call: ids_of(call["project"]), after=("project",))]``.

    Args:
        ask: is given the arguments that are already written, as a mapping, and returns a finite iterable of JSON
            values, or a JSON Schema (a dict) that the value must satisfy; or an awaitable of one. A function without
            parameters is called without arguments.
        after: the names of the arguments that it reads; the grammar writes them before this one. None: all that stand
            before the parameter in the signature. Only these are in the mapping, without optional ones that the call
            leaves out.
        timeout: seconds that it may take.
        longest: number of bytes, and of tokens, that a token budget reserves for the value until the values are known.
    """

    ask: Callable[..., Any]
    after: Sequence[str] | None = None
    timeout: float = TIMEOUT
    longest: int = LONGEST
    #: A name in ``after`` that is neither a parameter nor given is an error; else the callable says what it means.
    is_strict: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.ask):
            raise InvalidSchemaError(
                f"Values takes a callable, not {type(self.ask).__name__}",
                hint="a fixed list of values is Literal[...], or an enum in the schema",
            )
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, (int, float)) or not self.timeout > 0:
            raise InvalidSchemaError(f"Values(timeout={self.timeout!r})", hint="give a number of seconds above 0")
        if isinstance(self.after, str):
            object.__setattr__(self, "after", (self.after,))
        elif self.after is not None:
            object.__setattr__(self, "after", tuple(self.after))

    @property
    def name(self) -> str:
        """A name by which tools of this process find the object, as long as it is alive. It cannot be guessed, so that
        clients of a server name no callables."""
        name: str | None = self.__dict__.get("_name")
        if name is None:
            name = f"toolgrammar-values-{secrets.token_hex(16)}"
            object.__setattr__(self, "_name", name)
            _NAMED[name] = self
        return name

    def mark(self, source: str) -> dict[str, Any]:
        """Return the value of ``x-values`` for this object under a name."""
        mark: dict[str, Any] = {"source": source}
        if self.after is not None:
            mark["after"] = list(self.after)
        if self.longest != LONGEST:
            mark["longest"] = self.longest
        return mark

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        """Return the JSON Schema of an annotated type."""
        return with_keyword(handler(core_schema), KEYWORD, self.mark(self.name))


#: The objects that have a name, as long as they are alive.
_NAMED: weakref.WeakValueDictionary[str, Values] = weakref.WeakValueDictionary()


def registered(name: object) -> Values | None:
    """Return the `Values` of a name; None if there is none."""
    return _NAMED.get(name) if isinstance(name, str) else None


def values_of(source: Any) -> Values:
    """Return a `Values`, or that of a callable: the same one for the same callable."""
    return source if isinstance(source, Values) else _wrapped(source)


@lru_cache(maxsize=4_096)
def _wrapped(ask: Callable[..., Any]) -> Values:
    return Values(ask)


@contextmanager
def given(**arguments: Any) -> Iterator[None]:
    """Give callables of live values arguments that the model neither sees nor writes: a user, a state, a connection.

    A callable whose `Values` names one in ``after`` has it in its mapping::

        with given(user=user):
            model.generate(..., tools=[close_ticket])

    Args:
        **arguments: any values, for requests that begin in the context (this thread, or this task of ``asyncio``). An
            argument of the call of the same name comes first.
    """
    token = _GIVEN.set({**_GIVEN.get(), **arguments})
    try:
        yield
    finally:
        _GIVEN.reset(token)


class Unasked(LimitError):
    """A dependent node needs values that were not asked for yet. Raised and caught within the library.

    Args:
        live: whose values they are.
        mark: their `Mark`.
        text: the text before them.
        ahead: what follows it if the member is written: a parser may need it to see that the member before is whole.
    """

    def __init__(self, live: LiveValues, mark: Mark, text: bytes, ahead: str) -> None:
        super().__init__("the values of a parameter are not known yet")
        self.live = live
        self.mark = mark
        self.text = text
        self.ahead = ahead

    def answer(self, controls: Sequence[str]) -> None:
        """Ask, and memoise the answer.

        Args:
            controls: the names of the control tokens of the text.
        """
        self.live.answer(self.mark, self.text, controls, self.ahead)


@dataclass(frozen=True)
class Mark:
    """The value of ``x-values`` in one place.

    Attributes:
        source: the name of the `Values`.
        after: the names that it reads.
        longest: see `Values`.
        member: the name of the member.
        given: those of ``after`` that are no members, so that the program gives them (`given`).
    """

    source: str
    after: tuple[str, ...]
    longest: int
    member: str
    given: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: Any, member: str, before: Sequence[str]) -> Mark:
        """Return the mark that a well-formed value of the keyword describes; ``before`` are the names that stand before
        the member."""
        if isinstance(value, str):
            value = {"source": value}
        after = value.get("after")
        names = tuple(before if after is None else after)
        return cls(value["source"], names, value.get("longest", LONGEST), member, tuple(value.get("given", ())))

    def read(self, objects: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the values of the names that it reads in the open objects, innermost first: the nearest of each."""
        found: dict[str, Any] = {}
        for written in objects:
            for name in self.after:
                if name in written:
                    found.setdefault(name, written[name])
        return found


@dataclass(frozen=True, eq=False)
class Answer:
    """What a callable answered.

    Attributes:
        schema: the JSON Schema of the values: an ``enum``, or what the callable returned; None: there is no value.
        error: the failure; None: it did not fail.
        is_list: it returned a list of values.
        tool: the tool of the call; None: there is none.
    """

    schema: dict[str, Any] | None = None
    error: LiveValuesError | None = None
    is_list: bool = True
    tool: str | None = None


#: The arguments of a call as far as they are written: the tool, and the open objects, innermost first.
Reading = tuple["str | None", "list[dict[str, Any]]"]


@dataclass
class LiveValues:
    """The callables of a grammar's live values, and their answers while one text is written. Thread-safe.

    Args:
        sources: by the names that ``x-values`` has, or by pairs of a tool and such a name: a `Values`, or a callable.
        read: reads the arguments from the text so far. None: the text is a JSON document.
        context: the context in which callables run; None: a copy of the present one.

    Attributes:
        asked: the number of times that a callable was asked.
        missing: the error for the last member without a value, in case nothing else can follow a text.
    """

    sources: Mapping[Any, Any] = field(default_factory=dict)
    read: Callable[[str], Reading] | None = None
    context: contextvars.Context | None = None
    asked: int = 0
    missing: LiveValuesError | None = None

    def __post_init__(self) -> None:
        self._by_text: dict[tuple[Mark, bytes], Answer] = {}
        self._by_call: dict[object, Answer] = {}
        self._warned: set[Place] = set()
        self._lock = shared_lock(self, "_lock", threading.Lock())
        self._context = contextvars.copy_context() if self.context is None else self.context
        self._given = self._context.get(_GIVEN, {})

    def known(self, mark: Mark, before: Written, ahead: str = "") -> Answer | None:
        """Return the answer for a text; None if it is a completion's and not known. ``ahead``: see `Unasked`.

        Raises:
            Unasked: it is not known.
        """
        text = before.text()
        found = self._by_text.get((mark, text))
        if found is None and not before.is_plan:
            raise Unasked(self, mark, text, ahead)
        return found

    def warn(self, mark: Mark, answers: Sequence[Answer]) -> None:
        """Log, once, that an optional member cannot be written although callables give values."""
        place = Place(tool=answers[0].tool, parameter=mark.member)
        if place not in self._warned and any(answer.schema is not None for answer in answers):
            self._warned.add(place)
            _LOG.warning("%s is left out: of the values that its callable gives, the schema allows none", place)

    def answer(self, mark: Mark, text: bytes, controls: Sequence[str], ahead: str) -> None:
        """Ask for the values after a text, and memoise them."""
        names = iter(controls)
        parts = [part.decode("utf-8", "replace") for part in text.split(CONTROL)]
        said = parts[0] + "".join(next(names, "") + part for part in parts[1:]) + ahead
        tool, objects = (None, read_open(said)) if self.read is None else self.read(said)
        answer = self.of_call(tool, mark, mark.read(objects))
        with self._lock:
            if len(self._by_text) >= MAX_TEXTS:
                self._by_text.clear()
            self._by_text[mark, text] = answer

    def of_call(self, tool: str | None, mark: Mark, call: dict[str, Any]) -> Answer:
        """Return the answer for the arguments of a call, as far as they are written; asked once for each."""
        place = Place(tool=tool, parameter=mark.member)
        source = self.sources.get((tool, mark.source), self.sources.get(mark.source, registered(mark.source)))
        if source is None:
            error = LiveValuesError(
                f"nothing gives the values of {mark.source!r}",
                hint="give its callable: matcher(values=...), or values={...} of a Tool",
                place=place,
            )
            return Answer(error=error)
        values = values_of(source)
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
            self.asked += 1
            found = self._asked(values, mark.after, call, place)
            with self._lock:
                found = self._by_call.setdefault(key, found)
        return found

    def _asked(self, values: Values, after: Sequence[str], call: dict[str, Any], place: Place) -> Answer:
        """Ask a callable."""
        tool = place.tool
        seen = {**{name: self._given[name] for name in after if name in self._given}, **call}
        found, error = _within(lambda: self._context.copy().run(_call, values.ask, seen), values.timeout)
        if error is None:
            return replace(found, tool=tool)
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


def no_values(mark: Mark, answers: Sequence[Answer]) -> LiveValuesError:
    """Return the error for a required member without any value.

    Args:
        mark: its mark, or the first one.
        answers: what its callables answered.
    """
    place = Place(tool=answers[0].tool, parameter=mark.member)
    listed = [answer.schema["enum"] for answer in answers if answer.is_list and answer.schema is not None]
    if listed and len(listed) == len(answers):
        shown = json.dumps(listed[0][0], ensure_ascii=False)[:100]
        return LiveValuesError(
            f"the callable gives {sum(map(len, listed))} values, and none is one that the schema allows; the first "
            f"is {shown}",
            hint="let it return values of the parameter's type (Values on the items of a list are those of one item)",
            place=place,
        )
    return LiveValuesError(
        "there is no value for a required parameter",
        hint="make the parameter optional, or offer the tool only while there are values",
        place=place,
    )


def unbound(mark: Mark) -> LiveValuesError:
    """Return the error for a text whose matcher has no callables."""
    return LiveValuesError(
        f"nothing gives the values of {mark.source!r}",
        hint="give its callable: constraint.matcher(values=LiveValues({name: callable}))",
        place=Place(parameter=mark.member),
    )


# -- asking ------------------------------------------------------------------------------------------------------------


def _call(ask: Callable[..., Any], call: dict[str, Any]) -> Any:
    try:
        takes_none = not inspect.signature(ask).parameters
    except (TypeError, ValueError):
        takes_none = False
    return ask() if takes_none else ask(dict(call))


def _within(ask: Callable[[], Any], timeout: float) -> tuple[Answer, BaseException | None]:
    """Return the answer of a callable, awaited if it is an awaitable, and the error that it raised; a TimeoutError if
    it takes longer. An ordinary function then goes on in its thread, and its result is dropped.

    Raises:
        toolgrammar.core.CancelledError: the request was cancelled meanwhile.
        GenerationTimeoutError: the time of the whole answer is over.
    """
    end = time.monotonic() + timeout
    asked: Future[Any] = Future()

    def run() -> None:
        try:
            result = ask()
            asked.set_result(result if inspect.isawaitable(result) else _answer(result, end))
        except BaseException as error:  # passed to the waiting side
            asked.set_exception(error)

    def is_late(future: Future[Any]) -> bool:
        """Wait for a result; return True if it is not there in time."""
        while not wait_for([future], max(min(end - time.monotonic(), _CHECK_SECONDS), 0)).done:
            pause()
            if time.monotonic() >= end:
                return True
        return False

    threading.Thread(target=run, name="toolgrammar-values", daemon=True).start()
    if is_late(asked):
        return Answer(), TimeoutError()
    if asked.exception() is None and inspect.isawaitable(asked.result()):
        asked = _LOOP.submit(_awaited(asked.result(), end))
        if is_late(asked):
            asked.cancel()
            return Answer(), TimeoutError()
    if asked.cancelled():
        return Answer(), CancelledError("its coroutine was cancelled")
    error = asked.exception()
    return Answer() if error is not None else asked.result(), error


async def _awaited(result: Awaitable[Any], end: float) -> Answer:
    return _answer(await result, end)


def _answer(found: Any, end: float) -> Answer:
    """Return the answer of a callable that returned a JSON Schema or an iterable of values. A generator runs here, and
    is left when the time of the callable is over."""
    if isinstance(found, Mapping):
        return Answer(_interned(found), is_list=False)
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise TypeError(f"it returned {type(found).__name__}, not an iterable of values or a JSON Schema")
    values = []
    for value in found:
        values.append(value)
        if time.monotonic() >= end:
            raise TimeoutError
    return Answer(_listed(values))


# -- interned answers --------------------------------------------------------------------------------------------------


class _Schema(dict[str, Any]):
    """A schema of values that equal answers share, so that its nodes are made once."""

    __slots__ = ("__weakref__",)


_SCHEMAS: weakref.WeakValueDictionary[str, _Schema] = weakref.WeakValueDictionary()
_SCHEMAS_LOCK = shared_lock(sys.modules[__name__], "_SCHEMAS_LOCK", threading.Lock())


def _interned(schema: Mapping[str, Any]) -> _Schema:
    key = json.dumps(schema, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    key.encode()  # a lone surrogate is no text of JSON
    with _SCHEMAS_LOCK:
        found = _SCHEMAS.get(key)
        if found is None:
            found = _SCHEMAS[key] = _Schema(json.loads(key))
        return found


def _listed(values: list[Any]) -> dict[str, Any] | None:
    """Return the schema of a list of values; None if it is empty."""
    plain = [
        value.value if hasattr(value, "value") and hasattr(type(value), "__members__") else value for value in values
    ]
    return _interned({"enum": plain}) if plain else None


# -- reading -----------------------------------------------------------------------------------------------------------

_SPACE = " \t\n\r"
_DECODER = json.JSONDecoder()


def read_open(text: str) -> list[dict[str, Any]]:
    """Return the objects that are open at the end of a text, innermost first, each with its complete members.

    The text is JSON, perhaps with other text before it.
    """
    for begin, char in enumerate(text):
        if char in "{[":
            found = _open_from(text, begin)
            if found is not None:
                return found
    return []


def _open_from(text: str, at: int) -> list[dict[str, Any]] | None:
    """Return the open objects of a JSON text from an index; None if it is not one."""
    objects: list[dict[str, Any]] = []
    brackets = [text[at]]
    names: list[str | None] = [None]
    if text[at] == "{":
        objects.insert(0, {})
    at += 1
    end = len(text)
    while True:
        while at < end and text[at] in _SPACE + ",":
            at += 1
        if at >= end:
            return objects
        in_object = brackets[-1] == "{"
        if text[at] in "}]":
            if text[at] != ("}" if in_object else "]"):
                return None
            done = objects.pop(0) if in_object else None
            brackets.pop()
            names.pop()
            at += 1
            if not brackets:
                return None  # the document is complete
            if names[-1] is not None and brackets[-1] == "{" and in_object:
                objects[0][names[-1]] = done
            continue
        if in_object:
            try:
                name, at = _DECODER.raw_decode(text, at)
            except ValueError:
                return objects if text[at] == '"' and _is_open_string(text, at) else None
            if not isinstance(name, str):
                return None
            while at < end and text[at] in _SPACE:
                at += 1
            if at >= end:
                return objects
            if text[at] != ":":
                return None
            at += 1
            while at < end and text[at] in _SPACE:
                at += 1
            if at >= end:
                return objects
            names[-1] = name
        try:
            value, then = _DECODER.raw_decode(text, at)
        except ValueError:
            if text[at] in "{[":
                brackets.append(text[at])
                names.append(None)
                if text[at] == "{":
                    objects.insert(0, {})
                at += 1
                continue
            return objects if text[at] in '"-+.0123456789tfnTFN' else None
        at = then
        if in_object and names[-1] is not None:
            objects[0][names[-1]] = value


def _is_open_string(text: str, at: int) -> bool:
    """Return True if the string that begins at an index does not end."""
    at += 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at >= len(text)
