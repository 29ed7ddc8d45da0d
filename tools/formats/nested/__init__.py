"""Wire formats whose arguments are elements in one another: members by name, items one by one, strings raw."""

from __future__ import annotations

__all__: list[str] = []
