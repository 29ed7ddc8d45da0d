"""A small Llama in NumPy, for demonstrations and tests without another library: no other package imports it.

`backend` runs GGUF files, and `embedded` a tiny network with random weights, both on the decoder of `network`.
"""

from __future__ import annotations

__all__: list[str] = []
