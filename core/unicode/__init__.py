"""Sets of code points, and the properties and simple case folding of Unicode.

The lowest room of the language: regular expressions and strings are built from these sets. It knows no syntax.
"""

from __future__ import annotations

__all__: list[str] = []
