"""Continuous batching: running generations share forward passes, and may join and leave at each step.

One thread runs the forward passes of a model while there are requests. At each step it admits waiting requests, first
come, first served; gives each running one a share of the pass; and sends logits to those whose tokens are all read,
until they request more or end. Prompts are read in pieces, so a long prompt delays other requests by passes of bounded
size.

If the grammar of a request takes long between two tokens, another thread takes over the passes, and the request comes
back when its step is done.

The number of tokens of all sequences together is bounded. If it is exceeded, the newest sequence is preempted, and its
text is read again later. The oldest one always runs, so every request ends.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Union

from ..basics.forks import shared_lock
from ..basics.pauses import Ended, ended_by, is_long
from ..errors import ModelError
from .backend import BatchBackend, Session
from .driver import ForwardLock, Item, Released, look_ahead
from .retokenise import common_prefix
from .token_sequence import Forward

if TYPE_CHECKING:
    from .driver import Logits, Work

#: Default maximum number of concurrent sequences.
MAX_ROWS = 32

#: Default maximum number of tokens of all these sequences, or the context window if that is more.
MAX_TOKENS = 65_536

#: Number of tokens of a forward pass. More of them delay all requests; fewer need more passes for prompts.
PASS_TOKENS = 512

#: Minimum length of a common prefix for which a request waits until another one has read it.
MIN_SHARED = 64

#: Name of the threads that run forward passes.
_THREAD = "toolgrammar-scheduler"

#: Receives the items of a request: its events, the complete generation, and then None or the error that ended it.
Emit = Callable[[Union[Item, BaseException, None]], object]


@dataclass(eq=False)
class _Request:
    """A generation that waits for logits.

    Attributes:
        work: the generation.
        emit: receives its items.
        abandoned: set when the caller has abandoned it.
        lock: held while its session is freed, as during each forward pass.
        forward: its last request for logits.
        ids: the tokens of its sequence, including the requested ones.
        read: number of these tokens that its session has read.
        session: its sequence; None while it waits for admission.
        is_fresh: it advanced in this step, and so has just checked for cancellation.
        number: its place in the order of arrival.
    """

    work: Work
    emit: Emit
    abandoned: threading.Event
    lock: ForwardLock
    forward: Forward | None = None
    ids: list[int] = field(default_factory=list)
    read: int = 0
    session: Session | None = None
    is_fresh: bool = True
    number: int = field(default_factory=itertools.count().__next__)

    def advance(self, logits: Logits | None) -> bool:
        """Run the generation until it needs logits (``forward``); pass its items on meanwhile. ``logits``: the answer
        to its last request. Return False if it has ended; an error is passed to its caller, not raised."""
        try:
            while True:
                item = self.work.send(logits)
                logits = None
                if isinstance(item, Forward):
                    self.forward = item
                    self.is_fresh = True
                    if item.kept is not None:  # `_step` shortens the session
                        del self.ids[item.kept :]
                        self.read = min(self.read, item.kept)
                    if item.parents is None:
                        self.ids += item.token_ids
                    return True
                if isinstance(item, Released):
                    self.release()
                    self.ids = []
                else:
                    self.emit(item)
        except StopIteration:
            self.end(None)
        except Ended as ended:  # of the block around this step
            self.end(ended.release())
        except BaseException as error:  # passed to the caller
            self.end(error)
        return False

    @property
    def looks_ahead(self) -> bool:
        """True if it requests logits for a tree, and all tokens before that are read."""
        return self.forward is not None and self.forward.parents is not None and self.read == len(self.ids)

    def release(self) -> None:
        """Free the session; the tokens are kept, to be read again."""
        session, self.session, self.read = self.session, None, 0
        if session is not None:
            with self.lock:
                session.close()

    def end(self, outcome: BaseException | None) -> None:
        """Free everything, and pass the outcome to the caller; errors in doing so are ignored.

        The caller's event loop may be closed; then nobody waits.
        """
        with suppress(Exception):
            self.work.close()
        with suppress(Exception):
            self.release()
        with suppress(Exception):
            self.emit(outcome)


@dataclass
class SchedulerCounters:
    """Counters of a scheduler.

    Attributes:
        passes: forward passes.
        rows: rows of all passes.
        tokens: tokens read in all passes.
        most_rows: maximum number of rows of a pass.
        most_tokens: maximum number of tokens of all sequences together.
        preempted: number of preempted sequences.
        running: number of current sequences.
        waiting: number of requests that wait for admission.
        handed_over: number of long steps during which another thread took over the passes.
    """

    passes: int = 0
    rows: int = 0
    tokens: int = 0
    most_rows: int = 0
    most_tokens: int = 0
    preempted: int = 0
    running: int = 0
    waiting: int = 0
    handed_over: int = 0


class Scheduler:
    """Runs many generations over one backend. Thread-safe.

    Args:
        backend: a model that can batch.
        lock: held during each forward pass.
        max_rows: maximum number of sequences at once.
        max_tokens: maximum number of tokens of all these sequences; a single one may have more.
    """

    def __init__(self, backend: BatchBackend, lock: ForwardLock, max_rows: int, max_tokens: int) -> None:
        self._backend = backend
        self._lock = lock
        self._max_rows = max_rows
        self._max_tokens = max_tokens
        self._requests: list[_Request] = []  # in order of arrival
        self._arrived: list[_Request] = []
        self._away: list[_Request] = []  # in a long step, in a thread of their own
        self._results: deque[tuple[_Request, int, Logits | Exception]] = deque()  # of the last pass, to be sent
        # Guards arrivals, requests that are away, and the thread.
        self._guard = shared_lock(self, "_guard", threading.Lock())
        self._thread: threading.Thread | None = None
        self._counters = SchedulerCounters()  # without `running` and `waiting`
        self._process = os.getpid()

    @property
    def is_current_thread(self) -> bool:
        """True in the scheduler's own thread, which must not wait for its own results."""
        return threading.current_thread() is self._thread

    def counters(self) -> SchedulerCounters:
        """Return the counters."""
        with self._guard:
            requests = [*self._requests, *self._arrived, *self._away]
        running = sum(request.session is not None for request in requests)
        return replace(self._counters, running=running, waiting=len(requests) - running)

    def submit(self, works: Sequence[tuple[Work, Emit, threading.Event]]) -> None:
        """Run generations; return at once.

        Each one runs in the calling thread until it first needs logits; this includes its planning.

        Args:
            works: triples of a generation; a function that receives its items, then None or its error, in the
                scheduler's thread; and an event by which the caller abandons it.
        """
        requests = [_Request(*work, self._lock) for work in works]
        requests = [request for request in requests if request.advance(None)]
        if not requests:
            return
        with self._guard:
            if self._process != os.getpid():  # it was forked, without the callers of these
                self._process = os.getpid()
                for running in (self._requests, self._arrived, self._away, self._results):
                    running.clear()
            self._arrived += requests
            if self._thread is None or not self._thread.is_alive():  # a forked process does not have the thread
                self._start()

    def _start(self) -> None:
        """Start a thread that runs the forward passes from now on; the guard is held."""
        # Not a daemon: it would be stopped in the middle of a forward pass at exit, which aborts the process.
        self._thread = threading.Thread(target=self._run, name=_THREAD, daemon=False)
        self._thread.start()

    def _run(self) -> None:
        """Advance requests, one forward pass at a time, until none is left, or another thread has taken over: the body
        of the scheduler's thread. A request that arrives later starts a new thread. An error ends all requests, so that
        no caller waits for ever."""
        while self._send_results():
            with self._guard:
                if self._arrived:
                    self._requests = sorted([*self._requests, *self._arrived], key=lambda request: request.number)
                    self._arrived = []
                if not self._requests:
                    self._thread = None
                    return
            try:
                if _is_exiting():
                    raise ModelError("the interpreter exits", hint="wait for requests before the program ends")
                self._step()
            except BaseException as error:  # no request may wait for a thread that has ended
                for request in self._requests:
                    request.end(error)
                self._requests = []
                self._results.clear()

    def _step(self) -> None:
        """Run one forward pass for all sequences together, and advance the requests whose tokens it has read to the
        end. Requests that are over are dropped, and too long ones preempted, before it; a tree gets a pass of its own.

        Raises:
            ModelError: the model is closed.
        """
        self._requests = [request for request in self._requests if self._goes_on(request)]
        self._make_room()
        begin = time.perf_counter()
        with self._lock:
            self._admit()
            self._crop()
            rows: list[tuple[_Request, Sequence[int]]] = []
            results: list[Logits | Exception] = []
            for request in self._running():
                if request.looks_ahead:
                    rows.append((request, ()))
                    results.append(self._look_ahead(request))
            shared = self._share(PASS_TOKENS)
            rows += shared
            results += self._pass(shared)
        seconds = time.perf_counter() - begin
        for (request, ids), result in zip(rows, results, strict=True):
            assert request.forward is not None
            request.forward.seconds += seconds
            self._results.append((request, len(ids), result))

    def _send_results(self) -> bool:
        """Send the logits of the last pass to the requests whose tokens are all read. Return False if another thread
        has taken over meanwhile: the rest is its business."""
        while self._results:
            request, count, result = self._results.popleft()
            if isinstance(result, Exception):
                request.end(result)
                self._requests.remove(request)
                continue
            request.read += count
            if request.looks_ahead and count:  # its sequence was preempted, and is read again
                continue
            if request.read < len(request.ids):
                continue
            with ended_by(partial(self._hand_over, request)):
                goes_on = request.advance(result)
            if not self.is_current_thread:
                self._take_back(request, goes_on)
                return False
            if not goes_on:
                self._requests.remove(request)
        return True

    def _hand_over(self, request: _Request) -> None:
        """At a pause in a long step of a request: let another thread run the passes, if there are other requests."""
        if not is_long() or not self.is_current_thread or (len(self._requests) == 1 and not self._arrived):
            return
        with self._guard:
            self._requests.remove(request)
            self._away.append(request)
            self._counters.handed_over += 1
            self._start()

    def _take_back(self, request: _Request, goes_on: bool) -> None:
        """Take back a request after a long step in a thread that does not run the passes any more."""
        with self._guard:
            self._away.remove(request)
            if goes_on:
                self._arrived.append(request)
                if self._thread is None or not self._thread.is_alive():
                    self._start()

    def _goes_on(self, request: _Request) -> bool:
        """Return False if a request is over before its tokens are read: abandoned, past its deadline, or cancelled."""
        if request.abandoned.is_set():
            request.end(None)
            return False
        is_fresh, request.is_fresh = request.is_fresh, False
        if is_fresh or request.forward is None or request.forward.is_over is None:
            return True
        try:
            is_over = request.forward.is_over()
        except Exception as error:
            request.end(error)
            return False
        return not is_over or request.advance(None)  # without logits, the generation ends

    def _running(self) -> list[_Request]:
        return [request for request in self._requests if request.session is not None]

    def _make_room(self) -> None:
        """Preempt the newest sequences while all together have too many tokens."""
        running = self._running()
        total = sum(len(request.ids) for request in [*running, *self._away])
        while len(running) > 1 and total > self._max_tokens:
            last = running.pop()
            total -= len(last.ids)
            last.release()
            self._counters.preempted += 1

    def _admit(self) -> None:
        """Open the sequences of waiting requests, in order, as far as the limits allow.

        A request waits for another one that is reading a common prefix, and gets a copy of it. Others overtake it.
        """
        running = self._running()
        away = [request for request in self._away if request.session is not None]
        total = sum(len(request.ids) for request in [*running, *away])
        for request in list(self._requests):
            if request.session is not None:
                continue
            if running and (len(running) + len(away) >= self._max_rows or total + len(request.ids) > self._max_tokens):
                return
            if any(self._will_share(request, other) for other in running):
                continue
            try:
                request.session = self._backend.begin(request.ids)
            except Exception as error:
                request.end(error)
                self._requests.remove(request)
                continue
            request.read = request.session.length
            first = request.forward
            if first is not None and first.parents is None and len(first.token_ids) == len(request.ids):
                first.cached_tokens = request.session.cached_tokens
            running.append(request)
            total += len(request.ids)
        self._counters.most_tokens = max(self._counters.most_tokens, total)

    def _crop(self) -> None:
        """Shorten the sequences whose generations have replaced their last tokens."""
        for request in self._running():
            if request.session is not None and request.session.length > request.read:
                try:
                    request.session.crop(request.read)
                except Exception as error:
                    request.end(error)
                    self._requests.remove(request)

    @staticmethod
    def _will_share(request: _Request, other: _Request) -> bool:
        """Return True if another request is reading a common prefix of both."""
        unread = len(other.ids) - other.read
        return unread >= MIN_SHARED and common_prefix(request.ids, other.ids) - other.read >= MIN_SHARED

    def _share(self, budget: int) -> list[tuple[_Request, list[int]]]:
        """Return the running requests that have unread tokens, each with those to read in the next pass: equal shares
        of ``budget``, then the rest of it in order of arrival."""
        running = [request for request in self._running() if request.read < len(request.ids)]
        unread = [len(request.ids) - request.read for request in running]
        shares = [min(count, max(1, budget // len(running))) for count in unread]
        left = max(0, budget - sum(shares))
        for row, count in enumerate(unread):
            more = min(left, count - shares[row])
            shares[row] += more
            left -= more
        return [
            (request, request.ids[request.read : request.read + share])
            for request, share in zip(running, shares, strict=True)
        ]

    def _look_ahead(self, request: _Request) -> Logits | Exception:
        """Evaluate the tree of a request, in a separate pass."""
        forward, session = request.forward, request.session
        assert forward is not None and session is not None
        try:
            logits = look_ahead(session, forward)
        except Exception as error:
            return error
        self._counters.passes += forward.passes
        self._counters.rows += forward.passes
        self._counters.tokens += len(forward.token_ids)
        return logits

    def _pass(self, rows: Sequence[tuple[_Request, list[int]]]) -> list[Logits | Exception]:
        """Run a forward pass; if it fails, one for each request, so that an error affects only its own request."""
        if not rows:
            return []
        counters = self._counters
        counters.passes += 1
        counters.rows += len(rows)
        counters.tokens += sum(len(ids) for _, ids in rows)
        counters.most_rows = max(counters.most_rows, len(rows))
        sessions: list[Any] = [(request.session, ids) for request, ids in rows]
        try:
            return list(self._backend.extend_many(sessions))
        except Exception as error:
            if len(rows) == 1:
                return [error]
        return [self._pass([row])[0] for row in rows]


def _is_exiting() -> bool:
    """Return True if only daemons and schedulers are still running, so that nobody waits for a result."""
    return not threading.main_thread().is_alive() and all(
        thread.daemon or thread.name == _THREAD or not thread.is_alive() for thread in threading.enumerate()
    )
