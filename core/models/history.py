"""Conversations in the shape that a chat template expects.

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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..basics.logs import logger_of
from ..conversation.messages import Message, TextPart
from ..errors import ModelError
from .jinja import compile_template
from .prompts import thinking_variables

if TYPE_CHECKING:
    from ..generation.params import ToolInterface

_LOG = logger_of("models")

#: The line before declarations of tools in the middle of a prompt.
DECLARED = "Declaration of the function to call:"

T = TypeVar("T")

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
    text: str = compile_template(source).render(messages=list(turns), tools=list(tools) or None, **given)
    return text


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
    )
    if not shape.writes_calls:
        return replace(shape, several=False)
    two = Message("assistant", "", tool_calls=(probe_call(0), probe_call(1)))
    shape = replace(shape, several=_rendered(source, shape, [two]).count("probe_beta") > _described(source))
    with_text = replace(call, content="Saying.")
    for text in ("beside", "before", "dropped"):
        shape = replace(shape, text=text)
        written = _rendered(source, shape, [with_text])
        if "Saying." in written and written.count("probe_alpha") > _described(source):
            break
    keys = [key for key in _REASONING if re.search(rf"\b{key}\b", source)]
    for key in (*keys, "part", _REASONING[0]):
        shape = replace(shape, reasoning=key)
        written = _rendered(source, shape, [replace(call, reasoning="Thinking.")])
        if "Thinking." in written and "'thinking'" not in written and written.count("probe_alpha") > _described(source):
            break
    return shape


def probe_call(number: int) -> Any:
    """Return one of two calls of `PROBE_TOOLS`."""
    from ..conversation.messages import ToolCall

    name = ("probe_alpha", "probe_beta")[number]
    return ToolCall(f"probeAb0{number}", name, PROBE_ARGUMENTS)


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
    """Return a score of the parts of a probe that a template writes in a shape."""
    text = _rendered(source, shape, messages)
    if not text:
        return 0
    plain = not _GARBLED.search(text)
    values = all(word in text for word in ("Qaz7", "Wsx8")) and not re.search(
        "&(#34|quot);", text.rpartition("Question.")[2]
    )
    in_turn = text.count("probe_alpha") > _described(source)
    return 1 + in_turn * (1 + 2 * values + plain + ("Result." in text))


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
    """Return the turns that a template of this shape reads: arguments, ids, and texts beside calls are rewritten. A
    result without an id answers the earliest unanswered call."""
    turns: list[Turn] = []
    names: dict[str, tuple[str, str]] = {}  # by id: the id in the template's form, and the name of the function
    taken: set[str] = set()
    unanswered: list[str] = []
    number = 0
    for message in messages:
        turn: Turn = {"role": message.role, "content": message.text}
        if message.tool_calls:
            calls = []
            unanswered = []
            for call in message.tool_calls:
                arguments: Any = dict(call.arguments)
                if shape.arguments == "text":
                    arguments = json.dumps(arguments, ensure_ascii=False)
                elif shape.arguments != "object":
                    arguments = {key: _as_text(value, shape) for key, value in arguments.items()}
                given = call.id or f"call_{number}"
                written = _id(given, call.name, number, shape, taken)
                taken.add(written)
                names[given] = written, call.name
                unanswered.append(given)
                calls.append(
                    {"type": "function", "id": written, "function": {"name": call.name, "arguments": arguments}}
                )
                number += 1
            if message.text and shape.text == "before":
                turns.append(dict(turn))
            if message.text and shape.text == "after":
                turn[_SAID] = message.text
            # With "dropped", the text is nowhere: the template shows none.
            turn["content"] = message.text if message.text and shape.text == "beside" else shape.empty
            turn["tool_calls"] = calls
        if message.role == "tool":
            given = message.tool_call_id or ""
            if not given and unanswered:
                given = unanswered[0]
            if given in unanswered:
                unanswered.remove(given)
            written, name = names.get(given, (given, ""))
            turn["tool_call_id"] = written
            turn["name"] = message.name or name
        if message.reasoning:
            _add_reasoning(turn, message.reasoning, shape)
        turns.append(turn)
    if shape.text == "after":
        turns = _with_texts_after(turns)
    return turns if shape.several else _one_call_a_turn(turns, shape.empty)


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


def _as_text(value: Any, shape: MessageShape) -> Any:
    """Return a value of the arguments as JSON text, if the shape requires it."""
    nested = isinstance(value, (dict, list, tuple))
    return json.dumps(value, ensure_ascii=False) if nested or shape.arguments == "literals" else value


def _add_reasoning(turn: Turn, reasoning: str, shape: MessageShape) -> None:
    if shape.reasoning == "part":
        text = [{"type": "text", "text": turn["content"]}] if turn["content"] else []
        turn["content"] = [{"type": "thinking", "thinking": reasoning, "closed": True}, *text]
    elif shape.reasoning == "content":
        turn["content"] = f"{reasoning}\n\n{turn['content'] or ''}".rstrip("\n")
    else:
        turn[shape.reasoning] = reasoning


def _id(given: str, name: str, number: int, shape: MessageShape, taken: set[str]) -> str:
    """Return the id of a call in the form of the shape; an id that has it is unchanged."""
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


def first_rendered(
    source: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    tool_prompt: str,
    render: Callable[[list[Turn], list[Any] | None, dict[str, Any]], T],
    thinking: bool | None = None,
) -> T:
    """Return the result of ``render`` for a conversation in the first shape that the template accepts and in which it
    writes all calls and their texts.

    Args:
        source: the template.
        messages: the conversation.
        tools: passed to the template if it supports tools.
        tool_prompt: added to the system turn if it does not, or if there are no tools.
        render: renders turns, with tools and further variables; may raise any exception.
        thinking: enables or disables reasoning, if not None; a variable of the template.

    Raises:
        ModelError: the template refuses the conversation in every shape, or omits a call; the error names the message
            and the reason.
    """
    problem: Exception | None = None
    lost: set[str] = set()
    silent: list[T] = []  # results that lack only the text of a turn with calls
    variables = thinking_variables(thinking)
    for turns, known in _attempts(source, messages, tools, tool_prompt):
        given = {**template_variables(source, known or []), **variables}
        try:
            result = render(turns, known, given)
        except ModelError:
            raise
        except Exception as error:  # a template is a program, which may raise any exception
            problem = problem or error
            continue
        left_out = _left_out(source, turns, known or [], given)
        if not left_out:
            return result
        if left_out == {_TEXT}:
            silent.append(result)
        lost |= left_out
    if silent:
        _LOG.warning("the chat template omits the assistant's text next to calls")
        return silent[0]
    if lost - {_TEXT}:
        raise ModelError(
            f"the model's chat template leaves out calls of the history: {', '.join(sorted(lost - {_TEXT}))}",
            hint="choose another tool_format, such as 'hermes', which writes calls into the history as text",
        )
    assert problem is not None
    if variables and _takes(source, messages, tools, tool_prompt, render):
        raise ModelError(
            f"the model's chat template refuses thinking={thinking}: {problem}", hint="leave out thinking"
        ) from problem
    raise ModelError(
        f"the model's chat template refuses the conversation: {problem}{_blamed(source, messages, render)}",
        hint="check the order of roles; several templates require alternating user and assistant messages",
    ) from problem


#: The name of the text of a turn with calls, in the result of `_left_out`.
_TEXT = ""

#: Private-use characters, which mark calls and texts.
_MARKS = 0xF1000


def _left_out(
    source: str, turns: Sequence[Turn], tools: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
) -> set[str]:
    """Return the names of the calls that a template omits, and `_TEXT` if it omits a text of a turn with calls; empty
    for a conversation without calls."""
    marks: dict[str, str] = {}

    def marked(text: str, name: str) -> str:
        mark = chr(_MARKS + len(marks))
        marks[mark] = name
        return text + mark

    told: list[Turn] = []
    for turn in turns:
        if turn.get("tool_calls"):
            functions = [call["function"] for call in turn["tool_calls"]]
            names = [{**function, "name": marked(function["name"], function["name"])} for function in functions]
            calls = [{**call, "function": name} for call, name in zip(turn["tool_calls"], names, strict=True)]
            turn = {**turn, "tool_calls": calls}
        if turn["role"] == "assistant" and isinstance(turn["content"], str) and turn["content"]:
            turn = {**turn, "content": marked(turn["content"], _TEXT)}
        told.append(turn)
    if not any(turn.get("tool_calls") for turn in turns):
        return set()
    try:
        text = render(source, told, tools, **variables)
    except Exception:  # for example, a name that is unknown to the template: nothing can be tested
        return set()
    ids = {call["id"]: call["function"]["name"] for turn in turns for call in turn.get("tool_calls", ())}
    by_id = {name for own, name in ids.items() if name in own and own in text}  # some templates write only the id
    lost = {name for mark, name in marks.items() if mark not in text and json.dumps(mark)[1:-1] not in text}
    return lost - by_id


def _takes(
    source: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    tool_prompt: str,
    render: Callable[[list[Turn], list[Any] | None, dict[str, Any]], Any],
) -> bool:
    """Return True if a template accepts a conversation without the variables of reasoning."""
    for turns, known in _attempts(source, messages, tools, tool_prompt):
        try:
            render(turns, known, template_variables(source, known or []))
        except Exception:  # a template may raise any exception
            continue
        return True
    return False


def _attempts(
    source: str, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], tool_prompt: str
) -> Iterator[tuple[list[Turn], list[Any] | None]]:
    """Yield the conversation in different shapes, the detected one first."""
    shape = message_shape(source)
    own = [dict(tool) for tool in tools] if shape.shows_tools else []
    described: list[list[Any] | None] = [own, [_simple(tool) for tool in own]] if own else []
    described += [None, []]  # some templates count their tools without a test for None
    for known in described:
        given = list(messages)
        if tool_prompt and not known:
            given = _with_system(given, tool_prompt)
        if not shape.shows_system:
            given = _without_system(given)
        nine = replace(shape, ids="nine")
        for variant in (
            shape,
            nine,
            replace(shape, empty=None if shape.empty == "" else ""),
            replace(shape, arguments="object" if shape.arguments == "text" else "text"),
            replace(shape, reasoning="content"),
            replace(shape, several=False),
            replace(shape, text="after"),
            replace(nine, text="after"),
            replace(shape, text="dropped"),
            replace(nine, text="dropped"),
        ):
            yield shaped(given, variant), known
        if given and given[0].role == "system":  # for templates that refuse system turns
            yield shaped(_without_system(given), shape), known
        yield shaped([replace(message, reasoning=None) for message in given], shape), known


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
    told: list[Message] = []
    known: set[str] = set()

    def declare(names: Iterable[str]) -> None:
        new = [name for name in dict.fromkeys(names) if name in brief and name not in known]
        if new:
            known.update(new)
            text = f"{DECLARED}\n{tools.declarations(new)}"
            if told:
                told[-1] = _with_text(told[-1], text)
            else:
                told.append(Message("system", text))

    for message in messages:
        if message.tool_calls:
            declare(call.name for call in message.tool_calls)
        told.append(message)
    declare(called)
    return told


def _with_text(message: Message, text: str) -> Message:
    """Return a message with one more paragraph: at the beginning of a user's, at the end of another."""
    if message.role == "user":
        return _begun(message, text)
    parts = message.content
    content = (f"{parts}\n\n{text}" if parts else text) if isinstance(parts, str) else (*parts, TextPart(f"\n\n{text}"))
    return replace(message, content=content)


