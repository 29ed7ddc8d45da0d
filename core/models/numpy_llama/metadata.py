"""Typed metadata of a GGUF file: each value is checked where it is read, before any memory depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ...errors import ModelError

#: Maximum number of layers, heads and elements of a dimension, and of tokens of a sequence.
MAX_SIZE = 1 << 20

_HINT = "convert the model again; `gguf:PATH` runs every architecture, by llama.cpp"


class Metadata:
    """The metadata of one file. Each method returns the value of a key, such as ``llama.block_count``.

    Args:
        path: of the file, for errors.
        values: by key; arrays are lists or NumPy arrays.

    Each method raises ModelError if the value is not of its type, or is absent and has no default.
    """

    def __init__(self, path: str | Path, values: Mapping[str, Any]) -> None:
        self._path = path
        self._values = values

    def integer(self, key: str, default: int | None = None, *, least: int = 1, most: int = MAX_SIZE) -> int:
        """Return a whole number within bounds."""
        value = self._values.get(key, default)
        if type(value) is not int or not least <= value <= most:
            self._fail(key, f"a whole number from {least:,} to {most:,}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a finite number above zero."""
        value = self._values.get(key, default)
        if type(value) not in (int, float) or not isfinite(value) or not value > 0:
            self._fail(key, "a finite number above zero")
        return float(value)

    def flag(self, key: str) -> bool:
        """Return a bool; absent: False."""
        value = self._values.get(key, False)
        if type(value) is not bool:
            self._fail(key, "a bool")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string."""
        value = self._values.get(key, default)
        if not isinstance(value, str):
            self._fail(key, "a string")
        return value

    def texts(self, key: str) -> list[str]:
        """Return a list of strings."""
        value = self._values.get(key)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            self._fail(key, "a list of strings")
        return value

    def integers(self, key: str, length: int) -> list[int]:
        """Return an array of ``length`` whole numbers, such as the type of each token of the vocabulary."""
        array = self._values.get(key)
        # The kinds are signed and unsigned integers.
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu" or len(array) != length:
            self._fail(key, f"a list of {length:,} whole numbers")
        return list(array.tolist())

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def _fail(self, key: str, wanted: str) -> NoReturn:
        value = self._values.get(key)
        if key not in self._values:
            problem = "is absent"
        elif isinstance(value, (list, np.ndarray)):
            problem = f"is a list of {len(value):,} values"
        else:
            problem = f"is {value!r}" if len(repr(value)) <= 40 else f"is a {type(value).__name__}"
        raise ModelError(f"{key!r} in {str(self._path)!r} {problem}; it has to be {wanted}", hint=_HINT)
