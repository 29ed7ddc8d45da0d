"""Packages and extension modules of the build, which pyproject.toml cannot list.

The modules in ``COMPILED`` are built as extensions of the same name, beside their source. They run as Python too, much
slower: ``TOOLGRAMMAR_PURE=1`` in the environment builds that form. Without it a machine that cannot compile gets an
error, not the slow form.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import tempfile
import threading
from pathlib import Path

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

#: What is said where the extensions cannot be built.
CANNOT = """toolgrammar: {}. Either
  - install a C compiler (Debian: apt-get install gcc python3-dev; macOS: xcode-select --install; Windows: the Build
    Tools for Visual Studio), and install again, or
  - install a wheel of your platform, which needs no compiler: pip install --only-binary toolgrammar toolgrammar, or
  - set TOOLGRAMMAR_PURE=1 in the environment, and install again: without compiled modules a new schema takes many
    times longer. What is written is the same."""


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


def is_pure() -> bool:
    """Return True if the form without extensions is asked for (by the older name of the variable too)."""
    return any(os.environ.get(name, "") not in ("", "0") for name in ("TOOLGRAMMAR_PURE", "TOOLGRAMMAR_NO_EXTENSIONS"))


def _size(path: str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0


def extensions() -> list[Extension]:
    """Return the extensions by their Python sources; none if the pure form is asked for.

    Nothing is translated here: this runs whenever the project's metadata is asked for.
    """
    if is_pure():
        return []
    sources = [*(path for path in COMPILED if Path(path).is_file()), "core/compiled/_cython.c"]
    sources.sort(key=_size, reverse=True)  # the long ones first: so all processes end at about the same time
    return [
        Extension("toolgrammar." + path.rpartition(".")[0].replace("/", "."), [path], extra_compile_args=OPTIONS)
        for path in sources
    ]


class Build(build_ext):
    """Build of every extension, with a line for each; a compiled module may need another, so none is left out."""

    def run(self) -> None:
        """Translate all modules, and compile them.

        Raises:
            SystemExit: that is not possible here; says what to do.
        """
        if not self.extensions:
            return
        try:
            from Cython.Build import cythonize
        except ImportError:
            raise SystemExit(CANNOT.format("Cython is not installed")) from None
        if not compiler_works():
            raise SystemExit(CANNOT.format("there is no working C compiler, or Python's headers are missing"))
        print(f"toolgrammar: {len(self.extensions)} modules are translated to C and compiled", flush=True)
        translated = cythonize(
            self.extensions,
            build_dir="build/cython",
            language_level=3,
            compiler_directives={"freethreading_compatible": True},  # core/compiled/gil.py says why
            include_path=[declarations()],
            shared_utility_qualified_name=SHARED,
            nthreads=PROCESSES if multiprocessing.get_start_method() == "fork" else 0,  # others run this file again
        )
        known = {extension.name: extension for extension in self.extensions}
        for extension in translated:  # what setuptools noted of an extension stays with it
            vars(known[extension.name]).update(vars(extension))
        self.done = 0
        self.lock = threading.Lock()
        super().run()

    def build_extension(self, extension: Extension) -> None:
        """Compile one module, and say so."""
        super().build_extension(extension)
        with self.lock:
            self.done += 1
            print(f"toolgrammar: compiled {self.done} of {len(self.extensions)}: {extension.name}", flush=True)


setup(
    packages=packages(),
    ext_modules=extensions(),
    cmdclass={"build_ext": Build},
    options={"build_ext": {"parallel": PROCESSES}},
)
