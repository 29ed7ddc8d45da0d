"""A small Llama in NumPy, for demonstrations and tests without another library: no other package imports it.

`backend` runs GGUF files, and `embedded` a tiny network with random weights, both on the decoder of `network`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import lazy

if TYPE_CHECKING:
    from .embedded import EmbeddedBackend as EmbeddedBackend

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "embedded": "EmbeddedBackend",
        },
    )
