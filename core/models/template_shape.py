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
            ``"after"``: before the next text of the assistant; ``"dropped"``: omitted.
        several: a turn may have several calls.
        reasoning: the key of the reasoning; ``"part"``: a part of the content; ``"content"``: before the text of a turn
            of calls.
        writes_calls: the template writes calls.
        shows_tools: the template describes its tools.
        shows_system: the template writes both a system turn and the tools.
        parts: the content of each turn is a list of parts, also if it is a text.
    """

    arguments: Literal["object", "text", "values", "literals"] = "object"
    empty: str | None = ""
    ids: Literal["own", "nine", "counted"] = "own"
    text: Literal["beside", "before", "after", "dropped"] = "beside"
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
    shapes = [
        MessageShape(arguments=arguments, empty=empty, ids=ids)  # type: ignore[arg-type]
        for ids, arguments, empty in product(
            ("own", "nine", "counted"), ("object", "text", "values", "literals"), ("", None)
        )
    ]
    scores = [_score(source, shape, [call]) for shape in shapes]
    shape = shapes[scores.index(max(scores))]
    shape = replace(
        shape,
        writes_calls=max(scores) >= 2,
        shows_tools=bool(_probe_tools(source)) and _described(source) != 0,
        shows_system=_shows_system(source),
        parts=takes_parts(source),
    )
    if not shape.writes_calls:
        return replace(shape, several=False)
    two = Message("assistant", "", tool_calls=(probe_call(0), probe_call(1)))
    shape = replace(shape, several=_rendered(source, shape, [two]).count("probe_beta") > _described(source))
    for text in ("beside", "before", "dropped"):
        shape = replace(shape, text=text)
        written = _rendered(source, shape, [replace(call, content="Saying.")])
        if "Saying." in written and _has_call(source, written):
            break
    keys = [key for key in _REASONING if re.search(rf"\b{key}\b", source)]
    for key in (*keys, "part", _REASONING[0]):
        shape = replace(shape, reasoning=key)
        written = _rendered(source, shape, [replace(call, reasoning="Thinking.")])
        is_part_shown = "'thinking'" in written  # Python's `repr` of the part, instead of its text
        if "Thinking." in written and not is_part_shown and _has_call(source, written):
            break
    return shape


def probe_call(number: int) -> ToolCall:
    """Return one of two calls of `PROBE_TOOLS`; its id has nine letters and digits, which every template accepts."""
    return ToolCall(f"probeAb0{number}", ("probe_alpha", "probe_beta")[number], PROBE_ARGUMENTS)


def _rendered(source: str, shape: MessageShape, messages: Sequence[Message]) -> str:
    """Return a probe as a template renders it; empty if it refuses the probe."""
    # Not the call's name, so that a result does not look like a call.
    results = [Message("tool", "Result.", tool_call_id=call.id, name="answered") for call in messages[-1].tool_calls]
    for following in (results, [*results, Message("assistant", "Answer."), Message("user", "More.")], []):
        try:
            return render(source, [_QUESTION, *shaped([*messages, *following], shape)], _probe_tools(source))
        except Exception:  # a template may raise any exception; the next conversation is shorter
            continue
    return ""


def _score(source: str, shape: MessageShape, messages: Sequence[Message]) -> int:
    """Return a score of the parts of a probe that a template writes in a shape: 0 if it refuses the probe, 1 if it
    writes no call, else more for the values of the arguments, for their form, and for the result."""
    text = _rendered(source, shape, messages)
    if not text or not _has_call(source, text):
        return int(bool(text))
    is_escaped = re.search("&(#34|quot);", text.rpartition("Question.")[2]) is not None  # as in HTML
    has_values = "Qaz7" in text and "Wsx8" in text and not is_escaped
    return 2 + 2 * has_values + (not _GARBLED.search(text)) + ("Result." in text)


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
    """Return False if a template omits a system turn, or omits the tools if there is one."""
    system: Turn = {"role": "system", "content": "Instructions."}
    for tools in dict.fromkeys((bool(_probe_tools(source)), False)):
        known = PROBE_TOOLS if tools else ()
        try:
            alone = render(source, [_QUESTION], known).count("probe_alpha")
            text = render(source, [system, _QUESTION], known)
        except Exception:  # the turn is refused: `first_rendered` handles that
            continue
        if "Instructions." not in text or text.count("probe_alpha") < alone:
            return False
    return True


# -- shaping a conversation ------------------------------------------------------------------------------------


def shaped(messages: Sequence[Message], shape: MessageShape) -> list[Turn]:
    """Return the turns that a template of this shape reads: arguments, ids, and texts beside calls are rewritten."""
    turns: list[Turn] = []
    ids: dict[str, str] = {}  # those of the calls so far, in the template's form
    taken: list[str] = []  # all of these, also of equal ids
    for message in with_call_ids(messages):
        turn: Turn = {"role": message.role, "content": _content(message)}
        if message.tool_calls:
            calls = []
            for call in message.tool_calls:
                ids[call.id] = _id(call.id, call.name, len(taken), shape, taken)
                taken.append(ids[call.id])
                function = {"name": call.name, "arguments": _arguments(call, shape)}
                calls.append({"type": "function", "id": ids[call.id], "function": function})
            if message.text and shape.text == "before":
                turns.append(dict(turn))
            if message.text and shape.text == "after":
                turn[_SAID] = message.text
            # With "dropped", the text is nowhere: the template shows none.
            turn["content"] = message.text if message.text and shape.text == "beside" else shape.empty
            turn["tool_calls"] = calls
        if message.role == "tool":
            call_id = message.tool_call_id or ""
            turn["tool_call_id"] = ids.get(call_id, call_id)
            turn["name"] = message.name or ""
        if message.reasoning:
            _add_reasoning(turn, message.reasoning, shape)
        turns.append(turn)
    if shape.text == "after":
        turns = _with_texts_after(turns)
    if not shape.several:
        turns = _one_call_a_turn(turns, shape.empty)
    return [_in_parts(turn) for turn in turns] if shape.parts else turns


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


#: Temporary key of the text of a turn of calls, until `_with_texts_after` moves it.
_SAID = "said before the calls"


def _with_texts_after(turns: Sequence[Turn]) -> list[Turn]:
    """Move the text of each turn with calls (under `_SAID`) to the beginning of the assistant's next text turn.

    If the assistant has no text turn before the user's next turn, the moved text becomes a separate turn, before the
    turns of calls."""
    placed: list[Turn] = []
    said: list[str] = []
    first = 0  # the index of a separate turn
    for turn in [*turns, None]:
        if turn is not None and _SAID in turn:
            first = first if said else len(placed)
            said.append(turn.pop(_SAID))
        elif said and (turn is None or not (turn["role"] == "tool" or turn.get("tool_calls"))):
            text = "\n\n".join(said)
            if turn is not None and turn["role"] == "assistant" and isinstance(turn["content"], str):
                turn = {**turn, "content": f"{text}\n\n{turn['content']}"}
            else:
                placed.insert(first, {"role": "assistant", "content": text})
            said = []
        if turn is not None:
            placed.append(turn)
    return placed


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
    elif shape.reasoning == "content":
        turn["content"] = f"{reasoning}\n\n{turn['content'] or ''}".rstrip("\n")
    else:
        turn[shape.reasoning] = reasoning


def _id(given: str, name: str, number: int, shape: MessageShape, taken: Collection[str]) -> str:
    """Return the id of a call in the form of the shape; an id that has it is unchanged.

    Args:
        given: the id.
        name: name of the tool.
        number: number of calls before this one.
        shape: the shape.
        taken: the ids of the calls before.
    """
    if shape.ids == "nine" and not re.fullmatch("[A-Za-z0-9]{9}", given):
        short = re.sub("[^A-Za-z0-9]", "", given)[-9:].rjust(9, "0")
        return short if short not in taken else hashlib.sha256(f"{given} {number}".encode()).hexdigest()[:9]
    if shape.ids == "counted" and not re.fullmatch(r"(?:functions\.)?[^:]+:[0-9]+", given):
        return f"functions.{name}:{number}"
    return given


def _one_call_a_turn(turns: Sequence[Turn], empty: str | None) -> list[Turn]:
    """Return a conversation with each call in a separate turn, followed by its results."""
    apart: list[Turn] = []
    index = 0
    while index < len(turns):
        turn = turns[index]
        index += 1
        if len(turn.get("tool_calls", ())) < 2:
            apart.append(turn)
            continue
        results: list[Turn] = []
        while index < len(turns) and turns[index]["role"] == "tool":
            results.append(turns[index])
            index += 1
        for number, call in enumerate(turn["tool_calls"]):
            base = turn if number == 0 else {"role": turn["role"], "content": empty}
            apart.append({**base, "tool_calls": [call]})
            own = [result for result in results if result["tool_call_id"] == call["id"]]
            apart += own
            results = [result for result in results if not any(result is one for one in own)]
        apart += results
    return apart
