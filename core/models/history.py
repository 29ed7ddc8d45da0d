"""Conversations as a chat template takes them: what it refuses or leaves out is said in another way."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, Union

from ..basics.logs import logger_of
from ..conversation.messages import Message, TextPart
from ..errors import ModelError
from .prompts import thinking_variables, with_system
from .template_shape import Turn, message_shape, render, shaped, template_variables

if TYPE_CHECKING:
    from ..generation.params import ToolInterface

_LOG = logger_of("models")

#: The line before declarations of tools in the middle of a prompt.
DECLARED = "Declaration of the function to call:"

T = TypeVar("T")

#: Renders turns by a template, with tools and further variables; may raise any exception.
Render = Callable[[list[Turn], Union[list[Any], None], dict[str, Any]], T]


def first_rendered(
    source: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    tool_prompt: str,
    render: Render[T],
    thinking: bool | None = None,
) -> T:
    """Return the result of ``render`` for a conversation in the first shape that the template accepts and in which it
    writes all calls and their texts.

    Args:
        source: the template.
        messages: the conversation.
        tools: passed to the template if it supports tools.
        tool_prompt: added to the system turn if it does not, or if there are no tools.
        render: renders the turns.
        thinking: enables or disables reasoning, if not None; a variable of the template.

    Raises:
        ModelError: the template refuses the conversation in every shape, or omits a call; the error names the message
            and the reason.
    """
    problem: Exception | None = None  # the first one, of the detected shape
    lost: set[str] = set()
    without_text: list[T] = []  # results that lack only the text of a turn with calls
    variables = thinking_variables(thinking)
    for turns, declared in _attempts(source, messages, tools, tool_prompt):
        given = {**template_variables(source, declared or []), **variables}
        try:
            result = render(turns, declared, given)
        except ModelError:
            raise
        except Exception as error:  # a template is a program, which may raise any exception
            problem = problem or error
            continue
        left_out = _left_out(source, turns, declared or [], given)
        if not left_out:
            return result
        if left_out == {_TEXT}:
            without_text.append(result)
        lost |= left_out
    if without_text:
        _LOG.warning("the chat template omits the assistant's text next to calls")
        return without_text[0]
    if lost - {_TEXT}:
        raise ModelError(
            f"the model's chat template leaves out calls of the history: {', '.join(sorted(lost - {_TEXT}))}",
            hint="choose another tool_format, such as 'hermes', which writes calls into the history as text",
        )
    assert problem is not None
    hint = "check the order of roles; several templates require alternating user and assistant messages"
    raise ModelError(
        f"the model's chat template refuses the conversation: {problem}{_blamed(source, messages, render)}",
        hint=hint if thinking is None else f"{hint}; or leave out thinking={thinking}",
    ) from problem


#: The name of the text of a turn with calls, in the result of `_left_out`.
_TEXT = ""

#: Private-use characters, which mark calls and texts.
_MARKS = 0xF1000


def _left_out(
    source: str, turns: Sequence[Turn], tools: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
) -> set[str]:
    """Return the names of the calls that a template omits, and `_TEXT` if it omits a text of a turn with calls; empty
    for a conversation without calls. Each name and text gets a mark of its own, which is looked for in the prompt."""
    if not any(turn.get("tool_calls") for turn in turns):
        return set()
    marks: dict[str, str] = {}  # what each mark is for: the name of a call, or `_TEXT`

    def marked(text: str, name: str) -> str:
        mark = chr(_MARKS + len(marks))
        marks[mark] = name
        return text + mark

    marked_turns: list[Turn] = []
    for turn in turns:
        if turn.get("tool_calls"):
            calls = []
            for call in turn["tool_calls"]:
                name = call["function"]["name"]
                calls.append({**call, "function": {**call["function"], "name": marked(name, name)}})
            turn = {**turn, "tool_calls": calls}
        if turn["role"] == "assistant" and isinstance(turn["content"], str) and turn["content"]:
            turn = {**turn, "content": marked(turn["content"], _TEXT)}
        marked_turns.append(turn)
    try:
        text = render(source, marked_turns, tools, **variables)
    except Exception:  # for example, a name that is unknown to the template: nothing can be tested
        return set()
    names = {call["id"]: call["function"]["name"] for turn in turns for call in turn.get("tool_calls", ())}
    # Some templates write only the id, such as functions.NAME:0.
    by_id = {name for call_id, name in names.items() if name in call_id and call_id in text}
    lost = {name for mark, name in marks.items() if mark not in text and json.dumps(mark)[1:-1] not in text}
    return lost - by_id


def _attempts(
    source: str, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], tool_prompt: str
) -> Iterator[tuple[list[Turn], list[Any] | None]]:
    """Yield the turns of the conversation in different shapes, the detected one first, each with the tools for the
    template: those of the request, simpler ones, or none (None, and an empty list for templates that count their tools
    without a test for None). A template without tools gets ``tool_prompt`` in the system turn."""
    shape = message_shape(source)
    nine = replace(shape, ids="nine")
    own = [dict(tool) for tool in tools] if shape.shows_tools else []
    with_tools = [own, [_simple(tool) for tool in own]] if own else []
    for declared in (*with_tools, None, []):
        conversation = list(messages) if declared else with_system(messages, tool_prompt)
        if not shape.shows_system:
            conversation = _without_system(conversation)
        for variant in (shape, nine, replace(shape, text="after"), replace(nine, text="after")):
            yield shaped(conversation, variant), declared
        if conversation and conversation[0].role == "system":  # for templates that refuse system turns
            yield shaped(_without_system(conversation), shape), declared


def with_declarations(
    messages: Sequence[Message], tools: ToolInterface, brief: Collection[str], called: Sequence[str]
) -> list[Message]:
    """Return a conversation with the declaration of each brief tool before its first call: in the message before that
    turn, at the beginning of a user's and at the end of another.

    So the prompt of the next turn begins with the tokens that the model has read. Behind the user's words, small models
    copied defaults and examples of the declaration into the call (``benchmarks/answers/tools_in_prompt.py``).

    Args:
        messages: the conversation.
        tools: the tools.
        brief: names of the tools that the prompt does not declare.
        called: names of tools that the answer has called so far.
    """
    turns: list[Message] = []
    declared: set[str] = set()

    def declare(names: Iterable[str]) -> None:
        """Add the declarations of the tools among ``names`` that have none yet to the last turn so far."""
        new = [name for name in dict.fromkeys(names) if name in brief and name not in declared]
        if new:
            declared.update(new)
            text = f"{DECLARED}\n{tools.declarations(new)}"
            if turns:
                turns[-1] = _with_text(turns[-1], text)
            else:
                turns.append(Message("system", text))

    for message in messages:
        declare(call.name for call in message.tool_calls)
        turns.append(message)
    declare(called)
    return turns


def _with_text(message: Message, text: str) -> Message:
    """Return a message with one more paragraph: at the beginning of a user's, at the end of another."""
    if message.role == "user":
        return _with_text_first(message, text)
    content = message.content
    if isinstance(content, str):
        return replace(message, content=f"{content}\n\n{text}" if content else text)
    return replace(message, content=(*content, TextPart(f"\n\n{text}")))