def _begun(message: Message, text: str) -> Message:
    """Return a message with one more paragraph at its beginning."""
    parts = message.content
    content = f"{text}\n\n{parts}" if isinstance(parts, str) else (TextPart(f"{text}\n\n"), *parts)
    return replace(message, content=content)


def _with_system(messages: list[Message], text: str) -> list[Message]:
    if messages and messages[0].role == "system":
        return [replace(messages[0], content=f"{messages[0].text}\n\n{text}"), *messages[1:]]
    return [Message("system", text), *messages]


def _without_system(messages: list[Message]) -> list[Message]:
    """Return a conversation with the text of its system turn moved to the beginning of the user's text."""
    if not messages or messages[0].role != "system":
        return messages
    text, rest = messages[0].text, messages[1:]
    if not rest or rest[0].role != "user":
        return [Message("user", text), *rest]
    return [_begun(rest[0], text), *rest[1:]]


def _simple(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool whose subschemas all have a description and a single type, which some templates expect."""

    def simple(schema: Any) -> Any:
        if not isinstance(schema, Mapping):
            return schema
        plain = {key: simple(value) for key, value in schema.items() if key not in ("properties",)}
        if isinstance(plain.get("type"), list):
            plain["type"] = next((kind for kind in plain["type"] if kind != "null"), "null")
        if isinstance(schema.get("properties"), Mapping):
            plain["properties"] = {
                name: {"description": "", "type": "object", **inner}
                if isinstance(inner := simple(value), dict)
                else inner
                for name, value in schema["properties"].items()
            }
        return plain

    function = tool.get("function", tool)
    parameters = {"type": "object", "properties": {}, "required": [], **simple(function.get("parameters", {}))}
    simpler = {"description": "", **function, "parameters": parameters}
    return {**tool, "function": simpler} if "function" in tool else simpler


def _blamed(
    source: str, messages: Sequence[Message], render: Callable[[list[Turn], list[Any] | None, dict[str, Any]], Any]
) -> str:
    """Return a description, for an error, of the first message that a template refuses."""
    shape = message_shape(source)
    for count, message in enumerate(messages, 1):
        try:
            render(shaped(messages[:count], shape), None, template_variables(source, []))
        except Exception:  # a template may raise any exception
            return f" (at message {count} of {len(messages)}, of the {message.role})"
    return ""
