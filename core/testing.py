"""`ScriptedModel`: a model that follows a script as far as the real mask allows, for deterministic tests of agents.

It is a real `Model`: real grammar, real masks, real decoding loop. Only the logits are scripted, so a test sees what
would happen with a model that wants to say just this.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from .errors import ModelError
from .messages import Message
from .models.model import Model
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["ScriptedModel", "byte_vocabulary", "render_reply"]

Reply = Union[str, Message]
Script = Union[Sequence[Reply], Callable[[Sequence[Message]], Reply]]

_MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>")


def byte_vocabulary() -> Vocabulary:
    """Every single byte, the Hermes markers as tokens of their own, and an end of text."""
    tokens: list[bytes | None] = [bytes((byte,)) for byte in range(256)]
    tokens += [marker.encode() for marker in _MARKERS]
    tokens.append(None)
    return Vocabulary(tokens, eos=[len(tokens) - 1], special={"<|im_end|>": len(tokens) - 1})


def render_reply(reply: Reply) -> str:
    """What the model would write: a message's text, then its calls in the Hermes format."""
    if isinstance(reply, str):
        return reply
    calls = [
        "<tool_call>\n"
        + json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
        + "\n</tool_call>"
        for call in reply.tool_calls
    ]
    return "\n".join([reply.text, *calls] if reply.text else calls)


class _Session:
    """Logits that want the script's next bytes."""

    def __init__(self, vocabulary: Vocabulary, target: bytes, prompt_length: int) -> None:
        self._prompt_length = prompt_length
        self._vocabulary = vocabulary
        self._target = target
        self._ids: list[int] = []

    @property
    def length(self) -> int:
        return len(self._ids)

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        self._ids.extend(token_ids)
        written = self._vocabulary.decode(self._ids[self._prompt_length :])
        remaining = self._target[self._position(written) :]
        logits = np.zeros(self._vocabulary.size, dtype=np.float32)
        for token_id in self._vocabulary.eos:  # what the grammar does not let it say, it leaves unsaid
            logits[token_id] = 1.0 if remaining else 100.0
        for token_id, data in enumerate(self._vocabulary.tokens):
            if data and remaining.startswith(data):
                logits[token_id] = 50.0 + len(data)
        return logits

    def _position(self, written: bytes) -> int:
        """How much of the script counts as said: exactly what was written, or up to where the texts meet again."""
        if self._target.startswith(written):
            return len(written)
        position = 0
        for index in range(len(written)):
            if self._target[position : position + 1] == written[index : index + 1]:
                position += 1
                continue
            # The grammar wrote something else: go on behind the next place where the script says the same.
            for size in (12, 6, 3):
                recent = written[max(0, index - size + 1) : index + 1]
                found = self._target.find(recent, position)
                if len(recent) == size and found >= 0:
                    position = found + size
                    break
        return position

    def crop(self, length: int) -> None:
        del self._ids[length:]

    def close(self) -> None:
        self._ids.clear()


class _Backend:
    """A backend whose sessions follow the script."""

    tool_format = "hermes"

    def __init__(self, script: Script, vocabulary: Vocabulary, context_window: int) -> None:
        self.name = "scripted"
        self.vocabulary = vocabulary
        self.context_window = context_window
        self.requests: list[tuple[Message, ...]] = []
        self._script = script
        self._replies = 0
        self._local = threading.local()
        self._lock = threading.Lock()

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        index = 0
        while index < len(text):
            marker = next((m for m in _MARKERS if text.startswith(m, index)), None)
            if marker is not None and marker.encode() in self.vocabulary.tokens[256:]:
                ids.append(256 + _MARKERS.index(marker))
                index += len(marker)
            else:
                ids.extend(text[index].encode("utf-8", "surrogatepass"))
                index += 1
        return ids

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), tool_prompt: str = ""
    ) -> list[int]:
        self._local.messages = tuple(messages)
        ids = self.encode(tool_prompt)
        for message in messages:
            ids.extend(self.encode(f"{message.role}: {render_reply(message)}\n"))
        ids.extend(self.encode("assistant: "))
        self._local.prompt_length = len(ids)
        return ids

    def start(self) -> _Session:
        messages = self._local.messages
        with self._lock:
            self.requests.append(messages)
            if callable(self._script):
                reply = self._script(messages)
            elif self._replies < len(self._script):
                reply = self._script[self._replies]
            else:
                raise ModelError(
                    f"the script has {len(self._script)} replies, and request number {self._replies + 1} came",
                    hint="give ScriptedModel as many replies as the agent asks for, or a function",
                )
            self._replies += 1
        return _Session(
            self.vocabulary, render_reply(reply).encode("utf-8", "surrogatepass"), self._local.prompt_length
        )


class ScriptedModel(Model):
    """A model that says what it is told to, as far as the grammar allows.

    Args:
        replies: what to say, one reply for each request, in order: a text as the model would write it, or a `Message`
            whose tool calls are written in the Hermes format; or a function from the conversation to a reply.
        context_window: how many tokens (here: bytes) fit.

    Attributes:
        requests: the conversations that were asked for so far.

    Raises:
        ModelError: (when generating) there are no more replies.
    """

    def __init__(self, replies: Script, *, context_window: int = 200_000) -> None:
        self._scripted = _Backend(replies, byte_vocabulary(), context_window)
        super().__init__(self._scripted)

    @property
    def requests(self) -> list[tuple[Message, ...]]:
        """The conversations that were asked for so far."""
        return self._scripted.requests
