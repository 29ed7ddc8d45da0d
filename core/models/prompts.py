"""Prompts of local models: conversations for chat templates, and a default for models without one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from ..conversation.messages import Message, ToolCall
from ..errors import ModelError
from ..vocabulary.vocabulary import Vocabulary


def refuse_images(messages: Sequence[Message], hint: str = "send text") -> None:
    """Raise an error for images, for a model that cannot see them.

    Args:
        messages: the conversation.
        hint: the hint of the error.

    Raises:
        ModelError: a message has an image.
    """
    for message in messages:
        if message.images:
            raise ModelError(f"this model cannot see the image in a message of the {message.role}", hint=hint)


def spelled_history(messages: Sequence[Message]) -> list[Message]:
    """Return a conversation for a model that was not trained for tools: calls as text, results in plain language.

    Small models repeat a result if they are instructed to; otherwise they continue with calls.
    """
    spelled: list[Message] = []
    for is_result, group in groupby(messages, lambda message: message.role == "tool"):
        if is_result:
            spelled.append(_spelled_results(list(group)))
            continue
        for message in group:
            if message.tool_calls:
                calls = "\n".join(map(_marked_call, message.tool_calls))
                message = replace(message, content=f"{message.text}\n{calls}".lstrip("\n"), tool_calls=())
            spelled.append(message)
    return spelled


def _spelled_results(results: Sequence[Message]) -> Message:
    lines = [f"The result of {message.name or 'the call'} is: {message.text}" for message in results]
    what = "this result" if len(lines) == 1 else "these results"
    return Message("user", "\n".join(lines) + f"\n\nWrite one short English sentence with {what}.")


def thinking_variables(thinking: bool | None) -> dict[str, bool]:
    """Return the template variables that enable or disable reasoning, under their usual names.

    The templates of Qwen and GLM use ``enable_thinking``, those of DeepSeek and Granite ``thinking``.
    """
    return {} if thinking is None else {"enable_thinking": thinking, "thinking": thinking}


def plain_prompt(
    messages: Sequence[Message],
    tool_prompt: str,
    vocabulary: Vocabulary,
    encode: Callable[[str], list[int]],
    bos: int | None,
) -> list[int]:
    """Return the prompt of a model without a template: ChatML if it has its control tokens, else a paragraph for each
    turn.

    Args:
        messages: the conversation.
        tool_prompt: a description of the tools, for a separate system turn.
        vocabulary: the model's vocabulary; text of messages never becomes control tokens.
        encode: returns the ids of ordinary text.
        bos: the token that begins every sequence, if there is one.
    """
    turns = [("system", tool_prompt)] if tool_prompt else []
    for message in messages:
        calls = "".join(f"\n{_marked_call(call)}" for call in message.tool_calls)
        turns.append((message.role, message.text + calls))
    ids = [] if bos is None else [bos]
    special = vocabulary.special
    if "<|im_start|>" not in special or "<|im_end|>" not in special:
        lines = [f"{role}: {text}" for role, text in turns]
        return ids + encode("\n\n".join([*lines, "assistant:"]))
    for role, text in turns:
        ids += [special["<|im_start|>"], *encode(f"{role}\n{text}"), special["<|im_end|>"], *encode("\n")]
    return [*ids, special["<|im_start|>"], *encode("assistant\n")]


def encode_inside(tokenize: Callable[[str], list[int]], vocabulary: Vocabulary, text: str) -> list[int]:
    """Return the token ids of ``text`` in the middle of a text.

    SentencePiece adds a space before the first word of a text, but not after other text.
    """
    ids = tokenize(text)
    return ids if vocabulary.decode(ids) == text.encode("utf-8", "surrogatepass") else _ids_inside(text, tokenize)


def template_ids(
    pieces: Iterable[tuple[str, bool]],
    encode: Callable[[str], list[int]],
    tokenize: Callable[[str], list[int]],
    vocabulary: Vocabulary,
) -> list[int]:
    """Return the token ids of a rendered chat template.

    Args:
        pieces: texts in order, each with True if it is a message's spelling of a control token.
        encode: returns the ids of ordinary text in the middle of a text.
        tokenize: returns the ids of a text in which names of control tokens are control tokens.
        vocabulary: the model's vocabulary.
    """
    ids: list[int] = []
    adds_space = vocabulary.decode(tokenize("a")) != b"a"  # SentencePiece, before the first word of a text
    for text, is_spelled in pieces:
        if is_spelled:
            ids += encode(text)
        else:
            ids += _ids_inside(text, tokenize) if ids and adds_space else tokenize(text)
    return ids


def _ids_inside(text: str, tokenize: Callable[[str], list[int]]) -> list[int]:
    """Return the ids of a text as they are after another one: without the space that SentencePiece adds at the start.
    They are read after a character whose token does not merge with the text, if there is one."""
    for before in ("\n", "<", "a"):
        prefix, whole = tokenize(before), tokenize(before + text)
        if whole[: len(prefix)] == prefix:
            return whole[len(prefix) :]
    return tokenize(text)


def with_system(messages: Sequence[Message], text: str) -> list[Message]:
    """Return a conversation with a text at the end of its first system turn, which is made if there is none."""
    if not text:
        return list(messages)
    if messages and messages[0].role == "system":
        return [replace(messages[0], content=f"{messages[0].text}\n\n{text}"), *messages[1:]]
    return [Message("system", text), *messages]


def _marked_call(call: ToolCall) -> str:
    """Return a call in the Hermes format."""
    return f"<tool_call>\n{call_json(call)}\n</tool_call>"


def call_json(call: ToolCall) -> str:
    """Return a call in the Hermes format, without its markers."""
    return json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
