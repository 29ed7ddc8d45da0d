"""Registry of the wire formats: by name, and by the chat template of a model."""

from __future__ import annotations

from collections.abc import Collection

from toolgrammar.core.errors import ToolGrammarError

from .base import WireFormat
from .families import FAMILIES, HERMES

_FORMATS = {HERMES.name: HERMES, **{wire.name: wire for wire in FAMILIES}}
_ALIASES = {"qwen": "hermes", "qwen2.5": "hermes", "qwen3": "hermes", "llama": "llama-json", "gpt-oss": "harmony"}


def format_names() -> tuple[str, ...]:
    """Return the names that `get_format` knows, without aliases."""
    return tuple(_FORMATS)


def get_format(name: str | WireFormat) -> WireFormat:
    """Return the format of a name; a format is returned as it is.

    Raises:
        ToolGrammarError: no such format; lists those that there are.
    """
    if isinstance(name, WireFormat):
        return name
    wire = _FORMATS.get(_ALIASES.get(name, name))
    if wire is None:
        raise ToolGrammarError(f"unknown tool format {name!r}", hint=f"known formats: {', '.join(_FORMATS)}")
    return wire


def detect_format(template: str, special: Collection[str] = ()) -> WireFormat | None:
    """Return the format that a chat template belongs to, or None if it belongs to none of these.

    Args:
        template: the tokenizer's chat template, as text.
        special: the names of the vocabulary's control tokens (``Vocabulary.special``): markers of the format that are
            among them are written as such, all others as text.
    """
    for wire in FAMILIES:
        shown = all(sign in template or sign in special for sign in wire.signs)
        if wire.signs and shown and not any(sign in template for sign in wire.signs_against):
            return wire.for_vocabulary(special)
    return None


def choose_format(
    name: str | WireFormat | None = None, template: str = "", special: Collection[str] = ()
) -> WireFormat:
    """Return the format in which a model writes calls.

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
    return detect_format(template, special) or HERMES.for_vocabulary(special)
