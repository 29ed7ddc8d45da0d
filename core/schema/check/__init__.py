"""Checks of a schema before a text is written: well formed, enforceable, satisfiable, and small enough to finish.

A fast compiled pass clears most documents; the exact one names what is wrong, and where.
"""

from __future__ import annotations

__all__: list[str] = []
