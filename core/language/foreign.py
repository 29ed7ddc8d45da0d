"""Regular expressions of other dialects, as ECMA-262."""

from __future__ import annotations

import re


def to_ecma(pattern: str | re.Pattern[str], syntax: str) -> str:
    """Return a pattern of ECMA-262 for one of Rust or Python."""
    return pattern if isinstance(pattern, str) else pattern.pattern
