"""Execution of calls: arguments become the function's own types, the result or the failure becomes a message.

Nothing is evaluated: a call is a name looked up in the tool set, and JSON arguments that are validated and coerced by
Pydantic.
"""

from __future__ import annotations

import contextvars
import dataclasses
import inspect
import json
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolgrammar.core.basics import Span
from toolgrammar.core.conversation import ImagePart, Message, TextPart, ToolCall
from toolgrammar.core.errors import (
    InvalidArgumentsError,
    Place,
    PolicyError,
    ToolCallError,
    ToolGrammarError,
    ToolTimeoutError,
)

from .formats import new_call_id
from .formats.base import decode_object
from .tool import Tool

#: Maximum length of the error text in a result, in characters.
MAX_ERROR_LENGTH = 2_000
#: Code of an exception that the tool itself raised; other codes are of errors of this library.
FAILED = "tool_failed"
_EXAMPLE = 'for example {"name": "add", "arguments": {"a": 1}}'


@dataclass(frozen=True)
class ToolResult:
    """Result of a call: a value or an error.

    Attributes:
        call: the call.
        value: the tool's return value; None if it failed.
        error: reason of the failure, for the model to read, or None.
        code: kind of the failure, or None: the ``code`` of one of our errors (``unknown_tool``,
            ``invalid_arguments``, ``tool_timeout``, ...), or ``tool_failed`` for an exception of the tool itself.
        pointer: JSON pointer to the argument that is wrong, where one is.
    """

    call: ToolCall
    value: Any = None
    error: str | None = None
    code: str | None = None
    pointer: str | None = None

    @property
    def is_error(self) -> bool:
        """True if the call failed."""
        return self.error is not None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-like data: ``{"result": ...}``, or ``{"error": {"code": ..., "message": ..., ...}}``."""
        if self.error is None:
            from pydantic import TypeAdapter

            return {"result": TypeAdapter(Any).dump_python(self.value, mode="json", fallback=str)}
        fields = {"code": self.code, "message": self.error, "tool": self.call.name, "pointer": self.pointer}
        return {"error": {key: value for key, value in fields.items() if value is not None}}

    def to_message(self) -> Message:
        """Return the message of role ``tool`` for the model."""
        content: Any = self.error if self.error is not None else self.value
        if self.error is None and not _is_parts(content):
            content = result_text(content)
        return Message("tool", content, tool_call_id=self.call.id, name=self.call.name, is_error=self.error is not None)


def failure(call: ToolCall, error: BaseException) -> ToolResult:
    """Return the result of a failed call: the exception as text that a model can act on, without a traceback."""
    code = error.code if isinstance(error, ToolGrammarError) else FAILED
    pointer = error.place.pointer if isinstance(error, ToolGrammarError) else None
    return ToolResult(call, error=describe_failure(error), code=code, pointer=pointer)


def as_call(source: ToolCall | Mapping[str, Any]) -> ToolCall:
    """Return the call that a server or framework describes.

    Args:
        source: a `ToolCall`, or a dict of OpenAI (``function`` with JSON text as ``arguments``), Anthropic (``input``),
            LangChain (``args``), or plainly ``name`` and ``arguments``.

    Raises:
        ToolCallError: it has no name.
        InvalidArgumentsError: the arguments are not a JSON object.
    """
    if isinstance(source, ToolCall):
        if isinstance(source.arguments, Mapping):
            return source
        raise _not_an_object(source.arguments, source.name)
    if not isinstance(source, Mapping):
        raise ToolCallError(f"a call is a ToolCall or a dict, not {type(source).__name__}", hint=_EXAMPLE)
    body = _body(source)
    name = body.get("name")
    if not isinstance(name, str):
        raise ToolCallError("the call has no name", hint=_EXAMPLE)
    if source.get("type") in ("custom", "custom_tool_call"):  # OpenAI's custom tools
        body = {"arguments": {"input": body.get("input")}}
    key = next((key for key in ("arguments", "args", "input") if key in body), None)
    arguments = body[key] if key is not None else None
    raw = arguments if isinstance(arguments, str) else None
    if raw is not None:
        try:
            arguments = decode_object(raw) if raw.strip() else {}
        except ValueError as error:
            raise InvalidArgumentsError(
                f"the arguments cannot be read: {error}", hint="write a JSON object", place=Place(tool=name)
            ) from None
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, Mapping):
        raise _not_an_object(arguments, name)
    return ToolCall(_id(source) or new_call_id(), name, arguments, raw=raw)


def without_arguments(source: object) -> ToolCall:
    """Return a call that `as_call` may refuse with its id and its name alone, each empty if it has none."""
    if isinstance(source, ToolCall):
        return ToolCall(source.id, source.name, {})
    if not isinstance(source, Mapping):
        return ToolCall("", "", {})
    name = _body(source).get("name")
    return ToolCall(_id(source), name if isinstance(name, str) else "", {})


def _body(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a call that has its name and arguments."""
    inner = source.get("custom" if source.get("type") == "custom" else "function")
    return inner if isinstance(inner, Mapping) else source


