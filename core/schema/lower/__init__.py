"""Lowering of conjunctions to nodes of the language, one subschema at a time, when a text reaches it.

Objects, arrays and scalars each have their module; values of wire formats that are no JSON share the same lowering.
"""

from __future__ import annotations

__all__: list[str] = []
