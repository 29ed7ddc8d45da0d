"""`ConstraintCache`: grammars bound to vocabularies, kept as long as their memory allows."""

from __future__ import annotations

import copy
import hashlib
import marshal
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..basics.forks import shared_lock
from ..basics.logs import logger_of
from ..basics.pauses import pause
from ..errors import GrammarError, is_fault
from ..masks.mask_engine import SharedEngine
from .grammar import Grammar

if TYPE_CHECKING:
    from ..automaton.lazy_dfa import LazyAutomaton
    from ..masks.matcher import Constraint
    from ..vocabulary.vocabulary import Vocabulary

_LOG = logger_of("grammars")

#: Minimum number of seconds of a compilation that is logged as slow.
SLOW = 1.0

#: Default of the maximum of bytes that a cache takes.
MAX_BYTES = 256 * 2**20

#: Bytes counted for an entry whose store is shared; the store is counted once for all of them.
THIN_BYTES = 6_000

#: Number of seconds between two pauses of a thread that waits for another one's constraint.
PAUSE_SECONDS = 0.02

#: Number of other entries measured at each request: entries grow while texts are written.
_ROUND = 4

#: Share of the bound that entries keep, however much the dropped constraints in use take.
_LEAST_SHARE = 0.25


@dataclass(frozen=True)
class CacheStatistics:
    """Counters of a cache, and its present size.

    Attributes:
        hits: requests that were answered from the cache, or by a compilation in progress.
        misses: requests that were compiled.
        evictions: entries that were dropped for others.
        entries: number of constraints kept.
        bytes: measured size of the constraints kept.
        max_bytes: maximum size of the constraints kept, in bytes.
    """

    hits: int
    misses: int
    evictions: int
    entries: int
    bytes: int
    max_bytes: int


@dataclass
class _Entry:
    grammar: Grammar
    constraint: Constraint
    size: int = 0


