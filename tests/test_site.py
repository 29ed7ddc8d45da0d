"""The documentation site builds without a warning, and opens without an error or a request to another host."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: The environment that CONTRIBUTING.md makes for Zensical.
ENVIRONMENT = ROOT / ".ci" / "docs-venv" / "bin" / "python"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; a warning, a broken link or anchor, and an unresolved reference are errors."""
    python = sys.executable if importlib.util.find_spec("zensical") else str(ENVIRONMENT)
    if not Path(python).exists():
        pytest.skip("Zensical is not installed; CONTRIBUTING.md says how")
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [python, str(ROOT / "docs" / "build.py"), "--folder", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=110, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert [line for line in (result.stdout + result.stderr).splitlines() if line.startswith("griffe:")] == []
    return folder / "site"


def test_every_page_is_in_the_navigation(site: Path) -> None:
    """Every page of ``docs/`` is built, and the navigation of the home page leads to it."""
    home = (site / "index.html").read_text(encoding="utf-8")
    linked = {target.rstrip("/") for target in re.findall(r'href="\./([^":#]*)"', home)}
    pages = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    wanted = {re.sub(r"/?index$", "", page) for page in pages} - {""}
    assert [page for page in sorted(wanted) if not (site / page / "index.html").exists()] == []
    assert sorted(wanted - linked) == []


def test_reference_has_every_public_name(site: Path) -> None:
    """The reference describes every public name of core and tools."""
    from toolgrammar import core, tools

    inventory = (site / "reference").rglob("index.html")
    anchors = {name for page in inventory for name in re.findall(r'id="(toolgrammar\.[\w.]+)"', page.read_text())}
    names = [f"toolgrammar.core.{name}" for name in core.__all__]
    names += [f"toolgrammar.tools.{name}" for name in tools.__all__ if name != "Turn"]  # a former name
    assert [name for name in names if name not in anchors] == []


def test_links_lead_to_pages_of_the_site(site: Path) -> None:
    """Every link that stays on the site names one of its files."""
    dead = []
    for page in site.rglob("index.html"):
        for target in re.findall(r'(?:href|src)="([^":#?]+)"', page.read_text(encoding="utf-8")):
            path = page.parent / target
            if not (path if path.is_file() else path / "index.html").is_file():
                dead.append((page.relative_to(site).as_posix(), target))
    assert dead == []


def test_nothing_comes_from_another_host(site: Path) -> None:
    """No page loads a script, a style, a font or a picture from another host."""
    loading = re.compile(r'<(?:script|img|iframe|source)[^>]+src="(?:https?:)?//|<link[^>]+href="(?:https?:)?//')
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert [str(path) for path, text in pages.items() if loading.search(text)] == []


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Serve the site on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("page", ["", "concepts/", "reference/core/"])
def test_page_opens_without_an_error(address: str, page: str, open_address: Callable[..., Any]) -> None:
    """A browser that can reach no other host opens the page, runs its scripts, and reports nothing."""
    opened = open_address(f"{address}/{page}", width=390)
    assert "<h1" in opened.document
    assert opened.complaints == []
    assert opened.requests != []
    assert [url for url in opened.requests if not url.startswith(address)] == []
