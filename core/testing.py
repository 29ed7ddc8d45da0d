"""`ScriptedModel`: a model that follows a script as far as the real mask allows, for deterministic tests of agents.

It is a real `LocalModel`: real grammar, real masks, real decoding loop. Only the logits are scripted, so a test sees
what would happen with a model that wants to say just this.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from .conversation.messages import Message
from .errors import ModelError
from .models.model import LocalModel
from .vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Reply", "Script", "ScriptedModel", "byte_vocabulary", "render_reply"]

Reply = Union[str, Message]
Script = Union[Sequence[Reply], Callable[[Sequence[Message]], Reply]]

_MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>")

#: Tokens that are preferred where the grammar forbids the script: they close what is open.
_CLOSING = (b"<", b"]", b"}", b'"')

#: Numbers of bytes that must agree for text and script to have met again, largest first.
_MEETING = (12, 6, 3)


def byte_vocabulary() -> Vocabulary:
    """Every single byte, the Hermes markers as tokens of their own, and an end of text."""
    tokens: list[bytes | None] = [bytes((byte,)) for byte in range(256)]
    tokens += [marker.encode() for marker in _MARKERS]
    tokens.append(None)
    return Vocabulary(tokens, eos=[len(tokens) - 1], special={"<|im_end|>": len(tokens) - 1})


def render_reply(reply: Reply) -> str:
    """Return the text that the model would write: a message's text, then its calls in the Hermes format."""
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

    cached_tokens = 0

    def __init__(self, vocabulary: Vocabulary, ids: Mapping[bytes, int], target: bytes, prompt_length: int) -> None:
        self._vocabulary = vocabulary
        self._ids_of = ids
        self._longest = max(map(len, ids), default=0)
        self._target = target
        self._prompt_length = prompt_length
        self._ids: list[int] = []
        self._written = bytearray()
        self._positions: list[tuple[int, int]] = []  # after each token: how much is written, how much counts as said

    @property
    def length(self) -> int:
        return len(self._ids)

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        if not token_ids:
            raise ModelError("no tokens to append", hint="give at least one")
        for token_id in token_ids:
            written, said = self._positions[-1] if self._positions else (0, 0)
            if len(self._ids) >= self._prompt_length:
                for byte in self._vocabulary.tokens[token_id] or b"":
                    self._written.append(byte)
                    said = self._advance(said)
                written = len(self._written)
            self._ids.append(token_id)
            self._positions.append((written, said))
        return self._logits(self._target[self._positions[-1][1] :])

    def _advance(self, said: int) -> int:
        """Return how much of the script counts as said after one more byte, which the grammar may have chosen."""
        if self._target[said : said + 1] == self._written[-1:]:
            return said + 1
        # The grammar wrote something else: go on after the next place where the script says the same.
        for size in _MEETING:
            recent = bytes(self._written[-size:])
            if len(recent) == size and (found := self._target.find(recent, said)) >= 0:
                return found + size
        return said

    def _logits(self, wanted: bytes) -> npt.NDArray[np.float32]:
        logits = np.zeros(self._vocabulary.size, dtype=np.float32)
        for rank, data in enumerate(_CLOSING):
            if data in self._ids_of:
                logits[self._ids_of[data]] = 5.0 + rank
        if not wanted:  # control tokens close what text could go on in for ever
            for token_id in self._vocabulary.special.values():
                logits[token_id] = 20.0
        for token_id in self._vocabulary.eos:  # what the grammar does not let it say, it leaves unsaid
            logits[token_id] = 10.0 if wanted else 100.0
        for size in range(1, min(self._longest, len(wanted)) + 1):
            token = self._ids_of.get(wanted[:size])
            if token is not None:
                logits[token] = 50.0 + size
        return logits

    def crop(self, length: int) -> None:
        del self._ids[length:], self._positions[length:]
        del self._written[self._positions[-1][0] if self._positions else 0 :]

    def close(self) -> None:
        self.crop(0)


class _Backend:
    """A backend whose sessions follow the script."""

    tool_format = "hermes"
    chat_template = None
    takes_thinking = False

    def __init__(self, script: Script, vocabulary: Vocabulary, context_window: int) -> None:
        self.name = "scripted"
        self.vocabulary = vocabulary
        self.context_window = context_window
        self.requests: list[tuple[Message, ...]] = []
        self._script = script
        self._ids_of = {data: token for token, data in reversed(list(enumerate(vocabulary.tokens))) if data}
        if missing := sum(bytes((byte,)) not in self._ids_of for byte in range(256)):
            raise ModelError(
                f"the vocabulary has no token for {missing} of the 256 bytes",
                hint="a scripted model spells any text, so it needs them all",
            )
        self._longest = max(map(len, self._ids_of))
        self._replies = 0
        self._local = threading.local()
        self._lock = threading.Lock()

    def encode(self, text: str) -> list[int]:
        data = text.encode("utf-8", "surrogatepass")
        ids: list[int] = []
        index = 0
        while index < len(data):
            size = next(
                size
                for size in range(min(self._longest, len(data) - index), 0, -1)
                if data[index : index + size] in self._ids_of
            )
            ids.append(self._ids_of[data[index : index + size]])
            index += size
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

    def close(self) -> None:
        pass

    def start(self) -> _Session:
        messages = self._local.messages
        with self._lock:
            self.requests.append(messages)
            number = self._replies
            self._replies += 1
        if callable(self._script):
            reply = self._script(messages)
        elif number < len(self._script):
            reply = self._script[number]
        else:
            raise ModelError(
                f"the script has {len(self._script)} replies, and request number {number + 1} came",
                hint="give ScriptedModel as many replies as the agent asks for, or a function",
            )
        target = render_reply(reply).encode("utf-8", "surrogatepass")
        return _Session(self.vocabulary, self._ids_of, target, self._local.prompt_length)


class ScriptedModel(LocalModel):
    """A model that says what it is told to, as far as the grammar allows.

    Where the grammar does not let it, it goes on as soon as the two agree again, and closes what is open when the
    script is over.

    Args:
        replies: what to say, one reply for each request, in order: a text as the model would write it, or a `Message`
            whose tool calls are written in the Hermes format; or a function from the conversation to a reply.
        vocabulary: its tokens, every single byte among them; by default those bytes and a few markers.
        context_window: how many tokens (by default: bytes) fit; also the budget of a request that gives none.

    Attributes:
        requests: the conversations that were asked for so far.

    Raises:
        ModelError: the vocabulary lacks a byte; or, when generating, there are no more replies.

    Law: a reply that the grammar admits is written exactly.
    """

    def __init__(self, replies: Script, *, vocabulary: Vocabulary | None = None, context_window: int = 200_000) -> None:
        if isinstance(replies, (str, Message)):
            raise ModelError("the replies of a scripted model are a list", hint="ScriptedModel([reply])")
        self._scripted = _Backend(replies, vocabulary or byte_vocabulary(), context_window)
        super().__init__(self._scripted, default_max_tokens=context_window)

    @property
    def requests(self) -> list[tuple[Message, ...]]:
        """The conversations that were asked for so far."""
        return self._scripted.requests
