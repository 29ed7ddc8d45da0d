"""The model that comes with the library: a tiny decoder in NumPy with its own tokenizer, for trying things out offline.

It needs no download, no torch and no accelerator, so every example and test can run a real model end to end: prompt,
key/value cache, logits, masks, sampling. What constrained decoding guarantees holds for any model, and with this one
it shows plainly: **its weights are noise** unless trained ones are given, so nothing but the grammar makes its output
valid, and what it says has no meaning.

Prompts are ChatML, with tool calls in the Hermes format, as in Qwen. Source: the chat template of Qwen2.5-Instruct.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...conversation.messages import ImagePart, Message, ToolCall
from ...errors import ModelError
from ...generation.backend import Session
from ...vocabulary.vocabulary import Vocabulary
from ..prefix_cache import PREFIX_BYTES, PrefixCache
from ..sessions import OpenSessions
from .bpe import ByteBPE
from .decoder import DecoderConfig, DecoderSession, Network, noise_weights


class EmbeddedBackend:
    """The embedded model; implements `Backend`. Its sessions are independent of each other.

    Args:
        weights: an ``.npz`` of trained weights with its ``.json`` (see `Network.load`); None draws noise.
        seed: of the noise.
        context_window: how many tokens fit in a sequence.
        prefix_cache: bytes that finished sequences may take, for prompts that begin as they do; 0 keeps none.

    Raises:
        ModelError: the weights cannot be used.

    Attributes:
        trained: False if the weights are noise.
        description: one line that says what this model is.
        prefixes: the finished sequences that are kept.
    """

    def __init__(
        self,
        weights: Path | None = None,
        seed: int = 0,
        context_window: int = 4096,
        prefix_cache: int = PREFIX_BYTES,
    ) -> None:
        self._tokenizer = ByteBPE.load()
        size = self._tokenizer.vocabulary.size
        if weights is None:
            config = DecoderConfig(vocabulary=size)
            network = Network(config, noise_weights(config, seed), context_window)
        else:
            network = Network.load(Path(weights), size, context_window)
        self._network: Network | None = network
        self._window = context_window
        self._opened: OpenSessions[DecoderSession] = OpenSessions()
        self.prefixes = PrefixCache(prefix_cache)
        self._keeps = prefix_cache > 0
        self.trained = weights is not None
        shape = network.config
        self.description = (
            f"a {shape.layers}-layer decoder with {network.parameters / 1e6:.1f} million parameters in NumPy; "
            + (
                f"trained weights from {Path(weights).name}"
                if weights is not None
                else f"its weights are noise (seed {seed}), so what it writes means nothing"
            )
        )

    @property
    def name(self) -> str:
        """``"embedded"``."""
        return "embedded"

    @property
    def vocabulary(self) -> Vocabulary:
        """The exact bytes of every token."""
        return self._tokenizer.vocabulary

    @property
    def context_window(self) -> int:
        """Number of tokens that fit in a sequence."""
        return self._window

    @property
    def tool_format(self) -> str:
        """``"hermes"``: ``<tool_call>`` and JSON."""
        return "hermes"

    @property
    def chat_template(self) -> None:
        """None: `encode_prompt` renders calls and results itself."""
        return None

    @property
    def takes_thinking(self) -> bool:
        """False."""
        return False

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``; the spelling of a control token is ordinary text."""
        return self._tokenizer.encode(text)

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), tool_prompt: str = ""
    ) -> list[int]:
        """Token ids of a conversation in ChatML, up to where the assistant's turn begins.

        What messages say is always spelled out: only this method writes control tokens and ``<tool_call>`` markers,
        so no text of a user, a tool or a document can pose as a turn or a call. Reasoning is kept in the turns after
        the last user message, and dropped from older ones.

        Args:
            messages: the conversation.
            tools: listed in the system turn if ``tool_prompt`` is empty; this model has no template of its own for it.
            tool_prompt: text that describes the tools, for the system turn.

        Raises:
            ModelError: a message has an image, which this model cannot see.
        """
        prompt = _Prompt(self._tokenizer)
        if tools and not tool_prompt:
            tool_prompt = "# Tools\n\n" + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
        turns = list(messages)
        for message in turns:
            _refuse_images(message)
        if tool_prompt:
            system = turns.pop(0).text if turns and turns[0].role == "system" else ""
            prompt.turn("system", system + "\n\n" + tool_prompt if system else tool_prompt)
        last_user = max((i for i, message in enumerate(turns) if message.role == "user"), default=-1)
        for i, message in enumerate(turns):
            if message.role == "tool":
                first = i == 0 or turns[i - 1].role != "tool"
                last = i + 1 == len(turns) or turns[i + 1].role != "tool"
                prompt.tool_result(message.text, first=first, last=last)
            elif message.role == "assistant":
                prompt.assistant_turn(message, with_reasoning=i > last_user)
            else:
                prompt.turn(message.role, message.text)
        prompt.control("<|im_start|>")
        prompt.text("assistant\n")
        return prompt.finish()

    def start(self) -> Session:
        """A fresh, empty sequence.

        Raises:
            ModelError: the backend is closed.
        """
        self._opened.check()
        return self.prefixes.start(self._session) if self._keeps else self._session()

    def _session(self) -> DecoderSession:
        network = self._network
        if network is None:
            raise ModelError("the model is closed", hint="load it again")
        return DecoderSession(network, self._opened)

    def close(self) -> None:
        """Free the weights and all sequences; closing twice is allowed."""
        self.prefixes.close()
        self._opened.close()
        self._network = None


