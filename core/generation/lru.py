"""A thread-safe LRU cache of values that are made from a key."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LeastRecentlyUsed(Generic[K, V]):
    """Keeps the values that were asked for last.

    Args:
        size: maximum number of values.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, made if it is missing; of two threads that make it at once, one is kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        made = make()  # without the lock: it may take long
        with self._lock:
            value = self._values.setdefault(key, made)
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
            return value
