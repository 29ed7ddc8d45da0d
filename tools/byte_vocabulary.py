"""The vocabulary of single bytes, by which texts are written and completed without a model."""

from __future__ import annotations

from functools import cache

from toolgrammar.core import Vocabulary


@cache
def single_bytes() -> Vocabulary:
    """Return the vocabulary whose token ``b`` is the byte ``b``; token 256 ends a text."""
    return Vocabulary([*(bytes((byte,)) for byte in range(256)), None], eos=[256])
