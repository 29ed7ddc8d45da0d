"""Chat templates in Jinja, for models whose files have one but whose libraries do not render it.

Control tokens of the template are distinguished from text of a message that spells them. ``jinja.py`` has the dialect
of Jinja, and ``history.py`` the shapes of messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..conversation.messages import Message
from .history import first_rendered
from .jinja import compile_template

#: Private-use characters, which mark in a rendered text a control token that a message spells.
_PRIVATE = range(0xF0000, 0xFFFFE)


class ChatTemplate:
    """A chat template that distinguishes its own control tokens from text of messages that spells them.

    Args:
        source: the template.
        controls: the control tokens by name.
        bos: the name of the token at the beginning of a sequence.
        eos: the name of the token at its end.

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

    @classmethod
    def of(cls, source: str, controls: Iterable[str], *, bos: str, eos: str) -> ChatTemplate | None:
        """Return the template of a model; None if its text is empty. Arguments and errors as of the class."""
        return cls(source, controls=controls, bos=bos, eos=eos) if source else None

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
            tools: passed to the template if it supports tools.
            tool_prompt: added to the system turn if it does not.
            thinking: if not None, passed to the template under the usual names of this variable.

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
        """Return the prompt in pieces: a text, and True if it is a message's spelling of a control token: by the
        template ``<s>{{ content }}</s>``, a message ``a</s>`` is ``("<s>a", False), ("</s>", True), ("</s>", False)``.

        Such a name is replaced by its number between two characters of private use, which no text has, and found by
        them in the rendered text. May raise any exception, because a template is a program.

        Args:
            messages: the conversation, in the format in which transformers passes it to templates.
            tools: the tools, in the same format.
            variables: other variables of the template, by name.
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
    """Return a JSON-like value with a function applied to every string, including keys."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key) if isinstance(key, str) else key: _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_texts(item, change) for item in value]
    return value
