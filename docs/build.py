"""Builder of the documentation site: stages pages and sources in a folder, and runs Zensical there.

    python -m venv .ci/docs-venv
    .ci/docs-venv/bin/pip install -U pip                # 25.1 or newer, for --group
    .ci/docs-venv/bin/pip install --group docs
    .ci/docs-venv/bin/python docs/build.py              # writes build/site/site; a warning is an error
    .ci/docs-venv/bin/python docs/build.py --serve      # serves it on http://localhost:8000

Nothing else needs to be installed: the reference is read from the sources.

Pages link to files outside `docs/`, as on any code host: the changelog, the examples. The site has a page for each of
these, and the links of the staged pages lead there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The files outside of `docs/` that become pages.
OUTSIDE = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "benchmarks/results/README.md",
    *(f"examples/{path.name}" for path in sorted((ROOT / "examples").glob("*.py"))),
)
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")


def page_of(path: str) -> str:
    """Return the page of the site that shows a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return "repository/" + path.lower().removesuffix(".py").removesuffix(".md") + ".md" if path in OUTSIDE else ""


def stage(folder: Path) -> None:
    """Write the site's sources into a folder: configuration, pages, and the modules that the reference describes."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.py", "*.md", "__pycache__"))
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    settings = (ROOT / "zensical.toml").read_text(encoding="utf-8").replace("{version}", version[1])
    (folder / "zensical.toml").write_text(settings, encoding="utf-8")
    for package in ("core", "tools", "adapters"):
        skipped = shutil.ignore_patterns("*.so", "*.pyd", "*.c", "*.pyi", "__pycache__", "data")
        shutil.copytree(ROOT / package, folder / "source" / "toolgrammar" / package, ignore=skipped)
    for source in (*sorted((ROOT / "docs").rglob("*.md")), *map(ROOT.joinpath, OUTSIDE)):
        page = folder / "docs" / page_of(source.relative_to(ROOT).as_posix())
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(staged(source, page, folder), encoding="utf-8")


def staged(source: Path, page: Path, folder: Path) -> str:
    """Return the text of a page whose links to files outside of `docs/` lead to the site's pages of these."""
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".py":
        return f"# `{source.name}`\n\n```python\n{text}```\n"

    def link(match: re.Match[str]) -> str:
        path = (source.parent / match[1]).resolve()
        name = page_of(path.relative_to(ROOT).as_posix()) if path.is_relative_to(ROOT) else ""
        return f"]({Path(os.path.relpath(folder / 'docs' / name, page.parent)).as_posix()}" if name else match[0]

    return LINK.sub(link, text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Stage the site in a folder, and build or serve it there; return Zensical's exit status."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "site", help="where to stage and build it")
    parser.add_argument("--serve", action="store_true", help="serve it instead")
    options = parser.parse_args(arguments)
    stage(options.folder)
    command = ["serve"] if options.serve else ["build", "--strict", "--clean"]
    return subprocess.run([sys.executable, "-m", "zensical", *command], cwd=options.folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
