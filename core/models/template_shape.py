"""The shape of messages that a chat template expects.

Templates expect different messages: arguments as an object or as JSON text, the content of a turn of calls empty or
missing, ids of a certain form, reasoning under one of several keys, one call in a turn or several. `message_shape`
detects this once for each template: it renders a probe conversation in shapes of arguments, empty content and ids,
takes the one of which the text has most, and then tries several calls, text and reasoning one after another.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, product
from typing import Any, Literal

from ..conversation.messages import Message, TextPart, ToolCall
from .call_ids import with_call_ids
from .jinja import compile_template

Turn = dict[str, Any]

#: Keys of the reasoning in templates.
_REASONING = ("reasoning_content", "reasoning", "thinking")


@dataclass(frozen=True)
class MessageShape:
    """The shape of messages that a chat template expects.

    Attributes:
        arguments: an ``"object"``; JSON ``"text"``; an object whose nested ``"values"`` are JSON text; or an object of
            which all values are JSON text, ``"literals"``.
        empty: the content of a turn of calls without text.
        ids: ``"own"``: unchanged; ``"nine"``: nine letters and digits; ``"counted"``: ``functions.NAME:NUMBER``.
        text: the text of a turn with calls: ``"beside"``: in the same turn; ``"before"``: in a separate turn before it;
            ``"after"``: before the next text of the assistant.
        several: a turn may have several calls.
        reasoning: the key of the reasoning; ``"part"``: a part of the content.
        writes_calls: the template writes calls.
        shows_tools: the template describes its tools.
        shows_system: the template writes both a system turn and the tools.
        parts: the content of each turn is a list of parts, also if it is a text.
    """

    arguments: Literal["object", "text", "values", "literals"] = "object"
    empty: str | None = ""
    ids: Literal["own", "nine", "counted"] = "own"
    text: Literal["beside", "before", "after"] = "beside"
    several: bool = True
    reasoning: str = "reasoning_content"
    writes_calls: bool = True
    shows_tools: bool = True
    shows_system: bool = True
    parts: bool = False


# -- learning the shape ----------------------------------------------------------------------------------------

PROBE_ARGUMENTS = {"word": "Qaz7", "list": [{"inner": "Wsx8"}], "count": 31}
_PROPERTIES = {
    "word": {"type": "string", "description": "A word."},
    "list": {
        "type": "array",
        "description": "A list.",
        "items": {"type": "object", "properties": {"inner": {"type": "string", "description": "A word."}}},
    },
    "count": {"type": "integer", "description": "A number."},
}
PROBE_TOOLS: tuple[Mapping[str, Any], ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "A tool.",
            "parameters": {"type": "object", "properties": _PROPERTIES, "required": ["word"]},
        },
    }
    for name in ("probe_alpha", "probe_beta")
)
_QUESTION: Turn = {"role": "user", "content": "Question."}

#: Score of a shape in which a template writes the probe without its call; see `_score`.
_NO_CALL = 1


def render(source: str, turns: Sequence[Turn], tools: Sequence[Mapping[str, Any]] = (), **variables: Any) -> str:
    """Return a conversation as a template renders it; may raise any exception."""
    given = {**template_variables(source, tools), "bos_token": "", "eos_token": "", **variables}
    told = [_in_parts(turn) for turn in turns] if takes_parts(source) else list(turns)
    text: str = compile_template(source).render(messages=told, tools=list(tools) or None, **given)
    return text


@lru_cache(maxsize=256)
def takes_parts(source: str) -> bool:
    """Return True if a template loses a text that is not in a list of parts, as those of many vision models do."""

    def written(turn: Turn) -> bool:
        try:
            return "Question." in compile_template(source).render(messages=[turn], bos_token="", eos_token="")
        except Exception:  # a template may raise any exception
            return False

    return not written(_QUESTION) and written(_in_parts(_QUESTION))


def _in_parts(turn: Turn) -> Turn:
    """Return a turn whose text is a list of parts."""
    content = turn.get("content")
    if not isinstance(content, str):
        return turn
    return {**turn, "content": [{"type": "text", "text": content}] if content else []}


def template_variables(source: str, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the variables that some templates need in addition to the usual ones."""
    variables: dict[str, Any] = {}
    if re.search(r"\bfunctions\b", source) and re.search(r"\bdatetime\b", source):  # Firefunction's
        variables["functions"] = json.dumps(list(tools), ensure_ascii=False, indent=4)
        variables["datetime"] = datetime.datetime.now().strftime("%B %d %Y %H:%M:%S")
    return variables


