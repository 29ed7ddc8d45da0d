"""Wire formats whose arguments are one JSON object: tagged, bare, or in a list.

A new family is usually a value in ``families.py``. The other rooms are ``xml`` and ``literal``.
"""

from __future__ import annotations

__all__: list[str] = []
