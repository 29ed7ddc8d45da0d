"""Support of the compiled modules: their one list, growable arrays, a hash table, and a stand-in for an absent Cython.

Every module in the list also runs interpreted, with the same results and about ten times slower.
"""

from __future__ import annotations

__all__: list[str] = []
