"""Disk cache of arrays that are expensive to compute and depend only on their key.

A file holds a checksum and named arrays of numbers; nothing in it is ever executed or unpickled. It is written under
a temporary name and renamed atomically, so a reader sees a complete file or none, with any number of writers. A damaged
file, a file of another key, and a folder that cannot be read or written count as missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Union

#: Folder of the files; None: the value of `VARIABLE`, else the user's cache folder; False: no cache.
CacheDir = Union[str, "os.PathLike[str]", Literal[False], None]

#: The environment variable that names the folder; ``0`` or ``off`` switches the cache off.
VARIABLE = "TOOLGRAMMAR_CACHE_DIR"

#: Maximum number of files in a folder; the least recently used are removed first.
MAX_FILES = 32

_MAGIC = b"toolgrammar arrays 1\n"
_SUFFIX = ".arrays"
_PART = ".part"

#: Minimum age in seconds at which a temporary file, left by a killed process, is removed.
_ABANDONED = 3_600


def cache_folder(given: CacheDir = None) -> Path | None:
    """Return the folder for cached files; None: no cache.

    Args:
        given: a folder; False: no cache; None: the environment's folder, else the user's cache folder.
    """
    if given is None:
        named = os.environ.get(VARIABLE, "")
        if named.lower() in ("0", "off"):
            return None
        if named:
            return Path(named)
        from platformdirs import user_cache_path

        return user_cache_path("toolgrammar", appauthor=False)
    return None if given is False else Path(given)


def read_arrays(folder: Path, key: str) -> dict[str, array[int]] | None:
    """Return the arrays that were written under a key; None if there is no intact file.

    Args:
        folder: the folder of the files.
        key: a digest of the inputs of the arrays, in hexadecimal digits.
    """
    path = folder / (key + _SUFFIX)
    try:
        content = memoryview(path.read_bytes())
        arrays = _unpacked(content, key)
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None  # absent or damaged: the caller computes the arrays again, and overwrites the file
    with contextlib.suppress(OSError):  # mark as used; the folder may be read-only
        os.utime(path)
    return arrays


def write_arrays(folder: Path, key: str, arrays: Mapping[str, array[int]]) -> bool:
    """Write arrays under a key; return False if the folder cannot be written.

    Args:
        folder: the folder of the files; created for this user only, if it does not exist.
        key: a digest of the inputs of the arrays, in hexadecimal digits.
        arrays: the arrays by name.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(dir=folder, prefix=key[:16], suffix=_PART)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_packed(key, arrays))
            os.replace(part, folder / (key + _SUFFIX))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
        _tidy(folder)
    except OSError:  # read-only, full, or not a folder: no cache
        return False
    return True


def _packed(key: str, arrays: Mapping[str, array[int]]) -> bytes:
    """Return the content of a cache file: `_MAGIC`, the SHA-256 of the rest (32 bytes), the length of the head (8
    bytes), the head (JSON: the key, the byte order, and name, type code, size and number of the items of each array),
    and the items."""
    table = [[name, values.typecode, values.itemsize, len(values)] for name, values in arrays.items()]
    head = json.dumps({"key": key, "order": sys.byteorder, "arrays": table}).encode()
    body = b"".join([len(head).to_bytes(8, "little"), head, *(values.tobytes() for values in arrays.values())])
    return _MAGIC + hashlib.sha256(body).digest() + body


def _unpacked(content: memoryview, key: str) -> dict[str, array[int]]:
    """Return the arrays of a cache file, as `_packed` wrote it.

    Raises:
        ValueError: it is damaged, of another key, or from a machine with another byte order or width of integers.
    """
    start = len(_MAGIC) + 32
    if content[: len(_MAGIC)] != _MAGIC or hashlib.sha256(content[start:]).digest() != content[len(_MAGIC) : start]:
        raise ValueError("damaged")
    at = start + 8 + int.from_bytes(content[start : start + 8], "little")
    head = json.loads(bytes(content[start + 8 : at]))
    if head["key"] != key or head["order"] != sys.byteorder:
        raise ValueError("of another key, or from another machine")
    arrays = {}
    for name, code, size, count in head["arrays"]:
        values = arrays[name] = array(code)
        if values.itemsize != size:
            raise ValueError("from another machine")
        values.frombytes(content[at : at + size * count])
        at += size * count
    return arrays


def _tidy(folder: Path) -> None:
    """Remove the least recently used files above `MAX_FILES`, and old temporary files."""
    files = []
    now = time.time()
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):  # another process may be removing files too
            used = entry.stat().st_mtime
            if entry.name.endswith(_SUFFIX):
                files.append((used, entry.path))
            elif entry.name.endswith(_PART) and now - used > _ABANDONED:
                os.unlink(entry.path)
    for _, path in sorted(files, reverse=True)[MAX_FILES:]:
        with contextlib.suppress(OSError):
            os.unlink(path)
