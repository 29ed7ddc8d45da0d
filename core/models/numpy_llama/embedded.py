"""The model in the library: a tiny decoder in NumPy with its own tokenizer, for offline trials.

It needs no download, no torch and no accelerator, so every example and test can run a real model end to end: prompt,
key/value cache, logits, masks, sampling. **Its weights are random**, unless trained ones are passed, so its output has
no meaning, and only the grammar makes it valid.

Prompts are ChatML, with tool calls in the Hermes format, as in Qwen. Source: the chat template of Qwen2.5-Instruct.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...conversation.messages import Message
from ..prefix_cache import PREFIX_BYTES
from ..prompts import call_json
from .backend import DecoderBackend
from .bpe import ByteBPE
from .network import DecoderConfig, Network, noise_weights

#: The tokenizer of the model: BPE, trained on tool calls, schemas and sentences that were made from word lists for this
#: purpose, and on the docstrings of Python's standard library (Python Software Foundation License).
TOKENIZER = Path(__file__).parent / "data" / "embedded_tokenizer.txt"


class EmbeddedBackend(DecoderBackend):
    """The embedded model; implements `Backend`. Its sessions are independent of each other.

    Args:
        weights: an ``.npz`` of trained weights with its ``.json`` (see `Network.load`); None: random weights.
        seed: the seed of random weights.
        context_window: maximum number of tokens of a sequence.
        prefix_cache: maximum size of the prefix cache, in bytes; 0: no cache.

    Raises:
        ModelError: the weights cannot be used.

    Attributes:
        trained: False if the weights are random.
        description: one line on shape and weights.
    """

    def __init__(
        self,
        weights: Path | None = None,
        seed: int = 0,
        context_window: int = 4096,
        prefix_cache: int = PREFIX_BYTES,
    ) -> None:
        self._tokenizer = ByteBPE.load(TOKENIZER)
        size = self._tokenizer.vocabulary.size
        if weights is None:
            config = DecoderConfig(vocabulary=size)
            network = Network(config, noise_weights(config, seed), context_window)
        else:
            network = Network.load(Path(weights), size, context_window)
        self.network = network
        super().__init__(
            "embedded",
            self._tokenizer.vocabulary,
            context_window,
            prefix_cache=prefix_cache,
            tool_format="hermes",
            chat_template=None,
            takes_thinking=False,
        )
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

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``; names of control tokens are read as text."""
        return self._tokenizer.encode(text)

    def prompt_ids(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], tool_prompt: str, thinking: bool | None
    ) -> list[int]:
        """Return the token ids of a conversation in ChatML; tools are listed if ``tool_prompt`` is empty.

        Text of messages is never read as control tokens or ``<tool_call>`` markers, so no text of a user, a tool or a
        document can imitate a turn or a call. Reasoning is written in the turns after the last user message only. An
        empty conversation has no token.
        """
        if not messages:
            return []
        prompt = _Prompt(self._tokenizer)
        if tools and not tool_prompt:
            tool_prompt = "# Tools\n\n" + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
        turns = list(messages)
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


class _Prompt:
    """Writes ChatML as token ids; all text between two markers is encoded together."""

    def __init__(self, tokenizer: ByteBPE) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._pending: list[str] = []

    def text(self, text: str) -> None:
        """Add ordinary text, in which markers are not recognised."""
        self._pending.append(text)

    def marker(self, text: str) -> None:
        """Add a marker, as one token."""
        self._flush()
        self._ids.extend(self._tokenizer.encode(text))

    def control(self, name: str) -> None:
        """Add a control token."""
        self._flush()
        self._ids.append(self._tokenizer.vocabulary.special[name])

    def turn(self, role: str, text: str) -> None:
        """Add a whole turn."""
        self.control("<|im_start|>")
        self.text(f"{role}\n{text}")
        self.control("<|im_end|>")
        self.text("\n")

    def assistant_turn(self, message: Message, *, with_reasoning: bool) -> None:
        """Add a turn of the assistant, with its tool calls."""
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
            self.text(f"\n{call_json(call)}\n")
            self.marker("</tool_call>")
        self.control("<|im_end|>")
        self.text("\n")

    def tool_result(self, text: str, *, first: bool, last: bool) -> None:
        """Add a tool's answer; consecutive ones share one user turn."""
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
        """Return all ids."""
        self._flush()
        return self._ids

    def _flush(self) -> None:
        self._ids.extend(self._tokenizer.encode("".join(self._pending), markers=False))
        self._pending.clear()
