"""Support of the compiled modules: the list of them, growable arrays, a hash table, and a stub for an absent Cython.

Every compiled module also runs interpreted, with the same results, about ten times slower.
"""

from __future__ import annotations

__all__: list[str] = []
