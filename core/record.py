"""A record of what models answered and which calls ran: a file of entries that are chained by their hashes."""

from __future__ import annotations

import glob
import hashlib
import hmac
import json
import mmap
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .basics.file_lock import locked
from .basics.forks import shared_lock
from .basics.spans import WATCHERS
from .errors import RecordError

if TYPE_CHECKING:
    from typing_extensions import Self

#: Maximum size of a file of a record, in bytes, before the next one is begun.
MAX_BYTES = 64 << 20

#: The hash before the first entry.
START = "0" * 64

_HASH = ',"hash":"'


class Record:
    """Append what the models and tools of this process do to a file, while a ``with`` block runs.

    Each line is an entry: a JSON object with its number, its time (UTC), the event, the facts of the event under the
    names that spans of OpenTelemetry have for them, and the hash of the entry before it. Events: ``open``; ``answer``
    of a model; ``call`` before a tool runs, and ``result`` after it; ``run`` and ``end`` of `Model.run`. An entry is
    on the disk before the answer, the call or the result goes on. Several processes may append to one file.

    Args:
        path: the file; it is made, or continued.
        key: hashes are HMAC-SHA256 with this key, so that who does not have it cannot write the record anew;
            None: SHA-256.
        contents: also write messages, arguments and results; otherwise their SHA-256.
        max_bytes: size at which the file is renamed to ``path.1``, ``path.2``, ..., and a new one continues the chain.

    Raises:
        RecordError: the file cannot be written, or is damaged; an answer or call that cannot be recorded fails too.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: bytes | None = None,
        contents: bool = False,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        if key is not None and (not isinstance(key, bytes) or not key):
            raise RecordError(
                "the key of a record must be bytes, at least one", hint="for example secrets.token_bytes(32)"
            )
        if max_bytes < 1:
            raise RecordError(f"max_bytes is {max_bytes}", hint="give the size of a file in bytes")
        self.path = Path(path)
        self.contents = contents
        self._key = key
        self._max_bytes = max_bytes
        self._lock = shared_lock(self, "_lock", threading.Lock())
        self._known: tuple[int, int] | None = None  # inode and size of the file after the last entry of this object
        self._number, self._head = -1, START  # number and hash of the last entry

    @property
    def head(self) -> str:
        """The hash of the last entry that was written here: kept elsewhere, it proves that no entry was cut off."""
        return self._head

    def __enter__(self) -> Self:
        self.tell("open", "", None, {"process.pid": os.getpid()})
        WATCHERS.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        WATCHERS.remove(self)

    def tell(self, event: str, span: str, within: str | None, attributes: Mapping[str, Any]) -> None:
        """Append an entry.

        Raises:
            RecordError: the file cannot be written, or is damaged.
        """
        said = {"event": event, "span": span or None, "within": within, "attributes": dict(attributes) or None}
        try:
            with self._lock, locked(self.path.with_name(f"{self.path.name}.lock")):
                self._append({name: value for name, value in said.items() if value is not None})
        except OSError as error:
            raise RecordError(
                f"the record {self.path} cannot be written: {error.strerror or error}",
                hint="see that its folder exists, may be written to, and has room",
            ) from None

    def _append(self, said: dict[str, Any]) -> None:
        """Append an entry of these facts; a file that is full is renamed first. The locks are held."""
        with open(self.path, "ab+") as file:
            state = os.fstat(file.fileno())
            is_ours = self._known == (state.st_ino, state.st_size)  # it ends with the last entry of this object
            torn = 0 if is_ours else self._find_head(file)
            if os.fstat(file.fileno()).st_size < self._max_bytes:
                self._write(file, said, torn)
                return
        number = max((number for number, _ in _parts(self.path)), default=0) + 1
        os.rename(self.path, f"{self.path}.{number}")  # a closed file: Windows renames no other
        with open(self.path, "ab+") as file:
            self._write(file, said, torn)

    def _write(self, file: IO[bytes], said: dict[str, Any], torn: int) -> None:
        """Write an entry of these facts to the disk. ``torn``: the number of bytes of an incomplete line before it that
        were cut off; an entry says so."""
        entry = {
            "n": self._number + 1,
            "time": datetime.now(timezone.utc).isoformat(timespec="microseconds"),
            **said,
            **({"torn": torn} if torn else {}),
            "previous": self._head,
        }
        body = json.dumps(entry, ensure_ascii=True, default=str, separators=(",", ":"))
        found = _hash(body, self._key)
        file.write(f'{body[:-1]}{_HASH}{found}"}}\n'.encode())
        file.flush()
        os.fsync(file.fileno())
        state = os.fstat(file.fileno())
        self._number, self._head, self._known = self._number + 1, found, (state.st_ino, state.st_size)

    def _find_head(self, file: IO[bytes]) -> int:
        """Read the last entry; return the number of bytes of a line that a killed process left, which are cut off."""
        line, whole = _last_line(file)
        torn = file.seek(0, os.SEEK_END) - whole
        if torn:
            file.truncate(whole)
        if not line:
            parts = _parts(self.path)
            if not parts:
                self._number, self._head = -1, START
                return torn
            with open(parts[-1][1], "rb") as older:
                line, _ = _last_line(older)
        entry, problem = _read(line, self._key)
        if entry is None:
            hint = "look at it with: toolgrammar record verify; begin another file"
            raise RecordError(f"the record {self.path} cannot be continued: its last line: {problem}", hint=hint)
        self._number, self._head = entry["n"], entry["hash"]
        return torn

    @staticmethod
    def verify(path: str | os.PathLike[str], *, key: bytes | None = None, head: str | None = None) -> RecordReport:
        """Read a record with its older parts, and check each entry's hash and place in the chain.

        Args:
            path: the newest file.
            key: the key that it was written with.
            head: hash of an entry that must be there.

        Raises:
            RecordError: there is no such file.
        """
        path = Path(path)
        files = [*(part for _, part in _parts(path)), *([path] if path.exists() else [])]
        if not files:
            raise RecordError(f"{path} cannot be read: no such file", hint="give the path of a record")
        report = _Verifying(key)
        for file in files:
            with open(file, "rb") as lines:
                for number, line in enumerate(lines, 1):
                    report.take(f"{file.name} line {number}", line)
        if head is not None and head not in report.hashes:
            report.problems.append(
                f"no entry has the hash {head}: entries at the end are missing, or it is another record"
            )
        first, last = report.first or {}, report.last or {}
        return RecordReport(
            entries=len(report.hashes),
            first=first.get("n", 0),
            since=first.get("time"),
            until=last.get("time"),
            head=last.get("hash"),
            torn=tuple(report.torn),
            problems=tuple(report.problems),
        )


@dataclass(frozen=True)
class RecordReport:
    """What `Record.verify` found.

    Attributes:
        entries: number of entries whose hashes are right.
        first: number of the first entry; over 0: older parts of the record are not here.
        since, until: time of the first and of the last entry.
        head: hash of the last entry.
        torn: where a process was stopped while it wrote: nothing that was promised is lost.
        problems: what was changed, added or removed, each with its place.
    """

    entries: int
    first: int
    since: str | None
    until: str | None
    head: str | None
    torn: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if nothing was changed."""
        return not self.problems


