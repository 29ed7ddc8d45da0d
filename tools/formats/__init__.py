"""Wire formats: how each family of models writes tool calls.

`get_format` finds a format by name; `WireFormat` is what a format must be able to do and `Turn` what it is asked for.
Formats are plain values over a few shapes (see `tagged_json`); a new family is usually a few strings.

    from toolgrammar.tools.formats import get_format

    get_format("hermes").render_calls([call])

What is not here: which format a model wants (its tokenizer says so), and whether a call is valid (the tool set does).
"""

from __future__ import annotations

from ...core.errors import ToolGrammarError as _ToolGrammarError
from .base import MALFORMED, Turn, WireFormat, dump_json, new_call_id
from .hermes import HERMES as _HERMES

__all__ = ["MALFORMED", "Turn", "WireFormat", "dump_json", "format_names", "get_format", "new_call_id"]

_FORMATS: dict[str, WireFormat] = {_HERMES.name: _HERMES}
_ALIASES = {"qwen": "hermes", "qwen2.5": "hermes", "qwen3": "hermes"}


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
