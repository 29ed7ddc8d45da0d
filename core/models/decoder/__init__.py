"""Llama models in NumPy: GGUF files are read here, and run without any other library.

The embedded model, whose weights are noise, runs on the same decoder.
"""

from __future__ import annotations

__all__: list[str] = []
