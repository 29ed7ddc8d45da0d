"""Wire formats whose arguments are one JSON object: tagged, bare, or in a list.

A new family is usually a row in ``families.py``.
"""

from __future__ import annotations

__all__: list[str] = []
