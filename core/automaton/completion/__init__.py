"""Shortest completions, at three levels: strings of terms, texts of nodes, and completions of states.

One law holds at each level: what is left of a shortest text, after a beginning of it was written, is never shorter than
the text that is found from there. So a completion that was begun never grows, also where a search was given up for any
text.
"""

from __future__ import annotations

__all__: list[str] = []
