"""Languages of numbers, strings and formats, and the spelling of values in the text.

Bounds and multiples are compared on decimal text, so no value is rounded.
"""

from __future__ import annotations

__all__: list[str] = []
