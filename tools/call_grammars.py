"""Cache of the grammars of single tools: the tool sets of an agent change, its tools hardly do."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from toolgrammar.core.automaton import Workspace
from toolgrammar.core.basics import shared_lock
from toolgrammar.core.grammar import Grammar

_T = TypeVar("_T")

#: Maximum number of the grammars that are kept although no tool set may use them any more; the least recently used go
#: first.
MAX_CALL_GRAMMARS = 4_096

#: Maximum size of these grammars, in bytes.
MAX_CALL_BYTES = 64 * 2**20


class CallGrammars:
    """Cache of grammars by their sources: all grammars in use, and the most recently used others. Thread-safe.

    Args:
        workspace: the shared store of the tool sets' grammars; None: the default of `Grammar.as_part`.
    """

    def __init__(self, workspace: Workspace | None = None) -> None:
        self._workspace = workspace
        self._lock = shared_lock(self, "_lock", threading.Lock())
        self._recent: OrderedDict[Hashable, Grammar] = OrderedDict()  # the most recently used one last
        self._in_use: WeakValueDictionary[Hashable, Grammar] = WeakValueDictionary()
        self._numbers: dict[Hashable, int] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._recent)

    def __deepcopy__(self, memo: dict[int, Any]) -> CallGrammars:
        return self

    def __reduce__(self) -> str | tuple[type[CallGrammars], tuple[()]]:
        return "CALL_GRAMMARS" if self is CALL_GRAMMARS else (CallGrammars, ())

    def number(self, value: Hashable) -> int:
        """Return a small key for a value, the same for equal ones: a large value, a wire format say, is hashed once
        instead of for each tool."""
        with self._lock:
            return self._numbers.setdefault(value, len(self._numbers))

    def get(self, key: Hashable, make: Callable[[], Grammar]) -> Grammar:
        """Return the grammar of a key, made on first use, ready to be a part of other grammars (`Grammar.as_part`)."""
        with self._lock:
            cached = self._recent.get(key)
            if cached is not None:
                self._recent.move_to_end(key)
                return cached
            cached = self._in_use.get(key)
            if cached is not None:
                self._keep(key, cached)
                return cached
        made = make().as_part(self._workspace)  # without the lock: a schema may take long
        with self._lock:
            made = self._in_use.setdefault(key, made)
            if key not in self._recent:  # else another thread was faster
                self._keep(key, made)
        return made

    def _keep(self, key: Hashable, part: Grammar) -> None:
        """Add a grammar as the most recently used, and drop the others beyond the maxima; it stays, however large."""
        self._recent[key] = part
        self._bytes += part.byte_count()
        while len(self._recent) > MAX_CALL_GRAMMARS or (self._bytes > MAX_CALL_BYTES and len(self._recent) > 1):
            _, oldest = self._recent.popitem(last=False)
            self._bytes -= oldest.byte_count()


#: The cache of all tool sets that are given none.
CALL_GRAMMARS = CallGrammars()

#: The cache of their reading grammars, in a store of their own.
MARKED_GRAMMARS = CallGrammars(Workspace())


class Derived:
    """What a tool set derives from its tools, by key, made on first use. Pickled and deep copies are empty."""

    def __init__(self) -> None:
        self._lock = shared_lock(self, "_lock", threading.Lock())
        self._known: dict[Hashable, Any] = {}

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return the value of a key; of two threads that make it at once, both get the first one."""
        with self._lock:
            if key in self._known:
                return cast("_T", self._known[key])
        made = make()
        with self._lock:
            return cast("_T", self._known.setdefault(key, made))

    def __reduce__(self) -> tuple[type[Derived], tuple[()]]:
        return Derived, ()
