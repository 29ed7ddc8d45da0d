"""Execution of the calls of a tool set: checked, allowed by a policy, confirmed by a person, run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from inspect import isawaitable
from typing import Any

from typing_extensions import Self

from toolgrammar.core.conversation import Message, ToolCall

from .calling import (
    ToolResult,
    arun,
    as_call,
    call_span,
    failure,
    prepare,
    require_approved,
    run,
    without_arguments,
)
from .tool import Tool


class Execution(ABC):
    """The part of a tool set that runs calls."""

    @abstractmethod
    def __getitem__(self, name: str) -> Tool: ...

    @abstractmethod
    def validate(self, call: ToolCall | Mapping[str, Any]) -> ToolCall:
        """Return a call if it is valid."""

    @abstractmethod
    def under(self, policy: Any) -> Self:
        """Return the tools that a policy allows."""

    @abstractmethod
    def in_conversation(self, messages: Sequence[Message]) -> Self:
        """Return the tools for a conversation."""

    def call(
        self,
        call: ToolCall | Mapping[str, Any],
        *,
        allow_cut: bool = False,
        timeout: float | None = None,
        policy: Any = None,
        messages: Sequence[Message] | None = None,
        approve: Any = None,
    ) -> Any:
        """Validate a call, run it and return the function's result, or the instance for a tool made of a class.

        Args:
            call: the call; a dict of it as in `validate`.
            allow_cut: run it even if the token budget cut some of its values.
            timeout: seconds that it may take, or None. An ordinary function cannot be stopped: it goes on in its
                thread, and its result is dropped.
            policy: a `Policy`, its data or the path of its file: the call must be allowed by it; None: by that of
                `under`, if there is one.
            messages: the conversation before the call, in which a policy is judged.
            approve: a function of the call that says True if a person confirms it, or True: somebody did.

        Raises:
            UnknownToolError: no such tool.
            InvalidArgumentsError: the arguments do not match the schema or the function's types, or are cut.
            ToolTimeoutError: the seconds are over.
            PolicyError: nobody confirmed the call, there is no conversation, or the policy is malformed.
            ToolCallError: the tool has no function, or an async one while an event loop is running (use `acall`).
            Exception: whatever the function raises.
        """
        valid, verdict = self._ready(call, policy, messages, approve)
        require_approved(valid, verdict)
        tool = self[valid.name]
        with call_span(tool, valid) as tell:
            return tell(run(tool, prepare(tool, valid, allow_cut=allow_cut), timeout))

    async def acall(
        self,
        call: ToolCall | Mapping[str, Any],
        *,
        allow_cut: bool = False,
        timeout: float | None = None,
        policy: Any = None,
        messages: Sequence[Message] | None = None,
        approve: Any = None,
    ) -> Any:
        """Do what `call` does without blocking: await async functions (cancelled in time), run others in a thread."""
        valid, verdict = self._ready(call, policy, messages, approve)
        require_approved(valid, await verdict if isawaitable(verdict) else verdict)
        tool = self[valid.name]
        with call_span(tool, valid) as tell:
            return tell(await arun(tool, prepare(tool, valid, allow_cut=allow_cut), timeout))

    def _ready(
        self, call: ToolCall | Mapping[str, Any], policy: Any, messages: Sequence[Message] | None, approve: Any
    ) -> tuple[ToolCall, Any]:
        """Return a valid call, and a person's verdict on it: that of ``approve``, which may have to be awaited; True if
        no person needs to confirm it."""
        tools = self if policy is None else self.under(policy)
        valid = (tools if messages is None else tools.in_conversation(messages)).validate(call)
        if not valid.ask:
            return valid, True
        return valid, approve(valid) if callable(approve) else approve is True

    def execute(
        self,
        call: ToolCall | Mapping[str, Any],
        *,
        allow_cut: bool = False,
        timeout: float | None = None,
        policy: Any = None,
        messages: Sequence[Message] | None = None,
        approve: Any = None,
    ) -> ToolResult:
        """Do what `call` does, and return every failure as a result that a model can read."""
        read = without_arguments(call)
        try:
            read = as_call(call)
            under: dict[str, Any] = {"policy": policy, "messages": messages, "approve": approve}
            return ToolResult(read, self.call(read, allow_cut=allow_cut, timeout=timeout, **under))
        except (Exception, SystemExit) as error:  # the model reads whatever a tool raises
            return failure(read, error)

    async def aexecute(
        self,
        call: ToolCall | Mapping[str, Any],
        *,
        allow_cut: bool = False,
        timeout: float | None = None,
        policy: Any = None,
        messages: Sequence[Message] | None = None,
        approve: Any = None,
    ) -> ToolResult:
        """Do what `acall` does, and return every failure as a result that a model can read."""
        read = without_arguments(call)
        try:
            read = as_call(call)
            under: dict[str, Any] = {"policy": policy, "messages": messages, "approve": approve}
            return ToolResult(read, await self.acall(read, allow_cut=allow_cut, timeout=timeout, **under))
        except (Exception, SystemExit) as error:  # the model reads whatever a tool raises
            return failure(read, error)
