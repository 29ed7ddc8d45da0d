"""Prompts of local models: conversations for chat templates, and a default for models without one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..conversation.messages import ImagePart, Message, ToolCall
from ..errors import ModelError
from ..vocabulary.vocabulary import Vocabulary


def refuse_images(messages: Sequence[Message]) -> None:
    """Refuse images, for a model that cannot see.

    Raises:
        ModelError: a message has an image.
    """
    for message in messages:
        if not isinstance(message.content, str) and any(isinstance(part, ImagePart) for part in message.content):
            raise ModelError(f"this model cannot see the image in a message of the {message.role}", hint="send text")


def template_turns(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], tool_prompt: str, template: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the ``messages`` and the ``tools`` for a chat template.

    Args:
        messages: the conversation.
        tools: handed to the template if it knows tools.
        tool_prompt: put into the system turn if it does not, or if there are no tools for it.
        template: the template's text.
    """
    turns = [_template_message(message) for message in messages]
    if tools and "tools" in template:
        return turns, [dict(tool) for tool in tools]
    if tool_prompt:
        if turns and turns[0]["role"] == "system":
            turns[0]["content"] = f"{turns[0]['content']}\n\n{tool_prompt}"
        else:
            turns.insert(0, {"role": "system", "content": tool_prompt})
    return turns, []


def with_calls_in_turn(
    turns: list[dict[str, Any]], render: Callable[[list[dict[str, Any]]], str]
) -> list[dict[str, Any]]:
    """Return a conversation whose calls a chat template writes: one call in each turn, if it takes only one.

    Some templates refuse a turn with several calls, and some write the first one alone. Each call then becomes a turn
    of its own, with its result after it, as the model would have made them one after the other.

    Args:
        turns: as `template_turns` gives them.
        render: the template, as text; may raise whatever a template may.
    """
    several = [turn for turn in turns if len(turn.get("tool_calls", ())) > 1]
    if not several:
        return turns
    marked, marks = _with_marked_names(turns)
    try:
        text = render(marked)
    except Exception:  # a template is a program of the model's: it may raise anything
        return _one_call_a_turn(turns)
    return turns if all(mark in text for mark in marks) else _one_call_a_turn(turns)


def _with_marked_names(turns: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a conversation in which each call has a name that is nowhere else, and these names."""
    marks: list[str] = []

    def marked(call: dict[str, Any]) -> dict[str, Any]:
        marks.append(f"call{len(marks)}of{id(turns)}x")
        return {**call, "function": {**call["function"], "name": marks[-1]}}

    return [
        {**turn, "tool_calls": [marked(call) for call in turn["tool_calls"]]} if "tool_calls" in turn else turn
        for turn in turns
    ], marks


def _one_call_a_turn(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation with each call in a turn of its own, and the results of a call after it."""
    apart: list[dict[str, Any]] = []
    index = 0
    while index < len(turns):
        turn = turns[index]
        index += 1
        if len(turn.get("tool_calls", ())) < 2:
            apart.append(turn)
            continue
        results: list[dict[str, Any]] = []
        while index < len(turns) and turns[index]["role"] == "tool":
            results.append(turns[index])
            index += 1
        for number, call in enumerate(turn["tool_calls"]):
            base = turn if number == 0 else {"role": turn["role"], "content": ""}
            apart.append({**base, "tool_calls": [call]})
            own = [result for result in results if call["id"] and result["tool_call_id"] == call["id"]]
            # Results without ids are in the order of the calls.
            own = own or [result for result in results if not result["tool_call_id"]][:1]
            apart += own
            results = [result for result in results if not any(result is one for one in own)]
        apart += results
    return apart


def spelled_history(messages: Sequence[Message]) -> list[Message]:
    """Return a conversation for a model that was never trained for tools: calls as text, results in plain words.

    Small models say a result again if they are asked to, and otherwise go on with calls.
    """
    spelled: list[Message] = []
    results: list[Message] = []
    for message in messages:
        if message.role == "tool":
            results.append(message)
            continue
        if results:
            spelled.append(_spelled_results(results))
            results = []
        if message.tool_calls:
            calls = "\n".join(f"<tool_call>\n{call_json(call)}\n</tool_call>" for call in message.tool_calls)
            message = replace(message, content=f"{message.text}\n{calls}".lstrip("\n"), tool_calls=())
        spelled.append(message)
    if results:
        spelled.append(_spelled_results(results))
    return spelled


def _spelled_results(results: Sequence[Message]) -> Message:
    lines = [f"The result of {message.name or 'the call'} is: {message.text}" for message in results]
    what = "this result" if len(lines) == 1 else "these results"
    return Message("user", "\n".join(lines) + f"\n\nWrite one short English sentence with {what}.")


def thinking_variables(thinking: bool | None) -> dict[str, bool]:
    """Return the template variables for or against reasoning, under their usual names.

    Qwen's and GLM's ask for ``enable_thinking``, DeepSeek's and Granite's for ``thinking``.
    """
    return {} if thinking is None else {"enable_thinking": thinking, "thinking": thinking}


def plain_prompt(
    messages: Sequence[Message],
    tool_prompt: str,
    vocabulary: Vocabulary,
    encode: Callable[[str], list[int]],
    bos: int | None,
) -> list[int]:
    """Return the prompt of a model without a template: ChatML if its control tokens exist, else a paragraph each turn.

    Args:
        messages: the conversation.
        tool_prompt: text that describes the tools, for a system turn of its own.
        vocabulary: the model's; its control tokens are never written for what messages spell.
        encode: ids of ordinary text.
        bos: the token that every sequence begins with, if there is one.
    """
    turns = [("system", tool_prompt)] if tool_prompt else []
    for message in messages:
        text = message.text
        for call in message.tool_calls:
            text += f"\n<tool_call>\n{call_json(call)}\n</tool_call>"
        turns.append((message.role, text))
    ids = [] if bos is None else [bos]
    special = vocabulary.special
    if "<|im_start|>" not in special or "<|im_end|>" not in special:
        lines = [f"{role}: {text}" for role, text in turns]
        return ids + encode("\n\n".join([*lines, "assistant:"]))
    for role, text in turns:
        ids += [special["<|im_start|>"], *encode(f"{role}\n{text}"), special["<|im_end|>"], *encode("\n")]
    return [*ids, special["<|im_start|>"], *encode("assistant\n")]


def encode_inside(tokenize: Callable[[str], list[int]], vocabulary: Vocabulary, text: str) -> list[int]:
    """Return the token ids of ``text`` as they are in the middle of a text.

    SentencePiece puts a space before the first word of a text; after anything else it does not.
    """
    ids = tokenize(text)
    if vocabulary.decode(ids) == text.encode("utf-8", "surrogatepass"):
        return ids
    prefix = tokenize("\n")
    longer = tokenize("\n" + text)
    return longer[len(prefix) :] if longer[: len(prefix)] == prefix else ids


def _template_message(message: Message) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        turn["tool_calls"] = [
            {"type": "function", "id": call.id, "function": {"name": call.name, "arguments": dict(call.arguments)}}
            for call in message.tool_calls
        ]
    if message.role == "tool":
        turn["tool_call_id"] = message.tool_call_id or ""
        turn["name"] = message.name or ""
    if message.reasoning:
        turn["reasoning_content"] = message.reasoning
    return turn


def call_json(call: ToolCall) -> str:
    """Return a call as the Hermes format writes it between its markers."""
    return json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
