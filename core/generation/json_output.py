"""JSON answers that a grammar enforces partly or not at all: instructions, validation, conversion, retries."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..basics.logs import logger_of
from ..conversation.events import Generation, Usage
from ..conversation.messages import Message, TextPart
from ..errors import BudgetError, InvalidArgumentsError, ParseError, ToolGrammarError
from ..repair import extract_json, may_go_on, respelled_json
from ..validation import violations
from .live_shape import LiveShape, plain_shape
from .mismatch import where_it_stops
from .params import JsonMode
from .plan import adapter_of, is_python_type

if TYPE_CHECKING:
    from ..conversation.trace import Trace
    from .driver import Logits, Released
    from .token_sequence import Forward

_LOG = logger_of("models")

#: Maximum number of retries after invalid JSON.
MAX_RETRIES = 2


def ask_until_valid(
    write: Callable[[Sequence[Message]], Generator[Forward | Released, Logits | None, Generation]],
    messages: Sequence[Message],
    mode: JsonMode,
    rules: Any,
    *,
    name: str,
    convert: bool,
) -> Generator[Forward | Released, Logits | None, Generation]:
    """Write answers until one is valid JSON; each retry tells the model the errors.

    Args:
        write: writes one answer to a conversation, without its events.
        messages: the conversation.
        mode: the options of the JSON answer.
        rules: the JSON Schema that the value must satisfy.
        name: the model's name, for the log.
        convert: the value must also be valid for the Python type ``mode.schema``.

    Returns:
        The first valid answer, with the token counts and the traces of all answers.

    Raises:
        InvalidArgumentsError: no answer was valid.
        BudgetError: the token budget ended inside the JSON of an unconstrained answer.
    """
    usage = Usage()
    wrong: list[str] = []
    refused: list[Trace] = []
    attempts = 1 + (MAX_RETRIES if mode.repair else 0)
    for attempt in range(1, attempts + 1):
        generation = yield from write(messages)
        usage += generation.usage
        value, wrong = judge(generation, mode, rules)
        if not wrong and convert:
            wrong = converted(value, mode.schema)[1]
        if not wrong:
            text = generation.text if mode.constrained_decoding else json.dumps(value, ensure_ascii=False)
            message = replace(generation.message, content=text)
            trace = generation.trace and replace(generation.trace, earlier=tuple(refused))
            reason = generation.finish_reason if generation.cut else "stop"
            return replace(generation, message=message, finish_reason=reason, usage=usage, trace=trace)
        if generation.trace is not None:
            refused.append(replace(generation.trace, problems=tuple(wrong)))
        _LOG.info("answer %d of at most %d of %s is not valid; problems: %d", attempt, attempts, name, len(wrong))
        _LOG.debug("problems of answer %d: %s", attempt, wrong)
        again = "That is not valid: " + "; ".join(wrong[:5]) + ". Answer with JSON alone that is."
        messages = (*messages, generation.message, Message("user", again))
    if mode.constrained_decoding and mode.strict:  # its JSON was valid
        shape = plain_shape(mode.schema)
        raise InvalidArgumentsError(
            f"no answer passed the validators of {getattr(shape, '__name__', shape)}, of {attempts} that "
            f"were asked for: {'; '.join(wrong[:3])}",
            hint="put what the validators ask for into the schema, or into the prompt",
        )
    in_prompt, constrained = "give the value's constraints in the prompt, too", "use constrained_decoding=True"
    raise InvalidArgumentsError(
        f"the model's answer is not valid JSON for the schema: {'; '.join(wrong[:3])}",
        hint=in_prompt if mode.constrained_decoding else constrained,
    )


def judge(generation: Generation, mode: JsonMode, rules: Any) -> tuple[Any, list[str]]:
    """Return the value of an answer, and the violations that its grammar did not prevent.

    With ``mode.repair``, a value that violates the schema is replaced by that of the text with its spelling mistakes
    repaired (`respelled_json`), if that is valid.

    Raises:
        BudgetError: the answer was unconstrained, and the token budget ended inside its JSON.
    """
    if mode.constrained_decoding and mode.strict:
        return read_value(generation.text), []
    truncated = not mode.constrained_decoding and generation.finish_reason == "length"
    try:
        value = extract_json(generation.text, repair=mode.repair and not truncated)
    except ParseError as error:
        stops = where_it_stops(generation.text, rules)
        value, wrong = None, [f"{error.message}; {stops}" if stops else error.message]
    else:
        wrong = list(violations(value, rules))
    if wrong and mode.repair and not truncated and mode.grammar is None:
        with suppress(ToolGrammarError):
            meant = respelled_json(generation.text, rules)
            if not list(violations(meant, rules)):
                value, wrong = meant, []
    if not wrong and isinstance(mode.schema, LiveShape) and not mode.constrained_decoding:
        wrong = mode.schema.problems(value)
    if truncated and (wrong or may_go_on(value)):
        raise BudgetError("the token budget ended inside the answer", hint="raise max_tokens")
    return value, wrong


def read_value(text: str) -> Any:
    """Return the JSON value of a constrained answer.

    Raises:
        InvalidArgumentsError: the grammar is not one of JSON texts.
    """
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidArgumentsError(
            "the answer is not JSON, as its grammar allows", hint="use generate(...).text for texts of this grammar"
        ) from None


def value_in(text: str, shape: Any) -> Any:
    """Return the value of an answer: for a Python type, an instance.

    Args:
        text: the text of the answer.
        shape: a Python type, a JSON Schema, or a `Grammar` of JSON.

    Raises:
        InvalidArgumentsError: the grammar is not one of JSON texts, or the validators of the type refuse the value.
    """
    value, wrong = converted(read_value(text), shape)
    if wrong:
        raise InvalidArgumentsError(
            f"the answer is valid under the schema, but not for {getattr(shape, '__name__', shape)}: "
            f"{'; '.join(wrong[:3])}",
            hint="generate_json asks the model again; or put what the validators ask for into the schema",
        )
    return value


def check_text(text: str, schema: Any) -> None:
    """Check a JSON text against the keywords that its grammar does not enforce.

    Raises:
        InvalidArgumentsError: it is not valid.
    """
    wrong = list(violations(json.loads(text), schema))
    if wrong:
        raise InvalidArgumentsError(
            f"the answer is not valid under the schema: {'; '.join(wrong[:3])}",
            hint="generate_json asks the model again; json_mode.strict=True names what cannot be enforced",
        )


def converts(shape: Any) -> bool:
    """Return True for a Python type, whose validators may reject values that its schema allows; False for a JSON
    Schema."""
    shape = plain_shape(shape)
    return callable(getattr(shape, "model_validate_json", None)) or is_python_type(shape)


def converted(value: Any, shape: Any) -> tuple[Any, list[str]]:
    """Return the instance of a Python type for a JSON value, and the errors of the type's validators.

    Args:
        value: the JSON value.
        shape: a Pydantic class or another Python type; for a JSON Schema the value is returned unchanged.
    """
    if not converts(shape):
        return value, []
    shape = plain_shape(shape)
    check: Callable[[str], Any] | None = getattr(shape, "model_validate_json", None)
    if not callable(check):
        check = adapter_of(shape).validate_json
    from pydantic import ValidationError

    try:
        return check(json.dumps(value)), []  # strict fields accept a date from JSON text, but not from a Python string
    except ValidationError as error:
        return None, [
            f"at {'/'.join(map(str, problem['loc'])) or '(root)'}: {problem['msg']}"
            for problem in error.errors(include_url=False)
        ]


def with_instructions(messages: Sequence[Message], schema: Any) -> tuple[Message, ...]:
    """Return the conversation with the schema at the end of the user's last message, for an unconstrained model."""
    text = f"Answer with JSON alone, valid under this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"
    last = max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)
    if last < 0:
        return (*messages, Message("user", text))
    old = messages[last].content
    new = f"{old}\n\n{text}" if isinstance(old, str) else (*old, TextPart(f"\n\n{text}"))
    return (*messages[:last], replace(messages[last], content=new), *messages[last + 1 :])
