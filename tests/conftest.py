"""What all tests share: no network, quiet frameworks, `--slow`, Hypothesis profiles, and a wheel built once."""

from __future__ import annotations

import gc
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

#: The cache folder that the user named, before the tests take one of their own.
_USERS_CACHE = os.environ.get("TOOLGRAMMAR_CACHE_DIR")

# Before any framework is imported: no telemetry, no version check, no prompt, no model download, and nothing written
# to the home folder.
_STORAGE = tempfile.TemporaryDirectory(prefix="toolgrammar-tests-", ignore_cleanup_errors=True)
os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_DISABLE_TRACKING="true",
    CREWAI_DISABLE_VERSION_CHECK="true",
    CREWAI_STORAGE_DIR=_STORAGE.name,
    CREWAI_TESTING="true",
    CREWAI_TRACING_ENABLED="false",
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_HUB_OFFLINE="1",
    LANGCHAIN_TRACING_V2="false",
    LANGSMITH_TRACING="false",
    LITELLM_LOCAL_MODEL_COST_MAP="True",
    OTEL_SDK_DISABLED="true",
    TOKENIZERS_PARALLELISM="false",
    TOOLGRAMMAR_CACHE_DIR=os.path.join(_STORAGE.name, "toolgrammar"),
    TRANSFORMERS_OFFLINE="1",
)

