"""Locks of objects that threads share, across ``os.fork``.

A forked process has one thread. A lock that another one held would be held in it for ever, and what it guards would be
half changed. So a fork waits until no thread holds a lock of ours, or imports a module. If one is held for too long,
whoever needs it in the forked process gets an error.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
import weakref
from typing import Any, NoReturn, TypeVar

from ..errors import ModelError

Lock = TypeVar("Lock")

#: Maximum time in seconds for which a fork waits for the locks.
WAIT_SECONDS = 10.0

#: Time in seconds for one of the locks before all are released, because who holds it may wait for another one; it
#: grows with each attempt.
_FIRST_SECONDS = 0.01

_owners: weakref.WeakKeyDictionary[Any, tuple[weakref.ref[Any], str]] = weakref.WeakKeyDictionary()
_held: list[Any] = []


class LostLock:
    """A lock that a thread of another process holds."""

    def acquire(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse to wait.

        Raises:
            ModelError: always.
        """
        raise ModelError(
            "the process was forked while another thread was working with this object",
            hint="load the model in the forked process, or start it by multiprocessing's method 'spawn'",
        )

    __enter__ = acquire

    def __exit__(self, *error: object) -> None:
        """Do nothing: it was never entered."""


def shared_lock(owner: Any, name: str, lock: Lock) -> Lock:
    """Return a lock that is an attribute of an object, known to forks."""
    _owners[lock] = weakref.ref(owner), name
    return lock


def _take(seconds: float) -> bool:
    """Acquire all locks, those included that are made meanwhile; return False, without any, if that takes longer."""
    end = time.monotonic() + seconds
    patience = _FIRST_SECONDS
    busy: list[Any] = []  # the lock that another thread had: it is tried first, without any other
    while True:
        held = set(map(id, _held))
        locks = [lock for lock in (*busy, *(ref() for ref in _owners.keyrefs())) if lock is not None]
        missing = [lock for lock in locks if id(lock) not in held]
        if not missing:
            return True
        for lock in missing:
            if not lock.acquire(timeout=patience):
                _release()
                if time.monotonic() > end:
                    return False
                patience *= 1.5
                busy = [lock]
                break
            _held.append(lock)
            busy = []


def _release() -> None:
    while _held:
        _held.pop().release()


def _await_imports(seconds: float) -> None:
    """Wait until no other thread imports a module: a forked process lacks that thread, and waits for it for ever."""
    end = time.monotonic() + seconds
    locks: dict[str, Any] = getattr(importlib._bootstrap, "_module_locks", {})
    harmless = (None, threading.get_ident())
    while time.monotonic() < end:
        if all(getattr(ref(), "owner", None) in harmless for ref in list(locks.values())):
            return
        time.sleep(0.0005)


def _before() -> None:
    _take(WAIT_SECONDS)
    _await_imports(WAIT_SECONDS)


def _in_child() -> None:
    """Release the locks; those that could not be acquired in time become lost ones, if a thread holds them."""
    if _held:
        _release()
        return
    for lock, (owner, name) in list(_owners.items()):
        if lock.acquire(blocking=False):
            lock.release()
        elif (holder := owner()) is not None:
            object.__setattr__(holder, name, LostLock())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