class _Verifying:
    """A record so far."""

    def __init__(self, key: bytes | None) -> None:
        self.key = key
        self.hashes: set[str] = set()
        self.first: dict[str, Any] | None = None
        self.last: dict[str, Any] | None = None
        self.torn: list[str] = []
        self.problems: list[str] = []

    def take(self, where: str, line: bytes) -> None:
        """Compare a line with the entry before it: its number, the hash that it continues, and its own hash."""
        if not line.endswith(b"\n"):
            self.torn.append(f"{where}: incomplete ({len(line)} bytes)")
            return
        entry, problem = _read(line, self.key)
        if entry is None:
            self.problems.append(f"{where}: {problem}")
            return
        if self.last is None:
            self.first = entry
            if entry["n"] == 0 and entry["previous"] != START:
                self.problems.append(f"{where}: the first entry names one before it")
        elif entry["n"] != self.last["n"] + 1:
            self.problems.append(f"{where}: entry {entry['n']} comes after entry {self.last['n']}")
        elif entry["previous"] != self.last["hash"]:
            self.problems.append(f"{where}: it does not continue the entry before it")
        if "torn" in entry:
            self.torn.append(f"{where}: an incomplete line before it ({entry['torn']} bytes) was cut off")
        self.last = entry
        self.hashes.add(entry["hash"])


def _hash(body: str, key: bytes | None) -> str:
    if key is None:
        return hashlib.sha256(body.encode()).hexdigest()
    return hmac.new(key, body.encode(), hashlib.sha256).hexdigest()


def _read(line: bytes, key: bytes | None) -> tuple[dict[str, Any] | None, str]:
    """Return the entry of a line, or None and what is wrong.

    A line is the JSON of the entry with its hash as the last member; the hash is that of the JSON without it:
    ``{"n":0,...,"hash":"..."}`` has the hash of ``{"n":0,...}``.
    """
    try:
        text = line.decode("ascii").rstrip("\n")
        before, separator, after = text.rpartition(_HASH)
        entry = json.loads(text)
        is_entry = bool(separator) and type(entry["n"]) is int and type(entry["previous"]) is str
    except (ValueError, KeyError, TypeError, RecursionError):
        is_entry = False
    if not is_entry:
        return None, "it is not an entry"
    if not hmac.compare_digest(_hash(before + "}", key), after.removesuffix('"}')):
        return None, "it was changed, or written with another key" if key else "it was changed, or written with a key"
    return entry, ""


def _parts(path: Path) -> list[tuple[int, Path]]:
    """Return the older files of a record, by number."""
    found = ((each.name[len(path.name) + 1 :], each) for each in path.parent.glob(f"{glob.escape(path.name)}.*"))
    return sorted((int(number), each) for number, each in found if number.isascii() and number.isdigit())


def _last_line(file: IO[bytes]) -> tuple[bytes, int]:
    """Return the last line of a file that ends with a line feed (empty: there is none), and where it ends."""
    if not file.seek(0, os.SEEK_END):  # an empty file cannot be mapped
        return b"", 0
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        end = text.rfind(b"\n") + 1
        return text[text.rfind(b"\n", 0, max(end - 1, 0)) + 1 : end], end
