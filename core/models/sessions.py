"""Sessions of a model: the registry of open ones, which are freed with the model, checks of their arguments, and what
sessions of the same kind have in common."""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

from ..basics.forks import shared_lock
from ..errors import ContextOverflowError, ModelError
from ..generation.backend import closed_error
from .image_tokens import token_list

if TYPE_CHECKING:
    import numpy.typing as npt


class Closable(Protocol):
    """An object that can be closed, also repeatedly."""

    def close(self) -> None:
        """Free its resources."""
        ...


S = TypeVar("S", bound=Closable)


class OpenSessions(Generic[S]):
    """Weak references to the open sessions. Thread-safe."""

    def __init__(self) -> None:
        self._sessions: weakref.WeakSet[S] = weakref.WeakSet()
        self._lock = shared_lock(self, "_lock", threading.Lock())
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
        raise closed_error("model")

    def check(self) -> None:
        """Check that the model is open.

        Raises:
            ModelError: the model is closed.
        """
        if self._is_closed:
            raise closed_error("model")

    def close(self) -> None:
        """Close all open sessions, and refuse new ones; closing twice is allowed."""
        with self._lock:
            self._is_closed = True
            sessions = list(self._sessions)
            self._sessions.clear()
        for session in sessions:
            session.close()


@dataclass(frozen=True)
class Tree:
    """The shape of a tree of tokens.

    Attributes:
        depths: number of ancestors of each token, ``[n]``.
        sees: attention mask, ``[n, n]``: True if the token of the column is the token of the row or its ancestor.
    """

    depths: npt.NDArray[np.int64]
    sees: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, parents: Sequence[int]) -> Tree:
        """Return the shape of a tree, given the parents as for `TreeSession.branches`."""
        sees = np.eye(len(parents), dtype=np.bool_)
        for token, parent in enumerate(parents):
            if parent >= 0:
                sees[token] |= sees[parent]
        return cls(sees.sum(axis=1) - 1, sees)


def check_new_tokens(token_ids: Sequence[int], length: int, window: int, size: int) -> list[int]:
    """Return tokens to append to a sequence, checked.

    Args:
        token_ids: the tokens.
        length: number of tokens in the sequence.
        window: maximum number of tokens of a sequence.
        size: number of tokens of the vocabulary.

    Raises:
        ContextOverflowError: they do not fit in the window.
        ModelError: no token is given, or one is out of range.
    """
    ids = token_list(token_ids)
    if not ids:
        raise ModelError("no tokens to append", hint="give at least one")
    if min(ids) < 0 or max(ids) >= size:
        raise ModelError(f"a token id is not one of 0..{size - 1}", hint="use this model's tokens")
    if length + len(ids) > window:
        raise ContextOverflowError(
            f"{length + len(ids)} tokens do not fit in a window of {window}",
            hint="shorten the prompt, or load the model with a larger context_window",
        )
    return ids


def check_crop(length: int, held: int) -> None:
    """Check the new length of a sequence of ``held`` tokens.

    Raises:
        ModelError: the sequence is shorter.
    """
    if not 0 <= length <= held:
        raise ModelError(f"cannot crop {held} tokens to {length}", hint="crop only shortens")


class EngineSession(ABC):
    """The common part of the sessions of engines, which keep the ids of their tokens: the engine may have read fewer of
    them, and reads the rest, or the whole sequence again, when more are appended. Their reuse is left to the prefix
    cache.

    A subclass adds `extend`, `fork` and `nbytes`.

    Args:
        window: maximum number of tokens of the sequence.
        size: number of tokens of the vocabulary.
    """

    def __init__(self, window: int, size: int) -> None:
        self._window = window
        self._size = size
        self._ids: list[int] = []
        self._cached = 0  # number of tokens that the engine has read
        self._is_closed = False

    @property
    def cached_tokens(self) -> int:
        """Number of its first tokens that were reused: 0, because `PrefixSession` counts them."""
        return 0

    @property
    def length(self) -> int:
        """Number of tokens in the sequence."""
        return len(self._ids)

    def checked(self, token_ids: Sequence[int]) -> list[int]:
        """Return the tokens of the extended sequence, checked. Errors as for `Session.extend`."""
        self._check_open()
        return [*self._ids, *check_new_tokens(token_ids, len(self._ids), self._window, self._size)]

    def crop(self, length: int) -> None:
        """Remove all tokens after the first ``length``.

        Raises:
            ModelError: the sequence is shorter, or the session is closed.
        """
        self._check_open()
        check_crop(length, len(self._ids))
        del self._ids[length:]
        if length < self._cached:
            self.shorten(length)

    def shorten(self, length: int) -> None:
        """Remove from the engine's cache all tokens after the first ``length``; all tokens, if that is impossible."""
        if length and self._can_shorten(length) and self._shorten(length):
            self._cached = length
        else:
            self.forget()

    def keeps(self, length: int) -> bool:
        """Return True if the session can be reduced to its first ``length`` tokens without reading them again."""
        return 0 < length <= self._cached and (length == self._cached or self._can_shorten(length))

    def close(self) -> None:
        """Free the cache; closing twice is allowed."""
        self._is_closed = True
        self.forget()
        self._ids = []

    @abstractmethod
    def forget(self) -> None:
        """Drop the engine's cache; the next `extend` reads the sequence again."""

    @abstractmethod
    def _can_shorten(self, length: int) -> bool:
        """Return True if the engine's cache can be shortened to ``length`` tokens, at least one."""

    @abstractmethod
    def _shorten(self, length: int) -> bool:
        """Shorten the engine's cache to its first ``length`` tokens; return False if that fails after all."""

    def _check_open(self) -> None:
        if self._is_closed:
            raise closed_error("session")