def _id(source: Mapping[str, Any]) -> str:
    """Return the id of a call, which its result repeats. (An item of OpenAI's responses has an id of its own, too.)"""
    return str(source.get("call_id") or source.get("id") or "")


def _not_an_object(arguments: object, tool: object) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"the arguments must be a JSON object, not {type(arguments).__name__}",
        hint='for example {"a": 1}',
        place=Place(tool=tool if isinstance(tool, str) else None),
    )


def result_text(value: Any) -> str:
    """Return a tool's result as text: a string as it is, else its JSON, or its ``str`` if it has none."""
    if isinstance(value, str):
        return value
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(Any).dump_json(value).decode()
    except (ValueError, TypeError):
        return str(value)


def prepare(tool: Tool, call: ToolCall, *, allow_cut: bool = False) -> Callable[[], Any]:
    """Return a function of no arguments that runs a call.

    Raises:
        InvalidArgumentsError: a value was cut short by the token budget (unless allowed), or a validator of the
            function's types refuses one.
        ToolCallError: the tool has nothing to run.
    """
    if call.cut and not allow_cut:
        raise InvalidArgumentsError(
            f"the call is valid but truncated: the token budget cut {', '.join(p or '(root)' for p in call.cut)}",
            hint="raise max_tokens and ask again, or run it with allow_cut=True",
            place=Place(tool=tool.name, pointer=call.cut[0]),
        )
    if tool.function is not None:
        function = tool.function
        positional, named = ((), dict(call.arguments)) if tool.binder is None else tool.binder(call.arguments)
        return lambda: function(*positional, **named)
    if tool.model is not None:
        instance = _build(tool, tool.model, call)
        return lambda: instance
    raise ToolCallError(
        f"the tool {tool.name!r} has no function to run",
        hint="make the tool from a function, or run the call yourself",
        place=Place(tool=tool.name),
    )


def require_approved(call: ToolCall, verdict: Any) -> None:
    """Raise a PolicyError unless a person's verdict on a call is True; a verdict of text is the reason for a no."""
    if verdict is not True:
        what = ", ".join(pointer or "the call" for pointer in call.ask)
        reason = verdict if isinstance(verdict, str) else f"a person must confirm {what}, and nobody did"
        raise PolicyError(reason, hint="give approve=, which asks a person", place=Place(tool=call.name))


