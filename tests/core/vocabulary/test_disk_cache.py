"""Files of arrays: whole or not there, whatever happens to them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from array import array
from pathlib import Path

import pytest

from toolgrammar.core.vocabulary.disk_cache import MAX_FILES, VARIABLE, cache_folder, read_arrays, write_arrays

KEY = "ab" * 32
ARRAYS = {"bytes": array("B", b"abc"), "none": array("i"), "numbers": array("i", [-1, 2**30]), "words": array("I", [7])}


def the_file(folder: Path) -> Path:
    """The one file of a folder."""
    (path,) = folder.iterdir()
    return path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Arrays come back with their names, types and items; under another key there is nothing."""
    assert read_arrays(tmp_path / "new", KEY) is None
    assert write_arrays(tmp_path / "new", KEY, ARRAYS)
    found = read_arrays(tmp_path / "new", KEY)
    assert found == ARRAYS and found is not None
    assert {name: each.typecode for name, each in found.items()} == {n: a.typecode for n, a in ARRAYS.items()}
    assert read_arrays(tmp_path / "new", "cd" * 32) is None


def test_every_damaged_byte_is_found(tmp_path: Path) -> None:
    """A file with any one byte changed, or cut anywhere, or with something behind it, is not read."""
    write_arrays(tmp_path, KEY, ARRAYS)
    path = the_file(tmp_path)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        assert read_arrays(tmp_path, KEY) is None, at
        path.write_bytes(whole[:at])
        assert read_arrays(tmp_path, KEY) is None, at
    path.write_bytes(whole + b"\0")
    assert read_arrays(tmp_path, KEY) is None
    path.write_bytes(whole)
    assert read_arrays(tmp_path, KEY) == ARRAYS


def test_a_file_under_a_wrong_name_is_not_read(tmp_path: Path) -> None:
    """The key stands in the file, too: a renamed file is of no use."""
    write_arrays(tmp_path, KEY, ARRAYS)
    path = the_file(tmp_path)
    path.rename(path.with_name(path.name.replace("ab", "cd")))
    assert read_arrays(tmp_path, "cd" * 32) is None


def test_a_damaged_file_is_written_over(tmp_path: Path) -> None:
    """Writing replaces whatever lies there."""
    write_arrays(tmp_path, KEY, ARRAYS)
    the_file(tmp_path).write_bytes(b"nonsense")
    assert write_arrays(tmp_path, KEY, ARRAYS)
    assert read_arrays(tmp_path, KEY) == ARRAYS


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """Where the folder is a file, or lies below one, nothing is kept and nothing is raised."""
    (tmp_path / "file").write_bytes(b"")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        assert not write_arrays(folder, KEY, ARRAYS)
        assert read_arrays(folder, KEY) is None
    (tmp_path / (KEY + ".arrays")).mkdir()  # a folder where the file should be
    assert not write_arrays(tmp_path, KEY, ARRAYS)
    assert read_arrays(tmp_path, KEY) is None
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_read_and_not_written(tmp_path: Path) -> None:
    """From a read-only folder arrays are read; writing into it fails without an error."""
    write_arrays(tmp_path, KEY, ARRAYS)
    tmp_path.chmod(0o500)
    try:
        assert read_arrays(tmp_path, KEY) == ARRAYS
        assert not write_arrays(tmp_path, "cd" * 32, ARRAYS)
    finally:
        tmp_path.chmod(0o700)


def test_an_unwritable_file_system_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever step of writing the system refuses, nothing is raised and no part is left."""
    for name in ("mkstemp", "replace", "fdopen"):
        with monkeypatch.context() as patch:

            def refuse(*_: object, **__: object) -> None:
                raise PermissionError("read-only file system")

            patch.setattr(
                f"toolgrammar.core.vocabulary.disk_cache.{'tempfile' if name == 'mkstemp' else 'os'}.{name}", refuse
            )
            assert not write_arrays(tmp_path, KEY, ARRAYS), name
        assert not list(tmp_path.iterdir()), name


def test_old_files_and_abandoned_parts_go(tmp_path: Path) -> None:
    """A folder keeps so many files, the ones used last, and no parts that a killed process left behind."""
    now = time.time()
    keys = [f"{number:064x}" for number in range(MAX_FILES)]
    for age, key in enumerate(keys):
        write_arrays(tmp_path, key, ARRAYS)
        os.utime(tmp_path / (key + ".arrays"), (now - 1_000 - age, now - 1_000 - age))
    for name, age in (("old.part", 10_000), ("new.part", 10)):
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (now - age, now - age))
    assert read_arrays(tmp_path, keys[-1]) == ARRAYS  # the oldest is used, and so it is not the one that goes
    write_arrays(tmp_path, KEY, ARRAYS)
    left = {path.name.partition(".")[0] for path in tmp_path.glob("*.arrays")}
    assert left == {KEY, *keys} - {keys[-2]}
    assert [path.name for path in tmp_path.glob("*.part")] == ["new.part"]


def test_where_the_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument wins over the environment, the environment over the user's cache folder; both can switch it off."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert cache_folder() == tmp_path
    assert cache_folder(tmp_path / "given") == cache_folder(str(tmp_path / "given")) == tmp_path / "given"
    assert cache_folder(False) is None
    for off in ("0", "off", "OFF"):
        monkeypatch.setenv(VARIABLE, off)
        assert cache_folder() is None
        assert cache_folder(tmp_path) == tmp_path
    monkeypatch.setenv(VARIABLE, "")
    folder = cache_folder()
    assert folder is not None and "toolgrammar" in folder.parts[-1:][0]


WRITER = """
import sys
from array import array
from pathlib import Path
from toolgrammar.core.vocabulary.disk_cache import read_arrays, write_arrays
folder, key = Path(sys.argv[1]), sys.argv[2]
seen = 0
for turn in range(200):
    arrays = {"a": array("i", [turn]) * 20_000, "b": array("i", [turn])}
    assert write_arrays(folder, key, arrays)
    found = read_arrays(folder, key)
    assert found is not None and set(found["a"]) == set(found["b"]), "half of one file and half of another"
    seen += 1
print(seen)
"""


def test_two_processes_at_once(tmp_path: Path) -> None:
    """Two processes that write and read one file all the time only ever see whole ones, and leave no parts."""
    command = [sys.executable, "-c", WRITER, str(tmp_path), KEY]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in running:
        output, errors = process.communicate(timeout=100)
        assert output == "200\n", errors
    assert [path.name for path in tmp_path.iterdir()] == [KEY + ".arrays"]