def _with_text_first(message: Message, text: str) -> Message:
    """Return a message with one more paragraph at its beginning."""
    content = message.content
    if isinstance(content, str):
        return replace(message, content=f"{text}\n\n{content}")
    return replace(message, content=(TextPart(f"{text}\n\n"), *content))


def _without_system(messages: list[Message]) -> list[Message]:
    """Return a conversation with the text of its system turn moved to the beginning of the user's text."""
    if not messages or messages[0].role != "system":
        return messages
    text, rest = messages[0].text, messages[1:]
    if not rest or rest[0].role != "user":
        return [Message("user", text), *rest]
    return [_with_text_first(rest[0], text), *rest[1:]]


def _simple(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool whose subschemas all have a description and a single type, which some templates expect."""

    def simple(schema: Any) -> Any:
        """Return a schema whose properties have a description and a type, and no subschema a list of types; what is no
        object is unchanged."""
        if not isinstance(schema, Mapping):
            return schema
        plain = {key: simple(value) for key, value in schema.items() if key != "properties"}
        if isinstance(plain.get("type"), list):
            plain["type"] = next((kind for kind in plain["type"] if kind != "null"), "null")
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            default = {"description": "", "type": "object"}
            plain["properties"] = {
                name: {**default, **simple(value)} if isinstance(value, Mapping) else value
                for name, value in properties.items()
            }
        return plain

    function = tool.get("function", tool)
    parameters = {"type": "object", "properties": {}, "required": [], **simple(function.get("parameters", {}))}
    simpler = {"description": "", **function, "parameters": parameters}
    return {**tool, "function": simpler} if "function" in tool else simpler


def _blamed(source: str, messages: Sequence[Message], render: Render[Any]) -> str:
    """Return a description, for an error, of the first message that a template refuses."""
    shape = message_shape(source)
    for count, message in enumerate(messages, 1):
        try:
            render(shaped(messages[:count], shape), None, template_variables(source, []))
        except Exception:  # a template may raise any exception
            return f" (at message {count} of {len(messages)}, of the {message.role})"
    return ""
