"""Chat templates in Jinja, for models whose files have one and whose libraries do not render it.

What a template writes itself is kept apart from what a message spells. The dialect of Jinja is in ``jinja.py``, the
shapes of messages are in ``history.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..conversation.messages import Message
from .history import first_rendered
from .jinja import compile_template

#: Characters for private use, which stand in a rendered text for the spelling of a control token.
_PRIVATE = range(0xF0000, 0xFFFFE)


class ChatTemplate:
    """A chat template that keeps apart what it writes itself and what a message spells.

    Args:
        source: the template.
        controls: the control tokens by name.
        bos: the name of the token that begins a sequence, for the template.
        eos: likewise for the token that ends one.

    Raises:
        ModelError: the template has a syntax error.

    Attributes:
        source: the template's text.
    """

    def __init__(self, source: str, *, controls: Iterable[str], bos: str, eos: str) -> None:
        self.source = source
        self._names = sorted(controls, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._names)) or r"(?!)")
        self._constants = {"bos_token": bos, "eos_token": eos}
        self._compiled = compile_template(source)

    def render_prompt(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        tool_prompt: str,
        thinking: bool | None,
    ) -> Iterator[tuple[str, bool]]:
        """Yield the prompt of a conversation in pieces, as `render` does.

        Args:
            messages: the conversation.
            tools: handed to the template if it knows tools.
            tool_prompt: put into the system turn if it does not.
            thinking: handed to the template, if given, under the usual names of that variable.

        Raises:
            ModelError: the template refuses the conversation.
        """
        return iter(first_rendered(self.source, messages, tools, tool_prompt, self.render, thinking))

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> list[tuple[str, bool]]:
        """Return the prompt in pieces: a text, and True if it only spells a control token.

        May raise whatever a template may.

        Args:
            messages: the conversation, as transformers hands it to templates.
            tools: the tools, likewise.
            variables: what the template is given besides, by name.
        """
        given = json.dumps([messages, tools], ensure_ascii=False, default=str)
        free = (chr(code) for code in _PRIVATE if chr(code) not in given)
        opening, closing = next(free), next(free)

        def spelled(match: re.Match[str]) -> str:
            return f"{opening}{self._names.index(match.group())}{closing}"

        text = self._compiled.render(
            messages=_map_texts(messages, lambda text: self._pattern.sub(spelled, text)),
            tools=_map_texts(tools, lambda text: self._pattern.sub(spelled, text)),
            add_generation_prompt=True,
            **{**(variables or {}), **self._constants},
        )
        pieces = enumerate(re.split(f"{opening}([0-9]+){closing}", text))
        return [
            (self._names[int(piece)], True) if index % 2 else (piece, False)
            for index, piece in pieces
            if index % 2 or piece
        ]


def _map_texts(value: Any, change: Any) -> Any:
    """Return a JSON-like value with every text in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key) if isinstance(key, str) else key: _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_texts(item, change) for item in value]
    return value
