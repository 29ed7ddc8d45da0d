"""Chat templates in Jinja, for models whose files have one and whose libraries do not render it.

The dialect is that of ``apply_chat_template`` in transformers: trimmed blocks, loop controls, a ``tojson`` that escapes
nothing, ``raise_exception``, ``strftime_now`` and the ``generation`` block. A template is a program that comes with a
model, so it runs in Jinja's sandbox.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..conversation.messages import Message
from ..errors import ModelError
from .prompts import template_turns, thinking_variables, with_calls_in_turn

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
        self._compiled = _compile(source)

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
        turns, known_tools = template_turns(messages, tools, tool_prompt, self.source)
        variables = thinking_variables(thinking)
        turns = with_calls_in_turn(
            turns, lambda given: "".join(text for text, _ in self.render(given, known_tools, variables))
        )
        return self.render(turns, known_tools, variables)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> Iterator[tuple[str, bool]]:
        """Yield the prompt in pieces: a text, and True if it only spells a control token.

        Args:
            messages: the conversation, as transformers hands it to templates.
            tools: the tools, likewise.
            variables: what the template is given besides, by name.

        Raises:
            ModelError: the template refuses the conversation.
        """
        given = json.dumps([messages, tools], ensure_ascii=False, default=str)
        free = (chr(code) for code in _PRIVATE if chr(code) not in given)
        opening, closing = next(free), next(free)

        def spelled(match: re.Match[str]) -> str:
            return f"{opening}{self._names.index(match.group())}{closing}"

        try:
            text = self._compiled.render(
                messages=_map_texts(messages, lambda text: self._pattern.sub(spelled, text)),
                tools=_map_texts(tools, lambda text: self._pattern.sub(spelled, text)) if tools else None,
                add_generation_prompt=True,
                **{**(variables or {}), **self._constants},
            )
        except Exception as error:  # a template is a program of the model's: it may raise anything
            raise ModelError(
                f"the model's chat template refuses the conversation: {error}",
                hint="check the order of roles; some templates want user and assistant in turn",
            ) from error
        for index, piece in enumerate(re.split(f"{opening}([0-9]+){closing}", text)):
            if index % 2:
                yield self._names[int(piece)], True
            elif piece:
                yield piece, False


def _map_texts(value: Any, change: Any) -> Any:
    """Return a JSON-like value with every text in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key) if isinstance(key, str) else key: _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_texts(item, change) for item in value]
    return value


def _compile(source: str) -> Any:
    import jinja2
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """``{% generation %}``, which marks what a model is trained on, and writes nothing."""

        tags = {"generation"}  # noqa: RUF012 - as Jinja's own extensions write it

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    try:
        return environment.from_string(source)
    except jinja2.TemplateError as error:
        raise ModelError(f"the model's chat template is broken: {error}", hint="use another conversion") from error


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)
