"""Wire formats: how each family of models writes tool calls.

`get_format` finds a format by name; `WireFormat` is what a format must be able to do and `TurnSpec` what it is asked
for. Formats are plain values over a few shapes (see `tagged_json`); a new family is usually a few strings.

    from toolgrammar.tools.formats import get_format

    get_format("hermes").render_calls([call])

`detect_format` tells a model's format from its chat template. What is not here: whether a call is valid (the tool set
says so).
"""

from __future__ import annotations

from collections.abc import Collection as _Collection

from toolgrammar.core.errors import ToolGrammarError as _ToolGrammarError

from .base import MALFORMED, Reasoning, Strictness, TurnSpec, WireFormat, dump_json, new_call_id
from .json.families import JSON_FAMILIES as _JSON_FAMILIES
from .json.functionary import FUNCTIONARY_V32 as _FUNCTIONARY_V32
from .json.hermes import HERMES as _HERMES
from .literal.families import LITERAL_FAMILIES as _LITERAL_FAMILIES
from .reasoning import Thinking, ThinkingParser
from .xml.families import XML_FAMILIES as _XML_FAMILIES

__all__ = [
    "MALFORMED",
    "Reasoning",
    "Strictness",
    "Thinking",
    "ThinkingParser",
    "TurnSpec",
    "WireFormat",
    "choose_format",
    "detect_format",
    "dump_json",
    "format_names",
    "get_format",
    "new_call_id",
]

_FAMILIES = (*_XML_FAMILIES, *_LITERAL_FAMILIES, _FUNCTIONARY_V32, *_JSON_FAMILIES)
_FORMATS: dict[str, WireFormat] = {_HERMES.name: _HERMES, **{each.name: each for each in _FAMILIES}}
_ALIASES = {"qwen": "hermes", "qwen2.5": "hermes", "qwen3": "hermes", "llama": "llama-json", "gpt-oss": "harmony"}


def format_names() -> tuple[str, ...]:
    """The names that `get_format` knows, without aliases."""
    return tuple(_FORMATS)


def get_format(name: str | WireFormat) -> WireFormat:
    """The format of that name; a format is returned as it is.

    Raises:
        ToolGrammarError: no such format; lists those that there are.
    """
    if isinstance(name, WireFormat):
        return name
    found = _FORMATS.get(_ALIASES.get(name, name))
    if found is None:
        raise _ToolGrammarError(f"unknown tool format {name!r}", hint=f"known formats: {', '.join(_FORMATS)}")
    return found


def detect_format(template: str, special: _Collection[str] = ()) -> WireFormat | None:
    """The format that a chat template shows, or None if it shows none that is known here.

    Args:
        template: the tokenizer's chat template, as text.
        special: the names of the vocabulary's control tokens (``Vocabulary.special``): markers of the format that are
            among them are written as such, all others as text.
    """
    for each in _FAMILIES:
        known = all(sign in template or sign in special for sign in each.signs)
        if each.signs and known and not any(sign in template for sign in each.signs_against):
            return each.for_vocabulary(special)
    return _HERMES if "<tool_call>" in template else None


def choose_format(
    name: str | WireFormat | None = None, template: str = "", special: _Collection[str] = ()
) -> WireFormat:
    """The format in which a model writes calls.

    Args:
        name: the one that was asked for; None: the one that the chat template and the vocabulary show, and ``hermes``,
            a sound default, if they show none.
        template: the tokenizer's chat template, as text.
        special: the names of the vocabulary's control tokens.

    Raises:
        ToolGrammarError: there is no format of that name.
    """
    if name is not None:
        return get_format(name).for_vocabulary(special)
    return detect_format(template, special) or _HERMES