@contextmanager
def call_span(tool: Tool, call: ToolCall) -> Iterator[Callable[[Any], Any]]:
    """Make a span of a call that runs in the block: ``with call_span(tool, call) as tell: return tell(result)``.

    The function ``tell`` records a result in the span, and returns the result.
    """
    attributes: dict[str, Any] = {
        "gen_ai.tool.name": tool.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": tool.description or None,
        "gen_ai.tool.call.id": call.id or None,
    }

    def described() -> dict[str, Any]:
        arguments = dict(call.arguments)
        written = json.dumps(arguments, ensure_ascii=False, default=str) if Span.has_contents() else None
        return {"toolgrammar.arguments_sha256": Span.digest(arguments), "gen_ai.tool.call.arguments": written}

    span = Span.begin("execute_tool", tool.name, attributes, more=described)
    if span is None:  # nobody records spans
        yield lambda result: result
        return

    def tell(result: Any) -> Any:
        with suppress(Exception):  # an object may fail to describe itself
            text = result_text(result)
            span.set({"toolgrammar.result_sha256": Span.digest(text), "gen_ai.tool.call.result": text})
        return result

    with span.running():
        yield tell


def run(tool: Tool, action: Callable[[], Any], timeout: float | None = None) -> Any:
    """Run a prepared call; an async function runs in an event loop of its own.

    Args:
        tool: the tool.
        action: the prepared call.
        timeout: seconds, or None. An async function is cancelled then; an ordinary one cannot be stopped: it continues
            in its thread, and its result is dropped.

    Raises:
        ToolCallError: the function is async, and this thread already runs an event loop.
        ToolTimeoutError: the seconds are over.
    """
    limit = _TimeLimit.beginning(timeout)
    if tool.function is not None and is_async(tool.function):
        return _run_async(tool, action, limit)

    def drained() -> Any:
        return _drained(action())

    value = drained() if limit is None else _in_time(tool, drained, limit)
    if inspect.isawaitable(value) or inspect.isasyncgen(value):  # an ordinary function may return a coroutine
        return _run_async(tool, lambda: value, limit)
    return value


async def arun(tool: Tool, action: Callable[[], Any], timeout: float | None = None) -> Any:
    """Run a prepared call: async functions are awaited, others run in a thread; ``timeout`` as in `run`."""
    if tool.function is None:
        return action()

    async def result() -> Any:
        if tool.function is not None and is_async(tool.function):
            return await _awaited(action())
        return await _awaited(await _in_thread(lambda: _drained(action())))

    return await _within(tool, result(), _TimeLimit.beginning(timeout))


def describe_failure(error: BaseException) -> str:
    """Return an exception as text that a model can act on, without a traceback."""
    if isinstance(error, ToolGrammarError):
        text = str(error)
    else:
        inner = getattr(error, "exceptions", None)
        while isinstance(inner, tuple) and len(inner) == 1:  # a group around one exception adds nothing
            error = inner[0]
            inner = getattr(error, "exceptions", None)
        try:
            message = re.sub(r"\n\s*For further information visit \S+", "", str(error)).strip()
        except Exception:  # an exception may fail to describe itself
            message = ""
        text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return text if len(text) <= MAX_ERROR_LENGTH else f"{text[: MAX_ERROR_LENGTH - 4]} ..."


def _is_parts(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(part, (TextPart, ImagePart)) for part in value)