class _Prompt:
    """Writes ChatML as token ids; text between two markers is encoded as one, however many pieces it came in."""

    def __init__(self, tokenizer: ByteBPE) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._pending: list[str] = []

    def text(self, text: str) -> None:
        """Ordinary text: never a marker, whatever it spells."""
        self._pending.append(text)

    def marker(self, text: str) -> None:
        """A marker, as its one token."""
        self._flush()
        self._ids.extend(self._tokenizer.encode(text))

    def control(self, name: str) -> None:
        """A control token."""
        self._flush()
        self._ids.append(self._tokenizer.special[name])

    def turn(self, role: str, text: str) -> None:
        """A whole turn."""
        self.control("<|im_start|>")
        self.text(f"{role}\n{text}")
        self.control("<|im_end|>")
        self.text("\n")

    def assistant_turn(self, message: Message, *, with_reasoning: bool) -> None:
        """A turn of the assistant, with its tool calls."""
        self.control("<|im_start|>")
        self.text("assistant\n")
        if message.reasoning and with_reasoning:
            self.marker("<think>")
            self.text(f"\n{message.reasoning}\n")
            self.marker("</think>")
            self.text("\n\n")
        self.text(message.text)
        for i, call in enumerate(message.tool_calls):
            if i or message.text:
                self.text("\n")
            self.marker("<tool_call>")
            self.text(f"\n{_call_json(call)}\n")
            self.marker("</tool_call>")
        self.control("<|im_end|>")
        self.text("\n")

    def tool_result(self, text: str, *, first: bool, last: bool) -> None:
        """A tool's answer; consecutive ones share one user turn."""
        if first:
            self.control("<|im_start|>")
            self.text("user")
        self.text("\n")
        self.marker("<tool_response>")
        self.text(f"\n{text}\n")
        self.marker("</tool_response>")
        if last:
            self.control("<|im_end|>")
            self.text("\n")

    def finish(self) -> list[int]:
        """All ids."""
        self._flush()
        return self._ids

    def _flush(self) -> None:
        self._ids.extend(self._tokenizer.encode("".join(self._pending), markers=False))
        self._pending.clear()


def _call_json(call: ToolCall) -> str:
    """A call as the Hermes format writes it between its markers."""
    return json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)


def _refuse_images(message: Message) -> None:
    if not isinstance(message.content, str) and any(isinstance(part, ImagePart) for part in message.content):
        raise ModelError(
            f"The embedded model cannot see the image in a message of the {message.role}.",
            hint="Leave images out, or load a model that can read them.",
        )
