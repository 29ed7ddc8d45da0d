"""Prompts of local models: conversations for chat templates, and a default for models without one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

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


def call_json(call: ToolCall) -> str:
    """Return a call as the Hermes format writes it between its markers."""
    return json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
