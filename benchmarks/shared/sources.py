"""Source distributions of other projects, of which the benchmarks read tests, templates and grammars."""

from __future__ import annotations

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
