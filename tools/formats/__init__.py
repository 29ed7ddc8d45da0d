"""Wire formats: how each family of models writes tool calls.

`WireFormat` is the contract of a format, and `TurnSpec` the specification of one turn. A family of models is a row in
``families.py`` or ``tag_families.py``, of one of these shapes: ``template/`` (calls that are JSON), ``xml/`` (a tag for
each argument), ``pythonic/``, ``gemma.py`` and ``functionary.py``; the others are special cases of the first.
`get_format` finds a format by name, `detect_format` by a model's chat template::

    from toolgrammar.tools.formats import get_format

    get_format("hermes").render_calls([call])

Whether a call is valid is not decided here, but by the tool set.
"""

from __future__ import annotations

from toolgrammar.core.conversation import ReasoningMarkers as Thinking
from toolgrammar.core.conversation import new_call_id
from toolgrammar.core.json import dump_json

from .base import FormatParser, Reasoning, Strictness, TurnSpec, WireFormat
from .format_file import format_data, read_format
from .leniencies import LENIENCIES, Leniency
from .reasoning import ThinkingParser
from .registry import choose_format, detect_format, format_names, get_format

__all__ = [
    "LENIENCIES",
    "FormatParser",
    "Leniency",
    "Reasoning",
    "Strictness",
    "Thinking",
    "ThinkingParser",
    "TurnSpec",
    "WireFormat",
    "choose_format",
    "detect_format",
    "dump_json",
    "format_data",
    "format_names",
    "get_format",
    "new_call_id",
    "read_format",
]
