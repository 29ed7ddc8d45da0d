"""Checks beyond those of .ci/run: ``nox -l`` lists them, ``nox -s NAME`` runs one.

``pip install nox``. What CI runs on each change is .ci/run; these are run before a release, when a bound changes, or on
machines with a GPU or an engine. Arguments after ``--`` go to the program that a session runs.
"""

from __future__ import annotations

import json
import platform
import re
import runpy
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import nox

ROOT = Path(__file__).resolve().parent
RECORD = ROOT / "benchmarks" / "results" / "matrix.json"
TABLES = runpy.run_path(str(ROOT / "tests" / "environments.py"), run_name="environments")
KERNEL = [f"tests/core/{room}" for room in ("compiled", "language", "dependent", "automaton", "masks")]

nox.options.sessions = []


@nox.session
@nox.parametrize("name", [nox.param(name, id=name) for name in TABLES["ENVIRONMENTS"]])
def environment(session: nox.Session, name: str) -> None:
    """Optional packages together: newest releases, ends of ranges, tasks of SDKs. ``-- --keep`` records matrix rows."""
    row = TABLES["ENVIRONMENTS"][name]
    first = [one for one in row.beside if one == TABLES["TORCH"]]
    for packages in filter(None, (first, [*row.wanted, *row.beside, *TABLES["TOOLS"]])):
        session.install(*packages)
    if row.bare:
        session.install("--no-deps", *row.bare)
    if row.unwanted:
        session.run("python", "-m", "pip", "uninstall", "--yes", *row.unwanted, silent=True)
    session.install("--editable", ".", env={"TOOLGRAMMAR_PURE": "1"})  # what is compiled in the tree is used
    if row.npm:
        session.run("npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", row.npm[0], external=True)
    outcome = TABLES["Outcome"]()
    for number, (patterns, more) in enumerate(((row.tests, []), (row.slow, ["--slow", "-s", "--model", "smollm2"]))):
        files = TABLES["files_of"](patterns) if patterns else []
        if not files:
            continue
        report = Path(session.create_tmp(), f"report-{number}.xml").resolve()
        report.unlink(missing_ok=True)
        select = ["-k", row.select] if row.select else []
        options = ["-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default", "--timeout", "900", *more, *select]
        command = ["python", "-m", "pytest", *options, f"--junitxml={report}", *map(str, files)]
        session.run(*command, success_codes=range(256))
        TABLES["judge"](row, report, files, outcome)
    package = _installed(session, row)
    session.log(f"{package}: {outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped")
    good = not outcome.failed and not outcome.faults
    if "--keep" in session.posargs and name in TABLES["MATRIX"]:
        counts = {"passed": outcome.passed, "failed": outcome.failed, "skipped": outcome.skipped}
        _record(name, {"package": package, **counts, "good": good})
    if not good:
        session.error("; ".join(outcome.faults) or "tests failed")


def _installed(session: nox.Session, row: Any) -> str:
    """Return the package that names a row, with its version."""
    if row.npm:
        found = json.loads((ROOT / row.npm[0] / "node_modules" / row.npm[1] / "package.json").read_text("utf-8"))
        return f"{row.npm[1]} {found['version']}"
    match = re.match(r"[\w-]+", [*row.bare, *row.wanted][0])
    assert match is not None
    ask = f"import importlib.metadata as m; print(m.version({match[0]!r}))"
    return f"{match[0]} {str(session.run('python', '-c', ask, silent=True)).strip()}"


def _record(name: str, row: dict[str, Any]) -> None:
    """Write a row of the matrix; ``benchmarks/report.py`` makes the table of the docs of it."""
    known = json.loads(RECORD.read_text(encoding="utf-8"))["rows"] if RECORD.exists() else {}
    known[name] = {**row, "python": platform.python_version(), "date": f"{date.today():%Y-%m-%d}"}
    RECORD.write_text(json.dumps({"rows": dict(sorted(known.items()))}, indent=1) + "\n", encoding="utf-8")


@nox.session(venv_backend="none")
def agents(session: nox.Session) -> None:
    """Coding agents from npm against the server: a task, 50 calls, an interrupt. ``-- --write`` keeps recordings."""
    session.run(sys.executable, "-m", "tests.adapters.server.agents.run", *session.posargs)


@nox.session(venv_backend="none")
def engines(session: nox.Session) -> None:
    """Tests with the engines of this environment: vLLM, mlx-lm or onnxruntime-genai."""
    tests = ["tests/adapters/vllm", "tests/core/models/onnx_genai", "tests/core/models/mlx_lm"]
    options = ["-p", "no:cacheprovider", "-W", "default", "--slow", *tests, *session.posargs]
    session.run(sys.executable, "-m", "pytest", *options, env={"HF_HUB_OFFLINE": "1"})


@nox.session(venv_backend="none")
def cuda(session: nox.Session) -> None:
    """Tests of masks and models on a CUDA device, and the cost of masks in a step."""
    import torch

    if not torch.cuda.is_available():
        session.error("torch sees no CUDA device")
    device = {"TOOLGRAMMAR_TEST_DEVICE": "cuda", "HF_HUB_OFFLINE": "1"}
    options = [
        "-p",
        "no:cacheprovider",
        "-W",
        "default",
        "--slow",
        "tests/core/masks/test_batch.py",
        "tests/core/models",
    ]
    session.run(sys.executable, "-m", "pytest", *options, *session.posargs, env=device)
    session.run(sys.executable, "-m", "benchmarks", "masks/gpu_steps", "--keep", env=device)


