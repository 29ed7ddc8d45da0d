"""Lowering of conjunctions to grammar nodes: lazily, one subschema at a time, when a text reaches it.

Objects and arrays have a module each; values in other syntaxes than JSON share the same lowering.

Words of all modules here:

- A *goal* is a tuple of formulas which all hold for a value. Its *alternatives* (branches) are its normal form, each a
  `Conjunction`.
- A *rule* makes a node when a text reaches it (`Nodes.lazy`); "expanded" says that a method does this work.
- A *witness* of a node is a simpler node that is empty if and only if the other is.
- The *key* of a value (`value_key`) is its JSON in one spelling: equal values have equal keys.
"""

from __future__ import annotations

__all__: list[str] = []
