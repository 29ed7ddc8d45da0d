"""Wire formats whose calls are Python: ``[add(a=1, b=2)]``."""

from __future__ import annotations

__all__: list[str] = []