def _copy(session: nox.Session) -> Path:
    """Copy the tree without its compiled modules, where `toolgrammar` is importable; return the folder."""
    copy = Path(session.create_tmp()).resolve() / "tree"
    shutil.rmtree(copy, ignore_errors=True)
    compiled = shutil.ignore_patterns("*.so", "__pycache__")
    for folder in ("core", "tools", "adapters", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=compiled)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, copy)
    package = copy / "toolgrammar"
    package.mkdir()
    for path in [
        *(copy / "adapters" / "toolgrammar").iterdir(),
        *(copy / name for name in ("core", "tools", "adapters")),
    ]:
        (package / path.name).symlink_to(path)
    return copy


@nox.session(venv_backend="none")
def checked(session: nox.Session) -> None:
    """The tests of the kernel on modules with Cython's checks of indices, unset arrays, None and division by zero."""
    copy = _copy(session)
    # `wraparound` stays off: a negative index is then an error, not an item at the end.
    checks = "boundscheck=True, wraparound=False, initializedcheck=True, cdivision=False, nonecheck=True"
    for path in [*copy.glob("core/**/*.py"), *copy.glob("core/**/*.pxd")]:
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"\A# cython: .*boundscheck=False.*", f"# cython: language_level=3, {checks}", text)
        text = re.sub(r"(?m)^( *@cython\.(?:boundscheck|initializedcheck))\(False\)", r"\1(True)", text)
        path.write_text(text, encoding="utf-8")
        if re.search(r"(boundscheck|initializedcheck|nonecheck)(=|\()False|cdivision(=|\()True", text):
            session.error(f"{path.relative_to(copy)}: checks are still off")
    with session.chdir(copy):
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
        session.run(*build, env={"CFLAGS": "-O1"})
        # An error in a function that cannot raise is printed by Python, and pytest makes it a failure.
        options = ["-q", "-p", "no:cacheprovider", *KERNEL, *session.posargs]
        session.run(sys.executable, "-m", "pytest", *options, env={"PYTHONPATH": str(copy)})


@nox.session(venv_backend="none")
def sanitize(session: nox.Session) -> None:
    """Random schemas on modules built with AddressSanitizer and UBSan, for ``-- SECONDS`` (600)."""
    copy = _copy(session)
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1"
    libraries = [
        str(session.run("gcc", f"-print-file-name={name}.so", external=True, silent=True)).strip()
        for name in ("libasan", "libubsan")
    ]
    # CPython keeps memory that it does not free at exit; its own allocator would hide overflows.
    watched = {"ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc", "LD_PRELOAD": " ".join(libraries)}
    with session.chdir(copy):
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
        session.run(*build, env={"CFLAGS": flags, "LDFLAGS": flags})
        sweep = ["-m", "tests.core.schema.sweep", "--seconds", *(session.posargs or ["600"])]
        session.run(sys.executable, *sweep, env={**watched, "PYTHONPATH": str(copy)})


@nox.session
def pure(session: nox.Session) -> None:
    """The demo and a call with the real model, without compiled modules and from an empty cache."""
    copy = Path(session.create_tmp()).resolve()
    tree = copy / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    listed = session.run("git", "ls-files", "--cached", "--others", "--exclude-standard", external=True, silent=True)
    for name in str(listed).splitlines():
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    session.install("--no-compile", str(tree), env={"TOOLGRAMMAR_PURE": "1"})
    shutil.rmtree(copy / "cache", ignore_errors=True)
    session.env["TOOLGRAMMAR_CACHE_DIR"] = str(copy / "cache")
    with session.chdir(copy):
        shown = str(session.run("toolgrammar", "demo", "--model", "smollm2", silent=True))
        print(shown)
        if "call     get_weather(" not in shown or "valid    yes" not in shown:
            session.error("the demo shows no valid call")
        session.run("python", "-c", "from toolgrammar.core.masks import COMPILED; assert not COMPILED")


@nox.session
def schemathesis(session: nox.Session) -> None:
    """The server under Schemathesis, by its own OpenAPI description, for ``-- SECONDS`` (300)."""
    session.install("schemathesis>=4.32", ".[server]", env={"TOOLGRAMMAR_PURE": "1"})
    served = """
import uvicorn
from toolgrammar.adapters.server import Limits, create_app
from toolgrammar.core import GenerateParams
app = create_app("embedded", limits=Limits(answer_seconds=120), defaults=GenerateParams(max_tokens=12), metrics=True)
uvicorn.run(app, port=8099, log_level="error")
"""
    with subprocess.Popen([Path(session.bin) / "python", "-c", served]) as server:
        try:
            # What the server refuses beyond JSON types is no fault.
            checks = ["--max-examples", "50", "--exclude-checks", "positive_data_acceptance", "--continue-on-failure"]
            limits = ["--wait-for-schema", "60", "--max-time", (session.posargs or ["300"])[0], *checks]
            session.run("schemathesis", "run", "http://127.0.0.1:8099/openapi.json", *limits)
        finally:
            server.terminate()
