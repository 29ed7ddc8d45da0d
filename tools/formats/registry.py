"""Registry of the wire formats: by name, and by the chat template of a model."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from toolgrammar.core.errors import ToolGrammarError

from .base import WireFormat
from .code_block import PROGRAM
from .families import FAMILIES, HERMES
from .format_file import read_format
from .learned import learned
from .probe import probe

_FORMATS = {HERMES.name: HERMES, **{wire.name: wire for wire in FAMILIES}}
_ALIASES = {"qwen": "hermes", "qwen2.5": "hermes", "qwen3": "hermes", "llama": "llama-json", "gpt-oss": "harmony"}
_ENDS = tuple(dict.fromkeys(end for wire in FAMILIES for end in getattr(wire, "end_tokens", ())))


def format_names() -> tuple[str, ...]:
    """Return the names that `get_format` knows, without aliases and ``program``, which writes programs alone."""
    return tuple(_FORMATS)


def get_format(name: str | Path | WireFormat) -> WireFormat:
    """Return the format of a name, or of a description in a TOML file, whose path ends with ``.toml``; a format is
    returned as it is.

    Raises:
        ToolGrammarError: no such format; lists the known ones.
    """
    if isinstance(name, WireFormat):
        return name
    name = str(name)
    if name.endswith(".toml"):
        return _described(name)
    wire = PROGRAM if name == PROGRAM.name else _FORMATS.get(_ALIASES.get(name, name))
    if wire is None:
        known = ", ".join((*_FORMATS, PROGRAM.name))
        raise ToolGrammarError(f"unknown tool format {name!r}", hint=f"known formats: {known}")
    return wire


@lru_cache(maxsize=64)
def _described(path: str) -> WireFormat:
    return read_format(Path(path))


def detect_format(template: str, special: Collection[str] = ()) -> WireFormat | None:
    """Return the known format of a chat template; None if there is none.

    Args:
        template: the tokenizer's chat template, as text.
        special: the names of the vocabulary's control tokens (``Vocabulary.special``). Markers of the format with these
            names are written as control tokens, all others as text.
    """
    wire = _shown(template) or _of_vocabulary(template, frozenset(special))
    return None if wire is None else wire.for_vocabulary(special)


@lru_cache(maxsize=256)
def _of_vocabulary(template: str, special: frozenset[str]) -> WireFormat | None:
    """Return the one format whose markers are all control tokens, for a template that describes tools and no calls."""
    from toolgrammar.core.models import message_shape

    if "tools" not in template:
        return None
    fitting = [wire for wire in FAMILIES if (control := getattr(wire, "special", ())) and special.issuperset(control)]
    try:
        return fitting[0] if len(fitting) == 1 and not message_shape(template).writes_calls else None
    except (ToolGrammarError, ImportError):
        return None


@lru_cache(maxsize=256)
def _shown(template: str) -> WireFormat | None:
    """Return the format that a template writes in a probe, else the one whose signs are in its text."""
    signed = [wire for wire in FAMILIES if wire.signs and _has_signs(template, wire)]
    try:
        probed = probe(template, _ENDS) if "tool" in template else None
    except (ToolGrammarError, ImportError):  # a broken template, or no Jinja: its text is all there is
        probed = None
    if probed is None:
        return signed[0] if signed else None
    return learned(template, probed, signed)


def _has_signs(template: str, wire: WireFormat) -> bool:
    return all(sign in template for sign in wire.signs) and not any(sign in template for sign in wire.signs_against)


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
