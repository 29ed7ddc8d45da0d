"""Running a call: arguments become the function's own types, the result or the failure becomes a message.

Nothing is evaluated: a call is a name looked up in the tool set, and JSON arguments that are validated and coerced by
Pydantic.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from ..core.errors import InvalidArgumentsError, Place, ToolCallError
from ..core.messages import Message, ToolCall
from .functions import arguments_error
from .tool import Tool


@dataclass(frozen=True)
class ToolResult:
    """What came of a call.

    Attributes:
        call: the call.
        value: what the tool returned; None if it failed.
        error: why it failed, in words that a model can read, or None.
    """

    call: ToolCall
    value: Any = None
    error: str | None = None

    def to_message(self) -> Message:
        """The message of role ``tool`` that tells the model."""
        content = self.error if self.error is not None else result_text(self.value)
        return Message("tool", content, tool_call_id=self.call.id, name=self.call.name, is_error=self.error is not None)


def result_text(value: Any) -> str:
    """A tool's result as text: strings as they are, everything else as JSON, or as ``str`` when JSON cannot say it."""
    if isinstance(value, str):
        return value
    try:
        return TypeAdapter(Any).dump_json(value).decode()
    except (ValueError, TypeError):
        return str(value)


def prepare(tool: Tool, call: ToolCall, *, allow_cut: bool = False) -> Callable[[], Any]:
    """The call, ready to run: a function of no arguments that runs it.

    Raises:
        InvalidArgumentsError: a value was cut short by the token budget (unless allowed), or a validator of the
            function's types refuses one.
        ToolCallError: the tool has nothing to run.
    """
    if call.cut and not allow_cut:
        raise InvalidArgumentsError(
            f"the call is valid but not whole: the token budget cut {', '.join(p or '(root)' for p in call.cut)}",
            hint="raise max_tokens and ask again, or run it with allow_cut=True",
            place=Place(tool=tool.name, pointer=call.cut[0]),
        )
    if tool.function is not None:
        function = tool.function
        arguments = tool.binder(call.arguments) if tool.binder is not None else dict(call.arguments)
        return lambda: function(**arguments)
    if tool.model is not None:
        instance = _build(tool, tool.model, call)
        return lambda: instance
    raise ToolCallError(
        f"the tool {tool.name!r} has no function to run",
        hint="make the tool from a function, or run the call yourself",
        place=Place(tool=tool.name),
    )


def run(tool: Tool, action: Callable[[], Any]) -> Any:
    """Run a prepared call of a function that is not async.

    Raises:
        ToolCallError: the function is async.
    """
    if tool.function is not None and _is_async(tool.function):
        raise _async_error(tool)
    value = action()
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise _async_error(tool)
    return value


async def arun(tool: Tool, action: Callable[[], Any]) -> Any:
    """Run a prepared call: async functions are awaited, others run in a thread."""
    if tool.function is None or _is_async(tool.function):
        value = action()
    else:
        value = await asyncio.to_thread(action)
    return await value if inspect.isawaitable(value) else value


def describe_failure(error: BaseException) -> str:
    """An exception in words that a model can act on, without a traceback."""
    if isinstance(error, ToolCallError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _async_error(tool: Tool) -> ToolCallError:
    return ToolCallError(
        f"the function of tool {tool.name!r} is async", hint="use acall instead of call", place=Place(tool=tool.name)
    )


def _build(tool: Tool, model: type[Any], call: ToolCall) -> Any:
    """An instance of the tool's class."""
    text = json.dumps(dict(call.arguments))
    try:
        if issubclass(model, BaseModel):
            return model.model_validate_json(text)
        if dataclasses.is_dataclass(model) or issubclass(model, dict):
            from .typed_dicts import readable

            return TypeAdapter(readable(model)).validate_json(text)
        return model.parse_raw(text)  # a model of Pydantic version 1
    except ValidationError as error:
        raise arguments_error(error, tool.name) from error
    except ValueError as error:
        raise InvalidArgumentsError(f"the arguments do not fit: {error}", place=Place(tool=tool.name)) from error
