"""Packages and extension modules of the build, which pyproject.toml cannot list.

The library is complete without a compiled module. With Cython and a C compiler, the modules in ``COMPILED`` are built
as extensions of the same name, beside their source; otherwise, or with ``TOOLGRAMMAR_NO_EXTENSIONS=1`` in the
environment, the wheel is pure Python.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

from setuptools import Extension, find_namespace_packages, setup
from setuptools.command.build_ext import build_ext

FOLDERS = ("core", "tools", "adapters")

#: The folder of the package above them, within that of the adapters.
TOP = "toolgrammar"

MODULES = runpy.run_path("core/compiled/modules.py")
COMPILED = tuple(f"core/{name.replace('.', '/')}.py" for name in MODULES["COMPILED"])

#: Modules of integers, which compiled modules see as constants of C.
CONSTANTS = tuple(f"core/{name.replace('.', '/')}.py" for name in MODULES["CONSTANTS"])

#: Module of the code that Cython needs for arrays: compiled once, and shared by all extensions.
SHARED = "toolgrammar.core.compiled._cython"

#: Number of modules that are translated or compiled at a time.
PROCESSES = os.cpu_count() or 1

#: Compiler options: no symbols for a debugger, which take a quarter of the time and most of the space.
OPTIONS = [] if sys.platform == "win32" else ["-g0"]


def packages() -> list[str]:
    """Return the import names of all packages."""
    names = [TOP]
    for folder in FOLDERS:
        inner = find_namespace_packages(folder, exclude=[TOP])
        regular = [name for name in inner if Path(folder, *name.split("."), "__init__.py").is_file()]
        names += [f"toolgrammar.{folder}", *(f"toolgrammar.{folder}.{name}" for name in regular)]
    return sorted(names)


def compiler_works() -> bool:
    """Return True if a C file that needs Python's headers can be compiled here."""
    from setuptools._distutils.ccompiler import new_compiler
    from setuptools._distutils.errors import CompileError, DistutilsError
    from setuptools._distutils.sysconfig import customize_compiler, get_python_inc

    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder, "probe.c")
        probe.write_text("#include <Python.h>\nint toolgrammar_probe(void) { return 0; }\n", encoding="ascii")
        try:
            compiler = new_compiler()
            customize_compiler(compiler)
            compiler.compile([str(probe)], output_dir=folder, include_dirs=[get_python_inc()])
        except (CompileError, DistutilsError, OSError):
            return False
    return True


def constants(path: str) -> str:
    """Return the C declarations of a module of numbers: each a literal, of the smallest type that has it."""
    lines = [f"# Written by setup.py from {path}.", "", "cdef extern from *:"]
    for name, value in runpy.run_path(path).items():
        if isinstance(value, int) and not name.startswith("_"):
            kind, suffix = ("int", "") if abs(value) < 2**31 else ("long long", "LL")
            if value >= 2**63:
                kind, suffix = "unsigned long long", "ULL"
            lines.append(f'    const {kind} {name} "({value}{suffix})"')
    return "\n".join(lines) + "\n"


def declarations() -> str:
    """Write the ``.pxd`` files into a folder where Cython finds them under their import names; return its path."""
    folder = Path("build", "declarations")
    texts = {path: path.read_text(encoding="utf-8") for path in Path("core").rglob("*.pxd")}
    texts |= dict.fromkeys(Path("core").rglob("__init__.py"), "")
    texts |= {Path(path).with_suffix(".pxd"): constants(path) for path in CONSTANTS}
    for path, text in texts.items():
        copy = folder / "toolgrammar" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.is_file() or copy.read_text(encoding="utf-8") != text:  # what did not change is not compiled again
            copy.write_text(text, encoding="utf-8")
    return str(folder)


def extensions() -> list[Any]:
    """Return the extensions to build; none if they are switched off or cannot be built."""
    if os.environ.get("TOOLGRAMMAR_NO_EXTENSIONS", "") not in ("", "0"):
        return []
    sources = [path for path in COMPILED if Path(path).is_file()]
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("toolgrammar: Cython is not installed, so this is a pure Python build", file=sys.stderr)
        return []
    if not compiler_works():
        print("toolgrammar: no working C compiler, so this is a pure Python build", file=sys.stderr)
        return []
    modules = [
        Extension("toolgrammar." + path.removesuffix(".py").replace("/", "."), [path], extra_compile_args=OPTIONS)
        for path in sources
    ]
    modules.append(Extension(SHARED, ["core/compiled/_cython.c"], extra_compile_args=OPTIONS))
    return list(
        cythonize(
            modules,
            build_dir="build/cython",
            language_level=3,
            include_path=[declarations()],
            shared_utility_qualified_name=SHARED,
            nthreads=PROCESSES if multiprocessing.get_start_method() == "fork" else 0,  # others run this file again
        )
    )


class AllOrNone(build_ext):
    """Build of every extension, or of none: a compiled module may need another."""

    def build_extensions(self) -> None:
        """Build all extensions; if one fails, remove the others, so that the wheel is pure Python."""
        from setuptools.errors import BaseError, CCompilerError

        try:
            super().build_extensions()
        except (BaseError, CCompilerError, OSError) as error:
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions.clear()
            print(f"toolgrammar: {error}, so this is a pure Python build", file=sys.stderr)


setup(
    packages=packages(),
    ext_modules=extensions(),
    cmdclass={"build_ext": AllOrNone},
    options={"build_ext": {"parallel": PROCESSES}},
)