@lru_cache(maxsize=256)
def message_shape(source: str) -> MessageShape:
    """Return the shape of messages that a chat template expects.

    Raises:
        ModelError: the template has a syntax error.
    """
    compile_template(source)
    call = Message("assistant", "", tool_calls=(probe_call(0),))
    # Without the ids "nine": the probe's own ids have nine letters and digits, so `first_rendered` tries these.
    shapes = [
        MessageShape(arguments=arguments, empty=empty, ids=ids)  # type: ignore[arg-type]
        for ids, arguments, empty in product(("own", "counted"), ("object", "text", "values", "literals"), ("", None))
    ]
    scores = [_score(source, shape, call) for shape in shapes]
    best = max(scores)
    shape = replace(
        shapes[scores.index(best)],  # the first of several
        writes_calls=best > _NO_CALL,
        shows_tools=bool(_probe_tools(source)) and _described(source) != 0,
        shows_system=_shows_system(source),
        parts=takes_parts(source),
    )
    if not shape.writes_calls:
        return replace(shape, several=False)
    two = Message("assistant", "", tool_calls=(probe_call(0), probe_call(1)))
    shape = replace(shape, several=_rendered(source, shape, two).count("probe_beta") > _described(source))

    def first_shown(said: Message, field: str, *values: str) -> MessageShape:
        """Return the shape with the first value of a field with which the template writes what is said beside a call;
        with the last value, if there is none."""
        possible = [replace(shape, **{field: value}) for value in values]  # type: ignore[arg-type]
        return next((one for one in possible if _shows(source, one, said)), possible[-1])

    shape = first_shown(replace(call, content="Saying."), "text", "beside", "before", "beside")
    keys = [key for key in _REASONING if re.search(rf"\b{key}\b", source)]
    return first_shown(replace(call, reasoning="Saying."), "reasoning", *keys, "part", _REASONING[0])


def probe_call(number: int) -> ToolCall:
    """Return one of two calls of `PROBE_TOOLS`; its id has nine letters and digits, which every template accepts."""
    return ToolCall(f"probeAb0{number}", ("probe_alpha", "probe_beta")[number], PROBE_ARGUMENTS)


def _rendered(source: str, shape: MessageShape, turn: Message) -> str:
    """Return a probe as a template renders it: a question, a turn of calls, and the first of three continuations that
    the template accepts; empty if it accepts none."""
    # Not the call's name, so that a result does not look like a call.
    results = [Message("tool", "Result.", tool_call_id=call.id, name="answered") for call in turn.tool_calls]
    answered = [*results, Message("assistant", "Answer."), Message("user", "More.")]
    for following in (results, answered, []):
        try:
            return render(source, [_QUESTION, *shaped([turn, *following], shape)], _probe_tools(source))
        except Exception:  # a template may raise any exception
            continue
    return ""


def _score(source: str, shape: MessageShape, call: Message) -> int:
    """Return a score of the parts of a probe that a template writes in a shape: 0 if it refuses the probe, `_NO_CALL`
    if it writes no call, else more for the values of the arguments, for their form, and for the result."""
    text = _rendered(source, shape, call)
    if not text:
        return 0
    if not _has_call(source, text):
        return _NO_CALL
    is_escaped = re.search("&(#34|quot);", text.rpartition("Question.")[2]) is not None  # as in HTML
    has_values = "Qaz7" in text and "Wsx8" in text and not is_escaped
    return _NO_CALL + 1 + 2 * has_values + (not _GARBLED.search(text)) + ("Result." in text)


