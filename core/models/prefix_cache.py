"""Prompt prefix cache: the next turn of a conversation reuses the keys and values of the last one.

A closed session is stored with its token ids; a new one with a common prefix continues from it. If the new prompt
extends the old one (the conversation's next turn), the stored session is *moved*; otherwise (another conversation with
the same tools) the common prefix is *copied*, so that both can continue. An engine that cannot copy a sequence loses
one that shares more than half of its tokens with the new prompt.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..basics.forks import shared_lock
from ..basics.resident import held
from ..errors import ModelError
from ..generation.backend import Session, closed_error
from .image_tokens import token_keys, token_list
from .sessions import check_crop

#: Default maximum size of the stored sequences, in bytes.
PREFIX_BYTES = 512 * 2**20

#: Number of bytes of grammars beside which sequences in the memory of this process may take their whole limit, and the
#: least share of the limit that more bytes of grammars leave to them.
BESIDE, LEAST_SHARE = 128 * 2**20, 0.25

#: Minimum length of a common prefix that is copied.
MIN_COMMON = 16


class KeptSession(Session, Protocol):
    """A `Session` that can be stored and copied."""

    @property
    def nbytes(self) -> int:
        """Current size of its cache, in bytes."""
        ...

    # A session may also have a method `rest`, which reduces its size at the cost of a slower continuation. The cache
    # calls it after another session was stored.

    def keeps(self, length: int) -> bool:
        """Return True if the session can be reduced to its first ``length`` tokens without reading them again."""
        ...

    def fork(self, length: int) -> KeptSession | None:
        """Return an independent session with its first ``length`` tokens, for which `keeps` is True.

        None if the engine cannot copy a sequence.
        """
        ...


@dataclass(frozen=True)
class PrefixCounters:
    """Counters of a prefix cache.

    Attributes:
        hits: sessions that continued a stored one.
        misses: sessions that began empty.
        reused_tokens: tokens that were not computed again.
        evictions: stored sessions that were freed because of the size limit.
        sessions: current number of stored sessions.
        nbytes: their size in bytes.
    """

    hits: int = 0
    misses: int = 0
    reused_tokens: int = 0
    evictions: int = 0
    sessions: int = 0
    nbytes: int = 0


@dataclass(frozen=True)
class _Entry:
    session: KeptSession
    ids: npt.NDArray[np.int64]  # `token_keys`
    prompt: int  # number of tokens of the prompt
    nbytes: int


class PrefixCache:
    """Stores closed sessions up to a size limit; the least recently used are freed first. Thread-safe.

    Args:
        max_bytes: the size limit.
        yields: the limit is for sequences and grammars together, as both are in the memory of this process: what
            grammars use (`held`) beyond `BESIDE` bytes is subtracted from it, down to `LEAST_SHARE` of the limit. The
            newest sequence is stored all the same.
    """

    def __init__(self, max_bytes: int = PREFIX_BYTES, *, yields: bool = False) -> None:
        if max_bytes < 0:
            raise ModelError(f"prefix_cache cannot be {max_bytes}", hint="a number of bytes; 0 switches it off")
        self._max_bytes = max_bytes
        self._yields = yields
        self._entries: list[_Entry] = []  # the most recently used last
        self._open: weakref.WeakSet[PrefixSession] = weakref.WeakSet()  # which others may copy
        self._lock = shared_lock(self, "_lock", threading.Lock())
        self._is_closed = False
        self._hits = self._misses = self._reused = self._evictions = 0

    def start(self, make: Callable[[], KeptSession]) -> PrefixSession:
        """Return a session that looks for a stored one when its first tokens are appended.

        Args:
            make: makes an empty session, if there is none.
        """
        return PrefixSession(self, make)

    def take(self, ids: Sequence[int], shares: bool = False) -> KeptSession | None:
        """Return a session with a prefix of ``ids`` (without the last token); the caller owns it.

        Args:
            ids: the tokens.
            shares: also search the open sessions (`share`), which no other thread may extend at the same time.
        """
        wanted = token_keys(ids)
        with self._lock:
            best: _Entry | None = None
            common = 0  # number of tokens that it has in common with the new ones
            for entry in [*self._open_entries(shares), *reversed(self._entries)]:
                # There may be thousands of entries. A longer common prefix needs the same token at `common`, which is
                # cheaper to compare than all tokens before it.
                if len(entry.ids) <= common or common >= len(wanted) - 1 or entry.ids[common] != wanted[common]:
                    continue
                shared = min(_common(entry.ids, wanted), len(wanted) - 1)
                if shared > common and entry.session.keeps(shared):
                    best, common = entry, shared
            session = None if best is None or common < MIN_COMMON else self._detach(best, common)
            if session is None:
                self._misses += 1
                return None
            self._hits += 1
            self._reused += common
            return session

    def _detach(self, entry: _Entry, length: int) -> KeptSession | None:
        """Return a session with the first ``length`` tokens of a stored one: this one itself, if the new prompt is its
        next turn, or if it cannot be copied and most of it is reused; else a copy. None if there can be none."""
        others = [other for other in self._entries if other is not entry]
        if len(others) == len(self._entries):  # an open session, which goes on
            try:
                return entry.session.fork(length)
            except Exception:
                return None
        self._entries = others
        is_next_turn = length >= entry.prompt - 1  # all of the old prompt, but for its last token
        is_mostly_used = 2 * length > len(entry.ids)
        try:
            copied = None if is_next_turn else entry.session.fork(length)
            if copied is None and (is_next_turn or is_mostly_used):
                entry.session.crop(length)
                return entry.session
        except Exception:  # for example, no memory for a copy: a cache must not fail a request
            entry.session.close()
            return None
        self._entries.append(entry)
        return copied

    def share(self, session: PrefixSession) -> None:
        """Allow copies from an open session."""
        if self._max_bytes:
            with self._lock:
                self._open.add(session)

    def withdraw(self, session: PrefixSession) -> None:
        """Stop allowing copies from a session."""
        with self._lock:
            self._open.discard(session)

    def _open_entries(self, shares: bool) -> list[_Entry]:
        entries = [session.entry() for session in self._open] if shares else []
        return [entry for entry in entries if entry is not None]

    def give(self, session: KeptSession, ids: Sequence[int], prompt: int) -> None:
        """Store a session; the cache becomes its owner.

        Args:
            session: the session.
            ids: its tokens.
            prompt: number of these that are the prompt.
        """
        nbytes = session.nbytes
        limit = self._limit()
        with self._lock:
            fits = len(ids) >= MIN_COMMON and nbytes <= self._max_bytes
            if self._is_closed or not fits or not session.keeps(len(ids)):
                dropped = [session]
            else:
                dropped = []
                if self._entries:  # only the newest, the likeliest to go on, keeps its full size
                    self._entries[-1] = _rested(self._entries[-1])
                self._entries.append(_Entry(session, token_keys(ids), prompt, nbytes))
                total = sum(entry.nbytes for entry in self._entries)
                while total > limit and len(self._entries) > 1:
                    oldest = self._entries.pop(0)
                    total -= oldest.nbytes
                    self._evictions += 1
                    dropped.append(oldest.session)
        for unused in dropped:
            unused.close()

    def _limit(self) -> float:
        """Return the present size limit."""
        if not self._yields:
            return self._max_bytes
        return max(self._max_bytes - max(held() - BESIDE, 0), LEAST_SHARE * self._max_bytes)

    def clear(self) -> None:
        """Free all stored sessions."""
        with self._lock:
            entries, self._entries = self._entries, []
        for entry in entries:
            entry.session.close()

    def close(self) -> None:
        """Free all stored sessions, and store no more."""
        with self._lock:
            self._is_closed = True
        self.clear()

    def counters(self) -> PrefixCounters:
        """Return the counters."""
        with self._lock:
            return PrefixCounters(
                self._hits,
                self._misses,
                self._reused,
                self._evictions,
                len(self._entries),
                sum(entry.nbytes for entry in self._entries),
            )


class PrefixSession:
    """A session that continues a stored one if possible, and is stored when it is closed; implements `Session`.

    A session is not stored if a forward pass raised an error, or if its logits were NaN.

    Attributes:
        cached_tokens: number of its first tokens that were reused.
    """

    def __init__(self, cache: PrefixCache, make: Callable[[], KeptSession]) -> None:
        self._cache = cache
        self._make = make
        self._inner: KeptSession | None = None  # the model's own session; None before the first tokens
        self._ids: list[int] = []
        self._prompt = 0  # number of tokens of the prompt
        self._is_sound = True  # may be stored
        self._is_closed = False
        self.cached_tokens = 0

    @property
    def length(self) -> int:
        """Number of tokens in the sequence."""
        return len(self._ids)

    def begin(self, prompt: Sequence[int], shares: bool = False) -> None:
        """Begin with a stored prefix of a prompt (without its last token); `length` is that of the prefix.

        Args:
            prompt: all tokens of the prompt.
            shares: also copy from open sessions, and allow copies of this one.
        """
        self._inner = self._cache.take(prompt, shares) if prompt else None
        if self._inner is None:
            self._inner = self._make()
        self.cached_tokens = self._inner.length
        self._ids = token_list(prompt[: self.cached_tokens])
        self._prompt = len(prompt)
        if shares:
            self._cache.share(self)

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens in one forward pass; return the logits after the last. Errors as for the model's own
        session."""
        is_first = self._inner is None and not self._is_closed
        if is_first:
            self.begin(token_ids)
        try:
            rest = token_ids[self.cached_tokens :] if is_first else token_ids
            return extend_together([(self, rest)], _extend_one)[0]
        except BaseException:
            if is_first and self._inner is not None:  # it may have a prefix that this sequence does not have
                self._inner.close()
                self._inner = None
                self._ids = []
            raise

    def branches(self, token_ids: Sequence[int], parents: Sequence[int]) -> npt.NDArray[np.float32] | None:
        """Return the logits after each token of a tree that continues the sequence; see `TreeSession`."""
        inner = _begun(self)._inner
        read = getattr(inner, "branches", None)
        if read is None:
            return None
        sound, self._is_sound = self._is_sound, False  # and False it stays if `read` raises
        logits: npt.NDArray[np.float32] | None = read(token_ids, parents)
        self._is_sound = sound
        return logits

    def entry(self) -> _Entry | None:
        """Return the entry that others may copy; None if there is none."""
        if self._inner is None or not self._is_sound:
            return None
        return _Entry(self._inner, token_keys(self._ids), self._prompt, 0)

    def crop(self, length: int) -> None:
        """Remove all tokens after the first ``length``."""
        if self._is_closed:
            raise closed_error("session")
        check_crop(length, len(self._ids))
        if self._inner is not None:
            sound, self._is_sound = self._is_sound, False  # and False it stays if `crop` raises
            self._inner.crop(length)
            self._is_sound = sound
        del self._ids[length:]

    def close(self) -> None:
        """Store the sequence in the cache, or free it; closing twice is allowed."""
        if self._is_closed:
            return
        self._is_closed = True
        self._cache.withdraw(self)
        inner, self._inner = self._inner, None
        if inner is None:
            return
        if self._is_sound:
            self._cache.give(inner, self._ids, self._prompt)
        else:
            inner.close()


