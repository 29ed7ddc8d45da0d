"""Lowering of conjunctions to grammar nodes: lazily, one subschema at a time, when a text reaches it.

Objects and arrays have a module each; values in other syntaxes than JSON share the same lowering.
"""

from __future__ import annotations

__all__: list[str] = []
