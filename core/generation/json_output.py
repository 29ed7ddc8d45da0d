"""JSON of models that are not, or not wholly, held to it: told of the schema, judged, and converted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from ..conversation.events import Generation, Usage
from ..conversation.messages import Message, TextPart
from ..errors import BudgetError, InvalidArgumentsError, ParseError
from ..repair import extract_json, may_go_on
from ..validation import violations
from .params import JsonMode


def judge(generation: Generation, mode: JsonMode, rules: Any) -> tuple[Any, list[str]]:
    """Return the value of an answer, and what is wrong with it as far as its grammar did not prevent that.

    Raises:
        BudgetError: nothing constrained the answer, and the token budget ended inside its JSON.
    """
    if mode.constrained_decoding and mode.strict:
        return json.loads(generation.text), []
    cut = not mode.constrained_decoding and generation.finish_reason == "length"
    try:
        value = extract_json(generation.text, repair=mode.repair and not cut)
    except ParseError as error:
        value, wrong = None, [error.message]
    else:
        wrong = list(violations(value, rules))
    if cut and (wrong or may_go_on(value)):
        raise BudgetError("the token budget ended inside the answer", hint="raise max_tokens")
    return value, wrong


def check_text(text: str, schema: Any) -> None:
    """Check a JSON text against what its grammar did not enforce.

    Raises:
        InvalidArgumentsError: it is not valid.
    """
    wrong = list(violations(json.loads(text), schema))
    if wrong:
        raise InvalidArgumentsError(
            f"the answer is not valid under the schema: {'; '.join(wrong[:3])}",
            hint="generate_json asks the model again; json_mode.strict=True names what cannot be enforced",
        )


def converted(value: Any, schema: Any) -> tuple[Any, list[str]]:
    """The instance of a Pydantic class, and what its validators have against it; any other schema changes nothing."""
    check: Callable[[str], Any] | None = getattr(schema, "model_validate_json", None)
    if not callable(check):
        return value, []
    from pydantic import ValidationError

    try:
        return check(json.dumps(value)), []  # strict fields take a date from JSON, and not from a string of Python's
    except ValidationError as error:
        return None, [
            f"at {'/'.join(map(str, each['loc'])) or '(root)'}: {each['msg']}"
            for each in error.errors(include_url=False)
        ]


def with_instructions(messages: Sequence[Message], schema: Any) -> tuple[Message, ...]:
    """The conversation with the schema in its last message of the user: nothing else tells a free model of it."""
    text = f"Answer with JSON alone, valid under this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user":
            content = (
                f"{message.content}\n\n{text}"
                if isinstance(message.content, str)
                else (*message.content, TextPart(f"\n\n{text}"))
            )
            return (*messages[:index], replace(message, content=content), *messages[index + 1 :])
    return (*messages, Message("user", text))


def summed(one: Usage, other: Usage) -> Usage:
    """The usage of two answers together."""
    return Usage(**{each.name: getattr(one, each.name) + getattr(other, each.name) for each in fields(Usage)})
