"""A lock between processes: on a file, released at the latest at the end of the process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on a file, which is made if it is not there."""
    with open(path, "a+b") as file:
        _lock(file)
        yield


if sys.platform == "win32":
    import msvcrt
    import time

    def _lock(file: IO[bytes]) -> None:
        """Wait for the lock on a file."""
        while True:
            try:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                return
            except OSError:  # another process has it; `LK_LOCK` would give up after ten seconds
                time.sleep(0.2)

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        """Wait for the lock on a file."""
        fcntl.flock(file, fcntl.LOCK_EX)
