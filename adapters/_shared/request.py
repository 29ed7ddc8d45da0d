"""`Request`: generation with retries until an answer passes the validators of its Pydantic class.

The grammar enforces the schema of the class. A validator of the class can only check the complete value. If it rejects
the value, the model is asked again with the message of the validator, a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_origin

from pydantic import BaseModel, ValidationError

from toolgrammar.core.conversation import Finish, Generation, Message, Usage
from toolgrammar.core.errors import InvalidArgumentsError
from toolgrammar.core.generation import MAX_RETRIES, GenerateParams
from toolgrammar.core.models import AsyncStream, Model, Stream

from .answers import problem, require_whole
from .loaded_model import guarantee


@dataclass(frozen=True)
class Validators:
    """The validators of a class that an answer is to become an instance of.

    Attributes:
        model: the class, of Pydantic 2 or of its version 1.
        tool: the tool whose arguments are the answer; None if the text is.
        must_pass: raise an error if no answer passes; False hands on the last one, for the framework's own parser.
    """

    model: type[Any]
    tool: str | None = None
    must_pass: bool = True

    def problems(self, generation: Generation) -> list[str]:
        """Return the messages of the validators; empty for other calls, and for cut answers."""
        if generation.cut:
            return []
        if self.tool is None:
            return [] if generation.tool_calls else self._problems(generation.text)
        calls = [call for call in generation.tool_calls if call.name == self.tool and problem(call) is None]
        return [message for call in calls for message in self._problems(call.arguments_text)]

    def _problems(self, text: str) -> list[str]:
        """Return what the validators say against a JSON text, ``["at n: must be even"]``; empty if it passes."""
        read = getattr(self.model, "model_validate_json", None) or self.model.parse_raw
        try:
            read(text)
        except ValueError as error:  # of both versions of Pydantic
            if isinstance(error, ValidationError):
                return [_described(line) for line in error.errors(include_url=False, include_context=False)]
            return [_described(line) for line in error.errors()] if hasattr(error, "errors") else [str(error)]
        return []


def _described(error: Any) -> str:
    return f"at {'/'.join(map(str, error['loc'])) or '(root)'}: {error['msg']}"


def validators_of(schema: Any, tool: str | None = None, *, must_pass: bool = True) -> Validators | None:
    """Return the validators of a Pydantic class; None for any other schema, and for a class that has none."""
    if not isinstance(schema, type) or get_origin(schema) is not None:  # list[int] is a type to Python 3.10
        return None
    if issubclass(schema, BaseModel):
        schema.model_rebuild()  # a class that was not complete when it was made
        has_any = _mentions_functions(schema.__pydantic_core_schema__, set())
    else:
        has_any = callable(getattr(schema, "parse_raw", None))  # of version 1, which does not tell
    return Validators(schema, tool, must_pass) if has_any else None


def _mentions_functions(schema: Any, seen: set[int]) -> bool:
    """Return True if a core schema of Pydantic calls a function to validate a value."""
    if id(schema) in seen:
        return False
    seen.add(id(schema))
    if isinstance(schema, dict):
        # Serialisers are functions as well, and see no input.
        inner = [value for key, value in schema.items() if key not in ("serialization", "metadata")]
        return str(schema.get("type", "")).startswith("function-") or any(_mentions_functions(v, seen) for v in inner)
    return isinstance(schema, (list, tuple)) and any(_mentions_functions(part, seen) for part in schema)


class _Attempts:
    """The answers to a conversation until one passes: each that does not is added to it, with what is wrong."""

    def __init__(self, messages: Sequence[Message], check: Validators) -> None:
        self.messages = list(messages)
        self._check = check
        self._usage = Usage()
        self._attempts = 0

    def accept_or_retry(self, generation: Generation) -> Generation | None:
        """Return an answer that is handed on; else add it to the messages, with what is wrong, and return None.

        Raises:
            InvalidArgumentsError: the model was asked as often as allowed, and the answer must pass.
        """
        self._attempts += 1
        self._usage += generation.usage
        wrong = self._check.problems(generation)
        if wrong and self._attempts <= MAX_RETRIES:
            again = "That is not valid: " + "; ".join(wrong[:5]) + "."
            self.messages.append(generation.message)
            if generation.tool_calls:
                self.messages += [
                    Message("tool", again, tool_call_id=call.id, name=call.name, is_error=True)
                    for call in generation.tool_calls
                ]
            else:
                self.messages.append(Message("user", f"{again} Answer with JSON alone that is."))
            return None
        if wrong and self._check.must_pass:
            raise InvalidArgumentsError(
                f"in {self._attempts} attempts, no answer passed the validators of "
                f"{self._check.model.__name__}: {'; '.join(wrong[:3])}",
                hint="put the validators' constraints into the schema, or into the prompt",
            )
        return replace(generation, usage=self._usage)


@dataclass(frozen=True)
class Request:
    """One request of a framework, ready for the model.

    Attributes:
        model: who answers.
        messages: the conversation.
        params: the options, with the tools and the shape of the answer.
        validators: what the answer must pass besides, or None.
        allow_cut: hand on structured answers that the token budget closed by force.
    """

    model: Model
    messages: Sequence[Message]
    params: GenerateParams
    validators: Validators | None = None
    allow_cut: bool = False

    def check(self, end: Finish | Generation) -> None:
        """Refuse a structured answer that the token budget cut, unless such answers are wanted.

        Raises:
            BudgetError: the token budget ran out inside the structured answer.
        """
        if not self.allow_cut:
            require_whole(end, self.params)

    def details(self, end: Finish | Generation) -> dict[str, Any]:
        """Return how an answer was held to what was asked for: ``guarantee`` (see `guarantee`), and for a model on a
        server ``form``, ``left_out`` and ``attempts`` (see `RemoteGeneration`)."""
        return {"guarantee": guarantee(self.model, self.params), **end.details}

    def generate(self) -> Generation:
        """Return the answer; ask again while a validator objects."""
        if self.validators is None:
            return self.model.generate(self.messages, self.params)
        attempts = _Attempts(self.messages, self.validators)
        while True:
            answer = self.model.generate(attempts.messages, self.params)
            if (generation := attempts.accept_or_retry(answer)) is not None:
                return generation

    async def agenerate(self) -> Generation:
        """Do what `generate` does without blocking the event loop."""
        if self.validators is None:
            return await self.model.agenerate(self.messages, self.params)
        attempts = _Attempts(self.messages, self.validators)
        while True:
            answer = await self.model.agenerate(attempts.messages, self.params)
            if (generation := attempts.accept_or_retry(answer)) is not None:
                return generation

    def stream(self) -> Stream:
        """Return the stream of the answer; with validators all at once, since nothing is certain before they pass."""
        if self.validators is not None:
            return Stream.of(self.generate)
        return self.model.stream(self.messages, self.params)

    def astream(self) -> AsyncStream:
        """Do what `stream` does without blocking the event loop."""
        if self.validators is not None:
            return AsyncStream.of(self.agenerate)
        return self.model.astream(self.messages, self.params)
