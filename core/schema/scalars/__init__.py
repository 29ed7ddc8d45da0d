"""Terms of numbers, formats and whitespace, and the syntaxes of values.

Bounds and multiples are compared on decimal text, so no value is rounded.
"""

from __future__ import annotations

__all__: list[str] = []