# As many processes as cores: with as many threads in each, PyTorch's spend most of their time waiting for one another.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Fixed examples in the ordinary run; many more, and new ones each time, with --slow.
settings.register_profile("fast", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("slow", deadline=None, max_examples=1_000)


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> None:
    """Leave the tests, and all that was imported so far, out of later collections: each would take a second."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--slow``, ``--write-ratchet`` and ``--model``."""
    parser.addoption("--write-ratchet", action="store_true", help="write down what the official suite says now")
    parser.addoption(
        "--model",
        default=os.environ.get("TOOLGRAMMAR_TEST_MODEL"),
        help="with --slow: run the frameworks' own suites on this model too, given as load_model takes it, for example "
        "hf:PATH (nothing is downloaded); the environment variable TOOLGRAMMAR_TEST_MODEL says the same",
    )
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow, with many more examples")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the Hypothesis profile, and leave the order of files to `pytest_collection_modifyitems`."""
    settings.load_profile("slow" if config.getoption("--slow") else "fast")
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # xdist would begin files of few, long tests last


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip slow tests unless asked for; order files for several processes, the longest first.

    Files with the mark ``begin_first`` have few tests that take long: no process is left alone with one at the end.
    """
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))
    if "PYTEST_XDIST_WORKER" in os.environ:
        sizes = Counter(item.path for item in items)
        items.sort(key=lambda item: (not item.get_closest_marker("begin_first"), -sizes[item.path], str(item.path)))


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether a law is shown by its large sample: with ``--slow``."""
    return bool(request.config.getoption("--slow"))


def _is_local(family: int, address: Any) -> bool:
    """Whether a socket address stays on this machine."""
    if family not in (socket.AF_INET, socket.AF_INET6):
        return True
    host = str(address[0]).partition("%")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in ("", "localhost")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test at the first connection or name look-up that would leave this machine.

    The failure is not an `Exception`, so no code under test can catch it and go on.
    """
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def local_connect(self: socket.socket, address: Any) -> None:
        if not _is_local(self.family, address):
            pytest.fail(f"a test tried to connect to {address!r}")
        connect(self, address)

    def local_connect_ex(self: socket.socket, address: Any) -> int:
        if not _is_local(self.family, address):
            pytest.fail(f"a test tried to connect to {address!r}")
        return connect_ex(self, address)

    def local_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name is not None and not _is_local(socket.AF_INET, (name,)):
            pytest.fail(f"a test tried to look up {name!r}")
        return getaddrinfo(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", local_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", local_connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", local_getaddrinfo)


@pytest.fixture(scope="session")
def named_model(request: pytest.FixtureRequest) -> Any:
    """The model that ``--model`` or ``TOOLGRAMMAR_TEST_MODEL`` names, loaded once; without one the test is skipped."""
    uri = request.config.getoption("--model")
    if not uri:
        pytest.skip("no model is named: --model hf:PATH")
    from toolgrammar.core import load_model

    if uri == "smollm2":
        request.getfixturevalue("smollm2_file")  # from the user's cache, if it is there
    return load_model(uri)


@pytest.fixture(scope="session")
def smollm2_file() -> Path:
    """The file of the model ``smollm2``, fetched once into the user's cache; skipped where that cannot be done."""
    from toolgrammar.core import ModelError
    from toolgrammar.core.models.published import SMOLLM2

    own = os.environ.pop("TOOLGRAMMAR_CACHE_DIR")
    if _USERS_CACHE is not None:
        os.environ["TOOLGRAMMAR_CACHE_DIR"] = _USERS_CACHE
    try:
        file = SMOLLM2.pull()
    except ModelError as error:
        pytest.skip(f"the model smollm2 is not on this machine: {error.message}")
    finally:
        os.environ["TOOLGRAMMAR_CACHE_DIR"] = own
    kept = Path(own, "models", file.name)
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        try:
            kept.symlink_to(file)
        except OSError:  # Windows allows it to few
            shutil.copyfile(file, kept)
    assert SMOLLM2.find() is not None
    return file


@pytest.fixture(scope="session")
def smollm2(smollm2_file: Path) -> Iterator[Any]:
    """The model ``smollm2``, loaded once for all tests."""
    from toolgrammar.core import load_model

    with load_model("smollm2") as model:
        yield model


@dataclass(frozen=True)
class BuiltWheel:
    """A wheel built from this tree, and unpacked outside of it.

    Attributes:
        wheel: the wheel file.
        installed: a folder with its content, to be put on ``sys.path``.
        log: what the build printed.
    """

    wheel: Path
    installed: Path
    log: str

    @property
    def names(self) -> list[str]:
        """The files in the wheel."""
        with zipfile.ZipFile(self.wheel) as archive:
            return archive.namelist()


def _build(source: Path, folder: Path, **environment: str) -> BuiltWheel:
    """Build the wheel of ``source`` with this environment's own setuptools and Cython."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    result = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    (wheel,) = folder.glob("*.whl")
    installed = folder / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    return BuiltWheel(wheel, installed, result.stdout)


@pytest.fixture(scope="session")
def source_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a build needs, so that building leaves nothing in the repository."""
    copy = tmp_path_factory.mktemp("source") / "toolgrammar"
    copy.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.c")
    for name in ("core", "tools", "adapters"):
        shutil.copytree(ROOT / name, copy / name, ignore=unwanted)
    for name in ("cython", "declarations"):  # what is translated already, half of the work; translated again if older
        if (ROOT / "build" / name).is_dir():
            shutil.copytree(ROOT / "build" / name, copy / "build" / name, ignore=shutil.ignore_patterns("*.o"))
    return copy


@pytest.fixture(scope="session")
def built_wheel(source_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> BuiltWheel:
    """The ordinary wheel, with the compiled kernel where there is a C compiler; compiled without optimisation, which
    takes a quarter of the time and changes nothing that is in it."""
    return _build(source_tree, tmp_path_factory.mktemp("wheel"), CFLAGS="-O0")


@pytest.fixture(scope="session")
def pure_wheel(source_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> BuiltWheel:
    """The wheel of a machine without a C compiler."""
    return _build(source_tree, tmp_path_factory.mktemp("pure-wheel"), TOOLGRAMMAR_PURE="1")


@dataclass(frozen=True)
class Opened:
    """A page after its scripts ran in a browser.

    Attributes:
        document: the document as HTML.
        complaints: what the browser's console said.
        requests: addresses that the page itself asked for.
    """

    document: str
    complaints: list[str]
    requests: list[str]


@pytest.fixture
def open_address(tmp_path: Path) -> Callable[..., Opened]:
    """Open an address of this machine in headless Chromium, which can reach no other host."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium is installed")

    def open_it(address: str, width: int = 1280) -> Opened:
        options = (
            "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
            "--disable-component-update --disable-sync --virtual-time-budget=5000 --enable-logging=stderr"
        ).split()
        options += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        log = tmp_path / "requests.json"
        options += [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", f"--log-net-log={log}"]
        result = subprocess.run(
            [browser, *options, "--dump-dom", address], capture_output=True, text=True, timeout=100, check=True
        )
        origin = address[: address.find("/", len("http://"))]
        asked = [event.get("params", {}) for event in json.loads(log.read_text(encoding="utf-8"))["events"]]
        requests = [params["url"] for params in asked if params.get("initiator") == origin and "url" in params]
        return Opened(result.stdout, [line for line in result.stderr.splitlines() if "CONSOLE" in line], requests)

    return open_it


@pytest.fixture
def open_page(open_address: Callable[..., Opened], tmp_path: Path) -> Callable[..., Opened]:
    """Open a page in headless Chromium; more script may be run after its own."""

    def open_it(document: str, script: str = "", width: int = 1280) -> Opened:
        path = tmp_path / "page.html"
        path.write_text(document.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
        return open_address(path.as_uri(), width)

    return open_it
