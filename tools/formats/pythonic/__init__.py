"""Wire formats whose calls are Python: ``[add(a=1, b=2)]``. A new family is usually a row in ``families.py``."""

from __future__ import annotations

__all__: list[str] = []