class ConstraintCache:
    """LRU cache of constraints, by content and bounded in bytes. Thread-safe.

    A request's key is the SHA-256 of the schema and its options (titles, descriptions and other annotations do not
    count, the order of ``properties`` does), or of the grammar, and of the vocabulary's content. Equal requests at the
    same time are compiled once. Constraints grow with the texts that are written, so sizes are measured again at each
    request; past the bound, the least recently used constraints are dropped. A dropped constraint works on for those
    who hold it; as long as it does, the others have that much less of the bound, down to a quarter of it.

    Tool sets share the store of a workspace (see `Grammar.as_part`): it is counted once, and released with the last of
    them.

    Args:
        max_bytes: maximum size of the kept constraints without their vocabularies.

    Raises:
        GrammarError: ``max_bytes`` is not above zero.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        if max_bytes <= 0:
            raise GrammarError(f"max_bytes is {max_bytes}", hint="give a number of bytes above zero")
        self._max_bytes = max_bytes
        self._lock = shared_lock(self, "_lock", threading.Lock())
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._round: OrderedDict[Hashable, None] = OrderedDict()  # the entries, the next one to be measured first
        self._making: dict[Hashable, Future[Constraint | None]] = {}
        self._process = os.getpid()
        self._bytes = 0
        self._shared: dict[Vocabulary, _Sharers] = {}
        self._dropped: list[weakref.ref[Constraint]] = []  # those in use
        self._hits = self._misses = self._evictions = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"ConstraintCache({', '.join(f'{k}={v:,}' for k, v in vars(self.statistics).items())})"

    @property
    def statistics(self) -> CacheStatistics:
        """The counters, with sizes measured now."""
        with self._lock:
            for key in list(self._entries):
                self._measure(key)
            self._evict()
            return CacheStatistics(
                self._hits, self._misses, self._evictions, len(self._entries), self._total(), self._max_bytes
            )

    def bind(self, grammar: Grammar, vocabulary: Vocabulary) -> Constraint:
        """Return ``grammar.bind(vocabulary)``, from the cache if an equal grammar was bound before.

        Raises:
            ToolGrammarError: as `Grammar.bind`; errors are not kept.
        """
        return self._get(_digest((grammar,)) or grammar, vocabulary, lambda: grammar)

    def from_json_schema(self, schema: Any, vocabulary: Vocabulary, **options: Any) -> Constraint:
        """Return ``Grammar.from_json_schema(schema, **options).bind(vocabulary)``, from the cache if it is there.

        Raises:
            ToolGrammarError: as `Grammar.from_json_schema` and `Grammar.bind`; errors are not kept.
        """
        from ..schema import SchemaOptions
        from ..schema.read.dated import names_a_day, of_today
        from ..schema.read.schema_key import schema_key

        digest = None
        if isinstance(schema, (dict, bool)):
            try:
                text = schema_key(schema)
                if names_a_day(text):  # formats of past and future dates: the grammar is another one each day
                    schema = of_today(schema)
                    text = schema_key(schema)
                key_only = Grammar(lambda nodes: nodes.EMPTY, ("schema", (text, SchemaOptions(**options))))
                digest = _digest((key_only,))
            except (RecursionError, ValueError, TypeError):
                pass  # the schema has no JSON text, or an option is unknown: `from_json_schema` below raises the error
        if digest is None:
            return self.bind(Grammar.from_json_schema(schema, **options), vocabulary)
        return self._get(digest, vocabulary, lambda: Grammar.from_json_schema(schema, **options))

    def clear(self) -> None:
        """Drop all constraints; the counters go on."""
        with self._lock:
            for key in list(self._entries):
                self._drop(key)

    # -- inside ------------------------------------------------------------------------------------------------

    def _get(self, content: Hashable, vocabulary: Vocabulary, make: Callable[[], Grammar]) -> Constraint:
        """Return the constraint of a grammar's content, made once: other threads that ask meanwhile wait for it, with
        pauses. All raise a fault of the input; after any other error one of them goes on with the work."""
        key = content, vocabulary.content_hash
        while True:
            with self._lock:
                if self._process != os.getpid():  # it was forked, without the threads that make constraints
                    self._process = os.getpid()
                    self._making.clear()
                entry = self._entries.get(key)
                if entry is not None:
                    self._hits += 1
                    self._entries.move_to_end(key)
                    self._measure_some(key)
                    return entry.constraint
                under_way = self._making.get(key)
                if under_way is None:
                    self._misses += 1
                    mine = self._making[key] = Future()
                    break
                self._hits += 1
            while not wait([under_way], PAUSE_SECONDS).done:
                pause()
            fault = under_way.exception()
            if fault is not None:
                raise copy.copy(fault)  # each thread adds to the traceback of its own
            made = under_way.result()
            if made is not None:
                return made
        try:
            constraint = self._make(key, make, vocabulary)
        except BaseException as error:
            with self._lock:
                self._making.pop(key, None)
            if is_fault(error):
                mine.set_exception(error)
            else:
                mine.set_result(None)
            raise
        mine.set_result(constraint)
        return constraint

    def _make(self, key: Hashable, make: Callable[[], Grammar], vocabulary: Vocabulary) -> Constraint:
        """Make a constraint, and add its entry: of a shared store, with `THIN_BYTES` of its own."""
        started = time.monotonic()
        grammar = make()
        constraint = grammar.bind(vocabulary)
        if (seconds := time.monotonic() - started) > SLOW:
            _LOG.warning("a grammar took %.1f s to compile", seconds)
        with self._lock:
            self._making.pop(key, None)
            entry = self._entries[key] = _Entry(grammar, constraint)
            self._round[key] = None
            if constraint.program.store.is_shared:
                entry.size = THIN_BYTES
                self._bytes += THIN_BYTES
                self._shared.setdefault(constraint.vocabulary, _Sharers()).count += 1
            self._measure_some(key)
        return constraint

    def _measure_some(self, key: Hashable) -> None:
        """Measure the memory of a new entry and of the next `_ROUND` older ones, which may have grown, and evict."""
        self._measure(key)
        for _ in range(min(_ROUND, len(self._round))):
            other = next(iter(self._round))
            self._round.move_to_end(other)
            self._measure(other)
        self._evict()

    def _measure(self, key: Hashable) -> None:
        """Measure the memory of an entry; that of a shared store is noted for all its entries together."""
        entry = self._entries[key]
        constraint = entry.constraint
        if constraint.program.store.is_shared:
            self._shared[constraint.vocabulary].note(constraint)
            return
        size = constraint.byte_count() + entry.grammar.byte_count()
        self._bytes += size - entry.size
        entry.size = size
        if constraint.program.is_full:  # the next text would begin in a fresh store
            self._entries.move_to_end(key, last=False)

    def _total(self) -> int:
        return self._bytes + sum(sharers.byte_count() for sharers in self._shared.values())

    def _in_use(self) -> int:
        """Return the bytes of the dropped constraints that are in use."""
        held = [(each, constraint) for each in self._dropped if (constraint := each()) is not None]
        self._dropped = [each for each, _ in held]
        return sum(constraint.byte_count() for _, constraint in held)

    def _evict(self) -> None:
        """Drop entries of renewed stores, then the least recently used ones until the rest fits in the bound."""
        for vocabulary in [owner for owner, sharers in self._shared.items() if sharers.is_renewed]:
            self._leave_old_stores(vocabulary)
        while self._entries:
            most = max(self._max_bytes - self._in_use(), _LEAST_SHARE * self._max_bytes)
            if self._total() <= most:
                break
            self._drop(next(iter(self._entries)))
            self._evictions += 1

    def _leave_old_stores(self, vocabulary: Vocabulary) -> None:
        """Drop the entries whose shared store was full and has been replaced: they would keep it in memory."""
        sharers = self._shared[vocabulary]
        sharers.is_renewed = False
        assert sharers.constraint is not None  # it was noted
        newest = sharers.constraint.program.store
        for key, entry in list(self._entries.items()):
            store = entry.constraint.program.store
            if entry.constraint.vocabulary is vocabulary and store.is_shared and store is not newest:
                self._drop(key)
                self._evictions += 1

    def _drop(self, key: Hashable) -> None:
        """Remove an entry and its memory; the last entry of a shared store releases that store too.

        If callers still use the constraint, its own store counts in `_in_use`; a shared store counts only by entries.
        """
        entry = self._entries.pop(key)
        del self._round[key]
        self._bytes -= entry.size
        if not entry.constraint.program.store.is_shared:
            self._dropped.append(weakref.ref(entry.constraint))
        entry.grammar._release()  # a caller who keeps the grammar must not keep the automaton that was counted here
        vocabulary = entry.constraint.vocabulary
        if entry.constraint.program.store.is_shared:
            sharers = self._shared[vocabulary]
            sharers.count -= 1
            if sharers.count == 0:
                del self._shared[vocabulary]
                if entry.grammar._workspace is not None:
                    entry.grammar._workspace.release(entry.constraint.program.store)
                vocabulary.derived(SharedEngine).release()


@dataclass
class _Sharers:
    """The entries of one vocabulary that share a store.

    Attributes:
        count: number of these entries.
        constraint: one of them that uses the newest store.
        is_renewed: True if some of them may use an older store.
        older: older stores, which texts may still use.
    """

    count: int = 0
    constraint: Constraint | None = None
    is_renewed: bool = False
    older: list[weakref.ref[LazyAutomaton]] = field(default_factory=list)

    def note(self, constraint: Constraint) -> None:
        """Note the store of a constraint that was just requested: a newer store replaces a full one."""
        newest = self.constraint
        if newest is None:
            self.constraint = constraint
        elif newest.program.store is not constraint.program.store:
            self.is_renewed = True
            if newest.program.is_full:
                self.constraint = constraint
                self.older = [each for each in self.older if each() is not None]
                self.older.append(weakref.ref(newest.program.store))

    def byte_count(self) -> int:
        """Return the size of the newest store, and of older ones in use, in bytes."""
        older = sum(store.byte_count() for each in self.older if (store := each()) is not None)
        return older if self.constraint is None else older + self.constraint.byte_count()


#: Types whose values are written as they are.
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})


def _digest(content: Any) -> str | None:
    """Return the SHA-256 of a grammar's content; None if some part of it cannot be written down."""
    try:
        # Version 2 writes equal data equally; the other versions write whether objects are shared.
        return hashlib.sha256(marshal.dumps(_as_data(content), 2)).hexdigest()
    except (TypeError, ValueError):
        return None


