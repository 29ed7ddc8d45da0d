"""What users install is what the tree holds: packages, data, type markers, and the compiled kernel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core.compiled.modules import COMPILED

# Whichever test comes first builds the wheel: some twenty extensions, minutes on a busy machine.
pytestmark = pytest.mark.timeout(1000)

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("core", "tools", "adapters")
KERNEL = "toolgrammar/core/masks/masks"

# Work that goes through the whole engine, run in a process that sees the unpacked wheel and not this tree.
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import toolgrammar.core
assert toolgrammar.core.__file__.startswith(sys.argv[1]), toolgrammar.core.__file__
import toolgrammar
from toolgrammar import Grammar, Vocabulary
from toolgrammar.core.masks import COMPILED
assert toolgrammar.__file__.startswith(sys.argv[1]) and toolgrammar.core.Grammar is Grammar
vocabulary = Vocabulary([b"{", b"}", b'"n": ', b"1", b"23", b"x", None], eos=[6])
schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
matcher = Grammar.from_json_schema(schema).bind(vocabulary).matcher()
steps = []
for token in (0, 2, 4, 1, 6):
    steps.append(matcher.allowed_tokens())
    assert matcher.accept(token)
assert matcher.is_finished
print(COMPILED, steps)
"""


def has_compiler() -> bool:
    """Whether this machine has what an extension needs; asked apart from setup.py, which must find the same."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return shutil.which(compiler) is not None and Path(sysconfig.get_path("include"), "Python.h").is_file()


def expected_files() -> set[str]:
    """What the wheel must hold of the tree: modules, stubs, declarations, markers and data."""
    wanted = set()
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            relative = path.relative_to(ROOT)
            # A distribution is a package of its own.
            if not path.is_file() or {"__pycache__", "distribution"} & set(relative.parts):
                continue
            if path.suffix in (".py", ".pyi", ".pxd") or path.name == "py.typed" or "data" in relative.parts:
                wanted.add(f"toolgrammar/{relative.as_posix().removeprefix('adapters/toolgrammar/')}")
    return wanted


def run_installed(wheel: Any) -> str:
    """Run `PROGRAM` on an unpacked wheel and return what it printed."""
    result = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, str(wheel.installed)],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=wheel.installed.parent,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_wheel_holds_the_tree(built_wheel: Any) -> None:
    """The wheel has every module, marker and data file of the tree, and nothing else but the compiled modules."""
    names = {name for name in built_wheel.names if ".dist-info/" not in name}
    compiled = {name for name in names if name.endswith((".so", ".pyd"))}
    assert names - compiled == expected_files()
    wanted = {f"toolgrammar/core/{name.replace('.', '/')}" for name in COMPILED}
    assert KERNEL in wanted
    shared = {"toolgrammar/core/compiled/_cython"} if compiled else set()
    assert {re.sub(r"\..*", "", name) for name in compiled} <= wanted | shared


def test_the_package_is_marked_typed(built_wheel: Any) -> None:
    """``py.typed`` is in the package, and counts for those below it."""
    assert "toolgrammar/py.typed" in built_wheel.names


def test_metadata_names_licence_and_command(built_wheel: Any) -> None:
    """The wheel carries the MIT licence text and installs the ``toolgrammar`` command."""
    info = next(built_wheel.installed.glob("*.dist-info"))
    assert "License-Expression: MIT" in (info / "METADATA").read_text(encoding="utf-8")
    assert "MIT License" in (info / "licenses" / "LICENSE").read_text(encoding="utf-8")
    assert "toolgrammar = toolgrammar.adapters.cli:main" in (info / "entry_points.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(not has_compiler(), reason="needs a C compiler and Python's headers")
def test_kernel_is_compiled_where_a_compiler_is(built_wheel: Any) -> None:
    """With a C compiler the wheel has the compiled kernel, and the engine runs on it: no silent fallback."""
    assert [name for name in built_wheel.names if name.startswith(KERNEL) and name.endswith((".so", ".pyd"))]
    assert run_installed(built_wheel).startswith("True ")


def test_wheel_without_compiler_is_pure(pure_wheel: Any) -> None:
    """Without extensions the wheel is tagged as pure Python and holds no binary."""
    assert pure_wheel.wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in pure_wheel.names if name.endswith((".so", ".pyd"))]


def test_pure_wheel_gives_the_same_masks(built_wheel: Any, pure_wheel: Any) -> None:
    """The interpreted kernel of the pure wheel allows the same tokens as the ordinary wheel."""
    interpreted, ordinary = run_installed(pure_wheel), run_installed(built_wheel)
    assert interpreted.startswith("False ")
    assert interpreted.split(" ", 1)[1] == ordinary.split(" ", 1)[1]


def _build(kind: str, tree: Path, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel or a source archive."""
    return subprocess.run(
        [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(folder), str(tree)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false"])
def test_build_without_a_compiler_names_the_remedies(compiler: str, source_tree: Path, tmp_path: Path) -> None:
    """Without a C compiler, or with one that fails, the build is an error that names all remedies; the last gives a
    pure wheel."""
    broken = dict.fromkeys(("CC", "CXX"), compiler)
    result = _build("wheel", source_tree, tmp_path, **broken)
    output = result.stdout + result.stderr
    assert result.returncode != 0 and not list(tmp_path.glob("*.whl"))
    for remedy in ("no working C compiler", "apt-get install gcc", "--only-binary toolgrammar", "TOOLGRAMMAR_PURE=1"):
        assert remedy in output
    result = _build("wheel", source_tree, tmp_path, **broken, TOOLGRAMMAR_PURE="1")
    assert result.returncode == 0, result.stdout + result.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")


def test_source_archive(source_tree: Path, tmp_path: Path) -> None:
    """The source archive is made without translating a module, and has all that a build and a reader need."""
    tree = tmp_path / "tree"
    shutil.copytree(source_tree, tree, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("CHANGELOG.md", "MANIFEST.in"):
        shutil.copy(ROOT / name, tree)
    result = _build("sdist", tree, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert not (tree / "build").exists(), "an archive needs nothing built"
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("setup.py", "CHANGELOG.md", "docs/index.md", "docs/images/trace.png", "examples/openai_client.py"):
        assert name in names
    assert {f"core/{name.replace('.', '/')}.py" for name in COMPILED} <= names
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "core").rglob("*.pxd")} <= names
    assert not [name for name in names if name.startswith("tests") or name.endswith((".so", ".c"))]


def test_every_compiled_module_is_told(built_wheel: Any) -> None:
    """While it compiles, the build says which module is done and how many there are."""
    if has_compiler():
        told = re.findall(r"toolgrammar: compiled (\d+) of (\d+): ", built_wheel.log)
        assert [int(number) for number, _ in told] == [*range(1, len(COMPILED) + 2)]
        assert {int(whole) for _, whole in told} == {len(COMPILED) + 1}
