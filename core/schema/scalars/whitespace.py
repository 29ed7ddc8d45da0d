"""Whitespace between the tokens of JSON."""

from __future__ import annotations

from ...language.terms import Terms
from ...unicode.charset import CharSet

#: Maximum run of whitespace between two tokens of JSON under the ``flexible`` policy.
MAX_SPACES = 20

#: Maximum number of spaces after a line break under the same policy: the indentation of deeply nested JSON.
MAX_INDENT = 64

_SPACES = CharSet.of(" \t\n\r")


def spaces(terms: Terms) -> int:
    """Return the whitespace between two tokens of JSON (RFC 8259, section 2): a short run, or an indented line."""
    term = terms.memo.get("spaces")
    if term is None:
        line = terms.seq(terms.literal("\n"), terms.repeat(terms.literal(" "), 0, MAX_INDENT))
        term = terms.memo["spaces"] = terms.alt([terms.repeat(terms.chars(_SPACES), 0, MAX_SPACES), line])
    return term
