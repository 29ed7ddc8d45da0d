"""Registry of a model's open sessions, so that closing the model frees them too."""

from __future__ import annotations

import threading
import weakref
from typing import Generic, Protocol, TypeVar

from ..errors import ModelError


class Closable(Protocol):
    """An object that can be closed, also twice."""

    def close(self) -> None:
        """Free what it holds."""
        ...


S = TypeVar("S", bound=Closable)


class OpenSessions(Generic[S]):
    """Holds open sessions weakly. Thread-safe."""

    def __init__(self) -> None:
        self._sessions: weakref.WeakSet[S] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._is_closed = False

    def __len__(self) -> int:
        with self._lock:
            return len(self._sessions)

    def add(self, session: S) -> None:
        """Register a session.

        Raises:
            ModelError: the model is closed.
        """
        with self._lock:
            if not self._is_closed:
                self._sessions.add(session)
                return
        session.close()
        raise ModelError("the model is closed", hint="load it again")

    def check(self) -> None:
        """Raise if the model is closed.

        Raises:
            ModelError: it is.
        """
        if self._is_closed:
            raise ModelError("the model is closed", hint="load it again")

    def close(self) -> None:
        """Close all that are open, and refuse new ones; closing twice is allowed."""
        with self._lock:
            self._is_closed = True
            sessions = list(self._sessions)
            self._sessions.clear()
        for session in sessions:
            session.close()
