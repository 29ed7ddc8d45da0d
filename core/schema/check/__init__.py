"""Checks of a schema before a text is written: well formed, enforceable, satisfiable, and small enough to finish.

One compiled pass names what is wrong, and where; what may fail only when it is lowered is looked into after that.
"""

from __future__ import annotations

__all__: list[str] = []