def extend_together(
    rows: Sequence[tuple[Session, Sequence[int]]],
    extend: Callable[[Sequence[tuple[KeptSession, Sequence[int]]]], list[npt.NDArray[np.float32]]],
) -> list[npt.NDArray[np.float32]]:
    """Append tokens to several sessions, which have begun, in one call.

    Args:
        rows: pairs of a `PrefixSession` and its new tokens.
        extend: appends tokens to the models' own sessions.
    """
    sessions = [_begun(session) for session, _ in rows]
    new = [token_list(ids) for _, ids in rows]
    were_sound = [session._is_sound for session in sessions]
    for session in sessions:  # and False it stays if `extend` raises
        session._is_sound = False
    logits = extend([(session._inner, ids) for session, ids in zip(sessions, new, strict=True)])  # type: ignore[misc]
    for session, ids, sound, scores in zip(sessions, new, were_sound, logits, strict=True):
        session._ids += ids
        session._is_sound = sound and not math.isnan(float(np.dot(scores, scores)))  # NaN if any score is
    return logits


def _rested(entry: _Entry) -> _Entry:
    """Return a stored session, reduced to its minimum size (see `KeptSession`)."""
    rest = getattr(entry.session, "rest", None)
    if rest is None:
        return entry
    with suppress(Exception):  # then it keeps its size
        rest()
    return replace(entry, nbytes=entry.session.nbytes)


def _begun(session: Session) -> PrefixSession:
    if not isinstance(session, PrefixSession) or session._is_closed or session._inner is None:
        raise closed_error("session")
    return session


def _extend_one(rows: Sequence[tuple[KeptSession, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
    return [session.extend(ids) for session, ids in rows]


def _common(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> int:
    """Return the length of the longest common prefix of two sequences."""
    size = min(len(one), len(other))
    differing = np.flatnonzero(one[:size] != other[:size])
    return int(differing[0]) if len(differing) else size
