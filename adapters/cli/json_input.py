"""JSON that a user names; what is no JSON ends the command with one line."""

from __future__ import annotations

import json
import re
from typing import Any

from .output import fail


def read_json(name: str, text: str, hint: str) -> Any:
    """Return the value of a JSON text that a user names; what is no JSON, or names a member twice, ends the command."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            names = [key for key, _ in pairs]
            twice = next(key for key in value if names.count(key) > 1)
            fail(f"{name} has an object with two members {twice!r}", "remove one: a reader keeps only the last")
        return value

    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=members)
    except json.JSONDecodeError as error:
        fail(f"{name} is not JSON: {_excerpt(error)}", _meant(error) or hint)
    except ValueError as error:
        fail(f"{name} is not JSON: {error}", hint)
    except RecursionError:
        fail(f"{name} is nested too deeply to be read", "flatten it with $ref")


#: Maximum number of characters that are shown before and after a mistake in a JSON text.
MAX_EXCERPT = 40


def _excerpt(error: json.JSONDecodeError) -> str:
    """Return what is wrong with a JSON text, its line, and a caret under the place."""
    line = error.doc.split("\n")[error.lineno - 1]  # the decoder counts "\n" alone, and may be behind the last one
    start = max(0, error.colno - 1 - MAX_EXCERPT)
    shown = line[start : error.colno - 1 + MAX_EXCERPT].replace("\t", " ")
    caret = " " * (error.colno - 1 - start) + "^"
    where = f"{error.msg}: line {error.lineno}, column {error.colno}"
    return f"{where}\n    {shown}\n    {caret}" if shown.strip() else where


def _meant(error: json.JSONDecodeError) -> str | None:
    """Return a hint for a common mistake in a JSON text."""
    before, here = error.doc[: error.pos].rstrip(), error.doc[error.pos : error.pos + 1]
    if before.endswith(",") and here in ("}", "]", ""):
        return "remove the comma before the bracket: JSON has none there"
    if here == "'":
        return "JSON has double quotes"
    if here in ("/", "#"):
        return "JSON has no comments"
    if re.match(r"(True|False|None)\b", error.doc[error.pos :]):
        return "JSON writes true, false and null"
    if re.match(r"[\w$-]+\s*:", error.doc[error.pos :]):
        return "JSON has names in double quotes; YAML must be converted first"
    return None
