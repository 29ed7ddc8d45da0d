"""Checks of a schema before a text is written: well formed, enforceable, satisfiable, and small enough to finish.

`problems` reads the document in one pass; `unsatisfiable` finds the keywords that leave no value.
"""

from __future__ import annotations

__all__: list[str] = []
