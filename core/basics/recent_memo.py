"""Memo of recently used values, bounded in number and in bytes, for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from threading import Lock
from typing import Any, Generic, TypeVar, cast

from .forks import shared_lock

Value = TypeVar("Value")
Call = TypeVar("Call", bound=Callable[..., Any])

#: Maximum of bytes that a memo takes whose keys are the texts of schemas and tools.
MAX_TEXT_BYTES = 32 * 2**20


#: Maximum characters of arguments whose results `memoised_if_short` keeps.
MAX_SHORT = 2_000


def memoised_if_short(most: int) -> Callable[[Call], Call]:
    """Return a decorator that memoises the results of a function of texts, or of tuples of texts.

    Texts of others may be long: then the function is called each time, and nothing of them is kept.

    Args:
        most: maximum number of results.
    """

    def decorate(call: Call) -> Call:
        known = lru_cache(maxsize=most)(call)

        @wraps(call)
        def remembered(*args: Any) -> Any:
            return (known if sum(map(_characters, args)) <= MAX_SHORT else call)(*args)

        return cast(Call, remembered)

    return decorate


def _characters(value: Any) -> int:
    """Return the number of characters of a text or of a tuple of texts; 0 for other values."""
    if isinstance(value, (str, bytes)):
        return len(value)
    return sum(map(_characters, value)) if isinstance(value, tuple) else 0


class RecentMemo(Generic[Value]):
    """Bounded memo that drops the least recently used value, for any number of threads.

    Args:
        most: maximum number of values.
        max_bytes: maximum sum of their sizes, the newest value apart; None: sizes do not count.
    """

    __slots__ = ("__weakref__", "_bytes", "_lock", "_max_bytes", "_most", "_sizes", "_values")

    def __init__(self, most: int, max_bytes: int | None = None) -> None:
        self._lock = shared_lock(self, "_lock", Lock())
        self._most = most
        self._max_bytes = max_bytes
        self._values: dict[Hashable, Value] = {}
        self._sizes: dict[Hashable, int] = {}
        self._bytes = 0

    def get(self, key: Hashable) -> Value | None:
        """Return the value of a key, or None; counts as a use."""
        with self._lock:
            value = self._values.pop(key, None)
            if value is not None:
                self._values[key] = value
            return value

    def put(self, key: Hashable, value: Value, size: int = 0) -> None:
        """Memoise a value, which takes about ``size`` bytes."""
        with self._lock:
            if key not in self._values and len(self._values) >= self._most:
                self._drop(next(iter(self._values)))
            self._values[key] = value
            if self._max_bytes is not None:
                self._bytes += size - self._sizes.get(key, 0)
                self._sizes[key] = size
                while self._bytes > self._max_bytes and len(self._values) > 1:
                    self._drop(next(iter(self._values)))

    def _drop(self, key: Hashable) -> None:
        del self._values[key]
        self._bytes -= self._sizes.pop(key, 0)

    def items(self) -> list[tuple[Hashable, Value]]:
        """Return the keys and values, the least recently used first."""
        with self._lock:
            return list(self._values.items())


class TextMemo(RecentMemo[Value]):
    """Recent memo whose keys are the texts of schemas and tools.

    Args:
        most: maximum number of values.
    """

    __slots__ = ()

    def __init__(self, most: int) -> None:
        super().__init__(most, MAX_TEXT_BYTES)

    def put(self, key: Hashable, value: Value, size: int = 0) -> None:
        """Memoise a value under a text; its bytes are those of the text and of its decoded value (estimated)."""
        super().put(key, value, size or 1_000 + 5 * len(str(key)))
