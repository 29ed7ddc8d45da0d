"""Wire formats whose arguments are literals: calls of Python, and the objects of Gemma.

A new family is usually a value in ``families.py``. The other rooms are ``json`` and ``xml``.
"""

from __future__ import annotations

__all__: list[str] = []
