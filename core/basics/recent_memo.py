"""Memo with a bounded number of recently used values, for any number of threads."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

from .forks import shared_lock

Value = TypeVar("Value")


class RecentMemo(Generic[Value]):
    """Bounded memo that drops the least recently used value, for any number of threads.

    Args:
        most: maximum number of values.
    """

    __slots__ = ("__weakref__", "_lock", "_most", "_values")

    def __init__(self, most: int) -> None:
        self._lock = shared_lock(self, "_lock", Lock())
        self._most = most
        self._values: dict[Hashable, Value] = {}

    def get(self, key: Hashable) -> Value | None:
        """Return the value of a key, or None; counts as a use."""
        with self._lock:
            value = self._values.pop(key, None)
            if value is not None:
                self._values[key] = value
            return value

    def put(self, key: Hashable, value: Value) -> None:
        """Memoise a value."""
        with self._lock:
            if key not in self._values and len(self._values) >= self._most:
                del self._values[next(iter(self._values))]
            self._values[key] = value

    def items(self) -> list[tuple[Hashable, Value]]:
        """Return the keys and values, the least recently used first."""
        with self._lock:
            return list(self._values.items())