def _shows(source: str, shape: MessageShape, turn: Message) -> bool:
    """Return True if a template writes the call of a turn, and its text or reasoning ``Saying.``."""
    text = _rendered(source, shape, turn)
    is_repr = "'thinking'" in text  # of a part of the content, which Python has written instead of its text
    return "Saying." in text and not is_repr and _has_call(source, text)


def _has_call(source: str, text: str) -> bool:
    """Return True if a rendered probe names a tool of the probe more often than the description of its tools does."""
    return text.count("probe_alpha") > _described(source)


#: Signs of arguments in a wrong shape: Python's ``repr``, and strings quoted twice or not at all.
_GARBLED = re.compile(r"""\{'inner'|\{"\{|\{\{"|["'][\[{]+["\\]|\\"|=Qaz7\b""")


@lru_cache(maxsize=256)
def _probe_tools(source: str) -> tuple[Mapping[str, Any], ...]:
    """Return the tools of the probe; empty if the template refuses them."""
    try:
        render(source, [_QUESTION], PROBE_TOOLS)
    except Exception:  # a template may raise any exception
        return ()
    return PROBE_TOOLS


@lru_cache(maxsize=256)
def _described(source: str) -> int:
    """Return the number of mentions of the probe's tools in a prompt that describes them; -1 if the template refuses
    it."""
    try:
        return render(source, [_QUESTION], _probe_tools(source)).count("probe_alpha")
    except Exception:  # a template may raise any exception
        return -1


def _shows_system(source: str) -> bool:
    """Return False if a template omits a system turn (with tools or without), or omits the tools if there is one."""
    system: Turn = {"role": "system", "content": "Instructions."}
    for tools in (_probe_tools(source), ()):
        try:
            without_system = render(source, [_QUESTION], tools)
            text = render(source, [system, _QUESTION], tools)
        except Exception:  # the turn is refused: `first_rendered` handles that
            continue
        if "Instructions." not in text or text.count("probe_alpha") < without_system.count("probe_alpha"):
            return False
    return True


# -- shaping a conversation ------------------------------------------------------------------------------------


def shaped(messages: Sequence[Message], shape: MessageShape) -> list[Turn]:
    """Return the turns that a template of this shape reads: arguments, ids, and texts beside calls are rewritten."""
    given = with_call_ids(messages)
    if shape.text == "before":
        given = _with_texts_before(given)
    elif shape.text == "after":
        given = _with_texts_after(given)
    if not shape.several:
        given = _with_one_call_a_turn(given)
    turns: list[Turn] = []
    ids: dict[str, str] = {}  # those of the calls so far, in the template's form
    taken: list[str] = []  # all of these, also of equal ids
    for message in given:
        turn: Turn = {"role": message.role, "content": _content(message)}
        if message.tool_calls:
            turn["content"] = message.text or shape.empty
            turn["tool_calls"] = []
            for call in message.tool_calls:
                ids[call.id] = _id(call.id, call.name, shape, taken)
                taken.append(ids[call.id])
                function = {"name": call.name, "arguments": _arguments(call, shape)}
                turn["tool_calls"].append({"type": "function", "id": ids[call.id], "function": function})
        if message.role == "tool":
            call_id = message.tool_call_id or ""
            turn["tool_call_id"] = ids.get(call_id, call_id)
            turn["name"] = message.name or ""
        if message.reasoning:
            _add_reasoning(turn, message.reasoning, shape)
        turns.append(_in_parts(turn) if shape.parts else turn)
    return turns


def _with_texts_before(messages: Sequence[Message]) -> list[Message]:
    """Return a conversation in which the text of each turn with calls is a separate turn before it."""
    apart: list[Message] = []
    for message in messages:
        if message.tool_calls and message.text:
            apart.append(Message(message.role, message.content))
            message = replace(message, content="")
        apart.append(message)
    return apart


