"""Wire formats that write each argument as an element: strings raw, everything else as JSON.

A new family is usually a row in ``families.py``.
"""

from __future__ import annotations

__all__: list[str] = []
