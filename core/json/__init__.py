"""JSON as text: writing and reading it, scanning it as it arrives, pointers into it; and types and keys of values.

Nothing here knows a schema or a grammar.
"""

from __future__ import annotations

from .keys import value_key, value_of_key
from .pointer import escape, reference_steps, resolve_local, step_into, to_pointer, unescape
from .scanner import JsonScanner
from .text import SPACE, SPACES, dump_json, escaped, json_bytes, read_json, read_json_prefix, string_start
from .values import type_of

__all__ = [
    "SPACE",
    "SPACES",
    "JsonScanner",
    "dump_json",
    "escape",
    "escaped",
    "json_bytes",
    "read_json",
    "read_json_prefix",
    "reference_steps",
    "resolve_local",
    "step_into",
    "string_start",
    "to_pointer",
    "type_of",
    "unescape",
    "value_key",
    "value_of_key",
]
