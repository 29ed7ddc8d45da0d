"""A small Llama in NumPy, for demonstrations and tests without another library: no room of the engine imports it.

`backend` runs GGUF files, and `embedded` a tiny network whose weights are noise, both on the decoder of `network`.
"""

from __future__ import annotations

__all__: list[str] = []
