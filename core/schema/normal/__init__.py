"""Normal form of schemas: unions of conjunctions, with one set of constraints for each JSON type.

Negation, `oneOf` and the `unevaluated*` keywords are resolved here, and contradictory branches pruned.
"""

from __future__ import annotations

__all__: list[str] = []