def _with_texts_after(messages: Sequence[Message]) -> list[Message]:
    """Return a conversation in which the text of each turn with calls is at the beginning of the assistant's next text.

    If there is none before the user's next turn, the text is a separate turn, before the turns of calls."""
    placed: list[Message] = []
    said: list[str] = []  # texts of the turns with calls since the last other turn
    first = 0  # the index in ``placed`` of the first turn that said something
    for message in [*messages, None]:  # None: what was said at the end is placed too
        is_within_calls = message is not None and (message.role == "tool" or message.tool_calls)
        if said and not is_within_calls:
            text = "\n\n".join(said)
            if message is not None and message.role == "assistant" and not message.images:
                message = replace(message, content=f"{text}\n\n{message.text}")
            else:
                placed.insert(first, Message("assistant", text))
            said = []
        if message is not None and message.tool_calls and message.text:
            first = first if said else len(placed)
            said.append(message.text)
            message = replace(message, content="")
        if message is not None:
            placed.append(message)
    return placed


def _with_one_call_a_turn(messages: Sequence[Message]) -> list[Message]:
    """Return a conversation with each call in a separate turn, followed by its results."""
    apart: list[Message] = []
    rest = deque(messages)
    while rest:
        message = rest.popleft()
        if len(message.tool_calls) < 2:
            apart.append(message)
            continue
        results: list[Message] = []
        while rest and rest[0].role == "tool":
            results.append(rest.popleft())
        for number, call in enumerate(message.tool_calls):
            turn = message if number == 0 else Message(message.role)
            apart.append(replace(turn, tool_calls=(call,)))
            apart += [result for result in results if result.tool_call_id == call.id]
            results = [result for result in results if result.tool_call_id != call.id]
        apart += results
    return apart


def _content(message: Message) -> Any:
    """Return the content of a turn: its text, or a list of parts if it has images. Adjacent texts are one, so that no
    name of a control token is in two of them."""
    if isinstance(message.content, str) or not message.images:
        return message.text
    parts: list[dict[str, Any]] = []
    for is_text, found in groupby(message.content, lambda part: isinstance(part, TextPart)):
        if is_text:
            parts.append({"type": "text", "text": "".join(getattr(part, "text", "") for part in found)})
        else:
            parts += ({"type": "image", "image": part} for part in found)
    return parts


def _arguments(call: ToolCall, shape: MessageShape) -> Any:
    """Return the arguments of a call, all of them or some of their values as JSON text if the shape requires it."""
    if shape.arguments == "text":
        return json.dumps(dict(call.arguments), ensure_ascii=False)

    def is_text(value: Any) -> bool:
        is_nested = isinstance(value, (dict, list, tuple))
        return shape.arguments == "literals" or (shape.arguments == "values" and is_nested)

    return {
        name: json.dumps(value, ensure_ascii=False) if is_text(value) else value
        for name, value in call.arguments.items()
    }


def _add_reasoning(turn: Turn, reasoning: str, shape: MessageShape) -> None:
    if shape.reasoning == "part":
        text = [{"type": "text", "text": turn["content"]}] if turn["content"] else []
        turn["content"] = [{"type": "thinking", "thinking": reasoning, "closed": True}, *text]
    else:
        turn[shape.reasoning] = reasoning


def _id(given: str, name: str, shape: MessageShape, taken: Collection[str]) -> str:
    """Return the id of a call in the form of the shape; an id that has it is unchanged.

    Args:
        given: the id.
        name: name of the tool.
        shape: the shape.
        taken: the ids of all calls before this one, in the form of the shape.
    """
    if shape.ids == "nine" and not re.fullmatch("[A-Za-z0-9]{9}", given):
        short = re.sub("[^A-Za-z0-9]", "", given)[-9:].rjust(9, "0")
        return short if short not in taken else hashlib.sha256(f"{given} {len(taken)}".encode()).hexdigest()[:9]
    if shape.ids == "counted" and not re.fullmatch(r"(?:functions\.)?[^:]+:[0-9]+", given):
        return f"functions.{name}:{len(taken)}"
    return given
