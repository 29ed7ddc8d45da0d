"""The model in the library: a tiny decoder in NumPy with its own tokenizer, for offline trials.

It needs no download, no torch and no accelerator, so every example and test can run a real model end to end: prompt,
key/value cache, logits, masks, sampling. **Its weights are random**, so its output has no meaning, and only the grammar
makes it valid.

Prompts are ChatML, with tool calls in the Hermes format, as in Qwen. Source: the chat template of Qwen2.5-Instruct.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...conversation.messages import Message
from ..chat_template import ChatTemplate
from ..prefix_cache import PREFIX_BYTES
from ..prompts import call_json, template_ids, with_system
from .backend import DecoderBackend
from .bpe import ByteBPE
from .network import DecoderConfig, Network, noise_weights

_DATA = Path(__file__).parent / "data"

#: The tokenizer of the model: BPE, trained on tool calls, schemas and sentences that were made from word lists for this
#: purpose, and on the docstrings of Python's standard library (Python Software Foundation License).
TOKENIZER = _DATA / "embedded_tokenizer.txt"

_TEMPLATE = _DATA / "embedded_template.jinja"


class EmbeddedBackend(DecoderBackend):
    """The embedded model; implements `Backend`. Its sessions are independent of each other.

    Args:
        seed: the seed of the random weights.
        context_window: maximum number of tokens of a sequence.
        prefix_cache: maximum size of the prefix cache, in bytes; 0: no cache.
    """

    def __init__(self, seed: int = 0, context_window: int = 4096, prefix_cache: int = PREFIX_BYTES) -> None:
        self._tokenizer = ByteBPE.load(TOKENIZER)
        vocabulary = self._tokenizer.vocabulary
        config = DecoderConfig(vocabulary=vocabulary.size)
        self.network = Network(config, noise_weights(config, seed), context_window)
        source = _TEMPLATE.read_text(encoding="utf-8")
        self._template = ChatTemplate(source, controls=[*vocabulary.special, *self._tokenizer.markers], bos="", eos="")
        super().__init__(
            "embedded",
            vocabulary,
            context_window,
            prefix_cache=prefix_cache,
            tool_format="hermes",
            chat_template=None,
            takes_thinking=False,
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
        if tools and not tool_prompt:
            tool_prompt = "# Tools\n\n" + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
        turns = [
            {
                "role": message.role,
                "content": message.text,
                "reasoning": message.reasoning,
                "tool_calls": [call_json(call) for call in message.tool_calls],
            }
            for message in with_system(messages, tool_prompt)
        ]
        text, names = partial(self._tokenizer.encode, markers=False), partial(self._tokenizer.encode, controls=True)
        return template_ids(self._template.render(turns), text, names, self.vocabulary)