def is_async(function: Callable[..., Any]) -> bool:
    """Return True if a function is to be awaited."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


class _TimeLimit(NamedTuple):
    """The time that a call may take.

    Attributes:
        seconds: what the caller allows.
        end: the time at which they are over, in seconds of `time.monotonic`.
    """

    seconds: float
    end: float

    @classmethod
    def beginning(cls, seconds: float | None) -> _TimeLimit | None:
        """Return the limit of a call that begins now; None for no limit."""
        return None if seconds is None else cls(seconds, time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """The seconds that are left, at least 0."""
        return max(self.end - time.monotonic(), 0.0)


def _run_async(tool: Tool, action: Callable[[], Any], limit: _TimeLimit | None) -> Any:
    """Run an async function of a tool, or await what an ordinary one returned, in an event loop of its own.

    Raises:
        ToolCallError: this thread has a running loop.
    """
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        # An ordinary function has run already, and the action only hands over its coroutine: close it, as nobody awaits
        # it. An async function is not called at all.
        value = action() if not is_async(tool.function or action) else None
        if inspect.iscoroutine(value):
            value.close()
        raise ToolCallError(
            f"the function of tool {tool.name!r} is async, and an event loop is running here",
            hint="use acall instead of call",
            place=Place(tool=tool.name),
        )

    async def result() -> Any:
        return await _within(tool, _awaited(action()), limit)

    return asyncio.run(result())


async def _awaited(value: Any) -> Any:
    """Return a value, awaited if need be; of an async generator, the list of what it yields."""
    if inspect.isasyncgen(value):
        return [item async for item in value]
    return await value if inspect.isawaitable(value) else value


def _drained(value: Any) -> Any:
    """Return a value; of a generator, the list of what it yields (which runs the tool)."""
    return list(value) if inspect.isgenerator(value) else value


async def _within(tool: Tool, work: Awaitable[Any], limit: _TimeLimit | None) -> Any:
    """Return the result of an awaitable, within a time limit; a TimeoutError of its own is passed on as it is."""
    if limit is None:
        return await work
    import asyncio

    async def contained() -> tuple[Any, SystemExit | None]:
        try:
            return await work, None
        except SystemExit as error:  # raised by a task, it would end the event loop
            return None, error

    task = asyncio.ensure_future(contained())
    try:
        done, _ = await asyncio.wait({task}, timeout=limit.left)
    finally:
        if not task.done():
            task.cancel()
    if not done:
        await asyncio.wait({task}, timeout=1)  # let it clean up
        raise _too_slow(tool, limit)
    value, exit_error = task.result()
    if exit_error is not None:
        raise exit_error
    return value


def _in_time(tool: Tool, action: Callable[[], Any], limit: _TimeLimit) -> Any:
    """Return the result of an action that runs in a thread of its own, within a time limit."""
    outcome: list[Any] = []
    is_over = threading.Event()

    def report(value: Any, error: BaseException | None) -> None:
        outcome.append((value, error))
        is_over.set()

    _start(action, report)
    if not is_over.wait(limit.left):
        raise _too_slow(tool, limit)
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


async def _in_thread(action: Callable[[], Any]) -> Any:
    """Return the result of an action that runs in a thread of its own.

    Not in the loop's own pool: closing that would wait for whatever still runs in it.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if not future.done():
            future.set_result((value, error))

    def report(value: Any, error: BaseException | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    _start(action, report)
    value, error = await future
    if error is not None:
        raise error
    return value


def _start(action: Callable[[], Any], report: Callable[[Any, BaseException | None], Any]) -> None:
    """Run an action in a daemon thread, with this thread's context variables; ``report`` is given its value, or None
    and its error, in that thread."""
    context = contextvars.copy_context()

    def work() -> None:
        try:
            value = context.run(action)
        except BaseException as error:  # raised where the result is waited for
            report(None, error)
        else:
            report(value, None)

    threading.Thread(target=work, name="toolgrammar-tool", daemon=True).start()


def _too_slow(tool: Tool, limit: _TimeLimit) -> ToolTimeoutError:
    return ToolTimeoutError(
        f"the tool {tool.name!r} took longer than {limit.seconds:g} seconds",
        hint="ask for less, or try again later",
        place=Place(tool=tool.name),
    )


def _build(tool: Tool, model: type[Any], call: ToolCall) -> Any:
    """Return an instance of the tool's class, built from the arguments of a call."""
    from pydantic import BaseModel, TypeAdapter, ValidationError

    from .sources.python import arguments_error, not_built
    from .sources.typed_dicts import readable

    text = json.dumps(dict(call.arguments))
    try:
        if issubclass(model, BaseModel):
            return model.model_validate_json(text)
        if dataclasses.is_dataclass(model) or issubclass(model, dict):
            return TypeAdapter(readable(model)).validate_json(text)
        return model.parse_raw(text)  # a model of Pydantic version 1
    except ValidationError as error:
        raise arguments_error(error, tool.name) from error
    except Exception as error:  # classes may have code of their own for this
        raise not_built(error, tool.name) from error
