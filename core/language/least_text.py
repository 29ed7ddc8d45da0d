"""The length of a text that no model writes: what needs a longer one is refused when it is read, or left out."""

from __future__ import annotations

#: Maximum length of the shortest text of a part, as far as the lower bounds of the readers show it: characters of
#: patterns and rules, bytes of JSON values. Shortest completions may be longer (`automaton.lazy_dfa.MAX_TEXT`), as the
#: text of a value can be a string inside another text.
MAX_LEAST_TEXT = 4_000_000

#: A larger number is not told.
_MUCH = 10**18

#: The way out.
LOWER_COUNTS = "lower the counts of its repetitions"


def too_long(subject: str, length: float, unit: str = "characters") -> str:
    """Return the message for a part whose shortest text has a length above the maximum."""
    return f"{subject} has at least {min(length, _MUCH):,} {unit}, and no model writes more than {MAX_LEAST_TEXT:,}"