def _as_data(value: Any) -> Any:
    """Return a value as plain data, different for different values: tuples stay, all else is a list with its kind.

    Raises:
        TypeError: some part of it is no data.
    """
    if isinstance(value, (tuple, list)):
        return tuple([part if type(part) in _PLAIN else _as_data(part) for part in value])
    if isinstance(value, Grammar):
        if value._digest is None:
            value._digest = _digest(value._content()) or ""
        if not value._digest:
            raise TypeError("a grammar without a digest")
        return ["grammar", value._digest]
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return ["map", _as_data(tuple(value.items()))]
    if hasattr(value, "__dataclass_fields__"):
        from ..schema import CompiledSchema, SchemaOptions

        if isinstance(value, CompiledSchema):
            return _as_data(value.key)
        if isinstance(value, SchemaOptions) and value.registry is None:  # a registry may be changed by its owner
            return _options_as_data(value)
        return _fields_as_data(value)
    raise TypeError(f"{type(value).__name__} is no data")


def _fields_as_data(value: Any) -> list[Any]:
    """Return a dataclass as data."""
    return [type(value).__name__, _as_data(tuple(getattr(value, part.name) for part in fields(value)))]


#: The same for options of schemas, of which there are few.
_options_as_data = lru_cache(maxsize=64)(_fields_as_data)
