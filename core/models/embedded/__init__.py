"""The embedded model: a small transformer in NumPy with random or given weights, for demonstrations and tests.

It needs no download and no extra package; its text is noise, but every call it writes is valid.
"""

from __future__ import annotations

__all__: list[str] = []
