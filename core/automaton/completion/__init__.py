"""Shortest completions, at three levels: strings of terms, texts of nodes, and plans of states.

Law, at each level: let s(q) be the completion that is returned for q, and let u be a prefix of it. Then |s(q·u)| <=
|s(q)| - |u|: following a completion never makes it longer. This also holds after a search was given up and a completion
is not a shortest one. A token budget relies on it: a completion that fits once always fits.

Two of the levels have a lower bound, each in its own unit and over its own store: `strings.fewest_chars` in characters,
by the shape of a term, and `ShortestTexts.least_length` in bytes, by the shape of a node and what searches have shown.
The second uses the first for text nodes.
"""

from __future__ import annotations

__all__: list[str] = []
